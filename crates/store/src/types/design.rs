//! [`Design`], by its number, and its description. The designs themselves are in `designs`.

/// A design that a pool can be created with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Design(
    /// Its number in the superblock; frozen.
    pub(crate) u32,
);

/// The description of a design, for people who choose one.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// Part and choice, in the order in which a put meets them.
    pub parts: &'static [(&'static str, &'static str)],
    /// Its capabilities.
    pub can: Capabilities,
}

/// The capabilities of a design, which follow from its parts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether keys have an order (range scans).
    pub ordered: bool,
    /// Whether it has tables, snapshots and range deletes.
    pub tables: bool,
    /// Whether it writes atomic batches.
    pub batches: bool,
    /// Whether it has transactions.
    pub transactions: bool,
    /// Whether values can expire.
    pub expiry: bool,
    /// Whether keys have [versions](crate::Client::version).
    pub versions: bool,
    /// Whether a guard lends values in place.
    pub lends: bool,
    /// Whether values may be longer than a quarter of a zone.
    pub large_values: bool,
    /// Whether such values have zones of their own.
    pub value_zones: bool,
    /// Whether records are in blocks of pages, many to a zone. Otherwise a zone is a segment.
    pub has_blocks: bool,
    /// Whether its index is always in the pool, and trusted at open.
    pub index_in_pool: bool,
    /// Its pools are smaller than this number of bytes, since words of its index name no place beyond.
    pub pools_below: u64,
    /// Smallest default size of a zone.
    pub(crate) least_zone: u64,
    /// Whether a clean close leaves a checkpoint.
    pub checkpoints: bool,
    /// Whether data for which the pool has no room go to levels on a disk.
    pub levels: bool,
    /// Whether each opening chooses the index in DRAM.
    pub chooses_index: bool,
    /// Whether clients append to common files, one for each node and cluster of keys.
    pub common_files: bool,
    /// Whether scans may have threads of other nodes read for them.
    pub reads_near: bool,
    /// Whether each opening chooses a cache in DRAM in front of the index.
    pub caches: bool,
    /// Whether records of one size are updated in place.
    pub updates_in_place: bool,
    /// Whether only one value may be written if two threads put one key at the same time.
    pub eliminates: bool,
    /// Whether puts may be published by later writes of their client.
    pub publishes_late: bool,
    /// Bytes that zones and pages of a small pool lose beside records at most, in per cent of the bytes of
    /// records. Tools derive the size of a pool from it.
    pub waste: u64,
    /// Whether a damaged pool can be salvaged: records prove themselves, and show which of them counts.
    pub salvages: bool,
    /// Parts of its pools for which the format has no check (`docs/PAPERS.md` has the table): damage there
    /// does not show.
    pub unproved: &'static [&'static str],
}

impl Capabilities {
    /// Whether keys have an order if the handle chooses an index that keeps one.
    pub fn orders_on_request(&self) -> bool {
        self.chooses_index && !self.ordered
    }

    /// The capabilities of a handle that has chosen such an index, if it can.
    pub fn when_ordered(&self) -> Capabilities {
        Capabilities { ordered: self.ordered || self.chooses_index, ..self.clone() }
    }

    /// The capabilities of a walk that can do nothing beyond what all do, on pools of any size.
    pub(crate) const NONE: Capabilities = Capabilities {
        ordered: false,
        tables: false,
        batches: false,
        transactions: false,
        expiry: false,
        versions: false,
        lends: false,
        large_values: false,
        value_zones: false,
        has_blocks: false,
        index_in_pool: false,
        pools_below: u64::MAX,
        least_zone: 64 << 10,
        checkpoints: false,
        levels: false,
        chooses_index: false,
        common_files: false,
        reads_near: false,
        caches: false,
        updates_in_place: false,
        eliminates: false,
        publishes_late: false,
        waste: 0,
        salvages: false,
        unproved: &[],
    };
}
