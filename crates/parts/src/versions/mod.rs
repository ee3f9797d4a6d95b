//! Versions: of each key, the newest record and those that somebody may still read.
//!
//! Writes of a design with [one order](crate::commit::ring) have numbers, and a reader looks at the state at
//! one number: the visible one of its moment, or that of its snapshot. So the word of a key in the index
//! leads to one record, or to a short array of records, the newest first.
//!
//! A new version is published before it is visible. Until then readers take the one behind it, which
//! therefore stays. A later write *purges* it, if no snapshot needs it.
//!
//! - [`Snapshots`]: the numbers at which somebody reads.
//! - [`purge()`](purge::purge): a pure function that chooses the versions to keep.
//! - [`Versions`]: the words of an index.
//! - [`RangeList`]: deletions of all keys between two.
//!
//! Source: section 3.1 of the paper on an LSM engine for transactions on persistent memory (VLDB 2021). The
//! paper names no owner of its arrays, and no rule for stale versions.

mod array;
pub mod purge;
mod ranges;
mod snapshots;
mod table;

pub use array::Version;
pub use ranges::{RangeList, RangeTombstone};
pub use snapshots::{Horizon, Snapshot, Snapshots, Terms};
pub use table::{Look, Noted, Retired, Versions};
