//! Reads by way of a cache in DRAM, in front of the index ([`quipu_parts::cache`]; NStore section III-B).
//!
//! Writers take their key out as soon as they hold its stripe ([`Core::forget`]). A reader puts a pair in
//! with that stripe held, if it is free, and as the index has it then.

use super::near::Readers;
use super::read::Front;
use super::{Core, Located, Points, reference_of};
use crate::engine::AT_ONCE;
use crate::engine::site::Site;
use crate::options::CacheSize;
use crate::types::error::Error;
use crate::types::stats::Stats;
use quipu_medium::{MediumKind, Node};
use quipu_parts::cache::{Cache, CacheSettings, Counts, Hit, Item, Steps};
use quipu_parts::epoch::Guard;
use quipu_parts::index::{Index, Key};
use quipu_parts::sync::between_looks;
use quipu_parts::twin;
use std::cell::Cell;
use std::sync::Arc;

/// Bytes of a cache whose size nobody chose (section V-A).
const DEFAULT_SIZE: u64 = 64 << 20;

/// Nodes of readers at least that have weights of their own.
const NODES: usize = 8;

/// The cache of a store: as it is asked to have one, or, if nobody says and a cache is part of its design,
/// where that pays. A design of a paper without one stays as the paper has it.
pub(crate) fn cache_of(site: &Site<'_>, is_of_design: bool) -> Option<Arc<Cache>> {
    let (region, options) = (site.space.region(), site.options);
    if options.verify_reads {
        // Each read is to prove what lies in the pool.
        return None;
    }
    let pays = match region.kind() {
        MediumKind::Dax => true,
        // A hit is a read of DRAM in place of another, except of another node's.
        MediumKind::Dram | MediumKind::File => site.space.is_spread(),
        // Counts are to be those of the design.
        MediumKind::Sim => false,
    };
    let budget = match options.cache {
        CacheSize::Bytes(size) => size,
        CacheSize::Auto if is_of_design && pays => DEFAULT_SIZE,
        CacheSize::Auto | CacheSize::Off => return None,
    };
    let nodes = site.space.nodes().iter().map(|node| usize::from(node.0) + 1).max().unwrap_or(1).max(NODES);
    let distance = |reader, own| region.distance(Node(reader as u16), Node(own as u16));
    let mut settings = CacheSettings { policy: options.cache_policy, ..CacheSettings::of(budget) };
    settings.sample = options.testing.cache_sample.unwrap_or(settings.sample);
    if let Some(window) = options.testing.cache_turns {
        (settings.window, settings.is_restless) = (window, true);
    }
    Some(Arc::new(Cache::new(settings, nodes, distance)))
}

/// A client's side of the cache.
pub(super) struct Reader {
    steps: Steps,
    /// The number of reads since the last report with which the next one is due.
    due: Cell<u32>,
    /// Since the last report.
    reads: Cell<u32>,
    hits: Cell<u32>,
    /// Garbage of the cache waits for readers of before.
    is_to_collect: Cell<bool>,
}

/// The answer of the cache.
enum Look<'g> {
    Hit(&'g [u8]),
    /// Nothing; whether the pair is to be put in.
    Miss {
        is_sampled: bool,
    },
}

impl Reader {
    pub(super) fn of(cache: &Cache) -> Reader {
        let (steps, zero) = (cache.steps(), Cell::new(0));
        let due = Cell::new(steps.next());
        Reader { steps, due, reads: zero.clone(), hits: zero, is_to_collect: Cell::new(false) }
    }

    /// Looks for a key, and counts that.
    #[inline]
    fn look<'g, I: Index>(
        &self,
        core: &Core<I>,
        cache: &'g Arc<Cache>,
        guard: &'g Guard<'_>,
        key: Key<'_>,
    ) -> Look<'g> {
        let hit = cache.get(guard, key.hash, key.bytes);
        between_looks();
        let hit = hit.filter(|hit| twin!(CachedForEver) || !core.has_passed(hit.expires()));
        self.reads.set(self.reads.get() + 1);
        self.hits.set(self.hits.get() + u32::from(hit.is_some()));
        let is_sampled = self.reads.get() >= self.due.get();
        if is_sampled {
            self.report(core, cache, guard, hit.as_ref());
        }
        match hit {
            Some(hit) => Look::Hit(hit.value()),
            None => Look::Miss { is_sampled },
        }
    }

    #[cold]
    fn report<I: Index>(&self, core: &Core<I>, cache: &Arc<Cache>, guard: &Guard<'_>, hit: Option<&Hit<'_>>) {
        if let Some(hit) = hit {
            cache.note_hit(hit, node_of(core));
        }
        let [reads, hits] = [&self.reads, &self.hits].map(Cell::take);
        self.due.set(self.steps.next());
        let is_to_collect = cache.report(guard, Counts { reads, hits });
        self.is_to_collect.set(self.is_to_collect.get() || is_to_collect);
    }

    /// Whether the client, which is not pinned, is to collect garbage; once for each time that much waits.
    pub(super) fn take_collection(&self) -> bool {
        self.is_to_collect.take()
    }
}

