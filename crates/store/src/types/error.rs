//! One error type; its [`kind`](Error::kind) says what the caller should do next.

use crate::types::holder::Holder;
use quipu_medium::MediumError;
use quipu_parts::commit::Failed;
use quipu_parts::heap::segments::HeapError;
use quipu_parts::index::IndexError;
use quipu_parts::record::shown_key;
use quipu_parts::runs::{NameError, RunsError};
use quipu_parts::space::{Shortage, Space, SpaceError};
use std::time::Duration;

/// Why a call failed. Nothing was changed unless the variant says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The empty key is not a key.
    #[error("the key is empty; a key has 1 to {limit} bytes")]
    KeyEmpty {
        /// Longest key of this pool.
        limit: u64,
    },
    /// The key is longer than the pool allows.
    #[error("the key has {len} bytes, the limit of this pool is {limit}")]
    KeyTooLarge {
        /// Bytes given.
        len: u64,
        /// Longest key of this pool.
        limit: u64,
    },
    /// The value is longer than the pool allows, or than its zones allow in an atomic batch.
    #[error(
        "the value has {len} bytes, the limit here is {limit}; a larger pool, or one with larger zones, allows more"
    )]
    ValueTooLarge {
        /// Bytes given.
        len: u64,
        /// Longest value of this pool, or of a batch in it.
        limit: u64,
    },
    /// All records of the pool have one size, and this is another.
    #[error("the records of this pool have keys of {key} and values of {value} bytes, and no others")]
    RecordSize {
        /// Bytes of a key.
        key: u64,
        /// Bytes of a value.
        value: u64,
    },
    /// The design of the pool cannot do this.
    #[error("the design of this pool has no {what}; `quipu designs` says what each can do")]
    Unsupported {
        /// The missing capability.
        what: &'static str,
    },
    /// These bytes cannot be updated in place.
    #[error(
        "only eight bytes inside the value, at a multiple of eight in their page, can be updated in place"
    )]
    NotInPlace,
    /// The store was opened for reading only ([`Store::open_read_only`](crate::Store::open_read_only)).
    #[error("the pool is open for reading only, and nothing was changed; open it for writing (Store::open)")]
    ReadOnly,
    /// No segment of the pool can hold the batch.
    #[error(
        "the batch takes {len} bytes, the limit of this pool is {limit}; split it, or create the pool with larger zones"
    )]
    BatchTooLarge {
        /// Bytes of its records.
        len: u64,
        /// Bytes that a segment has for them.
        limit: u64,
    },
    /// A transaction takes more than one commit can hold. The write that would have made it so has not been
    /// added, and the transaction goes on without it.
    #[error(
        "the transaction would take {len} bytes in one table, the limit of this pool is {limit}; commit what it has, or \
         create the pool with larger zones"
    )]
    TransactionTooLarge {
        /// Bytes of its records in the table, with this one.
        len: u64,
        /// Bytes that it may have there.
        limit: u64,
    },
    /// Somebody else has written what the transaction relies on. Nothing was changed: begin again, and read
    /// again ([`Store::transact`](crate::Store::transact) does).
    #[error("{} has been written since the transaction began; begin it again", .key.as_deref().map_or_else(|| "a range that was read".into(), shown_key))]
    Conflict {
        /// The key that was written; `None` where a range was deleted.
        key: Option<Box<[u8]>>,
    },
    /// The transaction is older than transactions may be ([`Options`](crate::Options::transaction_age)), and
    /// holds nothing any more. Nothing was changed.
    #[error("the transaction is older than Options::transaction_age allows; begin it again")]
    TransactionTooOld,
    /// The program's own reason to give a transaction up; see [`Client::transact`](crate::Client::transact).
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
    /// No room is left. Reads still work, and so do deletes until the reserve is used up.
    #[error(
        "the pool is full: {wanted} bytes are wanted, and {free} are free for this beyond the reserve; delete something, or export \
         the pool into a larger one"
    )]
    PoolFull {
        /// Zones of the pool.
        zones: u32,
        /// Bytes that were wanted: of the record, of the zones of a large value, or of what the index grows
        /// by.
        wanted: u64,
        /// Bytes of free zones, or free blocks, that this write could have used.
        free: u64,
    },
    /// Cleaning, a guard, a scan, a snapshot or a transaction held room back for as long as the write
    /// [waited](crate::Options::wait_for_room). A write does not wait so long for a guard or a scan of
    /// its own thread.
    #[error("{wanted} bytes are wanted, {free} are free, and no more became free in {} s: {holder}", .waited.as_secs_f64())]
    RoomHeld {
        /// Bytes that were wanted.
        wanted: u64,
        /// Bytes of free zones, or free blocks, that this write could have used.
        free: u64,
        /// How long it waited.
        waited: Duration,
        /// The holder.
        holder: Box<Holder>,
    },
    /// Records or structures of the pool do not prove themselves; the pool was not changed.
    #[error(
        "the pool is damaged: {0}; restore it from a copy, or salvage what it has, if its design can (quipu check POOL \
         --salvage NEWPOOL)"
    )]
    Damaged(Box<Damage>),
    /// A newer version wrote parts that this one cannot read; the pool was not changed.
    #[error("the pool needs a newer version of Quipu: {what}")]
    NewerFormat {
        /// The unknown part.
        what: String,
    },
    /// The pool belongs to another design than the one asked for.
    #[error("the pool is of design {found}, not {asked}; open it without naming a design")]
    OtherDesign {
        /// Design of the pool.
        found: String,
        /// Design asked for.
        asked: String,
    },
    /// Closing and checking need the store without clients.
    #[error("{clients} clients of the store are still open; drop them first")]
    ClientsOpen {
        /// Clients alive.
        clients: usize,
    },
    /// The closure of an update of the store wrote to it, or called for its maintenance, which could wait for
    /// that closure for ever. The inner call has done nothing.
    #[error(
        "the closure of an update may only read its store; write to the store when the update has returned"
    )]
    InsideUpdate,
    /// A thread panicked while it compacted the pool or published a write. Its work is left as after a crash:
    /// every acknowledged write is in the pool. Reads still work, except of a key whose publication is in an
    /// unknown state.
    #[error("a thread panicked while it worked on the store; drop the store and open it again")]
    BackgroundFailed,
    /// An option has an impossible value.
    #[error("{0}")]
    Option(String),
    /// Another table has this name.
    #[error("the pool has a table {name:?} already")]
    TableExists {
        /// The name.
        name: String,
    },
    /// The pool has no such table.
    #[error("the pool has no table {name:?}; `quipu table list POOL` shows those that it has")]
    NoTable {
        /// The name.
        name: String,
    },
    /// The table is gone, with all that it held.
    #[error("the table has been dropped")]
    TableDropped,
    /// The allocator refused the pool or failed.
    #[error(transparent)]
    Space(SpaceError),
    /// The medium failed.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The levels of a table failed. A write has not happened then.
    #[error(transparent)]
    Levels(#[from] RunsError),
    /// The levels of a table failed in the middle of a change, and take no other. The pool takes writes as
    /// long as its own space lasts.
    #[error("{what}")]
    LevelsStopped {
        /// The failure.
        what: String,
    },
}

