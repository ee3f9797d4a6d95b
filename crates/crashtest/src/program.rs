//! The program under test, as the library sees it: [`Task`] while it works, [`After`] when it has been cut.

use crate::recorder::Recorder;
use std::cell::RefCell;
use std::error::Error;
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};
use std::rc::Rc;
use std::sync::Arc;

/// The result of a part of a test: any error fails it, with its text.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Fails a part of a test, which returns an [`Outcome`], unless a condition holds. A text may follow, as for
/// [`assert!`].
///
/// ```
/// use quipu_crashtest::{Outcome, ensure};
///
/// fn is_small(number: u64) -> Outcome {
///     ensure!(number < 10, "{number} is large");
///     Ok(())
/// }
/// assert_eq!(is_small(12).unwrap_err().to_string(), "12 is large");
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr $(,)?) => {
        $crate::ensure!($condition, "{}", concat!("does not hold: ", stringify!($condition)))
    };
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return ::std::result::Result::Err(::std::format!($($text)+).into());
        }
    };
}

/// An event that the tasks tell of; any type of yours.
pub trait Event: Clone + PartialEq + Debug + 'static {}

impl<T: Clone + PartialEq + Debug + 'static> Event for T {}

/// The events of a history, in their order.
pub(crate) struct Events<E> {
    pub(crate) began: Vec<E>,
    /// Which of those are done.
    pub(crate) done: Vec<usize>,
}

impl<E> Default for Events<E> {
    fn default() -> Events<E> {
        Events { began: Vec::new(), done: Vec::new() }
    }
}

/// A task of the program, which runs beside the others. One thread of the system runs all of them in turns:
/// at each call of the store, and within, another may go on.
pub struct Task<E> {
    pub(crate) id: u64,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) events: Rc<RefCell<Events<E>>>,
}

impl<E: Event> Task<E> {
    /// Its number, from 1.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// A number in this range. All choices of a task come from here, and all sizes: they are what is drawn
    /// anew, replayed, and made smaller when a history becomes shorter. Nearer to the start of the range is
    /// simpler.
    ///
    /// # Panics
    /// If the range has no numbers.
    pub fn draw(&self, range: impl RangeBounds<u64>) -> u64 {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => Some(*end),
            Bound::Excluded(behind) => behind.checked_sub(1),
            Bound::Unbounded => Some(u64::MAX),
        };
        let end = end.filter(|end| *end >= start).expect("a range to draw from has numbers");
        self.recorder.draw(self.id, start..=end)
    }

    /// Tells that an event has begun. From now on a cut may leave it, wholly or in part; the invariant says
    /// what is allowed.
    pub fn began(&self, event: &E) {
        self.events.borrow_mut().began.push(event.clone());
        self.recorder.note(self.id, format!("began {event:?}"));
    }

    /// Tells that an event is done: the program may have told others of it. From now on each cut must leave
    /// it. Of equal events, the one that began first is done first.
    ///
    /// # Panics
    /// If no such event has begun.
    pub fn done(&self, event: &E) {
        let mut events = self.events.borrow_mut();
        let found =
            (0..events.began.len()).find(|at| events.began[*at] == *event && !events.done.contains(at));
        let Some(found) = found else {
            drop(events);
            panic!("{event:?} is done, and did not begin: tell Task::began before");
        };
        events.done.push(found);
        drop(events);
        self.recorder.note(self.id, format!("done {event:?}"));
    }

    /// The time of the store's clock, in milliseconds since 1970. It is simulated, and stands unless the test
    /// [moves it](crate::CrashTest::moves_clock).
    pub fn now(&self) -> u64 {
        self.recorder.history().now()
    }
}

/// The knowledge of the invariant: the events before the cut, whatever the pool has of them.
pub struct After<E> {
    pub(crate) began: Vec<E>,
    pub(crate) is_done: Vec<bool>,
    pub(crate) now: u64,
}

impl<E: Event> After<E> {
    /// The events that had begun, in their order, done or not.
    pub fn began(&self) -> &[E] {
        &self.began
    }

    /// The events that were done.
    pub fn done(&self) -> impl Iterator<Item = &E> {
        self.began.iter().zip(&self.is_done).filter(|(_, is_done)| **is_done).map(|(event, _)| event)
    }

    /// Whether an event was done. Of equal events, whether all were.
    pub fn is_done(&self, event: &E) -> bool {
        let mut same = self.began.iter().zip(&self.is_done).filter(|(own, _)| *own == event).peekable();
        same.peek().is_some() && same.all(|(_, is_done)| *is_done)
    }

    /// The time of the store's clock, in milliseconds since 1970.
    pub fn now(&self) -> u64 {
        self.now
    }
}
