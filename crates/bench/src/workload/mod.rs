//! The requests of a benchmark: keys, values, and their order.
//!
//! Everything is a function of a seed, so two runs make the same requests. Every value proves on reading that
//! it is whole and belongs to its key, so a fast wrong answer cannot pass for a right one. Nothing in this
//! room knows a store.

mod acknowledged;
mod etc;
mod keys;
mod permutation;
mod properties;
mod sets;
mod spread;
mod values;
mod ycsb;
mod zipfian;

pub use acknowledged::AcknowledgedCounter;
pub use etc::{ETC_SIZES, EtcChoice, etc_size};
pub use keys::{KeyShape, Naming, SHORTEST_KEY, fnv1a, ycsb_hash};
pub use permutation::{Permutation, mix, unmix};
pub use properties::{Property, PropertyError, parse_properties};
pub use sets::KeySet;
pub use spread::Spread;
pub use values::{Mismatch, SHORTEST_VALUE, Values};
pub use ycsb::{Distribution, InsertOrder, Mix, Operation, Requests, Workload, WorkloadError};
pub use zipfian::{SCRAMBLED_ITEMS, ScrambledZipfian, Zipfian, zeta};
