//! A heap of chains: zones of *memtables*, in which records stand in *chunks* that name the chunk before
//! (*ChainLog*, section 3.2.1 of the paper on an LSM engine for transactions on persistent memory).
//!
//! An *item* is a number of records that count together or not at all. It may have records for several
//! memtables; its part in one of them is a chunk. One order runs over all items of the pool ([`Ring`]). A
//! crash must leave a prefix of it: all items up to the *cut*, and nothing of the others.
//!
//! For this the paper writes words of their own: where each memtable ends (`gidx`, with its value before as
//! undo), and the last committed item (`commit_id`). They take a fence each, one item after the other. A
//! chunk here proves itself, and has with it what those words say:
//!
//! - `before`, the last number of the item granted before. So chunks lead from item to item over all
//!   memtables, and a hole ends the order.
//! - `pieces`, how many chunks the item has. So an item of which one is missing is noticed.
//! - `floor`, a number that was visible when this item was granted, so that all up to it was durable. A
//!   chunk that is missing below a floor is damage, not the end.
//! - `prev`, the place of the chunk granted before in this memtable. So a walk knows how zones go on.
//!
//! *One fence an item, none of them serial.* If an item is acknowledged, all items up to it were durable,
//! and so every chunk on the way to it is found. If it is not acknowledged, it counts only if all its pieces
//! are there and the item before it counts: wholly or not at all.
//!
//! *Nothing that was cut off comes back.* Before a new run grants, recovery ends all memtables of
//! earlier ones at the cut. Nobody appends to them again, and numbers are never used twice. So a chunk above
//! the cut never counts later. (The paper takes a `gidx` back in DRAM
//! alone and goes on with the same numbers: after a second crash, half an item can return.)
//!
//! | file | what it is |
//! |---|---|
//! | `layout` | the bytes of chunk, record, zone header, memtable and anchor |
//! | `chunk` | building a chunk: all but its place before the grant, the place behind it |
//! | `memtable` | opening memtables, giving them zones, ending and releasing them |
//! | `tail` | where the next chunk of a memtable goes: the part of a grant that is serial |
//! | `walk`, `view` | proving the chunks of a memtable after a crash; records in place |
//! | `cut` | how far the order is whole: a pure function of the chunks found |
//! | `log`, `item`, `group` | the life of an item; one client writes those of several |
//! | `subtable` | subtables, which are dropped by one bit |
//! | `usage` | counters of what zones hold |
//! | `anchor` | up to which number items may have left the pool |
//! | `recover`, `salvage` | from a crashed pool to memtables that hold a prefix; reading a damaged pool |

#[cfg(doc)]
use crate::commit::Ring;

pub mod anchor;
mod chunk;
pub mod cut;
mod group;
mod item;
mod layout;
mod log;
mod memtable;
mod recover;
mod salvage;
mod subtable;
mod tail;
mod usage;
mod view;
mod walk;

pub use chunk::Chunk;
pub use group::{GroupClient, GroupSettings, Groups};
pub use item::{Item, Written};
pub use layout::{
    ANCHOR_LEN, CHUNK_HEADER, FIRST_CHUNK, MEMTABLE_LEN, RECORD_HEADER, VERSION_FIELD, format_tables,
    record_len,
};
pub use log::ChainLog;
pub use memtable::{ChainHeap, ChainPools, Memtable, Supply};
pub use recover::{Recovered, RecoveredMemtable, Survey};
pub use salvage::Hole;
pub use subtable::{Dropped, NAME_MAX, SUBTABLE_LEN, Subtable};
pub use usage::{Counts, Held, SavedCounts, Usage};
pub use view::RecordFound;
pub use walk::ChainError;