/// The caller's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Change the argument.
    Argument,
    /// Make room, or use a larger pool or disk.
    Room,
    /// Close the other handle of the pool, or drop the clients of this one.
    InUse,
    /// The file is no pool, or a pool of a version that this program does not read.
    NotAPool,
    /// Restore the pool from a copy.
    Damaged,
    /// Look at the system: a call to it failed.
    System,
    /// Do the same again, from its beginning: others came in between.
    Again,
}

/// Where a pool is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Every place found, in order of offsets.
    pub places: Vec<DamagedPlace>,
}

/// One damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPlace {
    /// The damaged structure or record.
    pub what: String,
    /// Byte offset in the pool.
    pub offset: u64,
    /// Bytes affected.
    pub len: u64,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.places.first() {
            None => write!(f, "no damage"),
            Some(first) => {
                write!(f, "{} at byte {} ({} bytes)", first.what, first.offset, first.len)?;
                if self.places.len() > 1 {
                    write!(f, " and {} more places", self.places.len() - 1)?;
                }
                Ok(())
            }
        }
    }
}

/// An error with these damaged places, if there are any.
pub(crate) fn damaged_at(places: Vec<DamagedPlace>) -> Result<(), Error> {
    if places.is_empty() { Ok(()) } else { Err(Error::Damaged(Box::new(Damage { places }))) }
}

impl DamagedPlace {
    /// A whole pool in which nothing tells what it has lost.
    pub(crate) fn after_a_crash(space: &Space) -> DamagedPlace {
        let what = match space.superblock().is_of_other_boot(space.region()) {
            true => "after a crash of the operating system, which its durability does not cover, the pool",
            // The disk may have got another number.
            false => {
                "on another device than before, without a close (if it is the same, `quipu sync POOL --accept-copy`), \
                 the pool"
            }
        };
        DamagedPlace { what: what.into(), offset: 0, len: space.region().len() }
    }
}

