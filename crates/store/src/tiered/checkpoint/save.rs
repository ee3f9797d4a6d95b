//! Writing a checkpoint.

use super::layout::{Summary, TableEntry, ZoneCounts};
use crate::tiered::Tiers;
use crate::tiered::table::Table;
use crate::types::error::Error;
use crate::walk::checkpoint::Writer;
use quipu_parts::index::{Image, Imaged, InOrder};
use quipu_parts::space::{CheckpointEntry, ZoneId};
use quipu_parts::versions::Retired;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Writes a checkpoint of a store without users, whose memtables have ended, and returns its name for the
/// superblock: durably, or that of none.
pub(in crate::tiered) fn save<I: InOrder + Imaged>(tiers: &Tiers<I>) -> Result<CheckpointEntry, Error> {
    let (none, participant) = (CheckpointEntry::default(), tiers.common.epochs.register());
    let is_frozen = |table: &Arc<Table<I>>| !table.view(&participant.pin()).frozen.is_empty();
    if tiers.tables.all().iter().any(is_frozen) {
        return Ok(none);
    }
    tiers.merge_all()?;
    if !tiers.sweep_for_good()? {
        return Ok(none);
    }
    let (heap, tables) = (tiers.log.heap(), tiers.tables.all());
    let (guard, mut retired) = (participant.pin(), Retired::default());
    let has_layers = |table: &Arc<Table<I>>| !table.view(&guard).older.is_empty();
    if tables.iter().any(has_layers) {
        return Ok(none);
    }
    let settle = |table: &Arc<Table<I>>| table.view(&guard).active.versions.settle(&guard, &mut retired);
    let settled = tables.iter().try_for_each(settle);
    retired.defer(&guard);
    settled?;
    let images = tables.iter().map(|table| table.view(&guard).active.versions.index().image(&guard));
    let Some(images) = images.collect::<Option<Vec<Image<'_>>>>() else { return Ok(none) };

    let mut zones: Vec<ZoneId> = tiers.log.memtables().iter().flat_map(|memtable| memtable.zones()).collect();
    zones.sort_unstable_by_key(|zone| zone.0);
    let zones: Vec<ZoneCounts> = zones.into_iter().map(|zone| ZoneCounts::new(heap.usage(), zone)).collect();
    let entries: Vec<TableEntry> = (tables.iter().zip(&images))
        .map(|(table, image)| TableEntry {
            created: table.subtable.created.into(),
            image: image.len().into(),
        })
        .collect();
    let summary = Summary::new(zones.len(), entries.len());
    let heads = [summary.as_bytes(), zones.as_bytes(), entries.as_bytes()];
    let len = heads.iter().map(|head| head.len() as u64).sum::<u64>()
        + images.iter().map(|image| image.len().next_multiple_of(8)).sum::<u64>();
    if len >= zones.len() as u64 * heap.space().zone_size() {
        return Ok(none);
    }
    let Some(mut writer) = Writer::new(heap.space(), heap.certifier(), len) else { return Ok(none) };
    heads.into_iter().for_each(|head| writer.push(head));
    for image in images {
        image.write(&mut |bytes| writer.push(bytes));
        writer.push(&[0; 8][..(image.len().next_multiple_of(8) - image.len()) as usize]);
    }
    Ok(writer.finish())
}
