//! The indexes that can be chosen: ours and others.

use super::{Art, BTree};
use quipu_bench::choice::Named;
use quipu_bench::{BenchError, Sink};
use quipu_lab::bench::{Contender, HouseIndex, IndexKind, IndexRun};

/// An index to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexChoice {
    /// One of this house.
    Ours(HouseIndex),
    /// The map of the standard library.
    BTree,
    /// The crate congee: an adaptive radix tree with optimistic lock coupling (ART-OLC).
    Congee,
}

const OURS: &[HouseIndex] = HouseIndex::EVERY;
const ALL: [IndexChoice; OURS.len() + 2] = {
    let mut all = [IndexChoice::BTree; OURS.len() + 2];
    let mut at = 0;
    while at < OURS.len() {
        all[at] = IndexChoice::Ours(OURS[at]);
        at += 1;
    }
    all[at + 1] = IndexChoice::Congee;
    all
};

impl Named for IndexChoice {
    const KIND: &'static str = "index";
    const EVERY: &'static [IndexChoice] = &ALL;

    fn name(&self) -> &'static str {
        match self {
            IndexChoice::Ours(index) => index.name(),
            IndexChoice::BTree => "btree",
            IndexChoice::Congee => "congee",
        }
    }
}

impl IndexKind for IndexChoice {
    fn measure(&self, run: &IndexRun<'_>, sink: Sink<'_>) -> Result<(), BenchError> {
        match self {
            IndexChoice::Ours(index) => index.measure(run, sink),
            IndexChoice::BTree if run.threads() > 1 => Err(BenchError::Setting {
                setting: "threads",
                reason: "must be 1 for btree, which threads cannot share; leave it out".to_owned(),
            }),
            IndexChoice::BTree => self.of_others::<BTree>(run, sink),
            IndexChoice::Congee => self.of_others::<Art>(run, sink),
        }
    }
}

impl IndexChoice {
    fn of_others<C: Contender + Default>(self, run: &IndexRun<'_>, sink: Sink<'_>) -> Result<(), BenchError> {
        run.measure(self.name(), || Ok(C::default()), sink)
    }
}
