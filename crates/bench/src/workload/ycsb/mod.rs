//! YCSB's core workloads (Cooper, Silberstein, Tam, Ramakrishnan, Sears: "Benchmarking Cloud Serving Systems
//! with YCSB", SoCC 2010), read from property files and turned into a stream of requests.
//!
//! One thing differs from YCSB: a record is one value of `fieldcount * fieldlength` bytes and an update
//! replaces all of it, because the stores measured here have no fields. YCSB says the same by
//! `writeallfields=true`.

mod requests;
mod settings;

pub use requests::{Operation, Requests};
pub use settings::{Distribution, InsertOrder, Mix, Workload, WorkloadError};
