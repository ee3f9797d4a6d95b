//! Large values: a value that is too long for a segment lives in whole zones of its own.
//!
//! A value that took most of a segment would have to be copied with it at every compaction, and one longer
//! than a segment would have no place at all. So the bytes of a large value fill zones that nothing else
//! uses, and the segment gets a *head*, an ordinary record of kind [`Large`](crate::record::Kind::Large)
//! whose value tells the length, the zones and a check. Compaction moves the head alone.
//!
//! ```text
//! head's value   length (8) | life (8) | check (8) | zone (4) | zone (4) | ...
//! value zone     header (64 bytes, as a segment's, magic "QVAL", no end mark) | bytes of the value
//! ```
//!
//! Every zone but the last is full. All zones of a value carry one life number and one nonce, so a head finds
//! out whether a zone is still its own.
//!
//! Persist order: headers and bytes durable, then the zones committed, then the head. So a head always finds
//! its value. Zones that no head names were being written, or given up, when a run ended; recovery frees
//! them. A value is given up after the record that supersedes its head is durable, and its zones are free
//! after the last reader has left. Until compaction, the dead head names zones that may belong to someone
//! else by then. It stays dead, since the superseding record is there as long as it is.

mod head;
mod zones;

pub use head::{Head, format_table};
pub use zones::{LargeValue, NewValue, ValueZones};
