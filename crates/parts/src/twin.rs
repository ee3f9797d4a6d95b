//! *Twins*: stores that leave out one rule of their own, on purpose. Some proof must convict each.
//!
//! A place that obeys a rule asks whether it is left out now: `twin!(PublishBeforePersist)`. Without the
//! feature `twins` the answer is the constant `false`, so nothing is left of the question. With it, the
//! answer stands in a switch of the thread, which [`leave_out`] sets until its guard drops. A simulated run,
//! and a model of `loom`, has all its tasks on one thread. Threads that are started meanwhile take the switch
//! along by [`inherited`].

mod list;

pub use list::Twin;

use std::marker::PhantomData;
use std::sync::LazyLock;

/// Whether a rule is left out now, on this thread.
#[macro_export]
macro_rules! twin {
    ($rule:ident) => {
        $crate::twin::is_left_out($crate::twin::Twin::$rule)
    };
}

impl Twin {
    /// Its name on command lines: words with hyphens between.
    pub fn name(self) -> &'static str {
        static NAMES: LazyLock<Vec<String>> =
            LazyLock::new(|| Twin::ALL.iter().map(|twin| hyphenated(&format!("{twin:?}"))).collect());
        &NAMES[self as usize]
    }
}

fn hyphenated(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// Whether twins can be had: whether this was built with the feature `twins`.
pub const ARE_THERE: bool = cfg!(feature = "twins");

#[cfg(feature = "twins")]
thread_local! {
    /// Of the standard library also under `loom`, which runs the threads of a model on one.
    static LEFT_OUT: std::cell::Cell<Option<Twin>> = const { std::cell::Cell::new(None) };
    static DAWDLE: std::cell::Cell<Option<fn()>> = const { std::cell::Cell::new(None) };
}

/// The question of [`twin!`](crate::twin!).
#[doc(hidden)]
#[inline(always)]
pub fn is_left_out(rule: Twin) -> bool {
    left_out() == Some(rule)
}

/// Leaves a rule out on this thread, or none, until the guard drops. Then it is again as it was.
///
/// # Panics
/// For a rule, in a build without the feature `twins`: what it should convict would pass for sound.
pub fn leave_out(rule: Option<Twin>) -> Guard {
    #[cfg(feature = "twins")]
    let before = LEFT_OUT.replace(rule);
    #[cfg(not(feature = "twins"))]
    let before = {
        assert!(rule.is_none(), "{rule:?} cannot be left out: this was built without the feature `twins`");
        None
    };
    Guard { before, of_thread: PhantomData }
}

/// The rule that is left out on this thread.
#[inline(always)]
pub fn left_out() -> Option<Twin> {
    #[cfg(feature = "twins")]
    return LEFT_OUT.get();
    #[cfg(not(feature = "twins"))]
    None
}

/// Leaves a rule out until it drops.
#[must_use = "the rule is left out only until this drops"]
pub struct Guard {
    #[cfg_attr(not(feature = "twins"), expect(dead_code, reason = "there is no switch to set back"))]
    before: Option<Twin>,
    /// It sets back the switch of the thread that it was made on.
    of_thread: PhantomData<*const ()>,
}

#[cfg(feature = "twins")]
impl Drop for Guard {
    fn drop(&mut self) {
        LEFT_OUT.set(self.before);
    }
}

/// The rule that a thread leaves out, and how it dawdles. Another thread that works for it does the same.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    rule: Option<Twin>,
    #[cfg(feature = "twins")]
    slowly: Option<fn()>,
}

impl Habits {
    /// Those of this thread.
    pub fn of_this_thread() -> Habits {
        Habits {
            rule: left_out(),
            #[cfg(feature = "twins")]
            slowly: DAWDLE.get(),
        }
    }

    /// Works by these habits; afterwards this thread has its own again.
    pub fn during<R>(self, work: impl FnOnce() -> R) -> R {
        let _rule = leave_out(self.rule);
        #[cfg(feature = "twins")]
        let _slowly = Slowly(DAWDLE.replace(self.slowly));
        work()
    }
}

/// Lets a thread dawdle as it did before, when this drops.
#[cfg(feature = "twins")]
struct Slowly(Option<fn()>);

#[cfg(feature = "twins")]
impl Drop for Slowly {
    fn drop(&mut self) {
        DAWDLE.set(self.0);
    }
}

/// The work of a thread that is to be started, by the [habits](Habits) of this thread.
pub fn inherited<R>(work: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let habits = Habits::of_this_thread();
    move || habits.during(work)
}

/// Lets this thread call a function [between two looks](crate::sync::between_looks), from now on. Otherwise
/// real threads seldom meet there. Nothing happens in a build without the feature `twins`.
#[cfg_attr(not(feature = "twins"), expect(unused_variables, reason = "nobody dawdles"))]
pub fn dawdle_by(slowly: Option<fn()>) {
    #[cfg(feature = "twins")]
    DAWDLE.set(slowly);
}

/// Dawdles, if this thread is to.
#[inline(always)]
pub(crate) fn dawdle() {
    #[cfg(feature = "twins")]
    if let Some(slowly) = DAWDLE.get() {
        slowly();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_left_out_until_its_guard_drops_and_on_this_thread_alone() {
        let is_asked = || (twin!(HoleIsTail), twin!(NotEnded));
        assert_eq!(is_asked(), (false, false));
        {
            let _outer = leave_out(Some(Twin::HoleIsTail));
            assert_eq!(is_asked(), (true, false));
            {
                let _inner = leave_out(Some(Twin::NotEnded));
                assert_eq!(is_asked(), (false, true));
            }
            assert_eq!(is_asked(), (true, false));
            assert_eq!(std::thread::spawn(is_asked).join().expect("no panic"), (false, false));
            assert_eq!(std::thread::spawn(inherited(is_asked)).join().expect("no panic"), (true, false));
            let outer = Habits::of_this_thread();
            let _inner = leave_out(Some(Twin::NotEnded));
            assert_eq!(outer.during(is_asked), (true, false));
            assert_eq!(is_asked(), (false, true));
        }
        assert_eq!(is_asked(), (false, false));
    }

    #[test]
    fn twins_have_names_and_texts() {
        assert_eq!(Twin::FreedInDramOnly.name(), "freed-in-dram-only");
        let text = "Recovery leaves memtables open, and chunks that were cut off come back.";
        assert_eq!(Twin::NotEnded.text(), text);
        for twin in Twin::ALL {
            assert!(twin.text().ends_with('.') && !twin.text().contains("  "), "{twin:?}: {:?}", twin.text());
        }
    }
}
