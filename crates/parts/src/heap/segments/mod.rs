//! A heap of segments: zones used as logs, one open segment a client.
//!
//! Appending needs no lock, because a client owns the segment it appends to. A segment carries its *life number* in
//! its header, durable before its first record; the checks of its records depend on it, so bytes of an earlier life
//! can never count. A segment that is full, or found open after a crash, is sealed by an end mark: from then on an
//! invalid record before the mark is damage, whereas at the tail of an open segment it is merely the end.
//!
//! ```text
//!        0        1        2        3        4        5        6        7
//!    0 | check: keyed hash of bytes 8..40                                    |
//!    8 | magic "QSEG"                      | zone number                     |
//!   16 | life number                                                         |
//!   24 | run number that opened it                                           |
//!   32 | nonce: random, makes the life differ from every other               |
//!   40 | end mark: end offset / 8          | upper half of its check         |  zero while open
//!   48 | reserved, zero (16 bytes)                                           |
//!   64 | records, each on a multiple of 8                                    |
//! ```
//!
//! Persist order: header durable, then the zone committed, then records; so a committed zone always has a
//! valid header, and one without is damage. A zone with a header but no commit bit was being opened by a crashed
//! run and is reclaimed as a leak.

mod append;
mod cleaning;
mod dead;
mod expiry;
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
mod test_heap;
mod usage;

pub use append::{LastLine, OpenSegment};
pub use expiry::{EXPIRY_STEPS, Expiring};
pub(super) use header::Role;
pub use header::{FIRST_RECORD, SegmentHeader, format_table};
pub use log::{HeapError, LogHeap, Use};
pub use scan::{Found, PastHole, Position, Scan, ScanError, SegmentInfo};
pub use state::SegmentState;
pub use usage::{Candidate, RecordBytes, Shard};
