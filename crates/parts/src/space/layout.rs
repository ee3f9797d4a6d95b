//! Where everything in a pool lies: pure functions from options to a plan, and from a superblock to a
//! verdict.
//!
//! Creation and open share these rules. A superblock certifies itself, so only a faulty release writes one
//! that breaks them. Open refuses it all the same, because every later offset is computed from it.

use super::error::SpaceError;
use super::free_list::{FreeListKind, MAX_OBJECTS, WORD_LEN};
use super::part_header::{self, PART_HEADER_LEN};
use super::pool_header::{HEADER_LEN, ZoneEntry};
use super::superblock::{COPY_LEN, MAX_EXTENTS, MAX_POOLS, SETTINGS_LEN, SUPERBLOCK_END, Superblock};
use super::third_copy;
use quipu_medium::{LINE, Span};
use std::ops::Range;

/// Unit in which extents start and zones are sized: a page.
const PAGE: u64 = 4096;
/// No zone needs to be aligned more strictly than a huge page.
const MAX_ALIGNMENT: u64 = 2 << 20;
/// Small objects start at a multiple of the block that a PM DIMM writes at once.
const MEDIA_BLOCK: u64 = 256;
/// No object pool is larger: this is far above any device, and far below an overflow of offsets.
const LARGEST_POOL: u64 = 1 << 56;
const ENTRY_LEN: u64 = size_of::<ZoneEntry>() as u64;

/// An object pool to lay out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Name by which the store finds the pool again; no two pools share one.
    pub id: u32,
    /// Bytes of an object: a multiple of 64, so that no two objects share a line.
    pub object_size: u64,
    /// Objects in the pool.
    pub count: u64,
}

/// Options of a new pool.
pub struct FormatOptions {
    /// Bytes of a zone, a multiple of 4096.
    pub zone_size: u64,
    /// Number of the design.
    pub design: u32,
    /// The design's own settings, kept unread.
    pub settings: [u8; SETTINGS_LEN],
    /// Object pools, up to 8.
    pub pools: Vec<PoolSpec>,
    /// Where the free lists are kept.
    pub free_list: FreeListKind,
    /// Random bytes, never reused for another pool.
    pub secret: [u8; 32],
    /// Identity of the present boot.
    pub boot_id: [u8; 16],
}

/// Lays out a pool over these parts, up to 16, which begin at 0 and follow each other. Each has an extent;
/// the object pools are in the first.
pub(super) fn plan(spans: &[Span], options: &FormatOptions) -> Result<Superblock, SpaceError> {
    check_options(spans, options)?;
    let len = spans.last().map_or(0, Span::end);
    let mut superblock = Superblock::blank();
    superblock.design.set(options.design);
    superblock.settings = options.settings;
    let parts = spans.len() as u64;
    let header = if parts > 1 { PART_HEADER_LEN } else { 0 };
    superblock.secret = options.secret;
    superblock.boot_id = options.boot_id;
    superblock.pool_len.set(len);
    superblock.zone_size.set(options.zone_size);
    superblock.zone_free_list.set(options.free_list.word());
    superblock.pool_count.set(options.pools.len() as u32);
    superblock.extent_count.set(spans.len() as u32);

    let too_small = |needed| SpaceError::TooSmall { needed, found: len };
    let third_copy = third_copy_of(spans[0].len);
    superblock.third_copy.set(third_copy);
    let mut end = third_copy + COPY_LEN + header;
    for (entry, spec) in superblock.pools.iter_mut().zip(&options.pools) {
        let metadata = end.next_multiple_of(LINE);
        let objects =
            (metadata + pool_metadata_len(spec.count)).next_multiple_of(object_alignment(spec.object_size));
        let bytes = spec.object_size.checked_mul(spec.count).filter(|bytes| *bytes < LARGEST_POOL);
        end = objects + bytes.ok_or(too_small(u64::MAX))?;
        entry.metadata.set(metadata);
        entry.objects.set(objects);
        entry.object_size.set(spec.object_size);
        entry.count.set(spec.count);
        entry.id.set(spec.id);
        entry.free_list.set(options.free_list.word());
    }

    let first_extent = end.next_multiple_of(PAGE);
    let mut zones = 0;
    for (number, span) in spans.iter().enumerate() {
        let start = if number == 0 { first_extent } else { span.start + header };
        let share = span.end().saturating_sub(start) / PAGE * PAGE;
        let (first, count) = zones_of(start, share, options.zone_size);
        if count == 0 {
            let one = (2 * PAGE + zone_alignment(options.zone_size)).saturating_add(options.zone_size);
            return Err(too_small(one.saturating_add(first_extent).saturating_mul(parts)));
        }
        let total = u64::from(zones) + count;
        if total > MAX_OBJECTS {
            return Err(SpaceError::Options { reason: "there would be too many zones; make them larger" });
        }
        let entry = &mut superblock.extents[number];
        entry.start.set(start);
        entry.len.set(share);
        entry.zones.set(first);
        entry.first_zone.set(zones);
        entry.zone_count.set(count as u32);
        entry.node.set(span.node.unwrap_or_default().0);
        zones = total as u32;
    }
    superblock.zone_count.set(zones);
    superblock.generation.set(1);
    superblock.seal();
    debug_assert!(verify(&superblock).is_ok());
    Ok(superblock)
}

