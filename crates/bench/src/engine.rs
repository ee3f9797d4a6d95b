//! The interface of the engines that the benchmarks measure.
//!
//! A figure of our own says little without one of somebody else's from the same run, on the same medium, by
//! the same hands. So the runner knows engines by three traits: [`Engine`] is a place with settings,
//! [`OpenEngine`] the engine at work in it, [`EngineClient`] one thread's hands. They are used as type
//! parameters and never as trait objects: the loop that measures our own store is compiled for it alone, as
//! if there were no other.
//!
//! An open engine is shared by all threads; a client stays on its own. Dropping the open engine closes it.

use super::error::BenchError;
use quipu::Stats;
use quipu_medium::Nearness;
use quipu_medium::sim::Sim;
use std::error::Error;
use std::sync::Arc;

/// An engine, where it keeps its data, and the settings it is measured with.
pub trait Engine: Sync {
    /// The engine at work.
    type Opened: OpenEngine;

    /// Its name in results: who it is and, where that is a choice, what its acknowledgement promises.
    fn name(&self) -> &str;

    /// Makes the engine anew, with room for `records`. An existing file is an error and is left alone.
    ///
    /// # Errors
    /// [`BenchError`] if the place is taken, or the engine does not start.
    fn create(&self, records: u64) -> Result<Self::Opened, BenchError>;

    /// Removes what [`create`](Engine::create) has made, after the engine was dropped.
    ///
    /// # Errors
    /// [`BenchError::File`] if the file system refuses.
    fn remove(&self) -> Result<(), BenchError>;

    /// The simulated medium beneath, if there is one; costs are then counted in place of times.
    fn simulator(&self) -> Option<&Arc<Sim>> {
        None
    }
}

/// An engine at work, shared by the threads that measure it.
pub trait OpenEngine: Sync {
    /// One thread's hands.
    type Client: EngineClient;

    /// A client, for one thread.
    fn client(&self) -> Self::Client;

    /// Takes the place of a thread of this number, before it makes its client: one of the machine's nodes, if
    /// that matters and was asked for.
    ///
    /// # Errors
    /// [`BenchError`] if there is no such place.
    fn seat(&self, thread: usize) -> Result<(), BenchError> {
        let _ = thread;
        Ok(())
    }

    /// Lines accessed on nodes near and far, where the engine counts them.
    fn nearness(&self) -> Nearness {
        Nearness::default()
    }

    /// Records present, where the engine can say it exactly. Asked for while no clock runs.
    fn records(&self) -> Option<u64>;

    /// Bytes that the engine holds on the medium.
    fn pool_bytes(&self) -> u64;

    /// Sizes and counts of a store of our own, to measure its compaction. Asked for while no clock runs.
    fn stats(&self) -> Option<Stats> {
        None
    }

    /// Whether it keeps its keys in order, so that they can be scanned.
    fn is_ordered(&self) -> bool {
        false
    }

    /// Whether it changes values in place, so that it is worth measuring.
    fn updates_in_place(&self) -> bool {
        false
    }

    /// Whether it has transactions.
    fn has_transactions(&self) -> bool {
        false
    }
}

/// One thread's access to an open engine. Every write is acknowledged by its return. All errors are the
/// engine's own.
pub trait EngineClient {
    /// Why an operation was refused.
    type Error: Error + Send + Sync + 'static;

    /// Puts a value, over the old one if there is one.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Puts many pairs, all acknowledged by its return. Here, one after another: for engines that have
    /// nothing better.
    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Self::Error> {
        pairs.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Puts many pairs as one write: after a crash all of them are there or none, where the engine promises
    /// that of a batch. Here, as [`put_many`](EngineClient::put_many).
    fn write(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Self::Error> {
        self.put_many(pairs)
    }

    /// Replaces the content of `out` by the value of `key`, and tells whether there is one.
    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Self::Error>;

    /// Reads many keys, and calls `each` with the position and value of every one. Here, one after another:
    /// for engines that have nothing better.
    fn get_many(
        &mut self,
        keys: &[Vec<u8>],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Self::Error> {
        let mut value = Vec::new();
        for (position, key) in keys.iter().enumerate() {
            let found = self.get_into(key, &mut value)?;
            each(position, found.then_some(value.as_slice()));
        }
        Ok(())
    }

    /// Reads the values of two keys, lets `change` change them, and writes both, in one transaction at
    /// snapshot isolation or above. Repeats it until it is done, and tells how often it was tried. Here, with
    /// none: for engines without transactions, of which it is not asked.
    fn transfer(
        &mut self,
        from: &[u8],
        to: &[u8],
        change: &mut dyn FnMut(&mut [u8], &mut [u8]),
    ) -> Result<u64, Self::Error> {
        let _ = (from, to, change);
        Ok(0)
    }

    /// Calls `each` with up to so many keys and values in the order of the keys, from `from` on, and tells
    /// with how many. Here, with none: for engines without an order, of which it is not asked.
    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Self::Error> {
        let _ = (from, count, each);
        Ok(0)
    }

    /// Changes eight bytes of a value, `at` bytes into it, and tells what stood there. Here, by writing the
    /// value anew: for engines that change nothing in place.
    fn update_in_place(
        &mut self,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> u64,
    ) -> Result<Option<u64>, Self::Error> {
        let mut value = Vec::new();
        let found = self.get_into(key, &mut value)?;
        let old = value.get_mut(at..at + 8).filter(|_| found).and_then(|bytes| {
            let old = u64::from_le_bytes((&*bytes).try_into().ok()?);
            bytes.copy_from_slice(&change(old).to_le_bytes());
            Some(old)
        });
        if old.is_some() {
            self.put(key, &value)?;
        }
        Ok(old)
    }

    /// Deletes `key`, whether it is there or not.
    fn delete(&mut self, key: &[u8]) -> Result<(), Self::Error>;

    /// Deletes `key`, and tells whether it was there. Here, by looking first: for engines whose deletes are
    /// blind.
    fn remove(&mut self, key: &[u8]) -> Result<bool, Self::Error> {
        let found = self.get_into(key, &mut Vec::new())?;
        if found {
            self.delete(key)?;
        }
        Ok(found)
    }

    /// Deletes keys with no other between them, at once where the engine can. Here, one after another.
    fn delete_run(&mut self, keys: &[Vec<u8>]) -> Result<(), Self::Error> {
        keys.iter().try_for_each(|key| self.delete(key))
    }
}
