//! The oracle of the crash tests of the FAST&FAIR index: whether a crash image agrees with what every key may
//! be.

use super::support::Keys;
use crate::crashes::{self, Answers, Expected, Known, Model, Way, explained};
use crate::shared::keyed::ByKey;
use quipu_medium::Region;
use quipu_parts::epoch::{Collector, Guard};
use quipu_parts::index::IndexRoot;
use quipu_parts::index::fastfair::{FastFairIndex, PmWords, ScanCursor, Words};
use quipu_parts::index::{InOrder, IndexError};
use quipu_parts::space::Space;
use std::sync::Arc;

const VERSIONS: u64 = 1 << 20;

pub fn reference(key: u64, version: u64) -> u64 {
    (key + 1) * VERSIONS + version
}

/// How the index is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    /// Not at all.
    Sound,
    /// Lines that a shift leaves are not flushed: only the last line of an insertion is.
    ShiftNotFlushed,
    /// Writers do not make anything durable.
    NoFlush,
    /// Readers act on what is not durable.
    NoHelp,
    /// The sibling of a split is not fenced before it is linked.
    NoFence,
}

/// The words of a pool, broken or not.
pub struct BrokenWords {
    words: PmWords,
    twin: Twin,
}

impl Words for BrokenWords {
    fn load(&self, place: u64) -> u64 {
        self.words.load(place)
    }

    fn store(&self, place: u64, word: u64) {
        self.words.store(place, word);
    }

    fn swap(&self, place: u64, old: u64, new: u64) -> bool {
        self.words.swap(place, old, new)
    }

    fn write(&self, place: u64, bytes: &[u8]) {
        self.words.write(place, bytes);
    }

    fn flush(&self, place: u64, len: u64) {
        if self.twin != Twin::NoFlush {
            self.words.flush(place, len);
        }
    }

    fn fence(&self) {
        if self.twin != Twin::NoFence {
            self.words.fence();
        }
    }

    fn persist(&self, place: u64, len: u64) {
        if self.twin != Twin::NoFlush {
            self.words.persist(place, len);
        }
    }

    fn leave(&self, place: u64, len: u64) {
        if self.twin != Twin::ShiftNotFlushed {
            self.persist(place, len);
        }
    }

    fn help(&self, place: u64, len: u64) {
        if self.twin != Twin::NoHelp {
            self.words.help(place, len);
        }
    }

    fn prefetch(&self, place: u64) {
        self.words.prefetch(place);
    }
}

pub type Index = FastFairIndex<BrokenWords>;

/// A pool and what is in it.
#[derive(Clone, Copy)]
pub struct Subject {
    pub root: IndexRoot,
    pub keys: Keys,
    pub twin: Twin,
}

