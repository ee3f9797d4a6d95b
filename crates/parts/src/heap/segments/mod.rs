//! A heap of segments: zones used as logs, one open segment for each client. `docs/FORMAT.md` has the bytes.
//!
//! A client owns the segment that it appends to, so appending needs no lock. A segment carries its *life
//! number* in its header, durable before its first record. The checks of its records depend on that number,
//! so bytes of an earlier life never count. A full segment, and one that a crash has left open, is sealed by
//! an end mark. From then on an invalid record before the mark is damage; at the tail of an open segment it
//! is merely the end.
//!
//! Order of persistence: first the header is durable, then the zone is committed, then records follow. So a
//! committed zone always has a valid header, and one without is damage. A zone with a header and no commit
//! bit was being opened by a crashed run, and is reclaimed as a leak.

mod append;
mod cleaning;
mod dead;
mod expiry;
mod files;
mod given_up;
mod header;
mod lives;
mod log;
mod prove;
mod scan;
mod state;
mod storage;
mod survey;
#[cfg(test)]
pub(in crate::heap) mod test_heap;
mod usage;

pub use append::{LastLine, OpenSegment};
pub use expiry::{EXPIRY_STEPS, Expiring};
pub use header::{FIRST_RECORD, SegmentHeader, format_table};
pub(super) use header::{HIGH_WATER, Role};
pub use log::{HeapError, LogHeap, Use};
pub use scan::{Found, PastHole, Position, Scan, ScanError, SegmentInfo};
pub use state::SegmentState;
pub use usage::{Candidate, RecordBytes, Shard};
