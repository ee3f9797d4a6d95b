//! FAST&FAIR, a B+-tree in PM (Hwang et al., FAST'18): the index of FlatStore-FF, which keeps keys in order.
//!
//! A tree in PM changes in place, without a log, and must be readable at every instant: by threads that take
//! no lock, and after a crash. Readers tolerate half-done changes. Entries of a node are shifted word by
//! word, in an order in which every state makes sense (failure-atomic shift, in `shift`). A split links the
//! sibling before the parent knows it (failure-atomic in-place rebalance, in `split`). `docs/FORMAT.md` draws
//! nodes and chunks; `docs/PAPERS.md` lists the deviations.
//!
//! Keys are bytes, up to 65,535. A key of eight bytes stands in its entry; any other is kept in chunks
//! (`blob`). Values are words of [`VALUE_BITS`] bits other than zero.
//!
//! # No answer can be taken back
//!
//! A reader acts on words of leaves and on links. It answers if the node's state (`state`) was *quiet*, and
//! the same, before and after. A writer holds the lock from before its first store until after its last
//! fence, so nothing in the node was waiting to become durable. If the state was not quiet, the reader makes
//! the node durable and then answers. The lines are flushed after they were read, and their later states
//! follow in the order of one writer, at any point of which a crash may stop. A state is not quiet under a
//! lock, while unflushed values are counted, and until the first visit of this run, since a crash of the
//! process alone leaves words in caches. Inner nodes need not be durable: they lead to a leaf at or to the
//! left of the right one, and durable links lead on.
//!
//! | step | durable before | by |
//! |---|---|---|
//! | a line to which a shift has copied an entry | the entry is overwritten where it was | flush, fence |
//! | the last line of a shift; a value; a removal | the lock is given back | flush, fence |
//! | a key in chunks | an entry names it | nt stores, fence |
//! | the sibling of a split, and the copy of its separator | the link to it | nt stores, fence |
//! | the link; then the holes of the upper entries | the next; the lock is given back | flush, fence |
//! | a new root | its number in the first zone, which is flushed and fenced | nt stores, fence |
//! | that the parent does not name an empty node | its left sibling takes over its link | flush, fence |
//! | that nothing names a node or a chunk | it waits for its readers, and is free | flush, fence |
//! | replaced references of a batch | `Index::persist` returns | flushes, one fence |
//!
//! After a crash, opening reads a line of every zone. The first to lock a node settles it (`settle`), the
//! first writer to pass a link tells a missing parent (`split`), and a walk finds free nodes and chunks
//! (`sweep`).
//!
//! Writers lock one node at a time; the removal of an empty node locks its parent, its left sibling and
//! itself, downwards and to the right (`remove`). Readers lock nothing and never wait.

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
pub use open::format_tables;
pub use scan::ScanCursor;
pub use settings::{FastFairStats, KEY_MAX, VALUE_BITS};
pub use tree::FastFairIndex;
pub use unflushed::Unflushed;
