//! Conditions after a crash, for any index: the states of the keys, and the owners of the zones.

use super::{Answers, Known, Model, Way};
use quipu_parts::space::{Space, ZoneId};
use std::collections::BTreeMap;

/// Asks for each key of a model, and notes the answers. All that were found, sorted, or the first that the
/// model does not explain.
pub fn explained(
    model: &Model,
    way: Way,
    answers: &Answers,
    ask: impl Fn(u64, &Known) -> Result<Option<u64>, String>,
) -> Result<Vec<u64>, String> {
    let mut present = Vec::new();
    for (key, known) in model {
        let found = ask(*key, known)?;
        answers.borrow_mut().insert(*key, found);
        if found != known.now && Some(found) != known.next {
            return Err(format!("key {key} is {found:?}, and should be {known:?}, by {way:?}"));
        }
        present.extend(found);
    }
    present.sort_unstable();
    Ok(present)
}

/// The contents of an index that works on after a crash, and the zones that are not its own.
#[derive(Clone, Default)]
pub struct Expected {
    pub references: BTreeMap<u64, u64>,
    foreign: Vec<ZoneId>,
}

impl Expected {
    /// Notes what the keys are after the crash, and lets others take a zone.
    pub fn begin(
        &mut self,
        space: &Space,
        model: &Model,
        get: impl Fn(u64) -> Result<Option<u64>, String>,
    ) -> Result<(), String> {
        for key in model.keys() {
            self.references.extend(get(*key)?.map(|found| (*key, found)));
        }
        let zone = space.get_zone(None, 2).map_err(|error| error.to_string())?;
        zone.iter().for_each(|zone| space.commit_zone(*zone));
        self.foreign.extend(zone);
        Ok(())
    }

    /// Whether the keys are what they were, and the index has all zones that the others have not.
    pub fn check(
        &self,
        space: &Space,
        mut zones: Vec<ZoneId>,
        get: impl Fn(u64) -> Result<Option<u64>, String>,
    ) -> Result<(), String> {
        for (key, reference) in &self.references {
            let found = get(*key)?;
            if found != Some(*reference) {
                return Err(format!("key {key} is {found:?} after the crash was over, and was {reference}"));
            }
        }
        zones.extend(&self.foreign);
        zones.sort_unstable();
        let committed = space.committed_zones();
        if zones != committed {
            return Err(format!("{committed:?} are committed; index and others have {zones:?}"));
        }
        space.audit().map(|_| ()).map_err(|error| error.to_string())
    }
}
