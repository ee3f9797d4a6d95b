//! Space: who owns which part of a pool, for every design (Halloc, section 3.4 of the paper on an LSM engine for
//! transactions on persistent memory).
//!
//! One allocator under all designs means that one proof of "nothing leaks" holds for all of them. It hands out
//! two things: *objects* of fixed size from pools that are laid out when the pool is created, and *zones*, large
//! pieces that heaps, indexes and large values fill themselves. Both go through the same four calls:
//!
//! | call | what it does | what it costs on the medium |
//! |---|---|---|
//! | Get | takes a free object; nothing about it is durable | no flush, no fence |
//! | Commit | makes it owned: sets the commit bit of its index word | one flush of one line, one fence |
//! | Check | whether it is committed | none, answered from DRAM |
//! | Release | gives it back | one flush, one fence (none if it was never committed) |
//!
//! # Layout of a pool
//!
//! ```text
//! 0         superblock, copy A (4096 bytes, `Superblock`)
//! 4096      superblock, copy B
//! 8192      object pools, up to 8, one after the other, each:
//!             metadata     PoolHeader (128 bytes) · index words (8 bytes an object) · unused to the next line
//!             objects      at the next multiple of 256 (of 4096 if objects are that large)
//! then      extents, up to 16, each starting at a multiple of 4096 and on one NUMA node:
//!             zone table   PoolHeader (128 bytes) · ZoneEntry (16 bytes a zone)
//!             zones        at the next multiple of the zone alignment
//! ```
//!
//! The zone alignment is the largest power of two that divides the zone size, but at most 2 MiB. An extent carries
//! its own table, so that growth can add one without moving anything: it is written first and then named by the
//! superblock. All integers are little-endian. [`format_tables`] lists every field; the words are:
//!
//! ```text
//! index word     bit 63        committed
//!                bits 0..=31   next free object: its number within this list plus one, or 0 at the end
//!                bits 32..=62  zero
//! list head      the same as an index word, never with bit 63
//! location word  bits 0..=31   number of the zone within its extent
//!                bits 32..=47  number of the extent
//!                bits 48..=63  NUMA node of the extent
//! ```
//!
//! # Invariants
//!
//! - **The commit bits are the truth.** An object belongs to someone if and only if its bit is durable. List head
//!   and next links are hints that may be stale after a crash; recovery walks them, whatever they say, and takes
//!   back every uncommitted object that they do not reach (section 3.4.1). So no log is needed, and no step of
//!   recovery itself can lose anything: it never touches a commit bit.
//! - An object is offered to Get again only after its bit is durably clear.
//! - Recovery makes durable what it has read before anyone acts on it: after a crash of the process alone the bits
//!   may still sit in the processor's cache, and a power failure later must not bring back another answer.
//! - An object that is committed but that no owner names is found by its owner, who walks the committed ones and
//!   compares with what it knows, and releases it.
//! - A superblock update writes the older copy and never the newest one.
//! - Creation writes the magic words last: a crash during it leaves "not a pool".
//!
//! With [`FreeListKind::Volatile`] the lists live in DRAM and are rebuilt from the bits at open. Get and the second
//! half of Release then write nothing to the medium.
//!
//! # Threads
//!
//! Every call may be made from any thread. Lists and superblock each have a spin lock; Commit and Check take none.
//! No lock is held across a flush except that of the superblock. In a file, Gets of zones take turns (`kept_storage.rs`).

mod audit;
mod error;
mod feature;
mod free_list;
mod handle;
mod kept_storage;
mod layout;
mod object_pool;
mod pool_header;
mod recovery;
mod superblock;
mod tables;
mod zone_pool;

pub use audit::{PoolAudit, SpaceAudit};
pub use error::{Shortage, SpaceError};
pub use feature::Feature;
pub use free_list::FreeListKind;
pub use handle::Space;
pub use layout::{FormatOptions, PoolSpec};
pub use object_pool::{ObjectId, ObjectPool};
pub use pool_header::{PoolHeader, ZoneEntry};
pub use recovery::SpaceRecovery;
pub use superblock::{CheckpointEntry, ExtentEntry, FORMAT_VERSION, PoolEntry, SETTINGS_LEN, Superblock};
pub use tables::format_tables;
pub use zone_pool::ZoneId;
