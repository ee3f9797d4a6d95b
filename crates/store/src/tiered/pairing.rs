//! Which state of its levels a pool relies on, so that levels of another time are refused.
//!
//! The levels are files of their own: a folder of them can be restored from an old copy, and so can the pool
//! beside it. Nothing in an old record tells that it is old. So levels have a *state*, another one after each
//! change of their contents: a number that counts the changes, and random bits of the run that made it. It
//! stands at three places. A dump, or a compaction, goes these steps, each durable before the next:
//!
//! 1. The pool's *raised* state becomes a new one. On a file it is written back to the device.
//! 2. The *note* beside the levels, a file that is replaced as a whole, tells this state, and the version of
//!    each tree at least.
//! 3. The levels change.
//! 4. Steps 1 and 2 are done once more, with another new state.
//! 5. The pool's *confirmed* state becomes that one. From then on the pool relies on the change: it lets
//!    memtables go that were dumped, and range tombstones that are done with.
//!
//! So at any time: confirmed <= noted <= raised, and levels that were noted with the confirmed state, or a
//! later one, have all that the pool relies on. An opening asks for no more, and these hold:
//!
//! - *A kill between two steps* leaves them so. Behind step 3 the levels have a change that the pool does not
//!   rely on, as [`dump`](super::dump) explains. The next opening takes the noted state for confirmed: that
//!   asks for no more contents, since the pool relies on nothing that came meanwhile.
//! - *A crash of the system on a file* leaves them so, though pages reach the disk late or never. The raised
//!   state was written back before the note, and a lost confirmed state is a lower one.
//! - *Older levels* have a note below the confirmed state, also if they were copied at one moment in the
//!   midst of a change. The state that is noted before a change is never confirmed for it.
//! - *Torn levels*, which were copied file by file during a change, may have the note of behind it and a tree
//!   of before. That tree has a lower version than the note asks for. Versions only grow.
//! - *Newer levels* have a note above the raised state of an older pool, also if a compaction has dropped all
//!   that was newer in them. A change that failed counts as well, and its number is not used again.
//! - *Levels of another branch*, where both were copied and went on apart, have other random bits.
//!
//! A pool none of whose tables has anything on levels relies on no state: there the folder may be missing.
//! Moves of files between levels change no contents, and no state. So versions tell nothing of a tree that is
//! *newer* than its note. Beside the pool of now that note is too old. Beside an older pool the numbers of
//! such a tree are too high, if it has new ones.

use quipu_parts::heap::chain::anchor::{Anchor, Paired};
use quipu_parts::record::Certifier;
use quipu_parts::runs::{Forest, LevelsState, Notice, RunsError};
use quipu_parts::space::Space;
use quipu_parts::sync::SpinLock;
use quipu_parts::twin;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The states of a pool and its levels.
pub(super) struct Pairing {
    forest: Arc<dyn Forest>,
    anchor: Arc<Anchor>,
    space: Arc<Space>,
    certifier: Certifier,
    states: SpinLock<States>,
}

struct States {
    /// The note that the opening has found.
    found: LevelsState,
    /// The one that was written last, or may have been.
    noted: LevelsState,
    /// Of this run, once it has changed something.
    mark: Option<u64>,
    /// Whether the levels have changed, and the pool could not be told so.
    owes: bool,
}

/// A change of levels.
pub(super) struct Change {
    pairing: Arc<Pairing>,
    has_begun: AtomicBool,
}

impl Pairing {
    pub(super) fn new(
        (forest, anchor): (Arc<dyn Forest>, Arc<Anchor>),
        (space, certifier): (Arc<Space>, Certifier),
        found: LevelsState,
    ) -> Arc<Pairing> {
        let states = SpinLock::new(States { found, noted: found, mark: None, owes: false });
        Arc::new(Pairing { forest, anchor, space, certifier, states })
    }

    /// A change that is to come.
    pub(super) fn change(self: &Arc<Self>) -> Arc<Change> {
        Arc::new(Change { pairing: self.clone(), has_begun: AtomicBool::new(false) })
    }

