//! Nlog, the heap of NStore (section III-C to III-G of the paper). Each node has files in its memory, one of
//! them open for each *cluster* of keys, and all clients of the node append to them.
//!
//! A file is a segment ([`super::segments`]): a zone with a life, records that prove themselves, and an end
//! mark. But it has no owner. A writer takes a place at the *tail* of its cluster under a lock, and
//! leaves the lock before a byte of its record is written (`place`). So records of several writers are on
//! their way at once, which has three consequences:
//!
//! - *Each record has its lines for itself.* No writer repeats a byte of another one's.
//! - *A crash leaves holes*: an acknowledged record may stand behind one that never arrived. So recovery does
//!   not end at the first hole, but at the *high water*, a mark in the header that is raised, durably, before
//!   places behind it are given away (`scan`).
//! - *An end mark vouches for all records before it.* So a full file is sealed by the last of its writers,
//!   which has fenced and published by then, as all others have (`spot`).
//!
//! A record names the record of its key before it, its *parent*, or the original if it is a copy (`links`).
//! So a cleaner finds superseded records by following parents, in files of any node, and asks no index.
//!
//! # Rule P
//!
//! *A record goes, by a mark or with its file, only after its parent is durably gone.* Each superseded value
//! has a record that supersedes it and names it as its parent, since the index named it when that one was
//! written. By the rule, as long as a record is valid, the one that superseded it is valid too. So a
//! superseded record never wins at recovery. Files are freed in any order, and a tombstone waits for no other
//! file. (The paper's copies name no parent, so an original can win over the deletion of its copy.)
//!
//! | file | what it is |
//! |---|---|
//! | `place` | tails: opening files, giving places away |
//! | `spot` | a place that was given away: written, published, or covered; sealing |
//! | `links` | parents: naming, proving and marking them |
//! | `scan` | the entries of a file, holes among them |
//! | `marks` | words that prove themselves |

mod links;
mod marks;
mod place;
mod scan;
mod spot;
#[cfg(test)]
mod tests;

pub use links::{Before, Entry};
pub use place::{Files, Home, Nlog, NlogSettings, taken};
pub use scan::{FileInfo, FileScan, Item};
pub use spot::{FirstLine, Spot};
