//! c-ALEX in DRAM: a learned index that keeps keys in order, and that many threads use at once.
//!
//! A linear model tells where in a large array a key most likely stands, and a search around that place finds
//! it. ALEX (Ding et al., SIGMOD'20) has arrays with gaps, so that most insertions move nothing, and models
//! that are learned anew when a leaf grows. NStore (TC'24, section IV) uses the variant of Wongkham et al.
//! (VLDB'22) with a lock for each leaf, and readers without locks.
//!
//! ```text
//! inner node | equal shares of a range, or sorted slices | children; neighbours may be one child |
//! leaf       | model: lines or a list | blocks of eight slices and their eight words, with gaps between |
//! word       | kind 2 | reference of a record, or pointer to a layer |
//! ```
//!
//! *Keys.* The tree is over *slices*: the first eight bytes of keys as numbers. A slot has the word of the
//! only key with its slice, whose record tells the rest, or leads to a layer with the next slices (`key`,
//! `layer`). So equal slices never stand twice, and a key of eight bytes is found without its record.
//!
//! *Models* have whole numbers, so that no two slices fall together (`model`). Inner nodes give each child
//! the same power of two of slices. A node can be given twice the children, within its range or beyond it,
//! and each slice is still led to where it stands.
//!
//! *Growth.* A full leaf is built anew with more slots. Where that would cost what it costs now, its model
//! becomes a list of slices, and its gaps are everywhere alike. A leaf that costs too much with a list, or
//! is as large as leaves become, is cut in two, or an inner node takes its place (`grow`, `build`). Where
//! equal shares would leave nearly all keys together, children begin at sorted slices, as in a B+-tree.
//!
//! *Depth.* A leaf of any keys has up to some twenty thousand of them. So 120,000 keys of every set of the
//! tests have depth 2, also decimal numbers and fractal sets. An inner node of equal shares has 32 children
//! for each of its leaves at most; beyond that, a full leaf becomes an inner node. So the height grows by one
//! for four times the keys. Where keys lie beyond the shares, these become a list.
//!
//! *Shrinking.* A leaf whose keys go becomes smaller, and neighbours with few keys become one (`contract`). A
//! layer goes with its last key (`layer`).
//!
//! *Readers* lock nothing. They look at the version of a leaf before and after (`version`), and at nothing
//! of inner nodes but the child: a leaf that has left the tree says so. *Writers* lock the leaf. But a new
//! word for a key is one compare-and-swap without a lock: words move only by being taken out first, so a
//! word is where its key is (`slots`).
//!
//! `docs/PAPERS.md` lists the deviations from the paper.

mod build;
mod contract;
mod grow;
mod image;
mod key;
mod layer;
mod leaf;
mod memory;
mod model;
mod node;
mod offer;
mod scan;
mod slots;
mod tree;
mod version;
mod walk;

pub use image::image_tables;
pub use scan::Walk;
pub use walk::Alex;

#[cfg(test)]
mod tests;
