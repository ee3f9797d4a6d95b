//! Shortcuts (ATC'22 section 3.1): where a word stands, noted when a writer is there anyway, so that a cleaner need not look
//! for it.

use super::border::Border;
use super::descend::count_visited;
use super::nodes::Link;
use super::permutation::SLOTS;
use super::tree::{Masstree, check_word};
use crate::epoch::Guard;
use crate::sync::atomic::Ordering;
use quipu_medium::arch;

const SLOT_BITS: u32 = 5;
/// Inner nodes that a prefetch passes at most: more than any tree that fits a machine is high.
const HEIGHT_TO_PREFETCH: u32 = 16;

/// Where a word may stand: the number of a border node and a slot in it, in 48 bits. It may be kept anywhere and for as long
/// as one likes, since it is believed only if the word is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hint(u64);

impl Hint {
    /// Bits of a hint.
    pub const BITS: u32 = 48;

    pub(super) fn new(number: u32, slot: usize) -> Hint {
        Hint(u64::from(number) << SLOT_BITS | slot as u64)
    }

    /// The hint as a number, below `1 << 48` and not zero.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The hint that a number says. Any number will do: one that is no hint leads nowhere.
    pub fn from_bits(bits: u64) -> Hint {
        Hint(bits)
    }

    /// Number and slot, if they can be such.
    fn parts(self) -> Option<(u32, usize)> {
        let slot = (self.0 & ((1 << SLOT_BITS) - 1)) as usize;
        let number = u32::try_from(self.0 >> SLOT_BITS).ok()?;
        (slot < SLOTS).then_some((number, slot))
    }
}

impl Masstree {
    /// Lets the key whose word is `old` have `new`, if the hint leads to it: it stands in the node that the hint names, or in
    /// the next one, where a split takes half of a node. Says whether it did; if not, look for the key by
    /// [`replace`](Masstree::replace).
    ///
    /// Looks at two nodes at most, no inner ones, and no key. `old` has been the word of one key and of no other for as long as
    /// the caller is pinned, which makes it proof enough.
    ///
    /// # Panics
    /// If `new` is zero.
    pub fn replace_at(&self, _guard: &Guard<'_>, hint: Hint, old: u64, new: u64) -> bool {
        check_word(new);
        let Some((number, slot)) = hint.parts() else { return false };
        let Some(border) = self.nodes.find_border(number) else { return false };
        if replace_in(border, slot, old, new) {
            return true;
        }
        let next = self.nodes.find_border(border.next.load(Ordering::Relaxed));
        next.is_some_and(|next| replace_in(next, slot, old, new))
    }

    /// Asks for the lines that [`replace_at`](Masstree::replace_at) will need.
    #[inline]
    pub fn prefetch_at(&self, hint: Hint) {
        let Some((number, slot)) = hint.parts() else { return };
        if let Some(border) = self.nodes.find_border(number) {
            arch::prefetch_to_write(&raw const border.version);
            arch::prefetch_to_write(border.word_place(slot));
        }
    }

    /// Asks for what a lookup of the key will need, down to the lines of its border node, as far as they are in its first
    /// layer. Waits for the inner nodes above, which are in the cache if the index is in use. Tells which border node that is; keys of
    /// other layers do not stand there.
    pub fn prefetch(&self, key: &[u8]) -> Option<Hint> {
        let slice = super::key::Piece::at(key, 0).slice;
        let mut link = Link::from_bits(self.root.load(Ordering::Acquire));
        // Nothing is believed, so nothing is proved: at worst the lines are those of another node.
        for _ in 0..HEIGHT_TO_PREFETCH {
            if !link.is_inner() {
                break;
            }
            link = self.nodes.inner(link).child_of(slice);
            count_visited(1);
        }
        self.nodes.prefetch(link);
        (!link.is_inner()).then(|| Hint::new(link.number(), 0))
    }
}

/// Replaces the word in this node, if it is there.
fn replace_in(border: &Border, likely: usize, old: u64, new: u64) -> bool {
    // Most hints are right or hopeless; the lock is not taken for the hopeless ones.
    let Some(slot) = border.slot_of_word(likely, old) else { return false };
    if border.version.lock().is_none() {
        return false;
    }
    let slot = border.slot_of_word(slot, old);
    if let Some(slot) = slot {
        border.set_word(slot, new);
    }
    border.version.unlock();
    slot.is_some()
}
