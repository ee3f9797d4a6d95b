//! The oracle of the crash tests of the bucket index: whether a crash image agrees with what every key may
//! be.

use super::support::{BrokenWords, COPY, Twin, get, hash_of, key_of, open, reference, rehash, walk};
use crate::crashes::{self, Answers, Expected, Known, Model, Way, explained};
use crate::shared::keyed::{self, by_hash};
use quipu_medium::Region;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::IndexRoot;
use quipu_parts::index::buckets::{BucketIndex, Locking, TableLocks};
use quipu_parts::index::{Index as _, IndexError};
use quipu_parts::space::Space;
use std::marker::PhantomData;
use std::sync::Arc;

pub type Index<L = TableLocks> = BucketIndex<BrokenWords, L>;

/// A pool and what is in it.
pub struct Subject<L> {
    pub root: IndexRoot,
    pub twin: Twin,
    pub locks: PhantomData<L>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What a key is; `walked` is what a walk has found, if that was the way.
fn ask<L: Locking>(
    index: &Index<L>,
    guard: &Guard<'_>,
    way: Way,
    walked: &[u64],
    key: u64,
    known: &Known,
) -> Result<Option<u64>, IndexError> {
    match way {
        Way::Lookup => get(index, guard, key),
        Way::Walk => Ok(walked.iter().copied().find(|reference| key_of(*reference) == key)),
        Way::Change => {
            let possible = known.now.into_iter().chain(known.next.flatten());
            for old in possible.flat_map(|old| [old, old | COPY]) {
                if index.replace(guard, by_hash(hash_of(key)), old, old)? {
                    return Ok(Some(old & !COPY));
                }
            }
            Ok(None)
        }
    }
}

/// Whether the index holds what it must, and nothing else.
fn check<L: Locking>(
    expected: &Expected,
    space: &Space,
    index: &Index<L>,
    guard: &Guard<'_>,
) -> Result<(), String> {
    if walk(index, guard).map_err(text)?.len() != expected.references.len() {
        return Err("a walk finds other keys after the crash was over".into());
    }
    expected.check(space, index.zones(), |key| get(index, guard, key).map_err(text))
}

/// The pool and the index, without a twin.
fn open_sound<L: Locking>(region: &Region, root: IndexRoot) -> Result<(Arc<Space>, Index<L>), String> {
    let (space, _) = Space::open(region.clone()).map_err(text)?;
    let space = Arc::new(space);
    let index = open(&space, root, Twin::Sound).map_err(text)?;
    Ok((space, index))
}

impl<L: Locking> crashes::Subject for Subject<L> {
    fn verify(&self, region: &Region, model: &Model, way: Way, answers: &Answers) -> Result<(), String> {
        let (space, _) = Space::open(region.clone()).map_err(text)?;
        let space = Arc::new(space);
        let index: Index<L> = open(&space, self.root, self.twin).map_err(text)?;
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let walked = if matches!(way, Way::Walk) { walk(&index, &guard).map_err(text)? } else { Vec::new() };
        let present = explained(model, way, answers, |key, known| {
            ask(&index, &guard, way, &walked, key, known).map_err(text)
        })?;
        let walked = walk(&index, &guard).map_err(text)?;
        if walked != present {
            return Err(format!("a walk gives {walked:?} where {way:?} gives {present:?}"));
        }
        if keyed::len(&index).map_err(text)? != present.len() as u64 {
            return Err(format!("{:?} keys are counted, {} found", keyed::len(&index), present.len()));
        }
        let audit = index.audit(|_| true).map_err(text)?;
        if audit.linked != index.stats().overflow {
            return Err(format!("buckets leaked or linked twice: {audit:?} {:?}", index.stats()));
        }
        let zones = space.audit().map_err(text)?.zones;
        if (zones.gotten, zones.committed) != (0, index.zones().len() as u64) {
            return Err(format!("{zones:?}, and the index has {:?}", index.zones()));
        }
        Ok(())
    }

    /// First others take zones, then keys are changed, then keys are added until buckets split, and most are
    /// removed.
    fn work_on(
        &self,
        expected: &mut Expected,
        region: &Region,
        model: &Model,
        round: u64,
    ) -> Result<(), String> {
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let (space, index) = open_sound::<L>(region, self.root)?;
        if round == 0 {
            expected.begin(&space, model, |key| get(&index, &guard, key).map_err(text))?;
            return check(expected, &space, &index, &guard);
        }
        check(expected, &space, &index, &guard)?;
        if round == 1 {
            for (key, old) in &mut expected.references {
                let replaced = [*old, *old | COPY].into_iter().any(|word| {
                    index.replace(&guard, by_hash(hash_of(*key)), word, *old + 100).expect("sound")
                });
                if !replaced {
                    return Err(format!("key {key} cannot be changed"));
                }
                *old += 100;
            }
            return check(expected, &space, &index, &guard);
        }
        for key in 10_000..10_020 {
            let matches = |reference| key_of(reference) == key;
            match index.upsert(&guard, by_hash(hash_of(key)), reference(key, 0), None, matches, &rehash) {
                Ok(_) => drop(expected.references.insert(key, reference(key, 0))),
                Err(IndexError::Full { .. }) => {}
                Err(error) => return Err(text(error)),
            }
        }
        check(expected, &space, &index, &guard)?;
        let gone: Vec<u64> = expected.references.keys().copied().filter(|key| key % 3 != 0).collect();
        for key in gone {
            let old = expected.references.remove(&key);
            let taken = index.take(&guard, by_hash(hash_of(key)), None, |reference| key_of(reference) == key);
            if taken.map_err(text)?.map(|taken| taken & !COPY) != old {
                return Err(format!("key {key} cannot be removed"));
            }
        }
        check(expected, &space, &index, &guard)
    }

    fn check(&self, expected: &Expected, region: &Region) -> Result<(), String> {
        let (space, index) = open_sound::<L>(region, self.root)?;
        check(expected, &space, &index, &Collector::new().register().pin())
    }
}
