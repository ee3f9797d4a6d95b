//! Space: the allocator of every pool (Halloc, section 3.4 of the paper on an LSM engine for transactions on
//! persistent memory).
//!
//! All designs share one allocator, so one proof shows that nothing leaks. It hands out *objects* of fixed
//! size, from pools that are laid out when the pool is created, and *zones*, large pieces that heaps, indexes
//! and large values fill themselves. Both have four calls:
//!
//! | call | effect | cost on the medium |
//! |---|---|---|
//! | Get | takes a free object; nothing is durable yet | no flush, no fence |
//! | Commit | makes it owned: sets the commit bit of its index word | one flush of a line, one fence |
//! | Check | tells whether the object is committed | none: DRAM answers |
//! | Release | gives the object back | one flush, one fence; none if it was never committed |
//!
//! `docs/FORMAT.md` describes the layout. An extent carries its own zone table, so a pool can grow by an
//! extent that is written first and then named by the superblock.
//!
//! # Invariants
//!
//! - **The commit bits are the truth.** An object has an owner if and only if its bit is durable. List heads
//!   and links are hints, and may be stale after a crash. Recovery walks them and reclaims every uncommitted
//!   object that they miss (section 3.4.1), so no log is needed. Recovery never touches a commit bit, so no
//!   step of it can lose anything.
//! - Get offers an object again only after its bit is durably clear.
//! - Recovery makes durable what it has read before anyone acts on it. After a crash of the process alone, a
//!   bit may be only in the processor's cache, and a later power failure would change the answer.
//! - An owner finds committed objects that it does not know by walking all committed ones, and releases them.
//! - A superblock update writes the older copy, never the newest one.
//! - Creation writes the magic words last. A crash before that leaves "not a pool".
//!
//! [`FreeListKind::Volatile`] keeps the lists in DRAM and rebuilds them from the bits at open. Get and the
//! second half of Release then write nothing to the medium.
//!
//! # Threads
//!
//! Any thread may make any call. Each list and the superblock have a spin lock; Commit and Check take none.
//! Only the superblock's lock is held across a flush. In a file, Gets of zones take turns
//! (`kept_storage.rs`).

mod audit;
mod backing;
mod error;
mod expiry_clock;
mod free_list;
mod handle;
mod kept_storage;
mod layout;
mod object_pool;
mod part_header;
mod part_list;
mod pool_header;
mod recovery;
mod superblock;
mod tables;
mod third_copy;
mod zone_pool;

pub use audit::{PoolAudit, SpaceAudit};
pub use error::{Shortage, SpaceError};
pub use free_list::FreeListKind;
pub use handle::Space;
pub use layout::{FormatOptions, PoolSpec};
pub use object_pool::{ObjectId, ObjectPool};
pub use part_header::PartHeader;
pub use part_list::PartList;
pub use pool_header::{PoolHeader, ZoneEntry};
pub use recovery::SpaceRecovery;
pub use superblock::{
    CheckpointEntry, ExtentEntry, FORMAT_VERSION, FileEntry, MAX_EXTENTS, PoolEntry, SETTINGS_LEN, Superblock,
};
pub use tables::format_tables;
pub use zone_pool::ZoneId;
