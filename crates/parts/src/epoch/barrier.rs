//! The full barrier between an announcement and the reads behind it, and who pays for it.
//!
//! Every read of the store announces an epoch; collections are rare. A barrier in each announcement is dear:
//! the processor waits there until the last write has reached the medium, and cannot start on the cache
//! misses of the next operation. Linux can shift the cost ([`all_threads_pass`]): a collection makes every
//! running thread of the process pass a full barrier at that moment. A thread that is not running passed one
//! when it stopped. An announcement is then an ordinary store. If it precedes such a barrier, the collection
//! sees it; if it follows, so do the reads behind it.
//!
//! The barrier of an announcement had a second effect: it made a write visible before its thread's next read.
//! Two threads that each put a key and then read the other's key must not both find the old value. So a
//! writer notes for its thread that it has written ([`note_write`]), and the thread's next read begins with a
//! barrier ([`Barrier::announce`], or [`see_own_writes`] if it is already pinned). A write behind another
//! write has none, and may begin while the first is still on its way to the medium. Reads outside the store
//! have the guarantee that the release of a lock gives: a thread that learns of a write finds it.
//!
//! On other systems each announcement has its own barrier. On x86-64 a locked exchange on a line that only
//! this thread writes costs about a tenth of a store and `mfence`, since it does not wait for unrelated
//! loads. On Arm a `swpal` is a full barrier by the architecture's memory model, but its fallback loop of
//! exclusive loads and stores is not, and neither is an exchange in the language's model. So everywhere else
//! a sequentially consistent fence follows, on Arm one `dmb ish`. Arm is not lent barriers either: the proof
//! in [the room's documentation](super) needs loads in program order.

use crate::sync::atomic::{AtomicU64, Ordering, fence};
use quipu_medium::{all_threads_pass, lends_barriers};
use std::cell::Cell;
use std::sync::atomic::compiler_fence;

/// Whether the processor executes loads in program order, and an exchange is a full barrier.
const IN_ORDER: bool = cfg!(all(target_arch = "x86_64", not(loom)));

thread_local! {
    /// Whether this thread may have written to a store, through any client, something that others cannot see
    /// yet.
    static HAS_WRITTEN: Cell<bool> = const { Cell::new(false) };
}

#[inline]
pub(super) fn note_write() {
    HAS_WRITTEN.set(true);
}

/// Makes the writes of this thread visible to all others before it reads.
#[inline]
pub(super) fn see_own_writes() {
    if HAS_WRITTEN.get() {
        HAS_WRITTEN.set(false);
        fence(Ordering::SeqCst);
    }
}

/// How announcements get their barrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Barrier {
    /// Each announcement has its own.
    Own,
    /// The system makes all threads pass one on demand.
    Lent,
}

impl Barrier {
    /// The kind that costs announcements least on this system.
    pub(super) fn choose() -> Barrier {
        if IN_ORDER && lends_barriers() { Barrier::Lent } else { Barrier::Own }
    }

    /// Stores an announcement. A thread that then [looks](Barrier::before_looking) for announcements finds
    /// it, or else this thread reads the stores that the other one made before it looked. The earlier writes
    /// of a thread that `only_reads` are visible to all before its reads.
    #[inline]
    pub(super) fn announce(self, slot: &AtomicU64, epoch: u64, only_reads: bool) {
        let has_written = only_reads && HAS_WRITTEN.get();
        if self == Barrier::Lent && !has_written {
            slot.store(epoch, Ordering::Release);
            // The system's barrier orders the processor's accesses; the compiler must emit them in this
            // order.
            return compiler_fence(Ordering::SeqCst);
        }
        if has_written {
            HAS_WRITTEN.set(false);
        }
        slot.swap(epoch, Ordering::SeqCst);
        if IN_ORDER {
            // The exchange is the barrier; the compiler must not move loads over it either.
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The other side, before a look at announcements. `false` if the system now refuses the barrier that it
    /// lent before.
    #[must_use]
    pub(super) fn before_looking(self) -> bool {
        fence(Ordering::SeqCst);
        self == Barrier::Own || all_threads_pass()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Lets two threads go on at one moment, as far as two can: neither sleeps.
    struct Meeting(AtomicU64);

    impl Meeting {
        fn meet(&self, round: u64) {
            self.0.fetch_add(1, Ordering::AcqRel);
            let mut turns = 0u64;
            while self.0.load(Ordering::Acquire) < 2 * round {
                turns += 1;
                if turns.is_multiple_of(1 << 14) {
                    std::thread::yield_now();
                }
            }
        }
    }

    /// Two threads store each to its own word, and then read the other's: one of them must see the other's
    /// store. Without the barrier on either side some of the rounds end with neither.
    fn one_of_two_sees_the_other(barrier: Barrier) {
        const ROUNDS: u64 = 20_000;
        // Alone on their lines.
        let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
        let (announced, unlinked) = (&words[16], &words[48]);
        // Stores that miss delay the announcement behind them, as a record's do.
        let cold: Vec<AtomicU64> = (0..4 << 20).map(|_| AtomicU64::new(0)).collect();
        let delay = |round: u64| {
            for i in 0..8 {
                cold[((round * 8 + i).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 42) as usize]
                    .store(round, Ordering::Relaxed);
            }
        };
        let (begin, end) = (Meeting(AtomicU64::new(0)), Meeting(AtomicU64::new(0)));
        let turn = |act: &dyn Fn(u64) -> bool| {
            let one = |round| {
                begin.meet(round);
                let saw = act(round);
                end.meet(round);
                saw
            };
            (1..=ROUNDS).map(one).collect::<Vec<_>>()
        };
        let (seen, found) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                turn(&|round| {
                    delay(round);
                    barrier.announce(announced, round, false);
                    unlinked.load(Ordering::Acquire) == round
                })
            });
            let found = turn(&|round| {
                unlinked.store(round, Ordering::Release);
                assert!(barrier.before_looking());
                announced.load(Ordering::Acquire) == round
            });
            (reader.join().expect("the reader does not panic"), found)
        });
        let missed = found.iter().zip(&seen).filter(|(found, seen)| !**found && !**seen).count();
        assert_eq!(missed, 0, "rounds of {ROUNDS} in which neither saw the other");
    }

    #[test]
    fn an_announcement_is_found_or_its_reader_sees_what_was_unlinked() {
        one_of_two_sees_the_other(Barrier::Own);
        one_of_two_sees_the_other(Barrier::choose());
    }
}