impl From<DamagedPlace> for Error {
    fn from(place: DamagedPlace) -> Error {
        Error::Damaged(Box::new(Damage { places: vec![place] }))
    }
}

impl Error {
    /// One damaged place.
    pub(crate) fn damaged(what: impl Into<String>, offset: u64, len: u64) -> Error {
        DamagedPlace { what: what.into(), offset, len }.into()
    }

    /// A new pool has no zone for records.
    pub(crate) fn no_room_in(space: &Space) -> Error {
        let (zones, zone_size) = (space.zone_count(), space.zone_size());
        Error::Option(format!(
            "a pool of {zones} zones of {zone_size} bytes has no room beside its reserve; make it larger, or the \
             zones smaller"
        ))
    }

    /// The caller's next step.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::KeyEmpty { .. }
            | Error::KeyTooLarge { .. }
            | Error::ValueTooLarge { .. }
            | Error::BatchTooLarge { .. }
            | Error::TransactionTooLarge { .. }
            | Error::RecordSize { .. }
            | Error::Unsupported { .. }
            | Error::NotInPlace
            | Error::ReadOnly
            | Error::OtherDesign { .. }
            | Error::TableExists { .. }
            | Error::NoTable { .. }
            | Error::TableDropped
            | Error::InsideUpdate
            | Error::Own(_)
            | Error::Option(_) => ErrorKind::Argument,
            Error::PoolFull { .. }
            | Error::RoomHeld { .. }
            | Error::Medium(MediumError::DiskFull { .. })
            | Error::Levels(RunsError::Full { .. }) => ErrorKind::Room,
            Error::Levels(RunsError::Damaged { .. }) => ErrorKind::Damaged,
            Error::Levels(_) | Error::LevelsStopped { .. } => ErrorKind::System,
            Error::Medium(MediumError::InUse { .. }) | Error::ClientsOpen { .. } => ErrorKind::InUse,
            Error::Conflict { .. } | Error::TransactionTooOld => ErrorKind::Again,
            Error::Damaged(_) => ErrorKind::Damaged,
            Error::NewerFormat { .. } => ErrorKind::NotAPool,
            Error::Medium(
                MediumError::Exists { .. } | MediumError::Unsuitable { .. } | MediumError::NotPrivate { .. },
            ) => ErrorKind::Argument,
            Error::Medium(_) | Error::BackgroundFailed => ErrorKind::System,
            Error::Space(error) => space_kind(error),
        }
    }
}

fn space_kind(error: &SpaceError) -> ErrorKind {
    match error {
        SpaceError::Damaged { .. }
        | SpaceError::Truncated { .. }
        | SpaceError::Geometry { .. }
        | SpaceError::CopyOfOpen => ErrorKind::Damaged,
        SpaceError::Options { .. } | SpaceError::TooSmall { .. } => ErrorKind::Argument,
        _ => ErrorKind::NotAPool,
    }
}

impl From<SpaceError> for Error {
    fn from(error: SpaceError) -> Error {
        match error {
            SpaceError::Medium(error) => Error::Medium(error),
            error => Error::Space(error),
        }
    }
}

impl From<Shortage> for Error {
    fn from(Shortage { zones, wanted, free, .. }: Shortage) -> Error {
        Error::PoolFull { zones, wanted, free }
    }
}

impl From<NameError> for Error {
    fn from(error: NameError) -> Error {
        match error {
            NameError::NotNamed(error) => Error::Levels(error),
            NameError::Poisoned(_) => Error::LevelsStopped { what: error.to_string() },
        }
    }
}

impl From<Failed> for Error {
    fn from(_: Failed) -> Error {
        Error::BackgroundFailed
    }
}

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Error {
        match error {
            IndexError::Full(shortage) => shortage.into(),
            IndexError::Absent => Error::damaged("the root of the index, which the superblock names,", 0, 0),
            IndexError::Space(error) => error.into(),
            other => Error::Option(other.to_string()),
        }
    }
}

impl From<HeapError> for Error {
    fn from(error: HeapError) -> Error {
        match error {
            HeapError::Full(shortage) => shortage.into(),
            HeapError::Space(error) => error.into(),
            HeapError::TooLong { len, limit } => Error::ValueTooLarge { len, limit },
            other => Error::Option(other.to_string()),
        }
    }
}
