//! The bucket hash index of MPKV, in PM (Wang, Zhu and Shu, "A Multicore-Friendly Persistent Memory Key-Value
//! Store", sections 2, 3.1 and 3.2).
//!
//! Locks of an index in PM are stores to PM, to lines that readers need, so threads disturb each other. Here
//! readers lock nothing, writers lock in DRAM (`lock`), and one word says all of a key and changes at once:
//! its fingerprint, the place of its record, and whether the word is durable (`slot`). The high 48 bits of a
//! hash choose the bucket (`numbers`). `docs/FORMAT.md` draws the bytes, and `docs/PAPERS.md` lists the
//! deviations from the paper.
//!
//! *Overflow*: in a full chain, the word in the last slot of the last bucket moves to a new bucket beside the
//! added key, and a link takes its place. So a bucket with nothing behind it costs one line to read. Empty
//! buckets stay in their chains.
//!
//! *Two phases*: a writer stores a word without its persist mark, flushes it, and waits; then it stores the
//! mark, which is not flushed. A thread that acts on a word without a mark makes it durable first: a reader
//! of the fingerprint, also of a deletion, and a thread that follows a link. So a restart repairs nothing,
//! and a cleaner changes many words with one fence (`unflushed`).
//!
//! | step | durable before | by |
//! |---|---|---|
//! | the word of a key, a deletion, a link | the lock is given back; a reader acts on it | flush, fence |
//! | that a key is deleted | its slot is free, or taken | flush, fence |
//! | a new bucket with its words; the count of buckets | the link to it | nt stores, flush, fence |
//! | moved words; then the size; then that they left | the next; the locks are given back | `split` |
//! | words replaced by a batch | [`persist`](crate::index::Index::persist) returns | flushes, one fence |
//! | a zone of the table: free slots, its header, the link to it | its commit | nt stores, flush, fence |
//!
//! *Readers beside writers*: a change is one store to the slot. A key moves within its chain only with the
//! store of the link, which leads from its old slot to the new one. A split takes words out of the old chain
//! only after the size has changed, so a reader that finds nothing looks at the size again.
//!
//! *Recovery* reads the header of every zone and settles two things. It frees the words that the last split
//! left in the old chain. It takes back the last overflow bucket, or makes the link to it durable. Only locks
//! in the buckets need a visit of all buckets, the price that the paper names (section 3.1). A link that
//! leads in a circle is told as damage, since no chain is longer than the overflow buckets handed out.

mod audit;
mod iterate;
mod layout;
mod lock;
mod numbers;
mod offer;
mod open;
mod settings;
mod slot;
mod split;
mod table;
mod unflushed;
mod write;
mod zones;

pub use audit::BucketAudit;
pub use iterate::BucketCursor;
pub use layout::format_tables;
pub use lock::{BucketLocks, Locking, TableLocks};
pub use numbers::BUCKETS_MAX;
pub use settings::{BucketSettings, BucketStats};
pub use table::BucketIndex;
pub use unflushed::Unflushed;
