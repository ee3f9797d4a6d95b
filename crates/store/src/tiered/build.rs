//! Putting a store of memtables together.

use super::Tiers;
use super::checkpoint::{self, Loaded};
use super::compact::Compactor;
use super::dump::Dumper;
use super::levels;
use super::pairing::Pairing;
use super::recovery;
use super::rewrite::Rewriter;
use super::table::Tables;
use super::view::Gone;
use crate::engine::common::Common;
use crate::engine::site::{How, NewPool, Opened, Site};
use crate::options::Merging;
use crate::settings::image::refused;
use crate::settings::memtables::TieredSettings;
use crate::types::design::Capabilities;
use crate::types::error::Error;
use crate::types::reports::RecoveryReport;
use crate::walk::room::Room;
use quipu_parts::commit::ring::Grants;
use quipu_parts::heap::Reference;
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{ANCHOR_LEN, ChainHeap, ChainLog, ChainPools, MEMTABLE_LEN, SUBTABLE_LEN};
use quipu_parts::heap::chain::{Recovered, Survey};
use quipu_parts::index::{Imaged, InOrder, Index};
use quipu_parts::record::Certifier;
use quipu_parts::runs::LevelsState;
use quipu_parts::space::PoolSpec;
use quipu_parts::versions::Snapshots;
use std::sync::Arc;

/// The object pools, by their identifiers.
const POOLS: ChainPools = ChainPools { memtables: 1, subtables: 3 };

/// Bytes of a memtable at most, and its share of a pool, as a divisor, at most.
const MEMTABLE: u64 = 64 << 20;
const MEMTABLE_SHARE: u64 = 32;

/// Tables of a pool at most.
const TABLES: u64 = 4096;

/// Share of the zones, as a divisor, that puts leave free.
const RESERVE_DIVISOR: u32 = 50;

/// Bytes of a zone at least, unless another size is asked for.
const LEAST_ZONE: u64 = 64 << 10;

/// The choices of a design for a store of memtables with such an index.
pub(crate) struct TieredParts<I> {
    pub(crate) index: fn() -> I,
}

/// Its capabilities.
pub(crate) const fn capabilities<I: Index>() -> Capabilities {
    Capabilities {
        ordered: true,
        tables: true,
        batches: true,
        transactions: true,
        expiry: true,
        salvages: true,
        versions: true,
        lends: true,
        checkpoints: true,
        levels: true,
        pools_below: Reference::reach(I::WORD_BITS),
        least_zone: LEAST_ZONE,
        ..Capabilities::NONE
    }
}

/// The settings of a new pool.
pub(crate) fn settings(pool: &NewPool) -> TieredSettings {
    let slots = (pool.len / MEMTABLE_SHARE).min(MEMTABLE) / pool.zone_size;
    TieredSettings::new(slots.max(1) as u32)
}

/// The object pools of a new pool: each memtable has a zone, and so has each table with data.
pub(crate) fn object_pools(pool: &NewPool) -> Vec<PoolSpec> {
    let zones = (pool.len / pool.zone_size).max(1);
    vec![
        PoolSpec { id: POOLS.memtables, object_size: MEMTABLE_LEN, count: zones },
        PoolSpec { id: recovery::ANCHOR, object_size: ANCHOR_LEN, count: 1 },
        PoolSpec { id: POOLS.subtables, object_size: SUBTABLE_LEN, count: zones.clamp(4, TABLES) },
    ]
}

/// The state of a pool, before its store is put together.
struct Found<I> {
    recovered: Recovered,
    /// The indexes of tables, if a checkpoint had them.
    indexes: Vec<(u64, I)>,
    /// The report, if nothing is left to be recovered.
    report: Option<RecoveryReport>,
}

impl<I> Found<I> {
    /// No memtables.
    fn nothing() -> Found<I> {
        let survey = Survey { highest: 0, left_open: 0 };
        let recovered = Recovered { cut: 0, memtables: Vec::new(), survey };
        Found { recovered, indexes: Vec::new(), report: Some(RecoveryReport::default()) }
    }
}

