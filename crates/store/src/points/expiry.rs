//! Expiry: a record whose time has passed acts as a tombstone.
//!
//! The time is asked after the index, so a reader may learn that its record has expired when another write
//! has taken that record's place: a session that was renewed just before its end. A key is absent only if the
//! index still names the expired record *after* its time had passed. So the reader looks the key up again,
//! until two looks find the same record; each further look needs another write or move in between.
//!
//! A write that was acknowledged may be parked. Each look begins with [`Points::settle`].

use super::{Core, Located, Points};
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::index::{Index, Key};
use quipu_parts::record::RecordView;
use quipu_parts::twin;

/// A walk, for what knows only its [`Core`].
pub(crate) trait Successors<I: Index> {
    /// The record of a key that does not expire before it is found, once the record of this word has expired.
    /// It is proved with its value if reads are.
    fn successor<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        key: Key<'_>,
        expired: u64,
    ) -> Result<Option<Located<'g>>, Error>;
}

impl<W: Points> Successors<W::Index> for W {
    #[cold]
    fn successor<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        key: Key<'_>,
        mut expired: u64,
    ) -> Result<Option<Located<'g>>, Error> {
        let core = self.core();
        if twin!(ExpiredBelieved) {
            return Ok(None);
        }
        loop {
            self.settle(guard, key.hash)?;
            match core.found::<true>(guard, key)? {
                Some(Located { word, record }) if core.has_expired(&record) => {
                    if word == expired {
                        return Ok(None);
                    }
                    expired = word;
                }
                located => return Ok(located),
            }
        }
    }
}

impl<I: Index> Core<I> {
    /// Whether a record has expired: it acts as a tombstone then.
    #[inline]
    pub(crate) fn has_expired(&self, record: &RecordView<'_>) -> bool {
        self.has_passed(record.expires)
    }

    /// Whether a time of expiry, or 0 for never, has passed.
    #[inline]
    pub(super) fn has_passed(&self, expires: u64) -> bool {
        expires != 0 && self.is_now(expires)
    }

    #[cold]
    fn is_now(&self, time: u64) -> bool {
        self.heap.space().has_passed(time)
    }
}
