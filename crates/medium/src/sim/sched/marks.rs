//! Marks of work under way, of the running thread or, in a simulated run, of the running task.
//!
//! A store that runs a caller's closure under a lock asks by its mark whether a call comes out of that
//! closure. Tasks share a thread of the system, so the scheduler keeps each task's marks apart. Outside of
//! any marked work the question costs one read.
//!
//! Works may end in another order than they began: a caller may have coroutines of its own, of which the
//! scheduler does not know. So each work takes its own mark back, wherever that stands.

use std::cell::Cell;

/// Marks at once that are kept apart. A further one stands for every mark, until it ends: a store then
/// refuses a call rather than waiting for itself.
const KEPT: usize = 8;

/// The marks of a thread or task; what a switch exchanges.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    count: usize,
    /// Those that are kept apart, in any order.
    kept: [usize; KEPT],
    kept_count: usize,
}

impl Marks {
    /// No marks: those of a task that begins.
    pub(super) const NONE: Marks = Marks { count: 0, kept: [0; KEPT], kept_count: 0 };
}

/// The marks of the running one.
struct Running {
    count: Cell<usize>,
    kept: [Cell<usize>; KEPT],
    kept_count: Cell<usize>,
}

thread_local! {
    static RUNNING: Running = const {
        Running { count: Cell::new(0), kept: [const { Cell::new(0) }; KEPT], kept_count: Cell::new(0) }
    };
}

impl Running {
    fn kept(&self) -> &[Cell<usize>] {
        &self.kept[..self.kept_count.get()]
    }
}

/// Makes these the marks of what runs from now on, and returns those of before.
pub(super) fn exchange(marks: Marks) -> Marks {
    RUNNING.with(|running| {
        if marks.count == 0 && running.count.get() == 0 {
            return Marks::NONE;
        }
        let kept = std::array::from_fn(|place| running.kept[place].replace(marks.kept[place]));
        let kept_count = running.kept_count.replace(marks.kept_count);
        Marks { count: running.count.replace(marks.count), kept, kept_count }
    })
}

/// Takes the mark of a work back, however the work ends.
struct TakeBack {
    of: usize,
    is_kept: bool,
}

impl Drop for TakeBack {
    #[inline]
    fn drop(&mut self) {
        RUNNING.with(|running| {
            if self.is_kept {
                let kept = running.kept();
                let place = kept.iter().rposition(|mark| mark.get() == self.of);
                // A caller may have gone on with its coroutine on another thread.
                let (Some(place), Some(last)) = (place, kept.last()) else { return };
                kept[place].set(last.get());
                running.kept_count.set(kept.len() - 1);
            }
            running.count.set(running.count.get().saturating_sub(1));
        });
    }
}

/// Does work that has this mark until it ends.
#[inline]
pub fn marked<R>(of: usize, work: impl FnOnce() -> R) -> R {
    let _mark = RUNNING.with(|running| {
        running.count.set(running.count.get() + 1);
        let place = running.kept_count.get();
        let is_kept = place < KEPT;
        if is_kept {
            running.kept[place].set(of);
            running.kept_count.set(place + 1);
        }
        TakeBack { of, is_kept }
    });
    work()
}

/// Whether the caller is inside of work with any mark.
#[inline]
pub fn is_marked() -> bool {
    RUNNING.with(|running| running.count.get() != 0)
}

/// Whether the caller is inside of work with this mark.
#[cold]
pub fn is_marked_as(of: usize) -> bool {
    RUNNING.with(|running| {
        let kept = running.kept();
        running.count.get() > kept.len() || kept.iter().any(|mark| mark.get() == of)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{point, run};
    use super::*;
    use corosensei::{Coroutine, CoroutineResult, Yielder};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn marks_end_with_their_work_also_by_a_panic() {
        assert!(!is_marked());
        marked(1, || {
            assert!(is_marked_as(1) && !is_marked_as(2));
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                marked(2, || {
                    assert!(is_marked_as(1) && is_marked_as(2));
                    panic!("work that fails");
                })
            }));
            assert!(panicked.is_err() && is_marked_as(1) && !is_marked_as(2));
        });
        assert!(!is_marked());
    }

    /// Tasks are interrupted inside of marked work, and end in another order than they began.
    #[test]
    fn each_task_has_its_own_marks() {
        for seed in 0..50 {
            let task = |own: usize, turns: usize| {
                move || {
                    for _ in 0..4 {
                        assert!(!is_marked());
                        marked(own, || {
                            for _ in 0..turns {
                                point();
                                assert!((1..4).all(|of| is_marked_as(of) == (of == own)));
                            }
                        });
                        point();
                    }
                }
            };
            let tasks: Vec<Box<dyn FnOnce()>> =
                vec![Box::new(task(1, 3)), Box::new(task(2, 5)), Box::new(task(3, 2))];
            run(seed, tasks).unwrap();
            assert!(!is_marked());
        }
    }

    /// Marked work on a stack of its own, which is suspended in the midst of it.
    fn suspended(of: usize) -> Coroutine<(), (), ()> {
        let mut work =
            Coroutine::new(move |yielder: &Yielder<(), ()>, ()| marked(of, || yielder.suspend(())));
        assert!(matches!(work.resume(()), CoroutineResult::Yield(())));
        work
    }

    #[test]
    fn works_that_end_in_another_order_take_their_own_marks_back() {
        let [mut first, mut second, mut third] = [1, 2, 3].map(suspended);
        for (ending, left) in [(&mut first, &[2, 3][..]), (&mut third, &[2]), (&mut second, &[])] {
            assert!(matches!(ending.resume(()), CoroutineResult::Return(())));
            assert!((1..4).all(|of| is_marked_as(of) == left.contains(&of)));
        }
        assert!(!is_marked());
    }

    #[test]
    fn marks_beyond_those_kept_apart_stand_for_every_one() {
        let mut works: Vec<_> = (1..=KEPT + 2).map(suspended).collect();
        let other = KEPT + 9;
        assert!(is_marked_as(other) && is_marked_as(1));
        // The last two, and one that is kept.
        for (place, is_beyond) in [(KEPT + 1, true), (0, true), (KEPT - 1, false)] {
            works.remove(place).resume(());
            assert_eq!(is_marked_as(other), is_beyond);
        }
        assert!(!is_marked_as(1) && (2..=KEPT).all(is_marked_as));
        works.into_iter().for_each(|mut work| _ = work.resume(()));
        assert!(!is_marked());
    }
}
