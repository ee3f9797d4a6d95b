//! Marks of work under way, of the running thread or, in a simulated run, of the running task.
//!
//! A store that runs a caller's closure under a lock asks by its mark whether a call comes out of that
//! closure. Tasks share a thread of the system, so the scheduler keeps each task's marks apart. Outside of
//! any marked work the question costs one read.
//!
//! The marks of a task lie on its own stack, each naming the one before it.

use std::cell::Cell;
use std::ptr;

struct Mark {
    of: usize,
    before: *const Mark,
}

/// The last mark of a thread or task; all that a switch has to exchange.
#[derive(Clone, Copy)]
pub(super) struct Marks(*const Mark);

impl Marks {
    /// No marks: those of a task that begins.
    pub(super) const NONE: Marks = Marks(ptr::null());
}

thread_local! {
    /// Those of the running one.
    static LAST: Cell<Marks> = const { Cell::new(Marks::NONE) };
}

/// Makes these the marks of what runs from now on, and returns those of before.
pub(super) fn exchange(marks: Marks) -> Marks {
    LAST.replace(marks)
}

/// Puts back the marks of before, however the marked work ends.
struct Restore(Marks);

impl Drop for Restore {
    #[inline]
    fn drop(&mut self) {
        LAST.set(self.0);
    }
}

/// Does work that has this mark until it ends.
#[inline]
pub fn marked<R>(of: usize, work: impl FnOnce() -> R) -> R {
    let before = LAST.get();
    let mark = Mark { of, before: before.0 };
    let _restore = Restore(before);
    LAST.set(Marks(&raw const mark));
    work()
}

/// Whether the caller is inside of work with any mark.
#[inline]
pub fn is_marked() -> bool {
    !LAST.get().0.is_null()
}

/// Whether the caller is inside of work with this mark.
#[cold]
pub fn is_marked_as(of: usize) -> bool {
    let mut next = LAST.get().0;
    // SAFETY: a mark is on the stack of the running thread or task, in a frame of `marked` that has not
    // ended: it restores the mark before it when it ends.
    while let Some(mark) = unsafe { next.as_ref() } {
        if mark.of == of {
            return true;
        }
        next = mark.before;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::{point, run};
    use super::*;
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
}