/// Where the third copy of the superblock stands in a pool whose first part has this length: at 1 MiB, or at
/// a 64th of a shorter one.
fn third_copy_of(len: u64) -> u64 {
    (len / 64 / PAGE * PAGE).clamp(SUPERBLOCK_END, third_copy::AT_MOST)
}

fn check_options(spans: &[Span], options: &FormatOptions) -> Result<(), SpaceError> {
    let refuse = |reason| Err(SpaceError::Options { reason });
    if options.zone_size == 0 || !options.zone_size.is_multiple_of(PAGE) {
        return refuse("the zone size must be a multiple of 4096");
    }
    if spans.is_empty() || spans.len() > MAX_EXTENTS {
        return refuse("a pool has between 1 and 16 parts");
    }
    if spans.iter().any(|span| !span.start.is_multiple_of(PAGE)) {
        return refuse("each part must begin at a multiple of 4096");
    }
    if options.pools.len() > MAX_POOLS {
        return refuse("there can be at most 8 object pools");
    }
    for (number, spec) in options.pools.iter().enumerate() {
        if spec.object_size == 0 || !spec.object_size.is_multiple_of(LINE) {
            return refuse("the object size must be a multiple of 64");
        }
        if spec.count == 0 || spec.count > MAX_OBJECTS {
            return refuse("an object pool has between 1 and 4,294,967,294 objects");
        }
        if options.pools[..number].iter().any(|earlier| earlier.id == spec.id) {
            return refuse("no two object pools may share an identifier");
        }
    }
    Ok(())
}

/// Bytes of header and index words, in whole lines.
fn pool_metadata_len(count: u64) -> u64 {
    HEADER_LEN + (count * WORD_LEN).next_multiple_of(LINE)
}

fn object_alignment(object_size: u64) -> u64 {
    if object_size >= PAGE { PAGE } else { MEDIA_BLOCK }
}

fn zone_alignment(zone_size: u64) -> u64 {
    (1 << zone_size.trailing_zeros()).min(MAX_ALIGNMENT)
}

/// First byte of the zones of an extent, and how many fit behind their own table.
fn zones_of(start: u64, len: u64, zone_size: u64) -> (u64, u64) {
    let first_for =
        |count: u64| (start + HEADER_LEN + count * ENTRY_LEN).next_multiple_of(zone_alignment(zone_size));
    let mut count = len / zone_size;
    while count > 0 && first_for(count) + count * zone_size > start + len {
        count -= 1;
    }
    (first_for(count.max(1)), count)
}

