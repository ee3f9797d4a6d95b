//! Creating an index in PM, and finding it again after whatever has happened.

use super::arena::{Arena, Kind, numbers_fit};
use super::link::{marked, unmarked};
use super::settings::{FastFairError, Result, damaged};
use super::split::Draft;
use super::sweep::Sweep;
use super::tree::FastFairIndex;
use crate::index::IndexRoot;
use crate::index::chain::{Chain, Found, HEAD, header_fields, root_fields};
use crate::index::words::{PmWords, Words};
use crate::space::Space;
use crate::table::Table;
use quipu_medium::WORD;
use std::sync::Arc;

/// What the owner of a FAST&FAIR index keeps, durably, to find it again.
pub type FastFairRoot = IndexRoot;

const MAGIC: [u8; 4] = *b"QFFT";
/// The number of the first root: the first node of the first zone.
const FIRST_NODE: u64 = 1;

impl FastFairIndex<PmWords> {
    /// An empty index in zones of `space`, of which it always leaves `leave` free. `keep` makes the root durable where the caller
    /// finds it again; after a crash before the return, the root names an empty index or, by [`FastFairError::Absent`], none.
    ///
    /// # Errors
    /// [`FastFairError::ZoneTooSmall`], [`FastFairError::Full`] or [`FastFairError::Space`]; nothing is changed then.
    pub fn create(
        space: Arc<Space>,
        leave: u32,
        keep: impl FnOnce(FastFairRoot),
    ) -> Result<FastFairIndex<PmWords>> {
        let words = PmWords::new(space.region().clone());
        let chain = Chain::create(space.clone(), MAGIC, leave);
        let arena = new_arena(words, chain)?;
        let zone = arena.chain.take_zone()?;
        let zone = zone.ok_or_else(|| FastFairError::Full(arena.chain.shortage()))?;
        let header = arena.chain.header(zone, 0, Kind::Nodes.shape(), marked(FIRST_NODE));
        arena.words.write(space.zone_offset(zone), &header);
        arena.add(zone, Kind::Nodes, true);
        let root = arena.take(Kind::Nodes).ok_or(FastFairError::ZoneTooSmall { zone: space.zone_size() })?;
        let node = arena.node(root, space.zone_offset(zone))?;
        arena.words.write(node.place, &Draft::new(0, None, None).to_bytes());
        arena.words.fence();
        node.state.settle();
        keep(FastFairRoot::new(zone, arena.chain.nonce));
        space.commit_zone(zone);
        Ok(FastFairIndex::over(arena, root, Sweep::new(true)))
    }

    /// The index of this root, usable at once: what is read is a line for each zone. Nobody has taken zones of the pool since it
    /// was opened.
    ///
    /// # Errors
    /// [`FastFairError::Absent`] if the root names none; [`FastFairError::Space`] if it is damaged. Nothing is changed then.
    pub fn open(space: Arc<Space>, root: FastFairRoot, leave: u32) -> Result<FastFairIndex<PmWords>> {
        let index = FastFairIndex::examine(space, root, leave)?;
        index.repair(|| ());
        Ok(index)
    }

    /// The first half of [`open`](FastFairIndex::open), for an owner who has more to verify: nothing is changed. Before anything
    /// but [`names`](FastFairIndex::names) is called, [`repair`](FastFairIndex::repair) must follow.
    ///
    /// # Errors
    /// As for [`open`](FastFairIndex::open).
    pub fn examine(space: Arc<Space>, root: FastFairRoot, leave: u32) -> Result<FastFairIndex<PmWords>> {
        let words = PmWords::new(space.region().clone());
        FastFairIndex::examine_over(words, space, root, leave)
    }

    /// The index with readers who act on what is not durable: a broken twin.
    pub fn stop_helping(&mut self) {
        Arc::get_mut(&mut self.arena).expect("nobody uses the index yet").words.stop_helping();
    }
}

impl<W: Words> FastFairIndex<W> {
    /// [`examine`](FastFairIndex::examine), through these words of the pool. For tests.
    ///
    /// # Errors
    /// As for [`examine`](FastFairIndex::examine).
    pub fn examine_over(
        words: W,
        space: Arc<Space>,
        root: FastFairRoot,
        leave: u32,
    ) -> Result<FastFairIndex<W>> {
        let chain = Chain::new(space, MAGIC, root.nonce(), leave);
        let Found { zones, dangling } = chain.follow(root.zone())?.ok_or(FastFairError::Absent)?;
        let arena = new_arena(words, chain)?;
        for linked in &zones {
            let Some(kind) = Kind::of(linked.shape) else {
                let offset = arena.chain.space.zone_offset(linked.zone);
                return damaged("the header of a zone of the index", offset);
            };
            arena.add(linked.zone, kind, false);
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
        let index = FastFairIndex::over(arena, top, Sweep::new(false));
        *index.dangling.lock() = dangling;
        Ok(index)
    }

    /// Takes back what a crash has left unfinished of a zone, durably when this returns; `begin` is called before the first change,
    /// if there is one. May be repeated, and crash.
    pub fn repair(&self, begin: impl FnOnce()) {
        let Some(link) = self.dangling.lock().take() else { return };
        begin();
        self.arena.words.store(link, 0);
        self.arena.words.persist(link, WORD);
    }
}

fn new_arena<W: Words>(words: W, chain: Chain) -> Result<Arena<W>> {
    let (zones, zone) = (chain.space.zone_count(), chain.zone_size());
    if !numbers_fit(zones, zone) {
        return Err(FastFairError::ZoneTooSmall { zone });
    }
    Arena::new(words, chain)
}

/// The structures with their fields, for the check of `docs/FORMAT.md` against the code.
pub fn format_tables() -> Vec<Table> {
    let shape = [("kind", 1), ("node_bits", 1), ("reserved_a", 2)];
    vec![("FastFairZoneHeader", header_fields(&shape, Some("top"))), ("FastFairRoot", root_fields())]
}
