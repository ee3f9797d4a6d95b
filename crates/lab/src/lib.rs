//! What proves Quipu: that it keeps its word, and how fast it does.
//!
//! - [`workload`]: keys, values that prove themselves, and YCSB's requests.
//! - [`contract`]: what every design promises on every medium.
//! - [`model`]: random calls that must agree with a `BTreeMap`.
//! - [`mod@bench`]: benchmarks that check what they read, and the limits they are compared with.

pub mod bench;
pub mod contract;
pub mod crash;
pub mod model;
pub mod workload;
