//! Creating an index in PM, and finding it again after a crash.

use super::arena::{Arena, Kind};
use super::link::{marked, unmarked};
use super::settings::damaged;
use super::split::Draft;
use super::sweep::Sweep;
use super::tree::FastFairIndex;
use crate::index::chain::{Chain, HEAD, HEADER_OF_ZONE, Linked, header_fields, root_fields};
use crate::index::words::{PmWords, Words};
use crate::index::{InPool, IndexError, IndexRoot};
use crate::space::Space;
use crate::table::Table;
use quipu_medium::WORD;
use std::sync::Arc;

const MAGIC: [u8; 4] = *b"QFFT";
/// The number of the first root: the first node of the first zone.
const FIRST_NODE: u64 = 1;

impl InPool for FastFairIndex {
    type Settings = ();

    fn create(
        space: Arc<Space>,
        (): (),
        leave: u32,
        keep: impl FnOnce(IndexRoot),
    ) -> Result<FastFairIndex, IndexError> {
        let words = PmWords::new(space.region().clone());
        let chain = Chain::create(space.clone(), MAGIC, leave);
        let arena = Arena::new(words, chain)?;
        let zone = arena.chain.take_zone()?;
        let header = arena.chain.header(zone, 0, Kind::Nodes.shape(), marked(FIRST_NODE));
        arena.words.write(space.zone_offset(zone), &header);
        arena.add(zone, Kind::Nodes, true);
        let root = arena.take(Kind::Nodes).expect("a zone has room for nodes");
        let node = arena.node(root, space.zone_offset(zone))?;
        arena.words.write(node.place, &Draft::new(0, None, None).to_bytes());
        arena.words.fence();
        node.state.settle();
        arena.chain.begin(zone, keep);
        Ok(FastFairIndex::over(arena, root, Sweep::new(true)))
    }

    fn examine(space: Arc<Space>, root: IndexRoot, leave: u32) -> Result<FastFairIndex, IndexError> {
        FastFairIndex::examine_over(PmWords::new(space.region().clone()), space, root, leave)
    }

    fn repair(&self, begin: impl FnOnce()) -> Result<(), IndexError> {
        self.mend(begin);
        Ok(())
    }
}

impl<W: Words> FastFairIndex<W> {
    /// [`examine`](InPool::examine), through these words of the pool. For tests.
    ///
    /// # Errors
    /// As there.
    pub fn examine_over(
        words: W,
        space: Arc<Space>,
        root: IndexRoot,
        leave: u32,
    ) -> Result<FastFairIndex<W>, IndexError> {
        let (chain, linked) = Chain::examine(space, MAGIC, root, leave)?;
        let arena = Arena::new(words, chain)?;
        for Linked { zone, shape } in linked {
            let Some(kind) = Kind::of(shape) else {
                return damaged(HEADER_OF_ZONE, arena.chain.space.zone_offset(zone));
            };
            arena.add(zone, kind, false);
        }
        let head = arena.first_zone() + HEAD;
        // A crash of the process alone may have left the word in a cache.
        arena.words.persist(head, WORD);
        let number = arena.words.load(head);
        let top = unmarked(number);
        if marked(top) != number {
            return damaged("the root of the index", head);
        }
        arena.node(top, head)?.level()?;
        Ok(FastFairIndex::over(arena, top, Sweep::new(false)))
    }

    /// [`repair`](InPool::repair), through any words.
    pub fn mend(&self, begin: impl FnOnce()) {
        self.arena.chain.repair(begin);
    }
}

/// The structures with their fields, for the check of `docs/FORMAT.md` against the code.
pub fn format_tables() -> Vec<Table> {
    let shape = [("kind", 1), ("node_bits", 1), ("reserved_a", 2)];
    vec![("FastFairZoneHeader", header_fields(&shape, Some("top"))), ("FastFairRoot", root_fields())]
}
