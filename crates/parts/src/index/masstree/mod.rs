//! Masstree (Mao, Kohler and Morris, EuroSys'12) in DRAM: the index of FlatStore-M, which keeps keys in
//! order.
//!
//! An ordered index that compares whole keys reads a key, somewhere else in memory, at each step of its way
//! down. Masstree takes a key apart into slices of eight bytes, which compare as numbers and stand in the
//! nodes. A B+-tree finds the first slice; where several keys share that and go on, another B+-tree, in the
//! *layer* below, finds the second; and so on. So it is a trie whose nodes are B+-trees.
//!
//! ```text
//! layer  | inner nodes: up to 15 slices, 16 children | border nodes: up to 15 slots, in a list |
//! slot   | slice 64 | class 4 | word 64 |   the word of a key that ends in this slice, or that goes on
//!                                           alone, with its suffix beside the node; or a link to a layer
//! beside | suffixes of 1 to 8 bytes, in a row that the node's number leads to | block of longer suffixes |
//! ```
//!
//! The bytes of a key behind its slice are its *suffix*, if no other key shares the slice and goes on. The
//! place of a short one is computed (`short`); the block of longer ones lies anywhere (`suffix`).
//!
//! Keys have up to 65,535 bytes, and stand in the index wholly: no record is read to find one. A key leads to
//! an opaque word other than zero. `docs/PAPERS.md` lists the deviations from the paper.
//!
//! # Readers and writers
//!
//! Readers lock nothing: they look at a node's version before and after (`version`). Down the tree a reader
//! takes the version of the child before it looks again at that of the parent (`descend`).
//!
//! Writers lock the border node. A new word for a key, a key that finds a free slot and a removal need no
//! more, and each takes effect by one store (`permutation`). Splits lock upwards, the child before its
//! parent, and so does the removal of an empty node, after the border node to its left. Layers are removed
//! from above, downwards; no holder of a lock of a layer waits for one above it. So there is no deadlock.
//!
//! # Numbers instead of pointers
//!
//! Nodes are named by numbers of 31 bits, and a bit for their type. Links take half the room. A number may be
//! kept outside of the index: it always leads to a node of its type, whose version refuses a lock
//! unless the node is in use (`arena`). So a cleaner replaces a word by a [`Hint`](crate::index::Hint)
//! without a search (`hint`). A node that has left the tree is used again after all threads pinned then.
//!
//! The keys in their order, with their words, are the image of the index (`image`). They fill one node after
//! another without a search, and the nodes above are made last (`load`).

mod arena;
mod back;
mod border;
mod descend;
mod hint;
mod image;
mod inner;
mod key;
mod layer;
mod load;
mod nodes;
mod offer;
mod permutation;
mod remove;
mod run;
mod scan;
mod short;
mod split;
mod suffix;
mod tree;
mod version;
mod write;

pub use back::BackCursor;
pub use descend::inner_nodes_visited;
pub use image::image_tables;
pub use scan::Cursor;
pub use tree::{Masstree, MasstreeStats};
