//! [`Subject`]: what can be called while a history is recorded.
//!
//! A client of a store is one; so are the broken ones that prove that the checker can fail.

use super::operation::{Action, Outcome, State};
use super::record::Clock;
use super::values::{decode, encode, key_bytes};
use quipu::{Client, Error};

/// One thread's access to a store, by the calls that are linearizable for each key.
pub trait Subject {
    /// The value of `key`.
    ///
    /// # Errors
    /// As for [`Client::get`].
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// The values of all `keys`.
    ///
    /// # Errors
    /// As for [`Client::get_many`].
    fn get_many(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error>;

    /// Gives `key` this value.
    ///
    /// # Errors
    /// As for [`Client::put`].
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Gives each key its value.
    ///
    /// # Errors
    /// As for [`Client::put_many`].
    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error>;

    /// Takes the value of `key` away, and tells whether there was one.
    ///
    /// # Errors
    /// As for [`Client::remove`].
    fn remove(&mut self, key: &[u8]) -> Result<bool, Error>;

    /// Takes the value of `key` away.
    ///
    /// # Errors
    /// As for [`Client::delete`].
    fn delete(&mut self, key: &[u8]) -> Result<(), Error>;

    /// Gives `key` this value if it has none, and tells whether it did.
    ///
    /// # Errors
    /// As for [`Client::put_if_absent`].
    fn put_if_absent(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error>;

    /// Replaces the one state of `key` by the other if it is the present one, and tells whether it did.
    ///
    /// # Errors
    /// As for [`Client::compare_and_swap`].
    fn compare_and_swap(
        &mut self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error>;

    /// Leaves `key` with what `change` makes of its value.
    ///
    /// # Errors
    /// As for [`Client::update`].
    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<(), Error>;
}

/// What happens around a call and within it, to make calls meet.
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

/// What an update makes of the old value.
pub type Change<'c> = dyn FnMut(Option<&[u8]>) -> Option<Vec<u8>> + 'c;

impl Subject for Client {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Client::get(self, key)
    }

    fn get_many(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut found = Vec::with_capacity(keys.len());
        Client::get_many(self, keys, |_, value| found.push(value.map(<[u8]>::to_vec)))?;
        Ok(found)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Client::put(self, key, value)
    }

    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        Client::put_many(self, pairs)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        Client::remove(self, key)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        Client::delete(self, key)
    }

    fn put_if_absent(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Client::put_if_absent(self, key, value)
    }

    fn compare_and_swap(
        &mut self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        Client::compare_and_swap(self, key, expected, new)
    }

    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<(), Error> {
        Client::update(self, key, change)
    }
}

/// Does `action` to key number `key`: the stamps around the call, and what came of it. Keys and values become bytes
/// before the first stamp and numbers after the second, so that nothing but the call lies between them.
pub(crate) fn perform(
    subject: &mut dyn Subject,
    clock: &Clock,
    key: u64,
    action: Action,
    timing: &Timing<'_>,
) -> Result<(u64, u64, Outcome), Error> {
    let name = key_bytes(key);
    let bytes = |state: State| state.map(|value| encode(key, value));
    let (expected, new) = match action {
        Action::Swap(expected, new) => (bytes(expected), bytes(new)),
        action => (None, bytes(action.written())),
    };
    let value = new.as_deref().unwrap_or_default();
    let (mut answer, mut read) = (None, None);
    (timing.ready)();
    let invoked = clock.stamp();
    match action {
        Action::Get => read = subject.get(&name)?,
        Action::Put(_) => subject.put(&name, value)?,
        Action::Remove => answer = Some(subject.remove(&name)?),
        Action::Delete => subject.delete(&name)?,
        Action::PutIfAbsent(_) => answer = Some(subject.put_if_absent(&name, value)?),
        Action::Swap(..) => {
            answer = Some(subject.compare_and_swap(&name, expected.as_deref(), new.as_deref())?)
        }
        Action::Update(_) => subject.update(&name, &mut |old| {
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
