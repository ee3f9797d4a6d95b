//! Our own store as an engine under measurement: where its pool is, how it is created and reopened.
//!
//! The benchmarks reach the store through the traits of `engine` that are implemented here, and through
//! nothing else; reopening alone, which `recovery` measures, is asked of no other engine.

use super::config::{Config, keeps_order};
use super::engine::{Engine, EngineClient, OpenEngine};
use super::error::BenchError;
use quipu::internals::{Merging, RecordForm};
use quipu::{Client, Design, Isolation, Levels, MediumKind, Options, Stats, Store, WriteBatch};
use quipu_medium::sim::{Sim, SimOptions};
use quipu_medium::{Nearness, Pages, Region};
use quipu_parts::space::{FormatOptions, FreeListKind, SETTINGS_LEN};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Room besides records: superblock, allocator, and a segment for every client.
const FIXED_BYTES: u64 = 64 << 20;

/// The same on the simulator, which keeps two images of every page.
const FIXED_BYTES_SIM: u64 = 4 << 20;

/// Nodes of the simulated machine: two, so that a design that writes to the wrong one shows it.
const NODES: u16 = 2;

/// Bytes of a record besides key and value, at most: header, optional fields, alignment.
const RECORD_OVERHEAD: u64 = 64;

/// Bytes of a record in an index in the pool, at most.
pub const INDEX_PER_RECORD: u64 = 64;

/// Bytes of DRAM that a store may take for a record.
const DRAM_PER_RECORD: u64 = 64;

enum Place {
    /// Memory of this process, which outlives the store and so can be reopened.
    Memory(Region),
    /// A file that this benchmark makes and removes.
    File(PathBuf),
}

/// A place for one pool, and the settings it is opened with.
pub struct Target {
    place: Place,
    options: Options,
    design: Design,
    /// The folder of its levels, which is removed with it.
    levels: Option<TempDir>,
    /// Its further parts, which are removed with it.
    parts: Vec<PathBuf>,
    /// Whether threads are kept on the nodes of its parts.
    pins: bool,
}

/// The store, open.
pub struct Opened {
    store: Store,
    is_ordered: bool,
    updates_in_place: bool,
    /// Whether it may have levels.
    has_levels: bool,
    pins: bool,
}

/// Bytes of a pool that takes `writes` records and `deletes` tombstones without having to reclaim anything.
pub fn room(config: &Config, writes: u64, deletes: u64) -> u64 {
    if let Some(size) = config.pool_size {
        return size;
    }
    let fixed = if config.medium == MediumKind::Sim { FIXED_BYTES_SIM } else { FIXED_BYTES };
    let index = if config.has_index_in_pm() { INDEX_PER_RECORD } else { 0 };
    let records = writes * (config.record_bytes() + RECORD_OVERHEAD + index);
    let tombstones = deletes * (config.key_size as u64 + RECORD_OVERHEAD);
    // An eighth for ends of segments and the reserve.
    let bytes = (records + tombstones) * 9 / 8 + fixed * (1 + config.threads as u64 / 8);
    // The one client of a simulated run fills the slice of its own node.
    let slices = if config.medium == MediumKind::Sim { u64::from(config.nodes.unwrap_or(NODES)) } else { 1 };
    (bytes * slices).next_multiple_of(4096)
}

/// Anonymous memory is zero and touched before anything is measured, as a pool on a device would be.
fn memory(bytes: u64, pages: Pages) -> Result<Region, BenchError> {
    touched(Region::dram(bytes, pages)?)
}

/// Touches as much memory as a store may take for so many records, and gives it back.
pub fn touch_dram(records: u64) -> Result<(), BenchError> {
    memory((records * DRAM_PER_RECORD).next_multiple_of(4096), Pages::Huge).map(drop)
}

fn touched(region: Region) -> Result<Region, BenchError> {
    region.prefault(0, region.len())?;
    Ok(region)
}

/// A region beside the pool, of the same medium, for measuring the medium alone. Removed from its directory
/// at once, so that it disappears with the last use. Only memory comes in the pages that are asked for.
pub fn scratch(config: &Config, bytes: u64, pages: Pages) -> Result<Region, BenchError> {
    let bytes = bytes.next_multiple_of(4096);
    let Some(pool) = &config.pool else { return memory(bytes, pages) };
    let mut path = pool.clone().into_os_string();
    path.push(".limit");
    let path = PathBuf::from(path);
    let region = Region::create(&path, bytes, Some(config.medium), quipu::Durability::Process)?;
    fs::remove_file(&path).map_err(|source| BenchError::File { path, source })?;
    region.reserve(0, bytes)?;
    region.prefault(0, bytes)?;
    Ok(region)
}

