//! Masstree (Mao, Kohler and Morris, EuroSys'12) in DRAM: the index of FlatStore-M, and the ordered index of whoever needs one.
//!
//! An ordered index that compares whole keys reads a key, somewhere else in memory, at each step of its way down. Masstree
//! takes a key apart into slices of eight bytes, which compare as numbers and stand in the nodes. A B+-tree finds the first
//! slice; where several keys share that and go on, another B+-tree, in the *layer* below, finds the second; and so on. So it
//! is a trie whose nodes are B+-trees.
//!
//! ```text
//! layer  | inner nodes: up to 15 slices, 16 children | border nodes: up to 15 slots, in a list from left to right |
//! slot   | slice 64 | class 4 | word 64 |              the word of a key that ends in this slice, or that goes on
//!                                                      alone and has its suffix beside the node; or a link to a layer
//! ```
//!
//! Keys are byte strings of up to 65 535 bytes, in the order of their bytes. They are in the index wholly: no record is read to
//! decide whether a key is there. What a key leads to is an opaque word other than zero. With random keys of eight bytes
//! a key costs 30 bytes of DRAM, with ascending ones 22, and with random ones of 24 bytes 62 (`tests/masstree_memory.rs`).
//!
//! # Readers and writers
//!
//! Readers lock nothing. A version stands in each node, and a reader looks at it before and after (`version.rs`). Down the
//! tree it takes the version of the child before it looks again at that of the parent (`descend.rs`).
//!
//! Writers lock the border node. That is all there is to a new word for a key, to a key that finds a free slot and to a
//! removal, each of which takes effect by one store (`permutation.rs`). Splits lock upwards, the child before its parent, and
//! so does the removal of an empty node, after the border node to its left. Layers are removed from above, downwards; nobody
//! who holds a lock of a layer waits for one above it. So no two wait for each other.
//!
//! # Numbers instead of pointers
//!
//! Nodes are named by numbers of 31 bits, and a bit for their type. Links take half the room, and a number may be kept outside
//! of the index: it always leads to a node of its type, whose version lets nobody lock it unless it is in use (`arena.rs`).
//! That is what a [`Hint`] is made of: with it, a cleaner replaces a word without looking for its key (`hint.rs`, ATC'22
//! section 3.1). A node that has been taken out of the tree is used again after all who were pinned then have gone.
//!
//! # Images
//!
//! The keys in their order, with their words, are all that it takes to make the index again (`image.rs`). Keys that come in
//! order need no search: they fill one node after another, and the nodes above are made last (`load.rs`).
//!
//! # Deviations from the paper
//!
//! - Who meets a split begins again at the root of the layer, instead of going to the right along the border nodes. So a
//!   node need not know which slices it is for, and may come to be for more on either side.
//! - The slices of an empty first child go to the right, so that nothing changes above its parent (`remove.rs`).
//! - Making a layer counts as a change of the node, instead of a third state of the slot.
//! - All suffixes of a node are in one block; the paper has a block inside of the node as well.
//! - Inner nodes are searched without a branch that depends on the keys, so that lookups that follow each other overlap.
//! - Nodes are not merged, as in the paper. The first layer becomes lower when its root has one child left; a deeper one
//!   goes when it is empty.

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
mod scan;
mod split;
mod suffix;
mod tree;
mod version;
mod write;

pub use back::BackCursor;
pub use descend::inner_nodes_visited;
pub use hint::Hint;
pub use image::image_tables;
pub use scan::Cursor;
pub use tree::{Masstree, MasstreeError, MasstreeStats};
pub use write::Upserted;
