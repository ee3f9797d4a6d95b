//! Shortcuts (ATC'22 section 3.1): where a word stands, noted when a writer is there anyway, so that a
//! cleaner need not look for it.

use super::border::{Border, Found};
use super::descend::{Leaf, count_visited};
use super::key::Piece;
use super::nodes::Link;
use super::permutation::SLOTS;
use super::tree::Masstree;
use crate::epoch::Guard;
use crate::index::hint::Hint;
use crate::sync::atomic::Ordering;
use quipu_medium::arch;

/// Inner nodes that a prefetch passes at most: more than any tree that fits a machine is high.
const HEIGHT_TO_PREFETCH: u32 = 16;

/// Number and slot of a hint, if they can be such.
fn parts(hint: Hint) -> Option<(u32, usize)> {
    let number = u32::try_from(hint.node()).ok()?;
    (hint.slot() < SLOTS).then_some((number, hint.slot()))
}

impl Masstree {
    /// Lets the key whose word is `old` have `new`, if the hint leads to it. It stands in the node of the
    /// hint, or in the next one, to which a split moves half of a node. Says whether it did; if not, the key
    /// has to be looked for.
    ///
    /// Looks at two nodes at most, no inner ones, and no key. `old` has been the word of one key and of no
    /// other for as long as the caller is pinned, which makes it proof enough.
    pub(super) fn replace_at(&self, hint: Hint, old: u64, new: u64) -> bool {
        let Some((number, slot)) = parts(hint) else { return false };
        let Some(border) = self.nodes.find_border(number) else { return false };
        if replace_in(border, slot, old, new) {
            return true;
        }
        let next = self.nodes.find_border(border.next.load(Ordering::Relaxed));
        next.is_some_and(|next| replace_in(next, slot, old, new))
    }

    /// Asks for the lines that [`replace_at`](Masstree::replace_at) will need.
    #[inline]
    pub(super) fn prefetch_at(&self, hint: Hint) {
        let Some((number, slot)) = parts(hint) else { return };
        if let Some(border) = self.nodes.find_border(number) {
            arch::prefetch_to_write(&raw const border.version);
            arch::prefetch_to_write(border.word_place(slot));
        }
    }

    /// Asks for the lines that a lookup of the key needs, down to those of its border node in the first
    /// layer. Waits for the inner nodes above, which are in the cache if the index is in use. Tells which
    /// border node that is; keys of other layers do not stand there.
    pub(super) fn prefetch_leaf(&self, key: &[u8]) -> Option<Hint> {
        let piece = Piece::at(key, 0);
        let mut link = Link::from_bits(self.root.load(Ordering::Acquire));
        // Nothing is believed, so nothing is proved: at worst the lines are those of another node.
        for _ in 0..HEIGHT_TO_PREFETCH {
            if !link.is_inner() {
                break;
            }
            link = self.nodes.inner(link).child_of(piece.slice);
            count_visited(1);
        }
        self.nodes.prefetch_for((link, self.nodes.get(link)), &piece);
        (!link.is_inner()).then(|| Hint::new(link.number().into(), 0))
    }
}

/// A key by a hint to its node, in place of the way down.
///
/// A hint proves nothing: the node may be for other keys by now, or of another layer. It is the key's if it
/// is live, of the first layer, and [spans](Border::spans) the key's slice there.
impl Masstree {
    /// The word of a key, looked for where a hint leads to at first.
    #[inline]
    pub(super) fn word_near(&self, guard: &Guard<'_>, key: &[u8], near: Option<u64>) -> Option<u64> {
        if let Some((number, border)) = self.border_near(near) {
            let seen = border.version.stable();
            if seen.is_live()
                && seen.is_in_first_layer()
                && let shorts = self.nodes.shorts(number)
                && let Found::Word { word, .. } = border.search(shorts, guard, &Piece::at(key, 0))
                && !border.version.has_changed(seen)
            {
                return Some(word);
            }
        }
        self.word_of(guard, key)
    }

    /// The border node of a key, locked, and the result of the search there, as [`lock`](Masstree::lock)
    /// gives it.
    #[inline]
    pub(super) fn lock_near(&self, guard: &Guard<'_>, key: &[u8], near: Option<u64>) -> (Leaf, &Border) {
        if let Some((number, border)) = self.border_near(near)
            && let Some(seen) = border.version.lock()
        {
            let piece = Piece::at(key, 0);
            let found = border.search(self.nodes.shorts(number), guard, &piece);
            let is_own = match found {
                Found::Word { .. } | Found::Other { .. } => true,
                Found::Nothing => border.spans(piece.slice),
                Found::Layer { .. } => false,
            };
            if is_own && seen.is_in_first_layer() {
                return (Leaf { number, seen, offset: 0, found }, border);
            }
            border.version.unlock();
        }
        self.lock(guard, key)
    }

    #[inline]
    fn border_near(&self, near: Option<u64>) -> Option<(u32, &Border)> {
        let (number, _) = parts(Hint::from_bits(near?))?;
        Some((number, self.nodes.find_border(number)?))
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