/// A region as a pool would have it, to measure the medium, or parts of a store, without a store. It has one
/// node on the simulator: only stores can write to the wrong one.
pub fn bare(config: &Config, bytes: u64) -> Result<Region, BenchError> {
    let bytes = bytes.next_multiple_of(4096);
    match (config.medium, &config.pool) {
        (MediumKind::Sim, _) => Ok(Region::sim(SimOptions { len: bytes, ..SimOptions::default() })),
        (_, Some(_)) => scratch(config, bytes, Pages::Ordinary),
        (_, None) => own_memory(config, bytes),
    }
}

/// The format of a pool for parts of a store. There is no store: nobody opens it as one.
pub fn format_of_parts(region: &Region, zone_size: u64) -> FormatOptions {
    FormatOptions {
        zone_size,
        design: 0,
        settings: [0; SETTINGS_LEN],
        pools: Vec::new(),
        free_list: FreeListKind::Volatile,
        secret: [7; 32],
        boot_id: region.boot_id(),
    }
}

fn own_memory(config: &Config, bytes: u64) -> Result<Region, BenchError> {
    if config.persists { memory(bytes, Pages::Huge) } else { touched(Region::volatile(bytes, Pages::Huge)?) }
}

/// A new folder for levels, if the pool is to have any: one whose size was given may be too small for its
/// data, and indexes of memtables need levels.
fn folder_of_levels(
    config: &Config,
    options: &Options,
    design: Design,
) -> Result<Option<TempDir>, BenchError> {
    let needs = config.pool_size.is_some() || options.merging != Merging::Direct;
    if !design.can().levels || !needs || config.medium == MediumKind::Sim {
        return Ok(None);
    }
    let beside = config.pool.as_ref().and_then(|pool| pool.parent()).map(Path::to_owned);
    let place = config.levels.clone().or(beside).unwrap_or_else(std::env::temp_dir);
    let made = tempfile::Builder::new().prefix("quipu-levels-").tempdir_in(&place);
    made.map(Some).map_err(|source| BenchError::File { path: place, source })
}

impl Target {
    /// A place for a pool of `bytes`. Nothing is created in a file system yet.
    pub fn new(config: &Config, design: Design, bytes: u64) -> Result<Target, BenchError> {
        let place = match (&config.pool, config.medium) {
            (_, MediumKind::Sim) => Place::Memory(Region::sim(SimOptions {
                len: bytes,
                nodes: config.nodes.unwrap_or(NODES),
                ..SimOptions::default()
            })),
            (Some(path), _) => Place::File(path.clone()),
            (None, _) => Place::Memory(own_memory(config, bytes)?),
        };
        let options = config.options(design)?.size(bytes);
        let levels = folder_of_levels(config, &options, design)?;
        let in_use =
            levels.as_ref().map_or(Levels::Off, |folder| Levels::Folder(folder.path().join("levels")));
        let pins = config.pins || config.nodes.is_some();
        let parts = config.parts.clone();
        Ok(Target { place, options: options.levels(in_use), design, levels, parts, pins })
    }

    fn refused(&self, phase: &str) -> impl Fn(quipu::Error) -> BenchError {
        BenchError::refused(self.design.name(), phase)
    }

    /// Opens the pool again.
    pub fn open(&self, phase: &str) -> Result<Opened, BenchError> {
        let store = match &self.place {
            Place::Memory(region) => Store::open_on(region.clone(), &self.options),
            Place::File(path) => Store::open(path, &self.options),
        };
        Ok(self.opened(store.map_err(self.refused(phase))?))
    }

    fn opened(&self, store: Store) -> Opened {
        let has_slots = matches!(self.options.slots.form, RecordForm::Fixed { .. });
        let updates_in_place = self.design.can().updates_in_place && has_slots;
        let is_ordered = keeps_order(self.design, &self.options);
        Opened { store, is_ordered, updates_in_place, has_levels: self.levels.is_some(), pins: self.pins }
    }
}

impl Engine for Target {
    type Opened = Opened;

    fn name(&self) -> &str {
        self.design.name()
    }

    /// Touches all of the pool; memory that the store will take for `records` is touched too, and given
    /// back, since the host of a virtual machine may find pages for it only then.
    fn create(&self, records: u64) -> Result<Opened, BenchError> {
        if self.simulator().is_none() {
            touch_dram(records)?;
        }
        let failed = self.refused("create");
        let store = match &self.place {
            Place::Memory(region) => Store::create_on(region.clone(), &self.options).map_err(&failed)?,
            Place::File(path) => {
                let store = Store::create(path, &self.options).map_err(&failed)?;
                let region = store.region();
                region.reserve(0, region.len())?;
                region.prefault(0, region.len())?;
                store
            }
        };
        Ok(self.opened(store))
    }

