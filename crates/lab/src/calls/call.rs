//! [`Call`]: any call of the public interface, with keys and values by number.

use super::codec::{Key, Value};
use quipu::designs::Capabilities;
use std::ops::Bound;

/// How long a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// For ever.
    Ever,
    /// It has expired when it is written.
    Past,
    /// So many milliseconds from the beginning of the call.
    For(u64),
}

impl Life {
    /// When a value expires that is written by a call that begins at `now`: 0 for never.
    pub fn expires(self, now: u64) -> u64 {
        match self {
            Life::Ever => 0,
            Life::Past => 1,
            Life::For(time) => now + time,
        }
    }
}

/// An entry of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A value.
    Put(Value, Life),
    /// Nothing.
    Delete,
}

/// The answer of an update's closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The key stays as it is.
    Keep,
    /// A value.
    Put(Value, Life),
    /// Nothing.
    Delete,
}

/// A call on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// `get`, `get_into`, `contains_key`, `expiry` and `version`.
    Get,
    /// `put`, or `put_until`.
    Put(Value, Life),
    /// `delete`.
    Delete,
    /// `remove`.
    Remove,
    /// `update`, which cannot keep, to a value or nothing.
    Update(Option<Value>),
    /// `update_with`.
    UpdateWith(Reply),
    /// `put_if_absent`.
    PutIfAbsent(Value),
    /// `compare_and_swap`, expecting what the key has, or something else, to a value or nothing.
    Swap(bool, Option<Value>),
    /// `put_if_version`, expecting the version of the key, or another.
    PutIfVersion(bool, Value),
    /// `update_in_place`, which adds a number to a word.
    Change(u64),
}

/// Keys between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The lower bound.
    pub from: Bound<Key>,
    /// The upper bound.
    pub to: Bound<Key>,
}

/// A read through a guard, of now or of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// `get`, `contains_key`, `expiry` and `version` of a key.
    Key(Key),
    /// `iter` and `keys`. The number says how slowly, as it does below.
    All(u64),
    /// `range`: at most so many keys, from either end as the bits of a number say.
    Range(Span, usize, u64),
    /// `prefix`, with the first bytes of a key.
    Prefix(Key, usize, u64),
    /// `first`, or with `true` `last`.
    End(bool),
}

/// A call. Those of a table are on the table that is named beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A call on one key.
    One(Key, Act),
    /// `get_many`.
    GetMany(Vec<Key>),
    /// `put_many`.
    PutMany(Vec<(Key, Value)>),
    /// `write` of a batch over tables.
    Batch(Vec<(usize, Key, Write)>),
    /// `delete_range`.
    DeleteRange(Span),
    /// `delete_prefix`, with the first bytes of a key.
    DeletePrefix(Key, usize),
    /// A read through a guard.
    Look(Look),
    /// `snapshot`.
    Snapshot,
    /// A read of one of the snapshots that the hand has.
    LookBack(usize, Look),
    /// One of these snapshots goes.
    Forget(usize),
    /// `create_table`, or `drop_table` if it is there.
    Turn,
    /// `compact`.
    Compact,
}

impl Call {
    /// Whether a design with these capabilities offers the call. It refuses others.
    pub fn is_offered(&self, can: &Capabilities) -> bool {
        let lives = |life: &Life| *life == Life::Ever || can.expiry;
        match self {
            Call::One(_, Act::Put(_, life) | Act::UpdateWith(Reply::Put(_, life))) => lives(life),
            Call::One(_, Act::PutIfVersion(..)) => can.versions,
            Call::One(..) | Call::GetMany(_) | Call::PutMany(_) | Call::Compact => true,
            Call::Batch(entries) => {
                let fits = |write: &Write| !matches!(write, Write::Put(_, life) if !lives(life));
                can.batches && entries.iter().all(|(_, _, write)| fits(write))
            }
            Call::Look(look) => look.is_offered(can),
            Call::LookBack(_, look) => can.tables && look.is_offered(can),
            Call::DeleteRange(_) | Call::DeletePrefix(..) => can.tables,
            Call::Snapshot | Call::Forget(_) | Call::Turn => can.tables,
        }
    }
}

impl Look {
    fn is_offered(&self, can: &Capabilities) -> bool {
        matches!(self, Look::Key(_) | Look::All(_)) || can.ordered
    }
}
