//! Reading a checkpoint, and believing nothing that is not proved.

use super::layout::{SegmentEntry, Summary};
use crate::background;
use crate::points::Core;
use crate::types::reports::RecoveryReport;
use crate::walk::checkpoint::Chain;
use crate::walk::proof::drawn_end;
use quipu_parts::heap::SizedReference;
use quipu_parts::heap::segments::{FIRST_RECORD, LogHeap, SegmentState};
use quipu_parts::index::{ImageSource, Imaged};
use quipu_parts::record::HEADER;
use quipu_parts::space::{CheckpointEntry, SpaceRecovery, ZoneId};
use quipu_parts::twin;
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::FromBytes;

/// The contents of a checkpoint. Nothing of the store has changed yet.
pub(crate) struct Loaded<I> {
    index: I,
    states: Vec<SegmentState>,
}

impl<I: Imaged> Loaded<I> {
    /// Makes them the state of the store, and repairs what the allocator has found.
    pub(crate) fn adopt(self, core: &mut Core<I>, mut space: SpaceRecovery) -> RecoveryReport {
        core.index = self.index;
        for state in &self.states {
            let forgets = twin!(HoldsForgotten);
            let oldest = if forgets { state.life } else { state.oldest };
            core.heap.restore(&SegmentState { oldest, ..*state });
        }
        core.heap.space().repair(&mut space);
        RecoveryReport {
            was_clean: space.was_clean,
            from_checkpoint: true,
            segments: self.states.len(),
            reclaimed: space.leaked_reclaimed as usize,
            ..RecoveryReport::default()
        }
    }
}

/// Reads the checkpoint of a pool that is being opened. `None` if none can be believed.
pub(crate) fn load<I: Imaged>(core: &Core<I>, threads: usize) -> Option<Loaded<I>> {
    let superblock = core.heap.space().superblock();
    let believes_all = twin!(StaleCheckpoint);
    if !believes_all && !core.heap.space().has_headers_of_close() {
        return None;
    }
    let entry = if believes_all { superblock.checkpoint } else { superblock.checkpoint()? };
    read(core, &entry, threads, believes_all)
}

/// The index of a pool that was closed, as it was then, whatever has become of the records since. For a
/// salvage, which looks at no record through it.
pub(crate) fn index_of_close<I: Imaged>(core: &Core<I>, threads: usize) -> Option<I> {
    let entry = core.heap.space().superblock().checkpoint()?;
    Some(read(core, &entry, threads, true)?.index)
}

fn read<I: Imaged>(
    core: &Core<I>,
    entry: &CheckpointEntry,
    threads: usize,
    believes_all: bool,
) -> Option<Loaded<I>> {
    let chain = Chain::read(core.heap.space(), core.heap.certifier(), entry, threads)?;

    let summary = size_of::<Summary>() as u64;
    let (segments, index) = Summary::read(&chain.copy(0, summary)?, chain.len())?;
    let entries = chain.copy(summary, (segments * size_of::<SegmentEntry>()) as u64)?;
    let entries = <[SegmentEntry]>::ref_from_bytes(&entries).ok()?;
    let zone_size = core.heap.space().zone_size();
    let states: Vec<_> = entries.iter().map(|entry| entry.state(zone_size)).collect::<Option<_>>()?;
    let places = Places::of(&core.heap, &states, threads, believes_all)?;
    let from = chain.len() - index;
    let index = I::of_image(&ChainedImage { chain, from, places, threads }).ok()?;
    Some(Loaded { index, states })
}

/// The image of the index, the last part of a chain.
struct ChainedImage<'a> {
    chain: Chain<'a>,
    from: u64,
    places: Places,
    threads: usize,
}

impl ImageSource for ChainedImage<'_> {
    fn len(&self) -> u64 {
        self.chain.len() - self.from
    }

    fn pieces(&self, from: u64, len: u64) -> impl Iterator<Item = &[u8]> {
        self.chain.pieces(self.from.saturating_add(from), len)
    }

    #[inline]
    fn is_word(&self, word: u64) -> bool {
        self.places.has(word)
    }

    fn all(&self, jobs: usize, job: impl Fn(usize) -> bool + Sync) -> bool {
        background::all(self.threads, jobs, job)
    }
}

/// Places at which records may stand.
struct Places {
    zone_shift: u32,
    /// For each zone the end of its records; 0 if it holds none.
    ends: Vec<AtomicU64>,
}

impl Places {
    /// The places in these segments, if the segments are those of the pool.
    fn of(heap: &LogHeap, states: &[SegmentState], threads: usize, believes_all: bool) -> Option<Places> {
        let space = heap.space();
        let ends = (0..space.zone_count()).map(|_| AtomicU64::new(0)).collect();
        let places = Places { zone_shift: heap.zone_shift(), ends };
        let zones: Vec<ZoneId> = states.iter().map(|state| state.zone).collect();
        let drawn_end = drawn_end(space.superblock().clock_ceiling.get());
        if !believes_all && !are_all(heap, &zones, drawn_end) {
            return None;
        }
        let bears_out = |number: usize| {
            let state = &states[number];
            let Some(place) = places.ends.get(state.zone.0 as usize) else { return false };
            let end = if believes_all { Some(space.zone_size()) } else { sealed_end(heap, state, drawn_end) };
            place.store(end.unwrap_or_default(), Ordering::Relaxed);
            end.is_some()
        };
        background::all(threads, states.len(), bears_out).then_some(places)
    }

    /// Whether a word of the index can name a record.
    #[inline]
    fn has(&self, word: u64) -> bool {
        let sized = SizedReference::from_word(word);
        let reference = sized.reference();
        let zone = reference.zone(self.zone_shift).0 as usize;
        let end = self.ends.get(zone).map_or(0, |end| end.load(Ordering::Relaxed));
        let offset = reference.offset(self.zone_shift);
        let len = sized.record_len().unwrap_or_default().max(HEADER);
        word >> SizedReference::BITS == 0
            && reference.tag() == 0
            && offset >= FIRST_RECORD
            && offset + len <= end
    }
}

/// Whether these are all segments of the pool: every other committed zone must be of a large value. A scan of
/// a segment proves that heads name these zones; a read tests each zone that it goes to.
fn are_all(heap: &LogHeap, segments: &[ZoneId], drawn_end: u64) -> bool {
    let mut listed = segments.iter().peekable();
    // SAFETY: the store is being opened, so nobody writes.
    let is_value = |zone| unsafe { heap.value_life(zone) }.is_some_and(|life| life < drawn_end);
    let committed = heap.space().committed_zones();
    committed.into_iter().all(|zone| listed.next_if(|listed| **listed == zone).is_some() || is_value(zone))
        && listed.next().is_none()
}

/// The end of a segment's records, if its header and its end mark agree with the checkpoint.
fn sealed_end(heap: &LogHeap, state: &SegmentState, drawn_end: u64) -> Option<u64> {
    // SAFETY: the store is being opened, so nobody writes.
    let info = unsafe { heap.scan(state.zone) }.ok()?.info();
    let end = info.sealed_end.filter(|_| info.life_number == state.life && state.life < drawn_end)?;
    (state.bytes.written <= end - FIRST_RECORD).then_some(end)
}
