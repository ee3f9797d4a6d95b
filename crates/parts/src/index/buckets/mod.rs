//! The bucket hash index of MPKV, in PM (Wang, Zhu and Shu, "A Multicore-Friendly Persistent Memory Key-Value Store", sections 2, 3.1
//! and 3.2).
//!
//! Threads that share an index in PM get into each other's way by their locks: these are stores to PM, to lines that readers need. So
//! readers lock nothing, writers lock in DRAM (`lock`), and all that is to be said of a key is one word, which changes at once: its
//! fingerprint, where its record is, and whether the word is durable (`slot`).
//!
//! ```text
//! hash         63..16 choose the bucket (in `numbers`)    15..0 are the fingerprint
//! zone         0    check 8        keyed hash over the following 24 bytes
//!              8    magic 4        "QBKT"; "QBKL" if the locks are in the buckets
//!              12   zone 4         number of this zone
//!              16   nonce 8        drawn for the index, so that no zone of an earlier one is believed
//!              24   number 4       place in the chain of the index's zones, from 0
//!              28   kind 1         bits 0..=6: 1 buckets of the table, 2 overflow buckets; bit 7: the table grows
//!              29   shift 1 · digits 2       buckets at first: digits << shift
//!              32   next 8         zone number of the next one plus one, or 0
//!              40   state 8        of the first zone: bits 0..=31 buckets of the table, or 0 while it is being created;
//!                                  bits 32..=63 keyed hash over them and the place
//!                                  of an overflow zone: bits 0..=23 buckets handed out, bits 24..=55 the bucket for whose chain
//!                                  the last of them was, or all ones; bits 56..=63 keyed hash over them and the place
//!              48   reserved 16
//!              64   buckets of 64 bytes, to the end
//! bucket       eight words, each a slot; with locks in the buckets, the first is the lock, and seven are slots
//! slot         a key: bits 48..=63 fingerprint, 3..=47 reference, 0 persist
//!              a deleted key: the same with 1 set, and the reference's bits reversed; free after a crash too
//!              a link, in the last slot: bits 27..=47 the overflow zone, counted from 0 along the chain; 3..=26 the line in
//!                                  it, both reversed; 48..=63 a check of them; 2 set; 0 persist
//!              0x9d3a06c558e12b4f: free
//! root         0    zone 4 · reserved 4
//!              8    nonce 8        16 bytes that the caller keeps, in the superblock's settings for example
//! ```
//!
//! All integers are little-endian. The buckets of the table lie in their order in the zones of the table.
//!
//! # Overflow
//!
//! When all slots of a chain are taken, the word in the last slot of its last bucket moves to a new bucket, where the key that comes is put
//! beside it, and a link takes its place. So a bucket with nothing behind it costs one line to read, and a link needs none. The
//! layout of the link is ours: the paper has none. A bucket that has become empty stays in its chain, which fills it again. To take
//! it out would need a second copy of what stays, and a list of free buckets that survives; and a key is found in
//! the first bucket as long as it stands there, whatever is behind.
//!
//! # Two phases, and who completes them
//!
//! A writer stores a word without its persist mark, flushes it, and waits; then it stores the mark, which is not flushed. Whoever acts
//! on a word without a mark makes it durable first: a reader of this fingerprint, be it of a key or of a deletion, and anyone who
//! goes on through a link. So after a restart nothing has to be gone through, and the same protocol lets a cleaner change many words
//! with one fence (`unflushed`).
//!
//! | step | durable before | by |
//! |---|---|---|
//! | the word of a key; that it is deleted | the lock is given back; a reader answers | flush, fence; a reader who comes first does it |
//! | that a key is deleted | its slot is free, or taken | flush, fence |
//! | a new bucket, with the word that moves there and the one that is added | the link to it | non-temporal stores, flush, fence |
//! | the link | the lock is given back; a reader goes on through it | as for a key |
//! | how many overflow buckets have been handed out | the link to the last of them | flush, fence |
//! | the words that a split moves | the size of the table | flushes, fence (in `split`) |
//! | the size of the table | the words leave the old chain | flush, fence |
//! | that they have left | the locks are given back | flushes, fence |
//! | words replaced by a batch | [`persist_all`](BucketIndex::persist_all) returns | flushes, one fence |
//! | a zone of the table: free slots, its header, the link to it | its commit | non-temporal stores, flush, fence |
//!
//! # Readers beside writers
//!
//! - A change of a key is one store to its slot, so a reader sees the word before or the one after it.
//! - A key moves to another slot of its chain only with the store of the link, by which the slot where it was leads to where it is. A
//!   key that is deleted and added again may be missed by a reader that it overtakes, which is right: it was gone meanwhile.
//! - A split takes words out of the old chain only after the size of the table has changed. A reader that finds nothing looks at the
//!   size again, and begins anew if its key belongs to another bucket now. What it finds in the old chain is as it is in
//!   the new one until the locks are given back, and from then on it stands in the new one only.
//!
//! # Recovery
//!
//! Opening reads the header of every zone, and makes the size durable, which a crash of the process alone may have left in a
//! cache. Then it settles the two things that may be unfinished, of each no more than one: it frees the words that the last split
//! has left in the old chain, and takes back the overflow bucket that was handed out last, or makes the link to it durable. How long
//! that takes does not depend on the number of keys. Only with locks in the buckets all buckets are visited, to free them: the
//! price that the paper names (section 3.1).
//!
//! A chain is never longer than overflow buckets have been handed out, so a link that leads in a circle is told as damage.
//!
//! # Deviations from the paper
//!
//! - A slot holds an offset in units of eight bytes and no address, so that files may be mapped anywhere; the two lowest bits that an
//!   address has to spare say *deleted* and *link*.
//! - The bucket is chosen by a product and not by the remainder of a division, which spreads as evenly.
//! - A deletion, of which the paper does not speak, is marked durably before the slot is free.
//! - A reader whose compare-and-swap fails looks at the same slot again. Going on to the next would miss a key that is there, if
//!   it was the mark that somebody else has set.
//! - One lock a chain, hashed by its first bucket: with one a bucket, two writers could add a key twice.
//! - The table grows, if that is wanted (`split`).

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
pub use layout::{BucketRoot, format_tables};
pub use lock::{BucketLocks, Locking, TableLocks};
pub use numbers::BUCKETS_MAX;
pub use settings::{BucketError, BucketSettings, BucketStats};
pub use table::BucketIndex;
pub use unflushed::Unflushed;
