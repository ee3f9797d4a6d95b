//! A heap of slots: Viper's storage (Benson, Makait and Rabl, VLDB'21), pages that each lie on one DIMM.
//!
//! Records are written where they stay, under the lock of a page, into a block that a client owns. A mark
//! makes a record count, and clearing the mark deletes it; so space comes back page by page. A page is as
//! large as the interleave of the DIMMs and aligned to it. A *block* (VBlock) is one page (VPage) for each
//! DIMM, and clients begin blocks at random pages.
//!
//! | step | paper | file |
//! |---|---|---|
//! | pages and blocks in zones | 3.2.1 | `geometry`, `chunks` |
//! | slots; logs | 3.2.2; 3.2.3 | `fixed`, `pen`; `log`, `overflow` |
//! | a client's block | 4.1 | `owner`, `blocks` |
//! | put, and locks that cross | 4.2 | `place`, `locks` |
//! | get; update in place, delete | 4.3; 4.4, 4.5 | `read`; `change` |
//! | reclamation | 4.6 | `choose`, `victims`, `reclaim` |
//! | recovery | 4.7 | `recovery` |
//!
//! `pacman` has other ways to let records go and to move them. `docs/FORMAT.md` draws the bytes, and
//! `docs/PAPERS.md` lists the deviations. The order of persistence:
//!
//! | first | then | fences |
//! |---|---|---|
//! | headers of a chunk and of all its pages | the zone's commit bit | 1, and 1 for the bit |
//! | the count of used blocks | a block's first record, or any other change of it | 1 |
//! | the emptied pages of a free block | its being used again, then its first record | 2 |
//! | slot, or entry with a zero length word and a zero behind it | bit, or length word | 1, and 1 for that |
//! | the record that replaces another | the other's mark is cleared | 1 |
//! | a mark is cleared | the index forgets what is deleted; someone else gets the slot, or the key | |
//! | the marks of all records of a block are clear | the block is marked free | 1 |
//! | the blocks of a value | the length word of the entry that names them | that of the entry |
//! | that entry is cleared | those blocks are marked free | 1 |
//!
//! A caller keeps these rules:
//! - Changes of one key exclude each other, from the look at the index to the release of the old record.
//! - **A caller that takes an offset out of the index clears its mark, once.** Reclamation takes part by the
//!   same exchange.
//! - A reader is pinned from its look at the index on, and a [`FreedBlock`] is recycled when all readers that
//!   were pinned are gone.
//! - The index may compare keys under its own lock by [`SlotHeap::key_is`], and must not wait for a page.

mod blocks;
mod change;
mod choose;
mod chunks;
mod error;
mod fixed;
mod format;
mod free_blocks;
mod geometry;
mod heap;
mod locks;
mod log;
mod offset;
mod overflow;
mod owner;
mod pacman;
mod pen;
mod place;
mod read;
mod reclaim;
mod recovery;
mod settings;
mod victims;

pub use blocks::FreedBlock;
pub use change::{Held, Releasing};
pub use error::{Damage, SlotError};
pub use format::{ENTRY_HEAD, format_tables};
pub use geometry::SlotShape;
pub use heap::{Location, Neighbor, SlotHeap, SlotUsage};
pub use offset::{Offset, PageBits, SizedOffset};
pub use owner::Owner;
pub use pacman::{Batch, Collected, Victim};
pub use place::{Claim, Record};
pub use read::{SlotRecord, Stands};
pub use reclaim::{Moved, Reclaimed};
pub use recovery::FoundSlot;
pub use settings::{MAX_KEY, MAX_PAGES, PAGE_UNIT, RecordForm, SlotSettings, SlotTechniques};