    fn simulator(&self) -> Option<&Arc<Sim>> {
        match &self.place {
            Place::Memory(region) => region.simulator(),
            Place::File(_) => None,
        }
    }

    /// Only after a [`create`](Engine::create) that succeeded: a file that was there before is not the
    /// benchmark's.
    fn remove(&self) -> Result<(), BenchError> {
        match &self.place {
            Place::Memory(_) => Ok(()),
            Place::File(path) => [path].into_iter().chain(&self.parts).try_for_each(|path| {
                fs::remove_file(path).map_err(|source| BenchError::File { path: path.clone(), source })
            }),
        }
    }
}

impl OpenEngine for Opened {
    type Client = Client;

    fn client(&self) -> Client {
        self.store.client()
    }

    fn seat(&self, thread: usize) -> Result<(), BenchError> {
        if !self.pins {
            return Ok(());
        }
        let nodes = self.store.nodes();
        let pinned = self.store.pin(nodes[thread % nodes.len()]);
        pinned.map_err(BenchError::refused(self.store.design().name(), "pin"))
    }

    fn nearness(&self) -> Nearness {
        self.store.region().nearness()
    }

    /// Keys that are on levels too, or on their way there, would have to be counted one by one.
    fn records(&self) -> Option<u64> {
        (!self.has_levels).then(|| self.store.stats().records)
    }

    fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    fn updates_in_place(&self) -> bool {
        self.updates_in_place
    }

    fn has_transactions(&self) -> bool {
        self.store.design().can().transactions
    }

    fn stats(&self) -> Option<Stats> {
        Some(self.store.stats())
    }

    /// Bytes of the segments in use.
    fn pool_bytes(&self) -> u64 {
        let stats = self.store.stats();
        (stats.zones - stats.free_zones) * stats.zone_bytes
    }
}

impl EngineClient for Client {
    type Error = quipu::Error;

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), quipu::Error> {
        Client::put(self, key, value)
    }

    #[inline]
    fn put_many(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), quipu::Error> {
        Client::put_many(self, pairs)
    }

    fn write(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), quipu::Error> {
        let mut batch = WriteBatch::new();
        pairs.iter().for_each(|(key, value)| _ = batch.put(key, value));
        match Client::write(self, &batch) {
            // A design without batches.
            Err(quipu::Error::Unsupported { .. }) => Client::put_many(self, pairs),
            done => done,
        }
    }

    fn transfer(
        &mut self,
        from: &[u8],
        to: &[u8],
        change: &mut dyn FnMut(&mut [u8], &mut [u8]),
    ) -> Result<u64, quipu::Error> {
        let mut tries = 0;
        self.transact(Isolation::Snapshot, |own| {
            tries += 1;
            let (mut left, mut right) =
                (own.get(from)?.unwrap_or_default(), own.get(to)?.unwrap_or_default());
            change(&mut left, &mut right);
            own.put(from, &left)?;
            own.put(to, &right)
        })?;
        Ok(tries)
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, quipu::Error> {
        self.pin().scan(from, count, each)
    }

    #[inline]
    fn get_into(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, quipu::Error> {
        Client::get_into(self, key, out)
    }

    #[inline]
    fn get_many(
        &mut self,
        keys: &[Vec<u8>],
        each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), quipu::Error> {
        Client::get_many(self, keys, each)
    }

    #[inline]
    fn update_in_place(
        &mut self,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> u64,
    ) -> Result<Option<u64>, quipu::Error> {
        Client::update_in_place(self, key, at as u64, change)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), quipu::Error> {
        Client::delete(self, key)
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> Result<bool, quipu::Error> {
        Client::remove(self, key)
    }

    fn delete_run(&mut self, keys: &[Vec<u8>]) -> Result<(), quipu::Error> {
        let [first, .., last] = keys else {
            return keys.iter().try_for_each(|key| Client::delete(self, key));
        };
        match Client::delete_range(self, Bound::Included(first), Bound::Included(last)) {
            // A design without range deletes.
            Err(quipu::Error::Unsupported { .. }) => {
                keys.iter().try_for_each(|key| Client::delete(self, key))
            }
            done => done,
        }
    }
}

impl Opened {
    /// Reclaims all that is worth it, and returns how many segments or blocks became free.
    pub fn compact(&self, phase: &str) -> Result<u64, BenchError> {
        let compacted = self.store.compact();
        compacted.map(|(freed, _)| freed).map_err(BenchError::refused(self.store.design().name(), phase))
    }

    /// Closes the store cleanly.
    pub fn close(self, phase: &str) -> Result<(), BenchError> {
        let refused = BenchError::refused(self.store.design().name(), phase);
        self.store.close().map_err(refused)
    }
}
