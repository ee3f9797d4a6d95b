//! How far a walk over an extendible hash index has come, while the index changes.
//!
//! The cursor is a point in the space of hashes, and each step takes the whole range of the segment that
//! covers it. Splits only cut ranges into halves, so a point at which some segment began stays the beginning
//! of a segment. Visited hashes are never visited again, and the others lie ahead.

use super::directory::following;

/// How far an iteration has come; starts at the beginning.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    /// The lowest hash that was not visited.
    next: u64,
    finished: bool,
}

impl Cursor {
    /// The lowest hash that was not visited, if there is one.
    pub(super) fn next(&self) -> Option<u64> {
        (!self.finished).then_some(self.next)
    }

    /// Passes the segment of this depth that begins with `start`.
    pub(super) fn pass(&mut self, start: u64, depth: u32) {
        let behind = following(start, depth);
        self.finished = behind.is_none();
        self.next = behind.unwrap_or_default();
    }
}
