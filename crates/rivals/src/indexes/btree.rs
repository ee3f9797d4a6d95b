//! The map of the standard library: one thread has it for a whole phase, so that no lock is in its figures.

use super::number;
use quipu_bench::BenchError;
use quipu_lab::bench::{Access, Contender, SCANNED};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A map that one thread uses at a time.
#[derive(Default)]
pub struct BTree(Mutex<BTreeMap<u64, u64>>);

/// The map, as long as a thread has it.
pub struct BTreeAccess<'c>(MutexGuard<'c, BTreeMap<u64, u64>>);

impl BTree {
    fn map(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contender for BTree {
    const ORDERED: bool = true;
    const ONLY_NUMBERS: bool = true;

    type Access<'c> = BTreeAccess<'c>;
    type Bulk = Vec<(u64, u64)>;

    fn access(&self) -> BTreeAccess<'_> {
        BTreeAccess(self.map())
    }

    fn bulk(&self) -> Option<Vec<(u64, u64)>> {
        Some(self.map().iter().map(|(key, word)| (*key, *word)).collect())
    }

    fn load(bulk: &Vec<(u64, u64)>) -> Result<BTree, BenchError> {
        Ok(BTree(Mutex::new(bulk.iter().copied().collect())))
    }
}

impl Access for BTreeAccess<'_> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8], word: u64) -> Result<Option<u64>, BenchError> {
        Ok(self.0.insert(number(key), word))
    }

    #[inline(always)]
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError> {
        Ok(self.0.get(&number(key)).copied())
    }

    #[inline(always)]
    fn scan(&mut self, from: &[u8], words: &mut Vec<u64>) -> Result<(), BenchError> {
        words.extend(self.0.range(number(from)..).take(SCANNED).map(|(_, word)| *word));
        Ok(())
    }

    #[inline(always)]
    fn remove(&mut self, key: &[u8]) -> Result<Option<u64>, BenchError> {
        Ok(self.0.remove(&number(key)))
    }
}
