//! [`Broken`]: stores broken on purpose, to see that the checker notices.
//!
//! Each but one wraps a client that works and breaks one promise now and then, as a real mistake would. Used by a single
//! thread, and looked at one call at a time, most of what they answer is plausible. The one left is a published design.

use super::subject::{Change, Subject};
use clap::ValueEnum;
use quipu::{Client, Error};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::fmt;

/// In which way a store is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Twin {
    /// A read sometimes answers from what this client read or wrote earlier.
    StaleRead,
    /// A put sometimes returns before it takes effect, which it does with the next call.
    LatePut,
    /// An update reads and writes with something in between.
    SplitUpdate,
    /// A remove sometimes claims that it removed what was not there.
    PhantomRemove,
    /// A put may return for another one that readers had seen before it began, as in section 3.3 of MPKV's paper; for
    /// design mpkv, where puts are published before they return.
    SeenWhileOnOffer,
}

impl Twin {
    /// What is to be broken in the store itself.
    pub(super) fn of_store(self) -> Option<quipu::internals::Twin> {
        (self == Twin::SeenWhileOnOffer).then_some(quipu::internals::Twin::SeenWhileOnOffer)
    }
}

/// The word for it on command lines.
impl fmt::Display for Twin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("none is skipped").get_name())
    }
}

/// A client that breaks a promise. What it holds back when it is dropped is lost.
pub struct Broken {
    client: Client,
    twin: Twin,
    random: SmallRng,
    remembered: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    held_back: Option<(Vec<u8>, Vec<u8>)>,
}

impl Broken {
    /// Breaks a client in this way; the seed decides when.
    pub fn new(client: Client, twin: Twin, seed: u64) -> Broken {
        let random = SmallRng::seed_from_u64(seed);
        Broken { client, twin, random, remembered: BTreeMap::new(), held_back: None }
    }

    /// Whether to break the promise `twin` in this call.
    fn breaks(&mut self, twin: Twin) -> bool {
        self.twin == twin && self.random.random_ratio(1, 6)
    }

    /// The client, after what was held back has been done.
    fn client(&mut self) -> Result<&mut Client, Error> {
        if let Some((key, value)) = self.held_back.take() {
            self.client.put(&key, &value)?;
        }
        Ok(&mut self.client)
    }

    fn remember(&mut self, key: &[u8], value: Option<&[u8]>) {
        if self.twin == Twin::StaleRead {
            self.remembered.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        }
    }
}

impl Subject for Broken {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if self.breaks(Twin::StaleRead)
            && let Some(value) = self.remembered.get(key)
        {
            return Ok(value.clone());
        }
        let value = Subject::get(self.client()?, key)?;
        self.remember(key, value.as_deref());
        Ok(value)
    }

    fn get_many(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        Subject::get_many(self.client()?, keys)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.client()?;
        if self.breaks(Twin::LatePut) {
            self.held_back = Some((key.to_vec(), value.to_vec()));
            return Ok(());
        }
        self.remember(key, Some(value));
        Subject::put(&mut self.client, key, value)
    }

    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        Subject::put_many(self.client()?, pairs)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        let removed = Subject::remove(self.client()?, key)?;
        Ok(removed || self.breaks(Twin::PhantomRemove))
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        Subject::delete(self.client()?, key)
    }

    fn put_if_absent(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Subject::put_if_absent(self.client()?, key, value)
    }

    fn compare_and_swap(
        &mut self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        Subject::compare_and_swap(self.client()?, key, expected, new)
    }

    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<(), Error> {
        if self.twin != Twin::SplitUpdate {
            return Subject::update(self.client()?, key, change);
        }
        let old = self.client.get(key)?;
        std::thread::yield_now();
        match change(old.as_deref()) {
            Some(new) => Subject::put(&mut self.client, key, &new),
            None => Subject::delete(&mut self.client, key),
        }
    }
}
