//! Full barriers that the system makes all threads of the process pass: `membarrier(2)`, "private expedited".
//!
//! Only the caller pays for them. A running thread passes one at that moment, wherever it is; a thread that
//! is not running has passed one when it stopped.
//!
//! Such a barrier orders the processor's accesses; the compiler has to be told besides. It says nothing about
//! the medium: durability needs a fence.

#[cfg(all(target_os = "linux", not(miri)))]
use rustix::thread::{MembarrierCommand, membarrier};

/// Whether the system lends barriers to this process from now on. May be asked any number of times.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn lends_barriers() -> bool {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}

/// Makes every thread of the process pass a full barrier before this returns; `false` if the system refuses,
/// as it does where it has not [lent](lends_barriers) any. It costs a call of the system and an interrupt of
/// every processor that runs such a thread.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn all_threads_pass() -> bool {
    membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Answers that this system lends no barriers.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn lends_barriers() -> bool {
    false
}

/// Refuses.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn all_threads_pass() -> bool {
    false
}
