//! Why a pool cannot be created, opened or grown, each worded as the reader's next step.

use quipu_medium::MediumError;

/// Room that was wanted and not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{wanted} bytes are wanted and {free} are free in the pool's {zones} zones beside {reserved} that are reserved; delete \
     records and compact, or create a larger pool"
)]
pub struct Shortage {
    /// Zones of the pool.
    pub zones: u32,
    /// Bytes that were wanted.
    pub wanted: u64,
    /// Bytes that were free for this use.
    pub free: u64,
    /// Bytes that are free and that this use must leave.
    pub reserved: u64,
}

/// Errors of a pool's space. An error at open has changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// Nothing here looks like a pool.
    #[error("this is not a pool: no copy of the superblock has the magic word; check the path")]
    NotAPool,
    /// The pool is longer than the file or device.
    #[error(
        "the pool was made with {expected} bytes but only {found} are here; restore the whole file or device, \
         nothing was changed"
    )]
    Truncated {
        /// Bytes that the superblock says there are.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// A later release wrote this pool.
    #[error(
        "the pool has format version {version}, and this release knows versions up to {known}; open it with the \
         newer release that wrote it"
    )]
    NewerFormat {
        /// Version of the pool.
        version: u32,
        /// Newest version that this release knows.
        known: u32,
    },
    /// An earlier build wrote this pool, in a form that this one does not read.
    #[error(
        "the pool has format version {version}, and this release reads version {known} only; export it with the build that \
         wrote it, and import the file into a new pool; nothing was changed"
    )]
    OlderFormat {
        /// Version of the pool.
        version: u32,
        /// The version that this release reads.
        known: u32,
    },
    /// A file was copied while a store had it open.
    #[error(
        "this is a copy of a pool that was open, so its pieces may be of different times; nothing was changed. Salvage it into a \
         new pool, if its design can be salvaged, or copy the pool again once it is closed. If no process had it open while it \
         was copied, accept the copy (`quipu sync POOL --accept-copy`)"
    )]
    CopyOfOpen,
    /// Metadata that is protected by a check word does not match it.
    #[error(
        "{what} at offset {offset} is damaged; restore the pool from a backup, or copy it and salvage the copy, if its design can be salvaged; \
         nothing was changed"
    )]
    Damaged {
        /// The damaged part.
        what: &'static str,
        /// Where it is, in bytes from the start of the pool.
        offset: u64,
    },
    /// The superblock is whole, but its description is impossible.
    #[error(
        "the geometry in the superblock cannot be right: {what}; the pool was not written by a sound release, \
         restore it from a backup"
    )]
    Geometry {
        /// The rule that it breaks.
        what: &'static str,
    },
    /// The options for a new pool contradict themselves.
    #[error("a pool cannot be created with these options: {reason}")]
    Options {
        /// The fault, and the change that mends it.
        reason: &'static str,
    },
    /// The region is too small for these options.
    #[error(
        "a pool with these options fits into {needed} bytes but not into the {found} given; give it more, or smaller zones"
    )]
    TooSmall {
        /// A length that would suffice.
        needed: u64,
        /// Length of the region.
        found: u64,
    },
    /// The medium could not provide storage or memory.
    #[error(transparent)]
    Medium(#[from] MediumError),
}