/// The pool and the index, as they are after a crash, or as those of a twin would be.
pub fn open(space: &Arc<Space>, root: IndexRoot, twin: Twin) -> Result<Index, IndexError> {
    let words = BrokenWords { words: PmWords::new(space.region().clone()), twin };
    let index = FastFairIndex::examine_over(words, space.clone(), root, 0)?;
    index.mend(|| ());
    Ok(index)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn walk(index: &Index, guard: &Guard<'_>) -> Result<Vec<u64>, String> {
    let (mut cursor, mut walked, mut last) = (ScanCursor::default(), Vec::new(), None);
    let mut in_order = true;
    let mut each = |key: &[u8], value| {
        in_order &= last.as_ref().is_none_or(|last: &Vec<u8>| &last[..] < key);
        last = Some(key.to_vec());
        walked.push(value);
    };
    while index.next_in_order(guard, &mut cursor, 7, &mut each).map_err(text)? {}
    if !in_order {
        return Err("a walk is not in order".into());
    }
    walked.sort_unstable();
    Ok(walked)
}

/// That every node and chunk is in the tree or free.
fn leaks_nothing(index: &Index) -> Result<(), String> {
    let collector = Collector::new();
    let participant = collector.register();
    index.sweep(&participant.pin()).map_err(text)?;
    let (audit, stats) = (index.audit(&participant.pin()).map_err(text)?, index.stats());
    let (nodes, chunks) = (audit.nodes + stats.free_nodes, audit.chunks + stats.free_chunks);
    if (nodes, chunks) != (audit.nodes_all, audit.chunks_all) {
        return Err(format!("leaked or in use twice: {audit:?} {stats:?}"));
    }
    Ok(())
}

impl Subject {
    /// What a key is; `walked` is what a walk has found, if that was the way.
    fn ask(
        &self,
        index: &Index,
        guard: &Guard<'_>,
        way: Way,
        walked: &[u64],
        key: u64,
        known: &Known,
    ) -> Result<Option<u64>, String> {
        let bytes = self.keys.of(key);
        match way {
            Way::Lookup => index.get(guard, &bytes).map_err(text),
            Way::Walk => Ok(walked.iter().copied().find(|reference| reference / VERSIONS == key + 1)),
            Way::Change => {
                for old in known.now.into_iter().chain(known.next.flatten()) {
                    if index.replace(guard, &bytes, old, old).map_err(text)? {
                        return Ok(Some(old));
                    }
                }
                Ok(None)
            }
        }
    }
}

/// Whether the index holds what it must, and nothing else.
fn check(
    expected: &Expected,
    space: &Space,
    index: &Index,
    keys: Keys,
    guard: &Guard<'_>,
) -> Result<(), String> {
    if walk(index, guard)?.len() != expected.references.len() {
        return Err("a walk finds other keys after the crash was over".into());
    }
    expected.check(space, index.zones(), |key| index.get(guard, &keys.of(key)).map_err(text))
}

/// The pool and the index, without a twin.
fn open_sound(region: &Region, root: IndexRoot) -> Result<(Arc<Space>, Index), String> {
    let (space, _) = Space::open(region.clone()).map_err(text)?;
    let space = Arc::new(space);
    let index = open(&space, root, Twin::Sound).map_err(text)?;
    Ok((space, index))
}

impl crashes::Subject for Subject {
    fn verify(&self, region: &Region, model: &Model, way: Way, answers: &Answers) -> Result<(), String> {
        let (space, _) = Space::open(region.clone()).map_err(text)?;
        let space = Arc::new(space);
        let index = open(&space, self.root, self.twin).map_err(text)?;
        let collector = Collector::new();
        let participant = collector.register();
        let guard = participant.pin();
        let walked = if matches!(way, Way::Walk) { walk(&index, &guard)? } else { Vec::new() };
        let present =
            explained(model, way, answers, |key, known| self.ask(&index, &guard, way, &walked, key, known))?;
        let walked = walk(&index, &guard)?;
        if walked != present {
            return Err(format!("a walk gives {walked:?} where {way:?} gives {present:?}"));
        }
        if index.len(&guard).map_err(text)? != present.len() as u64 {
            return Err(format!("{:?} keys are counted, {} found", index.len(&guard), present.len()));
        }
        drop(guard);
        leaks_nothing(&index)?;
        let zones = space.audit().map_err(text)?.zones;
        if (zones.gotten, zones.committed) != (0, index.zones().len() as u64) {
            return Err(format!("{zones:?}, and the index has {:?}", index.zones()));
        }
        Ok(())
    }

    /// First others take zones, then keys are changed, then keys are added and removed until nodes split and
    /// go.
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
        let (space, index) = open_sound(region, self.root)?;
        if round == 0 {
            expected.begin(&space, model, |key| index.get(&guard, &self.keys.of(key)).map_err(text))?;
            return check(expected, &space, &index, self.keys, &guard);
        }
        check(expected, &space, &index, self.keys, &guard)?;
        if round == 1 {
            for (key, old) in &mut expected.references {
                if !index.replace(&guard, &self.keys.of(*key), *old, *old + 100).map_err(text)? {
                    return Err(format!("key {key} cannot be changed"));
                }
                *old += 100;
            }
            return check(expected, &space, &index, self.keys, &guard);
        }
        for key in 10_000..10_040 {
            match index.insert(&guard, &self.keys.of(key), reference(key, 0)) {
                Ok(_) => drop(expected.references.insert(key, reference(key, 0))),
                Err(IndexError::Full { .. }) => {}
                Err(error) => return Err(text(error)),
            }
        }
        check(expected, &space, &index, self.keys, &guard)?;
        let gone: Vec<u64> = expected.references.keys().copied().filter(|key| key % 4 != 0).collect();
        for key in gone {
            let old = expected.references.remove(&key);
            if index.take(&guard, &self.keys.of(key)).map_err(text)? != old {
                return Err(format!("key {key} cannot be removed"));
            }
        }
        drop(guard);
        (0..4).for_each(|_| _ = participant.collect());
        leaks_nothing(&index)?;
        check(expected, &space, &index, self.keys, &participant.pin())
    }

    fn check(&self, expected: &Expected, region: &Region) -> Result<(), String> {
        let (space, index) = open_sound(region, self.root)?;
        check(expected, &space, &index, self.keys, &Collector::new().register().pin())
    }
}
