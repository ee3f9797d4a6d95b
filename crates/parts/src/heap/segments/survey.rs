//! Segments of an earlier run that a store took over by their headers alone, and finding out what is dead in them.
//!
//! A store whose index survives crashes by itself need not read its records to open (PACMAN section 3.5). What it lacks then
//! is in DRAM only: how much of each segment is garbage, and which of its records are dead. That is found out later, segment by
//! segment, by a *survey*: it walks over the records, asks the index about each, and [notes](LogHeap::note_dead) those that the
//! index does not name. Before its survey is over a segment is no candidate for cleaning.
//!
//! # Beside writers
//!
//! Writers supersede records of such a segment meanwhile, and note them dead. Each record is noted once all the same:
//! - The index names no record of the segment anew: nobody appends to it, and copies go elsewhere. So a record that it does not
//!   name is dead for good, and the survey may say so at any time after.
//! - A record that it names when asked may die right after. Whoever supersedes it notes it, since it was the index that told
//!   them of it.
//! - Both may note the same record, if the survey asks between the change of the index and the note. The record's bit is
//!   set by one of them; only that one counts its bytes.
//!
//! So the bits and the counter of a segment are exact when its survey is over and nobody is at work, and until then the counter
//! is too low if anything.
//!
//! # Ends
//!
//! A segment that a crash has left open has no end mark. To look for its end takes as long as it has records, so that is not done
//! when the store opens either, but at the beginning of its survey: up to the last record everything is flushed, as after a crash of the process
//! alone it may stand in a cache, and then the end is marked. Until then it is as after the crash, and the next one finds it so. A pool is not
//! marked clean before all ends are.
//!
//! # What is not durable yet
//!
//! That the index does not name a record may be something that a crash takes back: after a crash of the process alone, its last
//! change may stand in a cache, and whoever made it is gone. A record that such an answer declared dead would come to life
//! again. So whoever surveys asks for an answer that is durable. (In later runs of the same segment's life that is not needed:
//! who has changed the index is pinned until the change is durable, and a segment is not freed before they have left.)

use super::header::FIRST_RECORD;
use super::log::LogHeap;
use super::scan::SegmentInfo;
use super::usage::{RecordBytes, Shard};
use crate::space::ZoneId;

impl LogHeap {
    /// Takes over a segment that was sealed with its records ending at `end`. What is dead in it is to be found out.
    pub fn take_over(&self, info: &SegmentInfo, end: u64) {
        let written = end - FIRST_RECORD;
        self.usage.restore(info.zone, RecordBytes { written, ..RecordBytes::default() });
        if let Some(dead) = &self.dead {
            dead.restore(info.zone);
        }
        self.lives.begin_unsurveyed(info.zone, info.life_number);
    }

    /// Takes over a segment that a crash has left open. Where its records end is to be found out, and then what is dead in it.
    pub fn take_over_open(&self, info: &SegmentInfo) {
        if let Some(dead) = &self.dead {
            dead.restore(info.zone);
        }
        self.lives.begin_unsurveyed(info.zone, info.life_number);
    }

    /// Marks the end of a segment that was taken over open, durably when this returns, or frees it if it has no record. Tells whether it has
    /// one.
    pub fn end_open(&self, shard: Shard, info: &SegmentInfo, end: u64) -> bool {
        // The first change of a run, if nobody has written yet.
        self.clock().begin(&self.space);
        if end == FIRST_RECORD {
            self.give_up_survey(info.zone);
            self.free(info.zone);
            return false;
        }
        self.settle(&[(*info, end)]);
        self.note_written(shard, info.zone, end - FIRST_RECORD);
        true
    }

    /// The segments of which it is not known what is dead in them.
    pub fn all_unsurveyed(&self) -> Vec<ZoneId> {
        self.lives.all_unsurveyed().collect()
    }

    /// A segment of which it is not known what is dead in it, if there is one. It is not given back before that is known.
    pub fn unsurveyed(&self) -> Option<ZoneId> {
        self.lives.unsurveyed()
    }

    /// Everything that is dead in this segment has been noted; from here on it is a candidate.
    pub fn note_surveyed(&self, zone: ZoneId) {
        if let Some(dead) = &self.dead {
            dead.know(zone);
        }
        self.lives.note_surveyed(zone);
    }

    /// What is dead in this segment cannot be found out: it stays as it is.
    pub fn give_up_survey(&self, zone: ZoneId) {
        self.lives.withdraw(zone);
        self.lives.note_surveyed(zone);
    }

    /// Bytes of the records of a segment that are counted as garbage, for a check, if all that are dead in it have been noted.
    pub fn known_garbage(&self, zone: ZoneId) -> Option<u64> {
        let knows = self.dead.as_ref().is_some_and(|dead| dead.knows(zone));
        knows.then(|| self.usage.of_zone(zone).garbage)
    }
}
