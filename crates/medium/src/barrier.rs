//! Full barriers that the system makes all threads of the process pass, at the price of those who ask for one: `membarrier(2)`,
//! "private expedited". A thread that is running passes one at that moment, wherever it is; one that is not has passed
//! one when it stopped.
//!
//! What such a barrier orders is what the processor does; the compiler has to be told besides. It says nothing about the medium:
//! whatever has to be durable needs its fence.

#[cfg(all(target_os = "linux", not(miri)))]
use rustix::thread::{MembarrierCommand, membarrier};

/// Whether the system lends barriers to this process from now on. May be asked any number of times.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn lends_barriers() -> bool {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}

/// Makes every thread of the process pass a full barrier before this returns; `false` if the system refuses, as it does where it has
/// not [lent](lends_barriers) any. A call of the system and an interrupt of every processor that runs such a thread.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn all_threads_pass() -> bool {
    membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Whether the system lends barriers: it has none.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn lends_barriers() -> bool {
    false
}

/// Refuses.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn all_threads_pass() -> bool {
    false
}
