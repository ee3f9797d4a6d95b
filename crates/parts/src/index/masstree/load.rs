//! An index made of keys that come in their order: without a search, a split or a lock.
//!
//! The part of a key that a layer gets depends on its two neighbours only. A key stands in the deepest layer
//! that it shares with one of them; every layer above has a link instead, which is added when the last of the
//! keys behind it has come. So there is one open layer for each slice that the present key shares with the
//! next one. Each fills its border nodes from left to right, and leaves some room in each. The inner nodes of
//! a layer are made when it ends, level by level.
//!
//! Nobody else knows of the index meanwhile, so nodes are unlocked as soon as they are filled.

use super::border::Entry;
use super::inner::KEYS;
use super::key::{LONGER, Piece, SLICE, Suffix};
use super::nodes::{Link, Nodes};
use super::permutation::SLOTS;
use super::tree::Masstree;
use crate::index::ImageError;
use crate::sync::atomic::Ordering;
use std::ops::Range;

/// Entries that a border node gets, unless more have one slice: so many of [`SLOTS`] that the first keys of a
/// run do not split every node that they come to.
const FILLED: usize = 12;

/// Border nodes between two looks for numbers left: fewer than are kept for operations that have begun.
const BETWEEN_QUESTIONS: u32 = 4096;

/// A layer to which keys still come.
#[derive(Default)]
struct Layer {
    /// The entries of the next border node.
    entries: Vec<Kept>,
    /// The suffixes of these.
    suffixes: Vec<u8>,
    /// The border nodes that there are, each with its lowest slice.
    borders: Vec<(u64, Link)>,
}

/// An entry whose suffix is kept apart.
struct Kept {
    slice: u64,
    class: u8,
    word: u64,
    suffix: Range<usize>,
}

impl Kept {
    fn entry<'s>(&self, suffixes: &'s [u8]) -> Entry<'s> {
        let suffix = suffixes.get(self.suffix.clone()).unwrap_or_default();
        Entry { slice: self.slice, class: self.class, word: self.word, suffix: Suffix::of(suffix) }
    }
}

/// See the module's documentation.
pub(super) struct Loader {
    nodes: Nodes,
    /// One for each open layer; those behind wait to be used again.
    layers: Vec<Layer>,
    /// Slices that the present key shares with the one before: the open layers but the first.
    shared: usize,
    /// The present key, and its word once there is one.
    key: Vec<u8>,
    word: Option<u64>,
    keys: u64,
    layers_made: u64,
}

impl Loader {
    pub(super) fn new() -> Loader {
        Loader {
            nodes: Nodes::new(),
            layers: vec![Layer::default()],
            shared: 0,
            key: Vec::new(),
            word: None,
            keys: 0,
            layers_made: 0,
        }
    }

    /// Adds the next key: the first `common` bytes of the one before, all that both share, and `rest`.
    pub(super) fn push(&mut self, common: usize, rest: &[u8], word: u64) -> Result<(), ImageError> {
        let len = common + rest.len();
        let follows = match (self.word, rest.first()) {
            (None, _) => common == 0,
            (Some(_), None) => false,
            (Some(_), Some(byte)) => {
                common <= self.key.len() && self.key.get(common).is_none_or(|before| before < byte)
            }
        };
        if !follows || len > Masstree::MAX_KEY || word == 0 {
            return Err(ImageError);
        }
        // Slices that both have whole, and go on behind them.
        let shared = common.min(self.key.len().saturating_sub(1)).min(len.saturating_sub(1)) / SLICE;
        self.place(shared)?;
        self.key.truncate(common);
        self.key.extend_from_slice(rest);
        self.word = Some(word);
        self.keys += 1;
        Ok(())
    }

    /// The index of all keys.
    pub(super) fn finish(mut self) -> Result<Masstree, ImageError> {
        self.place(0)?;
        let root = self.end_layer(0)?;
        Ok(Masstree::of(self.nodes, root, self.layers_made, self.keys))
    }

