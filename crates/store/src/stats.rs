//! Numbers of an open store.

/// Sizes and counts of an open store, exact when nobody is writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys present.
    pub records: u64,
    /// Bytes of the pool.
    pub pool_bytes: u64,
    /// Bytes of a zone.
    pub zone_bytes: u64,
    /// Zones of the pool.
    pub zones: u64,
    /// Zones that are free.
    pub free_zones: u64,
    /// Zones that puts leave free: for deletes, and for compaction to move records to.
    pub reserve_zones: u64,
    /// Bytes of all records in segments: headers, keys, values, padding.
    pub record_bytes: u64,
    /// Of these, bytes of records that are superseded, deleted, or tombstones.
    pub garbage_bytes: u64,
    /// Of these, bytes of tombstones. They stay until no older record of their keys can be anywhere.
    pub tombstone_bytes: u64,
    /// Bytes of records that compaction has moved since open.
    pub moved_bytes: u64,
    /// Of how many records these are, where records move one by one.
    pub moved_records: u64,
    /// Of these, records whose hint led to their entry in the index.
    pub hinted_records: u64,
    /// Segments that compaction has given back since open.
    pub freed_segments: u64,
    /// Bytes of the zones that large values take.
    pub value_bytes: u64,
    /// Bytes of DRAM that the index takes.
    pub index_bytes: u64,
    /// Bytes of the zones that the index takes, if it is in the pool.
    pub index_pm_bytes: u64,
    /// Splits of the index since open.
    pub index_splits: u64,
    /// Records that splits had to read because the index had used up the hash bits it keeps.
    pub index_records_read: u64,
}

impl Stats {
    /// Bytes of live records and of zones of large values over bytes of all zones in use, 0 to 1.
    pub fn utilization(&self) -> f64 {
        let used = (self.zones - self.free_zones) * self.zone_bytes;
        if used == 0 {
            0.0
        } else {
            let live = self.record_bytes.saturating_sub(self.garbage_bytes);
            (live + self.value_bytes) as f64 / used as f64
        }
    }
}
