//! Recovery where bits in DRAM tell what is dead: what is marked of a key, be it a record or its deletion, and who of them
//! counts.
//!
//! Marks say nothing then but that a record is whole. The index names deletions too while records are looked for, so that older
//! records of their keys do not come back; at the end it forgets them. A deletion that counts stays where it is until
//! reclamation finds that nothing needs it any more.
//!
//! What loses is noted as dead, with the number that beat it (`parts/src/heap/slots/dead.rs`), which changes nothing in the
//! pool. Only a record whose value fills blocks of its own is let go durably, as in Viper, since these blocks are to be free.

use super::recovery::{Findings, Waiting};
use super::{EXACT, SlotSpine, exact};
use crate::types::error::Error;
use quipu_parts::epoch::Guard;
use quipu_parts::heap::slots::{Location, SizedOffset, Stands};
use quipu_parts::index::cceh::NodeMemory;

impl<M: NodeMemory, const REDUCED: bool> SlotSpine<M, REDUCED> {
    /// Lets the index name what was found, unless it names something of the same key that counts instead.
    pub(super) fn adopt_or_bury(&self, guard: &Guard<'_>, found: &Waiting, findings: &mut Findings) {
        let Waiting { location, place, stands, hash, ref key } = *found;
        let _stripe = self.stripes.lock(self.stripes.of(hash), |_| ());
        let is_key = |word: u64| {
            let exact = exact(key);
            word & EXACT == exact && (exact != 0 || self.heap.key_is(Self::offset_of(word), key))
        };
        let word = Self::word_of(place, key);
        let Some(named) = self.index.lock(hash).named(is_key) else {
            let inserted = self.index.insert(guard, hash, word);
            findings.refused = findings.refused.take().or(inserted.err().map(Error::from));
            if stands.is_tombstone {
                findings.tombstones.push((hash, word));
            }
            return;
        };
        // It was found a moment ago, and recovery is alone.
        let Ok(Some(other)) = self.heap.stands(Self::offset_of(named)) else { return };
        let other_location = Location { offset: Self::offset_of(named), sequence: other.sequence };
        if self.heap.supersedes(location, other_location) {
            let done = self.index.replace(guard, hash, named, word);
            debug_assert!(done, "the key is locked");
            if stands.is_tombstone {
                findings.tombstones.push((hash, word));
            }
            self.lose(other_location, other, location, findings);
        } else {
            self.lose(location, stands, other_location, findings);
        }
    }

    /// Notes that what stands at one place does not count because of what stands at another.
    fn lose(&self, loser: Location, stands: Stands, winner: Location, findings: &mut Findings) {
        let Stands { len, is_tombstone, has_blocks, .. } = stands;
        if has_blocks {
            findings.losers.push((loser, Some(winner)));
        } else if is_tombstone {
            self.heap.note_tombstone_gone(SizedOffset::new(loser.offset, len));
        } else {
            self.heap.note_dead(loser.offset, len, winner.sequence);
        }
    }

    /// Lets the index forget the deletions that it still names.
    pub(super) fn forget_tombstones(&self, findings: &Findings) {
        let participant = self.epochs.register();
        let guard = participant.pin();
        for (hash, word) in &findings.tombstones {
            self.index.remove(&guard, *hash, *word);
        }
    }
}
