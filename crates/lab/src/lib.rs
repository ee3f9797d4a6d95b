//! What proves Quipu: that it keeps its word, and how fast it does.
//!
//! - [`workload`]: keys, values that prove themselves, and YCSB's requests.
//! - [`mod@bench`]: benchmarks that check what they read, and the limits they are compared with.

pub mod bench;
pub mod crash;
pub mod workload;