/// Whether the ranges in a superblock are possible: in bounds, disjoint, large enough and numbered in order.
pub(super) fn verify(superblock: &Superblock) -> Result<(), SpaceError> {
    let rule = |holds: bool, what| if holds { Ok(()) } else { Err(SpaceError::Geometry { what }) };
    let zone_size = superblock.zone_size();
    rule(zone_size != 0 && zone_size.is_multiple_of(PAGE), "the zone size is no multiple of 4096")?;
    rule(superblock.zone_free_list().is_some(), "the zones' free list is of no known kind")?;
    rule(
        (1..=MAX_EXTENTS as u32).contains(&superblock.extent_count.get()),
        "the number of extents is not 1 to 16",
    )?;
    rule(superblock.pool_count.get() <= MAX_POOLS as u32, "there are more than 8 object pools")?;

    let mut ranges: Vec<Range<u64>> = Vec::new();
    ranges.push(0..SUPERBLOCK_END);
    let third_copy = superblock.third_copy.get();
    let is_possible = third_copy.is_multiple_of(PAGE) && third_copy <= third_copy::AT_MOST;
    rule(is_possible, "the third copy of the superblock is nowhere")?;
    ranges.push(third_copy..third_copy + COPY_LEN);
    ranges.extend(part_header::places(superblock).map(|(_, at)| at..at + PART_HEADER_LEN));
    for entry in superblock.pools() {
        let (size, count) = (entry.object_size.get(), entry.count.get());
        rule(size != 0 && size.is_multiple_of(LINE), "an object size is no multiple of 64")?;
        rule((1..=MAX_OBJECTS).contains(&count), "an object pool has no objects, or too many")?;
        rule(FreeListKind::from_word(entry.free_list.get()).is_some(), "a free list is of no known kind")?;
        let (metadata, objects) = (entry.metadata.get(), entry.objects.get());
        rule(metadata.is_multiple_of(LINE) && objects.is_multiple_of(LINE), "an object pool is not aligned")?;
        let behind = metadata.checked_add(pool_metadata_len(count));
        rule(
            behind.is_some_and(|end| end <= objects),
            "the metadata of an object pool runs into its objects",
        )?;
        let end = size.checked_mul(count).and_then(|bytes| bytes.checked_add(objects));
        rule(end.is_some_and(|end| end <= superblock.pool_len()), "an object pool leaves the pool")?;
        ranges.push(metadata..end.unwrap_or(0));
    }
    let mut zones = 0;
    for entry in superblock.extents() {
        let (start, first, count) = (entry.start.get(), entry.zones.get(), u64::from(entry.zone_count.get()));
        rule(start.is_multiple_of(PAGE) && first.is_multiple_of(PAGE), "an extent is not aligned")?;
        rule(u64::from(entry.first_zone.get()) == zones && count != 0, "zones are not numbered in order")?;
        zones += count;
        rule(zones <= MAX_OBJECTS, "there are too many zones")?;
        let table = start.checked_add(HEADER_LEN + count * ENTRY_LEN);
        rule(table.is_some_and(|end| end <= first), "a zone table runs into its zones")?;
        let end = start.checked_add(entry.len.get());
        rule(end.is_some_and(|end| end <= superblock.pool_len()), "an extent leaves the pool")?;
        let used = count.checked_mul(zone_size).and_then(|bytes| bytes.checked_add(first));
        rule(used.is_some_and(|used| Some(used) <= end), "zones leave their extent")?;
        ranges.push(start..end.unwrap_or(0));
    }
    rule(u64::from(superblock.zone_count()) == zones, "the extents do not add up to the number of zones")?;
    let is_inside = |range: &Range<u64>| range.end <= superblock.pool_len();
    rule(ranges.iter().all(is_inside), "something lies behind the end of the pool")?;
    ranges.sort_by_key(|range| range.start);
    rule(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "two parts of the pool overlap")
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
