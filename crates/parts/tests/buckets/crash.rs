//! The oracle of the crash tests of the bucket index: whether a crash image agrees with what every key may be.

use super::crashes::{self, Answers, Known, Model, Way};
use super::support::{BrokenWords, COPY, Twin, get, hash_of, key_of, open, reference, rehash};
use quipu_medium::Region;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::buckets::{BucketCursor, BucketError, BucketIndex, BucketRoot, Locking, TableLocks};
use quipu_parts::space::{Space, SpaceError, ZoneId};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

pub type Index<L = TableLocks> = BucketIndex<BrokenWords, L>;

/// A pool and what is in it.
pub struct Subject<L> {
    pub root: BucketRoot,
    pub twin: Twin,
    pub locks: PhantomData<L>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn walk<L: Locking>(index: &Index<L>, guard: &Guard<'_>) -> Result<Vec<u64>, String> {
    let (mut cursor, mut walked) = (BucketCursor::default(), Vec::new());
    while index.next_batch(guard, &mut cursor, &mut walked).map_err(text)? {}
    walked.iter_mut().for_each(|reference| *reference &= !COPY);
    walked.sort_unstable();
    Ok(walked)
}

/// What a key is; `walked` is what a walk has found, if that was the way.
fn ask<L: Locking>(
    index: &Index<L>,
    guard: &Guard<'_>,
    way: Way,
    walked: &[u64],
    key: u64,
    known: &Known,
) -> Result<Option<u64>, SpaceError> {
    match way {
        Way::Lookup => get(index, guard, key),
        Way::Walk => Ok(walked.iter().copied().find(|reference| key_of(*reference) == key)),
        Way::Change => {
            let possible = known.now.into_iter().chain(known.next.flatten());
            for old in possible.flat_map(|old| [old, old | COPY]) {
                if index.replace(guard, hash_of(key), old, old)? {
                    return Ok(Some(old & !COPY));
                }
            }
            Ok(None)
        }
    }
}

/// What an index that works on after a crash must hold, and what is not its own.
#[derive(Clone, Default)]
pub struct Expected {
    references: BTreeMap<u64, u64>,
    foreign: Vec<ZoneId>,
}

impl Expected {
    fn check<L: Locking>(&self, space: &Space, index: &Index<L>, guard: &Guard<'_>) -> Result<(), String> {
        for (key, reference) in &self.references {
            let found = get(index, guard, *key).map_err(text)?;
            if found != Some(*reference) {
                return Err(format!("key {key} is {found:?} after the crash was over, and was {reference}"));
            }
        }
        if walk(index, guard)?.len() != self.references.len() {
            return Err("a walk finds other keys after the crash was over".into());
        }
        let mut zones = index.zones();
        zones.extend(&self.foreign);
        zones.sort_unstable();
        let committed = space.committed_zones();
        if zones != committed {
            return Err(format!("{committed:?} are committed; index and others have {zones:?}"));
        }
        space.audit().map(|_| ()).map_err(text)
    }

    /// First others take zones, then keys are changed, then keys are added until buckets split, and most are removed.
    fn work_on<L: Locking>(
        &mut self,
        region: &Region,
        root: BucketRoot,
        model: &Model,
        round: u64,
    ) -> Result<(), String> {
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let (space, index) = open_sound::<L>(region, root)?;
        if round == 0 {
            for key in model.keys() {
                let found = get(&index, &guard, *key).map_err(text)?;
                self.references.extend(found.map(|found| (*key, found)));
            }
            let zone = space.get_zone(None, 2).map_err(text)?;
            zone.iter().for_each(|zone| space.commit_zone(*zone));
            self.foreign.extend(zone);
            return self.check(&space, &index, &guard);
        }
        self.check(&space, &index, &guard)?;
        if round == 1 {
            for (key, old) in &mut self.references {
                let replaced = [*old, *old | COPY]
                    .into_iter()
                    .any(|word| index.replace(&guard, hash_of(*key), word, *old + 100).expect("sound"));
                if !replaced {
                    return Err(format!("key {key} cannot be changed"));
                }
                *old += 100;
            }
            return self.check(&space, &index, &guard);
        }
        for key in 10_000..10_020 {
            let matches = |reference| key_of(reference) == key;
            match index.upsert(&guard, hash_of(key), reference(key, 0), matches, &rehash) {
                Ok(_) => drop(self.references.insert(key, reference(key, 0))),
                Err(BucketError::Full { .. }) => {}
                Err(error) => return Err(text(error)),
            }
        }
        self.check(&space, &index, &guard)?;
        let gone: Vec<u64> = self.references.keys().copied().filter(|key| key % 3 != 0).collect();
        for key in gone {
            let old = self.references.remove(&key);
            let taken = index.take(&guard, hash_of(key), |reference| key_of(reference) == key);
            if taken.map_err(text)?.map(|taken| taken & !COPY) != old {
                return Err(format!("key {key} cannot be removed"));
            }
        }
        self.check(&space, &index, &guard)
    }
}

/// The pool and the index, without a twin.
fn open_sound<L: Locking>(region: &Region, root: BucketRoot) -> Result<(Arc<Space>, Index<L>), String> {
    let (space, _) = Space::open(region.clone()).map_err(text)?;
    let space = Arc::new(space);
    let index = open(&space, root, Twin::Sound).map_err(text)?;
    Ok((space, index))
}

impl<L: Locking> crashes::Subject for Subject<L> {
    type Expected = Expected;

    fn verify(&self, region: &Region, model: &Model, way: Way, answers: &Answers) -> Result<(), String> {
        let (space, _) = Space::open(region.clone()).map_err(text)?;
        let space = Arc::new(space);
        let index: Index<L> = open(&space, self.root, self.twin).map_err(text)?;
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let mut present = Vec::new();
        let walked = if matches!(way, Way::Walk) { walk(&index, &guard)? } else { Vec::new() };
        for (key, known) in model {
            let found = ask(&index, &guard, way, &walked, *key, known).map_err(text)?;
            answers.borrow_mut().insert(*key, found);
            if found != known.now && Some(found) != known.next {
                return Err(format!("key {key} is {found:?}, and should be {known:?}, by {way:?}"));
            }
            present.extend(found);
        }
        let walked = walk(&index, &guard)?;
        present.sort_unstable();
        if walked != present {
            return Err(format!("a walk gives {walked:?} where {way:?} gives {present:?}"));
        }
        if index.len().map_err(text)? != present.len() as u64 {
            return Err(format!("{:?} keys are counted, {} found", index.len(), present.len()));
        }
        let audit = index.audit().map_err(text)?;
        if audit.linked != index.stats().overflow {
            return Err(format!("buckets leaked or linked twice: {audit:?} {:?}", index.stats()));
        }
        let zones = space.audit().map_err(text)?.zones;
        if (zones.gotten, zones.committed) != (0, index.zones().len() as u64) {
            return Err(format!("{zones:?}, and the index has {:?}", index.zones()));
        }
        Ok(())
    }

    fn work_on(
        &self,
        expected: &mut Expected,
        region: &Region,
        model: &Model,
        round: u64,
    ) -> Result<(), String> {
        expected.work_on::<L>(region, self.root, model, round)
    }

    fn check(&self, expected: &Expected, region: &Region) -> Result<(), String> {
        let (space, index) = open_sound::<L>(region, self.root)?;
        expected.check(&space, &index, &Collector::new().register().pin())
    }
}
