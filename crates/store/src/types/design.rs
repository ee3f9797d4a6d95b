//! [`Design`], by its number, and what a design is. What there is of each is in `designs`.

use quipu_parts::space::Feature;

/// A design that a pool can be created with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Design(
    /// Its number in the superblock; frozen.
    pub(crate) u32,
);

/// What a design is, for people who choose one.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// Part and choice, in the order of a put's way.
    pub parts: &'static [(&'static str, &'static str)],
    /// What it can do.
    pub can: Capabilities,
}

/// What a design can do. It follows from its parts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether keys have an order (range scans).
    pub ordered: bool,
    /// Whether it writes atomic batches.
    pub batches: bool,
    /// Whether values can have a time at which they go.
    pub expiry: bool,
    /// Whether keys have [versions](crate::Client::version).
    pub versions: bool,
    /// Whether a guard lends values in place.
    pub lends: bool,
    /// Whether values may be longer than a quarter of a zone.
    pub large_values: bool,
    /// Whether such values stand in zones of their own.
    pub value_zones: bool,
    /// Whether records stand in blocks of pages, many to a zone. If not, a zone is a segment.
    pub has_blocks: bool,
    /// Whether its index is always in the pool, and believed when that is opened.
    pub index_in_pool: bool,
    /// What the bytes of its parts have beyond the first form of the format.
    pub(crate) features: &'static [Feature],
    /// Bytes that its pools have less than, since words of its index name no place beyond.
    pub pools_below: u64,
    /// Bytes of a zone at least, unless another size is asked for.
    pub(crate) least_zone: u64,
    /// Whether a clean close leaves a checkpoint.
    pub checkpoints: bool,
    /// Whether records of one size are updated in place.
    pub updates_in_place: bool,
    /// Whether of two puts that meet at a key one may return for the other.
    pub eliminates: bool,
    /// Whether puts may be published by later writes of their client.
    pub publishes_late: bool,
    /// Per cent of what records take that zones and pages lose beside them in a small pool, at most: tells how large a pool must
    /// be.
    pub waste: u64,
    /// Whether a damaged pool can be salvaged: records prove themselves, and tell which of them count.
    pub salvages: bool,
    /// What nobody can prove of its pools, since its format has no check for it (`docs/PAPERS.md` has the table): damage there
    /// does not show.
    pub unproved: &'static [&'static str],
}

impl Capabilities {
    /// Those of a walk that can do nothing but what all do, on pools of any size.
    pub(crate) const NONE: Capabilities = Capabilities {
        ordered: false,
        batches: false,
        expiry: false,
        versions: false,
        lends: false,
        large_values: false,
        value_zones: false,
        has_blocks: false,
        index_in_pool: false,
        features: &[],
        pools_below: u64::MAX,
        least_zone: 64 << 10,
        checkpoints: false,
        updates_in_place: false,
        eliminates: false,
        publishes_late: false,
        waste: 0,
        salvages: false,
        unproved: &[],
    };
}
