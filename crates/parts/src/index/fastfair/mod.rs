//! FAST&FAIR, a B+-tree in PM (Hwang et al., FAST'18): the index of FlatStore-FF, and one that keeps keys in order.
//!
//! A tree in PM is to be changed in place, without a log, and must be readable at every instant: by threads that take no lock,
//! and after a crash. The paper's answer is to let readers tolerate what a change leaves half done. Entries of a
//! node are shifted word by word, in an order in which every state makes sense (failure-atomic shift, in `shift`); a
//! split links the sibling before the parent knows it (failure-atomic in-place rebalance, in `split`).
//!
//! ```text
//! root                       separators and children; each node names its right sibling, and where that one's keys begin
//!   inner · inner            a node has the keys from its own beginning to that of its sibling
//!     leaf · leaf · leaf     keys and values, in order, with holes
//! node          512 bytes: header, 29 entries of 16 bytes (in `node`)
//! chunk         64 bytes of a key that is not of eight bytes (in `blob`)
//! state         8 bytes a node in DRAM: lock, version, what is durable (in `state`)
//! ```
//!
//! # Keys and values
//!
//! Keys are bytes, up to 65535 of them, in their order as bytes. One of exactly eight stands in its entry, and no more than nodes is
//! read to find it. All others are kept in chunks: 64 bytes of PM for each 56 begun, and one fence more to add one. A
//! lookup of such a key reads them where a fingerprint of 16 bits agrees in the leaf, and some four times in each inner node, by
//! bisection. Separators have copies of their own.
//!
//! Values are words of [`VALUE_BITS`] bits other than zero. The two highest bits say what the word and the
//! key word before it are. Two keys may have equal values; then [`replace_at`](FastFairIndex::replace_at),
//! which knows its entry by its value, may take the one for the other.
//!
//! # Durability: no answer can be taken back
//!
//! A reader acts on words of leaves: an entry, or that there is none, and links to siblings. It answers if the node's state
//! was *quiet*, and the same, before and after: whoever changes a node has its lock from before the first store until after
//! the last fence, so nothing in it was waiting to become durable. If the state was not quiet, it makes the node durable and then
//! answers. What it acted on is durable then: the lines are flushed after they were read, and all states that they may have
//! gone to meanwhile are states after it in the order of one writer, which is an order that a crash may stop at
//! any point of. Three things make a state not quiet: a lock; values replaced by
//! [`replace_unflushed`](FastFairIndex::replace_unflushed), which are counted before they are stored; and that nobody
//! has looked at the node in this run. For a crash of the process alone leaves words in caches, so each node is flushed once by
//! whoever comes to it first: which costs a fence, and nothing at the open. There is no mark in PM to be set and lost, and values
//! keep their bits.
//!
//! What inner nodes say need not be durable. They lead to a leaf at or to the left of the right one, which is linked to its
//! left sibling, durably, before any parent names it; from there links lead on.
//!
//! | step | durable before | by |
//! |---|---|---|
//! | a line to which a shift has copied an entry | the entry is overwritten where it was | flush, fence |
//! | the last line of a shift; a value; a removal | the lock is given back | flush, fence |
//! | a key in chunks | an entry names it | non-temporal stores, fence |
//! | the sibling of a split, and the copy of its separator | the link to it | non-temporal stores, fence |
//! | the link | the upper entries become holes | flush, fence |
//! | these holes | the lock is given back; the parent is told | flush, fence |
//! | a new root | its number in the first zone | non-temporal stores, fence; flush, fence |
//! | that the parent does not name an empty node | its left sibling takes over its link | flush, fence |
//! | that nothing names a node or a chunk | it waits for its readers, and is free | flush, fence |
//! | replaced references of a batch | [`persist_all`](FastFairIndex::persist_all) returns | flushes, one fence |
//!
//! # After a crash
//!
//! Opening reads a line of every zone. The rest is done by who comes by: a node is settled by the first who
//! locks it (in `settle`), a sibling without a parent gets one from the first writer who comes through the
//! link (in `split`), and which nodes and chunks are free is found out by a walk, step by step (in `sweep`),
//! so nothing that was in flight leaks. Until a node has been settled, hints to it find nothing: it could be
//! one that the crash left out of the tree.
//!
//! # Concurrency
//!
//! Writers lock one node at a time; who takes an empty node out of the tree locks its parent, its left sibling and itself,
//! downwards and to the right (in `remove`). Readers lock nothing and never wait: they read on while a writer is at work, and
//! begin a node again only if another one has finished meanwhile.
//!
//! # Deviations from the paper
//!
//! - The lock and the switch counter are in DRAM, in the state, and not in the node.
//! - Removing leaves a hole, which the next insertion nearby fills, instead of shifting what is behind it: one line written,
//!   and hints to the other entries stay good.
//! - An entry on its way is known by equal neighbouring keys and not by equal pointers, so values need not differ.
//! - A node says where its sibling's keys begin. The paper looks at the sibling's first key, which a removal may take away: then
//!   two nodes may think a key theirs.
//! - Empty nodes are taken out and used again, of which the paper does not speak.
//! - A key that goes behind all others splits a full node at its end: nodes stay full under keys that come in order.
//! - The tree never gets lower.

mod arena;
mod audit;
mod back;
mod blob;
mod key;
mod kit;
mod link;
mod node;
mod offer;
mod open;
mod remove;
mod scan;
mod settings;
mod settle;
mod shift;
mod split;
mod state;
mod sweep;
mod tree;
mod unflushed;
mod write;

pub use crate::index::words::{PmWords, Words};
pub use audit::FastFairAudit;
pub use back::BackCursor;
pub use open::{FastFairRoot, format_tables};
pub use scan::ScanCursor;
pub use settings::{FastFairError, FastFairStats, HINT_BITS, Hint, KEY_MAX, Located, VALUE_BITS};
pub use tree::FastFairIndex;
pub use unflushed::Unflushed;
pub use write::Upserted;
