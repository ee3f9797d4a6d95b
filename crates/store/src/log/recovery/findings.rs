//! The findings of the scanning threads of a recovery.

use super::values::FoundHead;
use crate::points;
use crate::types::error::DamagedPlace;
use crate::types::reports::RecoveryReport;
use quipu_parts::heap::segments::SegmentInfo;
use quipu_parts::space::ZoneId;

/// Findings of all scanning threads.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) report: RecoveryReport,
    pub(crate) damage: Vec<DamagedPlace>,
    pub(super) open: Vec<(SegmentInfo, u64)>,
    /// Open segments whose records are all superseded or stand elsewhere too.
    pub(super) needless: Vec<(SegmentInfo, u64)>,
    pub(super) sealed: Vec<SegmentInfo>,
    /// Segments with unreadable bytes, and the offsets and lengths of these.
    pub(crate) holes: Vec<(SegmentInfo, u64, u64)>,
    /// Zones of segments without a header.
    pub(crate) headless: Vec<ZoneId>,
    /// Zones of segments that were given up but are still taken in the zone table.
    pub(super) given_up: Vec<ZoneId>,
    /// Segments whose zones are free in the zone table.
    pub(crate) orphans: Vec<ZoneId>,
    pub(super) heads: Vec<FoundHead>,
    /// Zones of large values; once the heads are judged, those that no head names.
    pub(super) values: Vec<ZoneId>,
    pub(super) newer: Option<String>,
    /// The highest number of the clock, of records and of lives.
    pub(super) highest: u64,
}

impl points::recovery::Findings for Findings {
    fn merge(&mut self, other: Findings) {
        self.report.torn.extend(other.report.torn);
        self.report.segments += other.report.segments;
        self.report.records += other.report.records;
        self.damage.extend(other.damage);
        self.open.extend(other.open);
        self.sealed.extend(other.sealed);
        self.holes.extend(other.holes);
        self.headless.extend(other.headless);
        self.given_up.extend(other.given_up);
        self.heads.extend(other.heads);
        self.values.extend(other.values);
        self.newer = self.newer.take().or(other.newer);
        self.highest = self.highest.max(other.highest);
    }
}
