//! congee: an adaptive radix tree that many threads use at once, by optimistic lock coupling. It cannot be
//! loaded in one go.

use super::number;
use ::congee::{Congee, DefaultAllocator};
use quipu_bench::BenchError;
use quipu_lab::bench::{Access, Contender, NoBulk, SCANNED};
use std::fmt;

const NAME: &str = "congee";

/// The tree.
#[derive(Default)]
pub struct Art(Congee<usize, usize, DefaultAllocator>);

/// A thread's use of it.
pub struct ArtAccess<'c> {
    tree: &'c Congee<usize, usize, DefaultAllocator>,
    scanned: Vec<(usize, usize)>,
}

impl Contender for Art {
    const ORDERED: bool = true;
    const ONLY_NUMBERS: bool = true;

    type Access<'c> = ArtAccess<'c>;
    type Bulk = NoBulk;

    fn access(&self) -> ArtAccess<'_> {
        ArtAccess { tree: &self.0, scanned: vec![(0, 0); SCANNED] }
    }

    fn bulk(&self) -> Option<NoBulk> {
        None
    }

    fn load(bulk: &NoBulk) -> Result<Art, BenchError> {
        match *bulk {}
    }
}

/// The tree's only error.
#[derive(Debug)]
struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it has no memory for a node")
    }
}

impl std::error::Error for OutOfMemory {}

impl Access for ArtAccess<'_> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8], word: u64) -> Result<Option<u64>, BenchError> {
        let old = self.tree.insert(number(key) as usize, word as usize, &self.tree.pin());
        old.map(|old| old.map(|word| word as u64))
            .map_err(|_| BenchError::refused(NAME, "insert")(OutOfMemory))
    }

    #[inline(always)]
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError> {
        Ok(self.tree.get(&(number(key) as usize), &self.tree.pin()).map(|word| word as u64))
    }

    /// Batches pin once.
    #[inline(always)]
    fn get_many(&mut self, keys: &[&[u8]], words: &mut Vec<Option<u64>>) -> Result<(), BenchError> {
        let guard = self.tree.pin();
        words.extend(
            keys.iter().map(|key| self.tree.get(&(number(key) as usize), &guard).map(|word| word as u64)),
        );
        Ok(())
    }

    #[inline(always)]
    fn scan(&mut self, from: &[u8], words: &mut Vec<u64>) -> Result<(), BenchError> {
        let ArtAccess { tree, scanned } = self;
        let found = tree.range(&(number(from) as usize), &usize::MAX, scanned, &tree.pin());
        words.extend(scanned[..found].iter().map(|(_, word)| *word as u64));
        Ok(())
    }

    #[inline(always)]
    fn remove(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError> {
        Ok(self.tree.remove(&(number(key) as usize), &self.tree.pin()).map(|word| word as u64))
    }
}
