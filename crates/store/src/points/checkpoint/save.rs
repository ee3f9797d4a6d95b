//! Writing a checkpoint.

use super::layout::{SegmentEntry, Summary};
use crate::points::Core;
use crate::walk::checkpoint::Writer;
use quipu_parts::index::Imaged;
use quipu_parts::space::CheckpointEntry;
use zerocopy::IntoBytes;

/// Writes a checkpoint of a store without users, durably, and returns its name for the superblock. `None` if
/// no checkpoint is to be written.
pub(crate) fn save<I: Imaged>(core: &Core<I>) -> Option<CheckpointEntry> {
    let space = core.heap.space();
    let states = core.heap.states()?;
    let participant = core.common.epochs.register();
    let guard = participant.pin();
    let image = core.index.image(&guard)?;
    let entries: Vec<SegmentEntry> = states.iter().map(SegmentEntry::new).collect();
    let summary = Summary::new(entries.len(), image.len());
    let len = (summary.as_bytes().len() + entries.as_bytes().len()) as u64 + image.len();
    if len >= states.len() as u64 * space.zone_size() {
        return None;
    }
    let mut writer = Writer::new(space, core.heap.certifier(), len)?;
    writer.push(summary.as_bytes());
    writer.push(entries.as_bytes());
    image.write(&mut |bytes| writer.push(bytes));
    Some(writer.finish())
}
