//! Which pair of a bucket is the least worth its place: the policies.

/// The worth of a read of a pair from its own node, by any policy that counts reads.
const UNIT: f64 = 16.0;

/// How much longer a read from the next node takes, for each unit of distance above a node's own, which is
/// 10. So nodes at the usual distance of 21 read in 1.6 times the time, as NStore measured (section II-A).
const SLOPE: f64 = 0.593 / 11.0;
const OWN_DISTANCE: u16 = 10;

/// Nanoseconds of a read of persistent memory from its own node (section II-A), and of one of the cache,
/// which is in DRAM.
const OWN_READ: f64 = 113.0;
const HIT: f64 = 80.0;

/// A policy of replacement. A pair that was read gets worth by it; of a full bucket, the pair of least worth
/// goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Remote access first: the reads of a pair, each weighed by the time of a read from there to its place
    /// (NStore section III-B).
    #[default]
    Raf,
    /// The same, weighed by the time that a hit saves.
    RafNet,
    /// The reads of a pair.
    Lfu,
    /// The last read of a pair.
    Lru,
    /// The last read of a pair and its weight: GreedyDual.
    LruRaf,
    /// The keys that were read most in the last period (Nap, as in section V-D).
    Nap,
}

/// The weight of a read, by the node of the pair and that of the reader.
#[derive(Debug)]
pub(super) struct Weights {
    readers: usize,
    weights: Box<[u16]>,
}

impl Weights {
    /// The weights by a policy for pairs on so many nodes and readers on as many. `distance` tells how far it
    /// is from the processors of one to the bytes of another.
    pub(super) fn new(policy: Policy, nodes: usize, distance: impl Fn(usize, usize) -> u16) -> Weights {
        let weight = |own: usize, reader: usize| {
            let far = distance(reader, own).saturating_sub(OWN_DISTANCE);
            let read = OWN_READ * (1.0 + SLOPE * f64::from(far));
            let ratio = match policy {
                Policy::Raf | Policy::LruRaf => read / OWN_READ,
                Policy::RafNet => (read - HIT) / (OWN_READ - HIT),
                Policy::Lfu | Policy::Lru | Policy::Nap => 1.0,
            };
            (UNIT * ratio).round() as u16
        };
        let weights = (0..nodes).flat_map(|own| (0..nodes).map(move |reader| (own, reader)));
        Weights { readers: nodes, weights: weights.map(|(own, reader)| weight(own, reader)).collect() }
    }

    /// The weight of a read of a pair on one node from another.
    pub(super) fn of(&self, own: u16, reader: u16) -> u16 {
        let (own, reader) = (usize::from(own), usize::from(reader));
        let row = self.weights.chunks_exact(self.readers).nth(own);
        row.and_then(|row| row.get(reader)).copied().unwrap_or(UNIT as u16)
    }
}

impl Policy {
    /// The worth of a pair after a read of this weight. It had the worth `before`, if it was there. `level`
    /// is the worth of the last pair that left its bucket, or that was read there. A worth that does not fit
    /// 16 bits means that all of the bucket are halved.
    pub(super) fn worth(self, before: Option<u16>, weight: u16, level: u16) -> u32 {
        match self {
            Policy::Raf | Policy::RafNet | Policy::Lfu | Policy::Nap => {
                u32::from(before.unwrap_or(0)) + u32::from(weight)
            }
            Policy::Lru => u32::from(level) + 1,
            Policy::LruRaf => u32::from(level) + u32::from(weight),
        }
    }

    /// Whether a read raises the level of its bucket, which counts the reads there.
    pub(super) fn raises_level(self) -> bool {
        self == Policy::Lru
    }

    /// Whether the level is the worth of the last pair that left.
    pub(super) fn remembers_worth(self) -> bool {
        self == Policy::LruRaf
    }

    /// Whether it admits the keys of the last period alone.
    pub(super) fn has_periods(self) -> bool {
        self == Policy::Nap
    }

    /// Whether worths tell how often pairs are read, so that equal ones mean that all are read alike.
    pub(super) fn counts_reads(self) -> bool {
        matches!(self, Policy::Raf | Policy::RafNet | Policy::Lfu | Policy::Nap)
    }
}
