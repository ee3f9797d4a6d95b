//! The cost of an update when the pool is nearly full and compaction has to make room for it.
//!
//! A log-structured store is fast until it comes round to its beginning. So this benchmark fills a pool up to
//! a given utilization. Then it overwrites records, or reads some and overwrites others, until throughput has
//! settled; only the settled throughput is a result. Utilization is bytes of live records, with headers and
//! alignment, over bytes of all segments that puts may use. Reserve and metadata are not part of it, but
//! stand in the row; nor are the segments of an index in the pool.
//!
//! After a volume of writes without a measurement, windows of one pool volume of writes each are timed. Three
//! in a row within 5 per cent are steady, and make the row. Every get must find the last value written before
//! it. In the end every record is read and must have the last value written to it, so this is a test of
//! compaction too.
//!
//! - `settings`: the arguments.
//! - `plan`: pool and zones for it.
//! - `requests`: which records are overwritten and read, drawn ahead of the clock, and what each must have.
//! - `run`: a loaded store from its first window to its row.
//! - `pool`: the pools of our own stores, one for each row.
//! - `rival`: the same load on another engine, whose space nobody limits.
//! - `disorder`: reopening a store that was overwritten for long.

mod disorder;
mod plan;
mod pool;
mod requests;
mod rival;
mod run;
mod settings;

pub use disorder::recovery_of_overwritten;
pub use pool::util;
pub use rival::util_of;
pub use settings::{Keys, Overwrites};
