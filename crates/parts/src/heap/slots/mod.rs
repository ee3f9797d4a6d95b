//! A heap of slots: Viper's storage (Benson, Makait and Rabl, VLDB'21), pages that each lie on one DIMM.
//!
//! Records are written where they stay, under the lock of a page, into a block that a client owns; a mark makes each of them
//! count, and clearing the mark deletes it. So nothing is ever superseded by order alone, and space comes back page by page.
//! A page is as large as the interleave of the DIMMs and aligned to it, so that a write touches one of them; a *block*
//! (VBlock) is one page (VPage) for each DIMM, and clients begin blocks at random pages, so that they spread over the DIMMs.
//!
//! | step | paper | file |
//! |---|---|---|
//! | pages and blocks in zones | 3.2.1, figure 2 | `geometry`, `chunks` |
//! | slots, records of one size | 3.2.2 | `fixed`, `pen` |
//! | logs, records of any size | 3.2.3 | `log`, `overflow` |
//! | a client's block | 4.1 | `owner`, `blocks` |
//! | put, and locks that cross | 4.2 | `place`, `locks` |
//! | get | 4.3 | `read` |
//! | update in place, delete | 4.4, 4.5 | `change` |
//! | reclamation | 4.6 | `reclaim`, `worth` |
//! | recovery | 4.7 | `recovery` |
//!
//! With PACMAN's techniques (Wang et al., USENIX ATC 2022; [`SlotTechniques`]) records of any size are let go and moved in
//! other ways:
//!
//! | step | PACMAN | file |
//! |---|---|---|
//! | what is dead is known in DRAM, and deletions are tombstones | 3.2 | `dead`, `scrub` |
//! | lengths in the words of the index | 3.2 | `offset` |
//! | records of a block move under one fence | 3.3 | `batch` |
//! | hot records in blocks of their own | 3.4 | `owner` |
//!
//! # In persistent memory
//!
//! All integers are little-endian. A zone is a *chunk*, number `chunk` of the heap: a header, then blocks from the next
//! multiple of the interleaved set (pages of a block times 4096; of 4096 alone if no block would fit then), and 2048 further
//! on if the shift of figure 11 is set. Block `b` is block `b mod n` of chunk `b / n`, where `n` is how many fit every zone.
//!
//! ```text
//! chunk    0        1        2        3        4        5        6        7
//!    0 | check: keyed hash of bytes 8..40                                    |
//!    8 | magic "QVCH"                      | zone number                     |
//!   16 | life number                                                         |
//!   24 | chunk                             | blocks                          |
//!   32 | nonce: random, makes the life differ from every other               |
//!   40 | used                                                                |  the only field that changes
//!   48 | reserved, zero (16 bytes)                                           |
//!
//! page     0        1        2        3        4        5        6        7
//!    0 | lock    | kind   | zero            | tag: proves life, place, kind  |
//!    8 | slots: bitset, whole words, 1 = a record     logs: entries          |
//!      | slots: key, value, zeros, sequence number    logs: a zero word      |
//!
//! entry    0        1        2        3        4        5        6        7
//!    0 | length word                                                         |
//!    8 | sequence number                                                     |
//!   16 | key, value, zeros to a multiple of 8                                |
//!
//! length word   bit 0        set: the record counts
//!               bits 1..=16  length of the body, lower bits
//!               bits 17..=31 length of the key
//!               bits 32..=34 0 key and value, 1 the value is the first entry of the next page, 2 such a value,
//!                            3 the value fills blocks of its own, and the body names them, 4 the key was deleted
//!               bits 35..=47 length of the body, upper bits
//!               bits 48..=63 check of bits 1..=47, the life of the chunk and the place
//! kind          0 pages, 1 the block is free, 2 all its pages are one, 3 part of one value; in the first page of a block
//! used          bits 0..=31  blocks that have been handed out, all below this number
//!               bits 32..=63 check of these and the life of the chunk, as in the end mark of a segment
//! ```
//!
//! The lock byte is zero but with [`LockKind::PageByte`]. Slots and entries have no check of their own bytes, as in the
//! paper: that a mark is set proves that they are whole, and damage to them shows as a wrong value.
//! Marks have none either (bit 0 of a length word, the bits of a page of slots), since they change by one
//! store: a flip of one deletes a record or brings one back, and no scan can tell.
//!
//! # What must be durable before what
//!
//! | first | then | fences |
//! |---|---|---|
//! | headers of a chunk and of all its pages | the zone's commit bit | 1, and 1 for the bit |
//! | the count of used blocks | a block's first record, or any other change of it | 1 |
//! | the emptied pages of a free block | its being used again, then its first record | 2 |
//! | slot, or entry without its length word and with a zero word behind it | bit, or length word | 1, and 1 for that |
//! | a record | its place in the index | |
//! | the record that replaces another | the other's mark is cleared | 1 |
//! | a mark is cleared | the index forgets what is deleted; someone else gets the slot, or the key | |
//! | the marks of all records of a block are clear | the block is marked free | 1 |
//! | the blocks of a value | the length word of the entry that names them | that of the entry |
//! | that entry is cleared | those blocks are marked free | 1 |
//!
//! Where it is known in DRAM what is dead, marks of what is superseded stay, and `dead` and `batch` say what takes their place.
//!
//! The counts of section 4.7 are: used blocks, the sum of `used` over the chunks; allocated blocks, committed zones with a
//! valid header times `blocks`; mapped bytes, these zones times the zone size. No count exists twice, so none can contradict
//! another.
//!
//! # What the caller sees to
//!
//! - Operations on one key that change it exclude each other, from the look at the index to the release of the old record; so
//!   sequence numbers of a key rise in the order of publication, and nobody replaces a record that another deletes.
//! - **Who takes an offset out of the index clears its mark, once.** Reclamation takes part by the same exchange.
//! - Who reads is pinned from the look at the index on, and a [`FreedBlock`] is recycled when all who were pinned are gone.
//! - The index may compare keys under its own lock by [`SlotHeap::key_is`], and must not wait for a page.
//!
//! # Deviations from the paper
//!
//! - Every record has a sequence number, and the higher one counts after a crash; the paper takes the higher block, page and
//!   slot ([`TieBreak::BlockOrder`]), which may be the older record. There only the index excludes writers of one key, so it
//!   may even beat an acknowledged one: the crossing of locks lets a client finish while an older record of its key is still
//!   marked. Here the caller holds the key until then, and the page is locked; so block order does harm only where one of
//!   these lets go too early, and sequence numbers not even if it is the page.
//! - Locks are in DRAM with 31 bits of version, since a byte is the same again after 128 writes ([`LockKind::PageByte`]) and
//!   a lock is not worth a dirty line. So is the owner of a block, which the paper keeps in its first page and ignores at
//!   recovery.
//! - The bitset takes whole words behind a header word, and so never shares a word with a slot; that costs one slot of a page
//!   at most. Slots are padded to 8 bytes. The tag in the header word finds pages that were overwritten. The paper's formula
//!   takes one slot off if the bitset does not fit, which is not enough for the smallest slots; here as many as it takes.
//! - Length words have 64 bits and stand at multiples of 8, since nothing smaller is stored atomically. The upper half is
//!   ours: a kind, so that a value that continues on the next page is told from an empty one (the paper writes length 0 for
//!   the former and has no empty values); more bits of length; and a check.
//! - Neither the next insert position nor the share of free space is in the page: both follow from the length words, a client
//!   remembers the one in DRAM and every block counts the other. No marker says that a page has nothing more: the word behind
//!   the last entry is zero, durably, or the page is full.
//! - A value continues on the next page of the same block only; at its last page the record goes to the next block whole.
//! - A record that no page holds goes to a block that is one page, as in the paper. Where the paper spreads larger ones over
//!   several such pages, only the value is spread, and the entry names its blocks, which reclamation then need not copy.
//! - A block that a client leaves half empty goes to the next client.
//! - The word {next block, next page} also has a generation, for the release of chunks at the end.
//! - All pages of a chunk are laid out before it counts; the paper relies on zeros from the file system.
//! - Some free blocks are kept for cleaners, so that a full heap can be reclaimed.

mod batch;
mod blocks;
mod change;
mod chunks;
mod dead;
mod error;
mod fixed;
mod format;
mod geometry;
mod heap;
mod locks;
mod log;
mod offset;
mod overflow;
mod owner;
mod pen;
mod place;
mod read;
mod reclaim;
mod recovery;
mod scrub;
mod settings;
mod worth;

pub use batch::{Batch, Copied, Victim};
pub use blocks::FreedBlock;
pub use change::{Held, Releasing};
pub use dead::Stands;
pub use error::{Damage, SlotError};
pub use format::{ENTRY_HEAD, format_tables};
pub use geometry::SlotShape;
pub use heap::{Location, Neighbor, SlotHeap, SlotUsage};
pub use offset::{Offset, PageBits, SizedOffset};
pub use owner::Owner;
pub use place::{Claim, Record};
pub use read::SlotRecord;
pub use reclaim::{Moved, Reclaimed};
pub use recovery::FoundSlot;
pub use settings::{
    LockKind, MAX_KEY, MAX_PAGES, PAGE_UNIT, RecordForm, SlotSettings, SlotTechniques, TieBreak,
};