    /// Puts the present key where it belongs, which shares so many slices with the next one, and ends the
    /// layers that no key comes to any more.
    fn place(&mut self, shared: usize) -> Result<(), ImageError> {
        let Some(word) = self.word else { return Ok(()) };
        let key = std::mem::take(&mut self.key);
        let depth = self.shared.max(shared);
        if self.layers.len() <= depth {
            self.layers.resize_with(depth + 1, Layer::default);
        }
        self.add(depth, &Entry::of(&Piece::at(&key, depth * SLICE), word))?;
        for ended in (shared + 1..=depth).rev() {
            let link = self.end_layer(ended)?;
            self.layers_made += 1;
            self.add(ended - 1, &Entry::layer(Piece::at(&key, (ended - 1) * SLICE).slice, link))?;
        }
        self.shared = shared;
        self.key = key;
        Ok(())
    }

    /// Adds an entry to an open layer, behind all others.
    fn add(&mut self, depth: usize, entry: &Entry<'_>) -> Result<(), ImageError> {
        let entries = &self.layers[depth].entries;
        if entries.len() >= FILLED {
            // Keys of one slice stay together. They are ten at most, so that something goes.
            let count = entries.iter().filter(|kept| kept.slice != entry.slice).count();
            if count == entries.len() || entries.len() == SLOTS {
                self.end_border(depth, count)?;
            }
        }
        let Layer { entries, suffixes, .. } = &mut self.layers[depth];
        let start = suffixes.len();
        suffixes.extend_from_slice(entry.suffix.bytes());
        let Entry { slice, class, word, .. } = *entry;
        entries.push(Kept { slice, class, word, suffix: start..suffixes.len() });
        Ok(())
    }

    /// Makes a border node of the first entries that wait for one.
    fn end_border(&mut self, depth: usize, count: usize) -> Result<(), ImageError> {
        let Loader { nodes, layers, .. } = self;
        let Layer { entries, suffixes, borders } = &mut layers[depth];
        let (number, border) = nodes.new_border();
        if number.is_multiple_of(BETWEEN_QUESTIONS) && !nodes.has_room() {
            return Err(ImageError);
        }
        let all: [Entry<'_>; SLOTS] =
            std::array::from_fn(|at| entries.get(at).map_or(Entry::NONE, |kept| kept.entry(suffixes)));
        border.fill(nodes, number, &all[..count]);
        if let Some((_, last)) = borders.last() {
            border.prev.store(last.number(), Ordering::Relaxed);
            nodes.border(last.number()).next.store(number, Ordering::Relaxed);
        }
        if depth == 0 {
            border.version.set_in_first_layer();
        }
        border.version.unlock();
        borders.push((all[0].slice, Link::border(number)));
        entries.drain(..count);
        // Only the last key of a slice has one, and the next key has the slice of those that are left.
        debug_assert!(entries.iter().all(|kept| kept.class < LONGER));
        suffixes.clear();
        Ok(())
    }

    /// Makes the missing nodes of a layer to which no key comes any more, and returns its root.
    fn end_layer(&mut self, depth: usize) -> Result<Link, ImageError> {
        self.end_border(depth, self.layers[depth].entries.len())?;
        let mut level = std::mem::take(&mut self.layers[depth].borders);
        while level.len() > 1 {
            // As many to each as to the others, so that none has but one child.
            let parents = level.len().div_ceil(KEYS + 1);
            let end = |parent: usize| parent * level.len() / parents;
            let children = |parent| &level[end(parent)..end(parent + 1)];
            level = (0..parents).map(|parent| new_inner(&self.nodes, children(parent))).collect();
        }
        let (_, root) = level[0];
        self.nodes.version(root).set_root(true);
        Ok(root)
    }
}

/// An inner node above these, each with the lowest slice that it is for, and that of all.
fn new_inner(nodes: &Nodes, children: &[(u64, Link)]) -> (u64, Link) {
    let (mut slices, mut links) = ([0; KEYS + 1], [Link::NONE; KEYS + 1]);
    for (at, (slice, link)) in children.iter().enumerate() {
        (slices[at], links[at]) = (*slice, *link);
    }
    let (link, inner) = nodes.new_inner(Link::NONE, &slices[1..children.len()], &links[..children.len()]);
    for (_, child) in children {
        nodes.parent(*child).store(link.bits(), Ordering::Relaxed);
    }
    inner.version.unlock();
    (slices[0], link)
}
