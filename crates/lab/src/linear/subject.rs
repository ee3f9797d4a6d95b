//! [`Subject`]: one thread's access to a store while a history is recorded, perhaps broken on purpose.
//!
//! A broken one breaks one promise now and then, as a real mistake would, to see that the checker notices.
//! Used by a single thread, and looked at one call at a time, most of its answers are plausible.

use super::record::Clock;
use super::twins::{Broken, Lie};
use super::values::{decode, encode, key_bytes};
use crate::action::{Action, Outcome, State};
use quipu::{Client, Error};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

/// A client, and the way in which it is broken. Writes that it holds back when it is dropped are lost.
pub struct Subject {
    client: Client,
    lie: Option<Lie>,
    random: SmallRng,
    remembered: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    held_back: Option<(Vec<u8>, Vec<u8>)>,
}

impl Subject {
    /// A client that is broken in this way; the seed decides when.
    pub fn new(client: Client, broken: Option<Broken>, seed: u64) -> Subject {
        let random = SmallRng::seed_from_u64(seed);
        let lie = broken.and_then(Broken::lie);
        Subject { client, lie, random, remembered: BTreeMap::new(), held_back: None }
    }

    /// Whether this call is to lie in this way.
    fn lies(&mut self, lie: Lie) -> bool {
        self.lie == Some(lie) && self.random.random_ratio(1, 6)
    }

    /// The client, after the write that was held back.
    pub fn client(&mut self) -> Result<&mut Client, Error> {
        if let Some((key, value)) = self.held_back.take() {
            self.client.put(&key, &value)?;
        }
        Ok(&mut self.client)
    }

    fn remember(&mut self, key: &[u8], value: Option<&[u8]>) {
        if self.lie == Some(Lie::StaleRead) {
            self.remembered.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        }
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if self.lies(Lie::StaleRead)
            && let Some(value) = self.remembered.get(key)
        {
            return Ok(value.clone());
        }
        let value = self.client()?.get(key)?;
        self.remember(key, value.as_deref());
        Ok(value)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.client()?;
        if self.lies(Lie::LatePut) {
            self.held_back = Some((key.to_vec(), value.to_vec()));
            return Ok(());
        }
        self.remember(key, Some(value));
        self.client.put(key, value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        let removed = self.client()?.remove(key)?;
        Ok(removed || self.lies(Lie::PhantomRemove))
    }

    fn update(
        &mut self,
        key: &[u8],
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<(), Error> {
        if self.lie != Some(Lie::SplitUpdate) {
            return self.client()?.update(key, change);
        }
        let old = self.client.get(key)?;
        std::thread::yield_now();
        match change(old.as_deref()) {
            Some(new) => self.client.put(key, &new),
            None => self.client.delete(key),
        }
    }
}

/// A time that has passed, in milliseconds since 1970.
const LONG_AGO: u64 = 1;

/// Hooks around a call and within it, to make calls meet.
#[derive(Clone, Copy)]
pub struct Timing<'t> {
    /// Called when everything is prepared, right before the call.
    pub ready: &'t dyn Fn(),
    /// Called by an update while it holds its key.
    pub pause: &'t dyn Fn(),
}

impl Timing<'static> {
    /// Calls come one after another as fast as they can.
    pub const FREE: Timing<'static> = Timing { ready: &|| {}, pause: &|| {} };
}

/// Does `action` to key number `key`: the stamps around the call, and what came of it. Keys and values become
/// bytes before the first stamp and numbers after the second, so that nothing but the call lies between them.
pub(crate) fn perform(
    subject: &mut Subject,
    clock: &Clock,
    key: u64,
    action: Action,
    timing: &Timing<'_>,
) -> Result<(u64, u64, Outcome), Error> {
    let name = key_bytes(key);
    let bytes = |state: State| state.map(|value| encode(key, value));
    let (expected, new) = match action {
        Action::Swap(expected, new) => (bytes(expected), bytes(new)),
        action => (None, bytes(action.written().flatten())),
    };
    let value = new.as_deref().unwrap_or_default();
    let (mut answer, mut read) = (None, None);
    (timing.ready)();
    let invoked = clock.stamp();
    match action {
        Action::Get => read = subject.get(&name)?,
        Action::Put(_) => subject.put(&name, value)?,
        Action::Remove => answer = Some(subject.remove(&name)?),
        Action::Delete => subject.client()?.delete(&name)?,
        Action::Expire(value) => subject.client()?.put_until(&name, &encode(key, value), LONG_AGO)?,
        Action::Change(_) => unreachable!("values of histories have no word to change in place"),
        Action::PutIfAbsent(_) => answer = Some(subject.client()?.put_if_absent(&name, value)?),
        Action::Swap(..) => {
            answer = Some(subject.client()?.compare_and_swap(&name, expected.as_deref(), new.as_deref())?)
        }
        Action::Update(_) => subject.update(&name, |old| {
            read = old.map(<[u8]>::to_vec);
            (timing.pause)();
            new.clone()
        })?,
    }
    let returned = clock.stamp();
    let outcome = match (action, answer) {
        (Action::Get | Action::Update(_), _) => Outcome::Saw(read.map(|read| decode(key, &read))),
        (_, Some(answer)) => Outcome::Did(answer),
        _ => Outcome::Done,
    };
    Ok((invoked, returned, outcome))
}