impl<I: InOrder + Imaged + 'static> TieredParts<I> {
    /// Opens a store.
    pub(crate) fn open(&self, mut site: Site<'_>) -> Result<Opened, Error> {
        let TieredSettings { slots, .. } = site.settings()?;
        let mut heap = heap_of(&site, slots)?;
        let (forest, trees, unusable) = match levels::forest_and_trees(&site, heap.certifier()) {
            // The salvage goes on without them, and tells it.
            Err(error) if matches!(site.how, How::Unrecovered) => (None, Vec::new(), Some(error)),
            found => found.map(|(forest, trees)| (forest, trees, None))?,
        };
        let noted = match site.how {
            How::Unrecovered => LevelsState::default(),
            _ => levels::verify(&heap, &site.how, (forest.as_deref(), &trees))?,
        };
        let found = find(&mut heap, &mut site)?;
        let (space, testing) = (site.space.clone(), site.options.testing.clone());
        let reserve_of_moves = reserve_of_moves(slots);
        let reserve = reserve_of_moves + 2 + space.zone_count() / RESERVE_DIVISOR;
        if matches!(site.how, How::New) && space.zone_count() <= reserve + 1 {
            return Err(Error::no_room_in(&space));
        }
        let merging = match site.how {
            How::Unrecovered => Merging::Direct,
            _ => site.options.merging,
        };
        if merging != Merging::Direct && forest.is_none() {
            return Err(Error::Option(
                "with merge=key or merge=off a pool needs levels, and this opening has none; name their folder (--levels)"
                    .into(),
            ));
        }
        let low_water = low_water(space.zone_count(), reserve, (forest.is_some(), testing.dump_at));
        let (common, anchor) = (Common::of(&site), recovery::anchor(&heap));
        let (tables, anchor) = match site.how {
            How::Unrecovered => (
                Tables::of_damaged(&heap, self.index, &common.epochs, &trees),
                anchor.unwrap_or(Anchor::illegible(heap.certifier())),
            ),
            _ => (Tables::new(&heap, self.index, found.indexes, &common.epochs)?, anchor?),
        };
        let anchor = Arc::new(anchor);
        let pairing = forest.clone().map(|forest| {
            let medium = (space.clone(), heap.certifier().clone());
            Pairing::new((forest, anchor.clone()), medium, noted)
        });
        let (cut, left_open) = (found.recovered.cut, found.recovered.survey.left_open);
        let tiers = Tiers {
            log: ChainLog::new(heap, Grants::default(), found.recovered),
            tables,
            anchor,
            pairing,
            snapshots: Snapshots::default(),
            rewriter: Rewriter::new(&common.epochs),
            dumper: Dumper::new(forest, site.options.recovery_threads, &common.epochs),
            compactor: Compactor::new(&common.epochs),
            gone: Gone::default(),
            merging,
            common,
            reserve,
            room: Room::new(low_water.into(), site.options.wait_for_room)
                .helped_below(u64::from(reserve) + 1),
            reserve_of_moves,
            verify_reads: site.options.verify_reads,
            transaction_age: site.options.transaction_age,
            granted: testing.granted,
        };
        for table in tiers.tables.all() {
            tiers.log.open(table.number, table.subtable.created)?;
        }
        unusable.iter().for_each(|error| tiers.dumper.stop(error));
        if !matches!(site.how, How::Unrecovered) {
            tiers.open_levels(cut)?;
        }
        let recovery = match (found.report, site.how) {
            (None, How::Existing(pool)) => tiers.fill(left_open, site.options.recovery_threads, &pool)?,
            (report, _) => report.unwrap_or_default(),
        };
        Ok(Opened { engine: Arc::new(tiers), recovery })
    }
}

/// Zones that rewriting a memtable of so many takes before it gives any back.
fn reserve_of_moves(slots: u32) -> u32 {
    slots + 1
}

/// Free zones below which room is made ahead of need: half of those that puts use, if there are levels to
/// dump to, or all but so many.
fn low_water(zones: u32, reserve: u32, (has_levels, dump_at): (bool, Option<u32>)) -> u32 {
    match (has_levels, dump_at) {
        (true, Some(used)) => zones - used,
        (true, None) => reserve + zones.saturating_sub(reserve) / 2,
        (false, _) => reserve + (zones / 16).max(1),
    }
}

/// The heap of a pool, if it has the object pools of the design.
fn heap_of(site: &Site<'_>, slots: u32) -> Result<ChainHeap, Error> {
    let space = &site.space;
    let places = u64::from(slots) * space.zone_size();
    if slots == 0 || places > MEMTABLE.max(space.zone_size()) {
        return Err(refused("the superblock holds a memtable of no release"));
    }
    space.keep_zones(reserve_of_moves(slots) + 2);
    let is_there =
        |spec: &PoolSpec| space.pool(spec.id).is_some_and(|pool| pool.object_size() == spec.object_size);
    let own = object_pools(&NewPool::of(space));
    if !own.iter().all(is_there) {
        return Err(refused("the superblock lacks an object pool of the design"));
    }
    let certifier = Certifier::new(space.superblock().secret());
    Ok(ChainHeap::new(space.clone(), certifier, site.clock(), POOLS, slots))
}

/// Creates the objects of a new pool, or finds the memtables of another.
fn find<I: Imaged>(heap: &mut ChainHeap, site: &mut Site<'_>) -> Result<Found<I>, Error> {
    let (believes, threads) = (site.believes_checkpoints(), site.options.recovery_threads);
    let pool = match &mut site.how {
        How::Unrecovered => return Ok(Found::nothing()),
        How::New => {
            recovery::create(heap)?;
            return Ok(Found::nothing());
        }
        How::Existing(pool) => pool,
    };
    if recovery::is_unfinished(heap)? {
        heap.space().repair(&mut pool.found);
        recovery::create(heap)?;
        return Ok(Found { report: None, ..Found::nothing() });
    }
    let anchor = recovery::anchor(heap)?;
    let loaded = believes.then(|| checkpoint::load(heap, &anchor, threads)).flatten();
    let Some(Loaded { recovered, indexes, counts }) = loaded else {
        let recovered = recovery::recover(heap, &anchor, pool)?;
        return Ok(Found { recovered, indexes: Vec::new(), report: None });
    };
    let report = recovery::resume(heap, pool, &recovered, &counts)?;
    Ok(Found { recovered, indexes, report: Some(report) })
}
