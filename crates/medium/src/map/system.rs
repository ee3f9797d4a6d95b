//! Facts that the engine may not take from the system itself: the identity of this boot, the time, and
//! randomness.
//!
//! They come through the region so that a simulated run can replay them.

use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The identity of this boot of the system, which tells whether the page cache of an unclean pool was lost.
///
/// If the system does not tell, a random one: it differs from that of the last run, so the weaker case is
/// assumed.
pub(crate) fn boot_id() -> [u8; 16] {
    let parse = || {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let number = u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?;
        Some(number.to_be_bytes())
    };
    parse().unwrap_or_else(|| {
        let mut id = [0; 16];
        entropy(&mut id);
        id
    })
}

/// Lets this thread rest.
pub(crate) fn pause(microseconds: u64) {
    std::thread::sleep(std::time::Duration::from_micros(microseconds));
}

/// Milliseconds since 1970, by the system's clock.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Milliseconds of the monotonic clock, which begins about when the system does.
pub(crate) fn ticks() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// As [`ticks`], but cheaper, and as many milliseconds behind as a tick of the system takes.
#[inline]
pub(crate) fn coarse_ticks() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// The number that the system has for this thread.
#[inline]
pub(crate) fn thread_number() -> u32 {
    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    match NUMBER.get() {
        0 => {
            NUMBER.set(gettid().as_raw_nonzero().get() as u32);
            NUMBER.get()
        }
        number => number,
    }
}

/// The name of a thread of this process, if it is still there.
pub(crate) fn thread_name(number: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/self/task/{number}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Fills `out` with unpredictable bytes.
pub(crate) fn entropy(out: &mut [u8]) {
    let mut done = 0;
    while done < out.len() {
        // Waits only early in a boot, and is interrupted by signals only in large requests, hence the loop.
        match getrandom(&mut out[done..], GetRandomFlags::empty()) {
            Ok(count) => done += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the system has no randomness, which every Linux since 3.17 has: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_has_one_identity_and_entropy_does_not_repeat() {
        assert_eq!(boot_id(), boot_id());
        assert_ne!(boot_id(), [0; 16]);
        let (mut first, mut second) = ([0; 1000], [0; 1000]);
        entropy(&mut first);
        entropy(&mut second);
        assert_ne!(first, second);
        assert!(first[992..] != [0; 8], "filled to the end");
    }
}