    /// Steps 1 and 2.
    fn raise(&self, states: &mut States) -> Result<LevelsState, RunsError> {
        let mark = *states.mark.get_or_insert_with(|| {
            let mut bytes = [0; 8];
            self.space.region().entropy(&mut bytes);
            u64::from_le_bytes(bytes)
        });
        let number = self.anchor.levels().raised.number.max(states.noted.number).saturating_add(1);
        let raised = LevelsState { number, mark };
        if !twin!(LevelsNotRaised) {
            self.pair(Paired { raised, confirmed: states.found });
            self.anchor.write_back(self.space.region()).map_err(|error| RunsError::Device {
                place: self.forest.place(),
                error: io::Error::other(error).into(),
            })?;
        }
        // Also if that fails: the note may be there.
        states.noted = raised;
        self.forest.note(raised)?;
        Ok(raised)
    }

    fn pair(&self, states: Paired) {
        self.anchor.pair(self.space.region(), &self.certifier, states);
    }
}

impl Change {
    /// For those who tell it when the change begins.
    pub(super) fn notice(self: &Arc<Self>) -> Notice {
        let change = self.clone();
        Arc::new(move || change.begin())
    }

    /// Steps 1 and 2.
    pub(super) fn begin(&self) -> Result<(), RunsError> {
        self.pairing.raise(&mut self.pairing.states.lock())?;
        self.has_begun.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Steps 4 and 5, if it has begun, or if an earlier change could not do them. After an error the pool
    /// does not rely on the change, and must not.
    pub(super) fn confirm(&self) -> Result<(), RunsError> {
        let mut states = self.pairing.states.lock();
        if self.has_begun.load(Ordering::Relaxed) || states.owes {
            states.owes = true;
            let confirmed = self.pairing.raise(&mut states)?;
            self.pairing.pair(Paired { raised: confirmed, confirmed });
            states.owes = false;
        }
        Ok(())
    }
}

/// Whether levels with this note belong to a pool with these states; if not, why.
fn fits(found: LevelsState, pool: Paired) -> Result<(), String> {
    let Paired { raised, confirmed } = pool;
    let numbers = format!("state {}, and the pool is at state {}", found.number, confirmed.number);
    let next = "restore the pool and its levels from copies of one time";
    if found.number > raised.number {
        return Err(format!("they are newer than the pool ({numbers}); {next}"));
    }
    if found.number < confirmed.number {
        return Err(format!("they are older than the pool ({numbers}); {next}"));
    }
    if found != confirmed && (found.mark != raised.mark || found.number == confirmed.number) {
        return Err(format!("they went on beside another copy of this pool ({numbers}); {next}"));
    }
    Ok(())
}

/// Refuses levels of another time, or copied at several times, beside a pool with these states. It relies on
/// the trees of some tables; if there are none, no levels need be there. Returns the state that is noted.
pub(super) fn verify(
    forest: &dyn Forest,
    pool: Paired,
    relied: impl IntoIterator<Item = u64>,
) -> Result<LevelsState, RunsError> {
    let (found, mut relied) = (forest.state()?, relied.into_iter().peekable());
    if found != LevelsState::default() || relied.peek().is_some() {
        let refused = |what| RunsError::Damaged { place: forest.place(), what };
        fits(found, pool).map_err(refused)?;
    }
    relied.try_for_each(|table| forest.refuse_torn(table))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_between_the_confirmed_and_the_raised_state_fit_and_no_others() {
        let state = |number, mark| LevelsState { number, mark };
        let pool = Paired { raised: state(9, 2), confirmed: state(6, 1) };
        for (number, mark, finding) in [
            (5, 1, "older"),
            (6, 1, ""),
            (6, 2, "another copy"),
            (6, 3, "another copy"),
            (7, 1, "another copy"),
            (7, 2, ""),
            (9, 2, ""),
            (9, 3, "another copy"),
            (10, 2, "newer"),
        ] {
            let found = fits(state(number, mark), pool).err().unwrap_or_default();
            assert!(found.contains(finding) && found.is_empty() == finding.is_empty(), "{number}: {found}");
        }
        assert_eq!(fits(LevelsState::default(), Paired::default()), Ok(()));
    }
}
