//! Why a heap of slots has no room or cannot say, each worded as the reader's next step.

use crate::space::{Shortage, SpaceError};

/// The errors of a heap of slots.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SlotError {
    /// The settings contradict themselves, or the zones of the pool.
    #[error("a heap of slots cannot have these settings: {reason}")]
    Settings {
        /// The fault, and the change that mends it.
        reason: &'static str,
    },
    /// No free block is left beyond the reserve.
    #[error("the pool is full: {0}")]
    Full(Shortage),
    /// No page can ever hold the record, or it has no key.
    #[error(
        "a record with a key of {key} and a value of {value} bytes has no place in this pool; keys have at least one \
         byte, and key and value must fit the pool's blocks"
    )]
    Unfit {
        /// Bytes of the key.
        key: u64,
        /// Bytes of the value.
        value: u64,
    },
    /// The heap holds records of one size, and this is another.
    #[error("the records of this pool have keys of {key} and values of {value} bytes, and no others")]
    WrongSize {
        /// Bytes of a key.
        key: u64,
        /// Bytes of a value.
        value: u64,
    },
    /// These bytes cannot be updated in place.
    #[error(
        "only eight bytes on a multiple of eight, inside the value of a record of fixed size, are updated in place"
    )]
    NotInPlace,
    /// Bytes in persistent memory cannot be right.
    #[error("{what} at offset {offset} is damaged; restore the pool from a backup, or salvage a copy of it")]
    Damaged {
        /// The damaged part.
        what: &'static str,
        /// Where it is, in bytes from the start of the pool.
        offset: u64,
    },
    /// The allocator or the medium failed.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

/// Something in persistent memory that cannot be right, found by a scan that went on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The damaged part.
    pub what: &'static str,
    /// Where it is, in bytes from the start of the pool.
    pub offset: u64,
}

impl From<Damage> for SlotError {
    fn from(Damage { what, offset }: Damage) -> SlotError {
        SlotError::Damaged { what, offset }
    }
}
