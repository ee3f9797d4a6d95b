//! What an update costs when the pool is nearly full and compaction has to make the room for it.
//!
//! A log-structured store is fast while it has never come round to its beginning. So this benchmark fills a pool up to a
//! given utilization and then overwrites records for as long as it takes until throughput has settled; only then is it a
//! result. Utilization is bytes of live records, with headers and alignment, over bytes of all segments that puts may use.
//! Reserve and metadata are not part of it, but stand in the row.
//!
//! After a volume of writes that is not looked at, windows of one pool volume of writes each are timed. Three in a row
//! within 5 per cent are steady, and make the row. In the end every record is read and must have the last value written to
//! it, so this is a test of compaction too.
//!
//! - `settings`: what is asked for.
//! - `plan`: pool and zones for it.
//! - `requests`: which records are overwritten, drawn ahead of the clock, and what each must have in the end.
//! - `run`: one pool from its creation to its row.

mod plan;
mod requests;
mod run;
mod settings;

pub use run::util;
pub use settings::{Keys, Overwrites};
