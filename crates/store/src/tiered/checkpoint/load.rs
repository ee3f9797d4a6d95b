//! Reading a checkpoint, and believing nothing that is not proved.

use super::layout::{Summary, TableEntry, ZoneCounts};
use crate::background;
use crate::walk::checkpoint::Chain;
use quipu_parts::heap::Reference;
use quipu_parts::heap::chain::anchor::Anchor;
use quipu_parts::heap::chain::{CHUNK_HEADER, ChainHeap, FIRST_CHUNK, RECORD_HEADER};
use quipu_parts::heap::chain::{Recovered, RecoveredMemtable, SavedCounts};
use quipu_parts::index::{ImageSource, Imaged};
use quipu_parts::space::ZoneId;
use zerocopy::FromBytes;

/// The findings of a recovery, of a pool that was closed. Nothing of the pool has changed yet.
pub(in crate::tiered) struct Loaded<I> {
    pub(in crate::tiered) recovered: Recovered,
    /// The index of each table, with the number that it was created with.
    pub(in crate::tiered) indexes: Vec<(u64, I)>,
    /// The counts of all zones of memtables.
    pub(in crate::tiered) counts: Vec<(ZoneId, SavedCounts)>,
}

/// Reads the checkpoint of a pool that is being opened. `None` if none can be believed.
pub(in crate::tiered) fn load<I: Imaged>(
    heap: &ChainHeap,
    anchor: &Anchor,
    threads: usize,
) -> Option<Loaded<I>> {
    let space = heap.space();
    let entry = space.superblock().checkpoint()?;
    let chain = Chain::read(space, heap.certifier(), &entry, threads)?;
    let recovered = heap.closed(anchor).ok()??;
    let tables = heap.subtables().ok()?;

    let summary = size_of::<Summary>() as u64;
    let (zones, table_count) = Summary::read(&chain.copy(0, summary)?)?;
    let zone_bytes = zones.checked_mul(size_of::<ZoneCounts>() as u64)?;
    let table_bytes = table_count.checked_mul(size_of::<TableEntry>() as u64)?;
    let entries = chain.copy(summary, zone_bytes)?;
    let zones = <[ZoneCounts]>::ref_from_bytes(&entries).ok()?;
    let counts = zones.iter().map(|entry| Some((entry.zone(), entry.counts(space.zone_size())?)));
    let counts: Vec<_> = counts.collect::<Option<_>>()?;
    let places = Places::of(heap, &recovered.memtables);
    if !places.are_in(zones) {
        return None;
    }
    let entries = chain.copy(summary.checked_add(zone_bytes)?, table_bytes)?;
    let entries = <[TableEntry]>::ref_from_bytes(&entries).ok()?;
    let created = entries.iter().map(|entry| entry.created.get());
    if !created.eq(tables.iter().map(|table| table.created)) {
        return None;
    }
    let (mut from, mut indexes) = (summary + zone_bytes + table_bytes, Vec::with_capacity(entries.len()));
    for entry in entries {
        let (table, len) = (entry.created.get(), entry.image.get());
        let end = from.checked_add(len)?.checked_next_multiple_of(8).filter(|end| *end <= chain.len())?;
        let image = TableImage { chain: &chain, from, len, places: &places, table, threads };
        indexes.push((table, I::of_image(&image).ok()?));
        from = end;
    }
    (from == chain.len()).then_some(Loaded { recovered, indexes, counts })
}

/// The image of the index of a table, a part of a chain.
struct TableImage<'a> {
    chain: &'a Chain<'a>,
    from: u64,
    len: u64,
    places: &'a Places,
    table: u64,
    threads: usize,
}

impl ImageSource for TableImage<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn pieces(&self, from: u64, len: u64) -> impl Iterator<Item = &[u8]> {
        let len = len.min(self.len.saturating_sub(from));
        self.chain.pieces(self.from.saturating_add(from), len)
    }

    #[inline]
    fn is_word(&self, word: u64) -> bool {
        self.places.has(self.table, word)
    }

    fn all(&self, jobs: usize, job: impl Fn(usize) -> bool + Sync) -> bool {
        background::all(self.threads, jobs, job)
    }
}

/// Places at which records may stand.
struct Places {
    zone_shift: u32,
    /// For each zone the table whose memtable has it, and the end of the records; 0 if there are none.
    zones: Vec<(u64, u64)>,
}

impl Places {
    /// The places in these memtables.
    fn of(heap: &ChainHeap, memtables: &[RecoveredMemtable]) -> Places {
        let (space, zone_size) = (heap.space(), heap.space().zone_size());
        let mut zones = vec![(0, 0); space.zone_count() as usize];
        for RecoveredMemtable { memtable, end } in memtables {
            let mut left = u64::from(*end) * quipu_medium::LINE;
            for zone in memtable.zones() {
                zones[zone.0 as usize] = (memtable.subtable(), left.min(zone_size));
                left = left.saturating_sub(zone_size);
            }
        }
        Places { zone_shift: zone_size.trailing_zeros(), zones }
    }

    /// Whether these are all zones of memtables, in order.
    fn are_in(&self, entries: &[ZoneCounts]) -> bool {
        let used = (0..).zip(&self.zones).filter(|(_, (_, end))| *end > 0).map(|(zone, _)| ZoneId(zone));
        used.eq(entries.iter().map(ZoneCounts::zone))
    }

    /// Whether a word of the index of a table can name a record.
    #[inline]
    fn has(&self, table: u64, word: u64) -> bool {
        let reference = Reference::from_word(word);
        let zone = reference.zone(self.zone_shift).0 as usize;
        let (owner, end) = self.zones.get(zone).copied().unwrap_or_default();
        let offset = reference.offset(self.zone_shift);
        // A version that deletes its key has tag 1.
        reference.tag() <= 1
            && owner == table
            && offset >= FIRST_CHUNK + CHUNK_HEADER
            && offset + RECORD_HEADER <= end
    }
}