/// The node that the caller runs on.
fn node_of<I: Index>(core: &Core<I>) -> u16 {
    core.region().current_node().unwrap_or_default().0
}

/// As [`Points::get_into`].
#[inline(never)]
pub(super) fn get_into<W: Points>(
    walk: &W,
    cache: &Arc<Cache>,
    reader: &Reader,
    guard: &Guard<'_>,
    key: &[u8],
    out: &mut Vec<u8>,
) -> Result<bool, Error> {
    let key = walk.core().key(key);
    match reader.look(walk.core(), cache, guard, key) {
        Look::Hit(value) => {
            out.clear();
            out.extend_from_slice(value);
            Ok(true)
        }
        Look::Miss { is_sampled } => {
            between_looks();
            let found = walk.get_into(guard, key.bytes, out)?;
            if is_sampled && found {
                fill(walk, cache, guard, key);
            }
            Ok(found)
        }
    }
}

/// The cached value of a key. If it is not there, it may be from now on.
pub(super) fn value<'g, W: Points>(
    walk: &W,
    cache: &'g Arc<Cache>,
    reader: &Reader,
    guard: &'g Guard<'_>,
    key: &[u8],
) -> Option<&'g [u8]> {
    let key = walk.core().key(key);
    match reader.look(walk.core(), cache, guard, key) {
        Look::Hit(value) => return Some(value),
        Look::Miss { is_sampled: true } => fill(walk, cache, guard, key),
        Look::Miss { is_sampled: false } => {}
    }
    None
}

/// As [`Points::get_many`].
pub(super) fn get_many<W: Points>(
    walk: &W,
    cache: &Arc<Cache>,
    reader: &Reader,
    guard: &Guard<'_>,
    keys: &[&[u8]],
    each: &mut dyn FnMut(usize, Option<&[u8]>),
) -> Result<(), Error> {
    let core = walk.core();
    let mut hits = Hits { core, cache, reader, guard, values: [None; AT_ONCE], sampled: 0 };
    walk.get_many(guard, keys, &mut hits, each)?;
    for (position, key) in keys.iter().enumerate() {
        if (hits.sampled >> position) & 1 == 1 {
            fill(walk, cache, guard, core.key(key));
        }
    }
    Ok(())
}

/// The answers of the cache for a batched get.
struct Hits<'g, I: Index> {
    core: &'g Core<I>,
    cache: &'g Arc<Cache>,
    reader: &'g Reader,
    guard: &'g Guard<'g>,
    values: [Option<&'g [u8]>; AT_ONCE],
    /// Positions, by bit, of keys that are to be put in.
    sampled: u32,
}

impl<I: Index> Front for Hits<'_, I> {
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.cache.prefetch(hash);
    }

    #[inline]
    fn look(&mut self, position: usize, key: Key<'_>) -> bool {
        let Hits { core, cache, reader, guard, values, sampled } = self;
        values[position] = match reader.look(core, cache, guard, key) {
            Look::Hit(value) => Some(value),
            Look::Miss { is_sampled } => {
                *sampled |= u32::from(is_sampled) << position;
                None
            }
        };
        values[position].is_some()
    }

    #[inline]
    fn found(&self, position: usize) -> Option<&[u8]> {
        self.values[position]
    }
}

/// Puts the pair of a key in, as the index has it. Nothing happens if a writer has the key, or if it cannot
/// be cached.
#[cold]
fn fill<W: Points>(walk: &W, cache: &Cache, guard: &Guard<'_>, key: Key<'_>) {
    let core = walk.core();
    let held = core.common.stripes.try_lock(core.common.stripes.of(key.hash));
    if held.is_none() && !twin!(CacheFilledUnlocked) {
        return;
    }
    // A read tells of damage, not this.
    let Ok(Some(Located { word, record })) = core.locate::<true>(guard, key) else { return };
    between_looks();
    if record.is_large() || core.has_expired(&record) {
        return;
    }
    let zone = reference_of(word).zone(core.heap.zone_shift());
    let item = Item {
        hash: key.hash,
        key: record.key,
        value: record.value,
        expires: record.expires,
        node: core.heap.space().zone_node(zone).0,
    };
    cache.fill(guard, &item, node_of(core));
}

impl<I: Index> Core<I> {
    /// Takes a key out of the cache. Its stripe is held, and the write of it that follows cannot be seen yet.
    #[inline(always)]
    pub(crate) fn forget(&self, guard: &Guard<'_>, hash: u64) {
        if let Some(cache) = &self.cache {
            self.forget_in(cache, guard, hash);
        }
    }

    #[inline(never)]
    fn forget_in(&self, cache: &Cache, guard: &Guard<'_>, hash: u64) {
        if !twin!(CacheNotToldOfWrites) {
            cache.forget(guard, hash);
        }
    }

    /// These numbers with those of the cache and of read threads.
    pub(crate) fn with_reads(&self, stats: Stats) -> Stats {
        let stats = Stats { copied_records: self.readers.as_ref().map_or(0, Readers::copied), ..stats };
        let Some(cache) = &self.cache else { return stats };
        let (cache_reads, cache_hits) = cache.reads();
        Stats { cache_bytes: cache.bytes(), cache_reads, cache_hits, ..stats }
    }
}
