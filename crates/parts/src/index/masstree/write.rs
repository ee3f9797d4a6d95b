//! Adding keys and changing words.

use super::border::{Entry, Found};
use super::descend::Leaf;
use super::hint::Hint;
use super::key::Piece;
use super::tree::{Masstree, MasstreeError, check_word};
use crate::epoch::Guard;

/// What [`Masstree::upsert`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upserted {
    /// The word that the key had.
    pub old: Option<u64>,
    /// Where its word stands now.
    pub hint: Hint,
}

impl Masstree {
    /// Lets a key have a word, in place of the one that it has or as a new key.
    ///
    /// # Errors
    /// [`MasstreeError::KeyTooLong`] or [`MasstreeError::Full`]; nothing is changed then.
    ///
    /// # Panics
    /// If the word is zero.
    #[inline]
    pub fn upsert(&self, guard: &Guard<'_>, key: &[u8], word: u64) -> Result<Upserted, MasstreeError> {
        check_word(word);
        if key.len() > Masstree::MAX_KEY {
            return Err(MasstreeError::KeyTooLong { len: key.len() });
        }
        let (leaf, border) = self.lock(guard, key);
        if let Found::Word { slot, word: old } = leaf.found {
            border.set_word(slot, word);
            border.version.unlock();
            return Ok(Upserted { old: Some(old), hint: Hint::new(leaf.number, slot) });
        }
        let hint = self.add(guard, leaf, &Piece::at(key, leaf.offset), word)?;
        self.count(leaf.number, 1);
        Ok(Upserted { old: None, hint })
    }

    /// Adds a key that is absent, at its locked border node, which is then unlocked.
    fn add(
        &self,
        guard: &Guard<'_>,
        leaf: Leaf,
        piece: &Piece<'_>,
        word: u64,
    ) -> Result<Hint, MasstreeError> {
        let border = self.nodes.border(leaf.number);
        let is_full = border.permutation().is_full();
        let other = match leaf.found {
            Found::Other { slot } => Some(slot),
            _ => None,
        };
        if (is_full || other.is_some()) && !self.nodes.has_room() {
            border.version.unlock();
            return Err(MasstreeError::Full);
        }
        if let Some(slot) = other {
            return Ok(self.add_layer(guard, border, slot, piece, word));
        }
        let entry = Entry::of(piece, word);
        if is_full {
            return Ok(self.split(guard, leaf.number, &entry));
        }
        let (slot, replaced) = border.insert(&self.nodes, guard, &entry);
        border.version.unlock();
        self.nodes.retire_suffixes(guard, replaced);
        Ok(Hint::new(leaf.number, slot))
    }

    /// Lets a key have the word `new` if it still has `old`; says whether it did.
    ///
    /// # Panics
    /// If `new` is zero.
    pub fn replace(&self, guard: &Guard<'_>, key: &[u8], old: u64, new: u64) -> bool {
        check_word(new);
        let (leaf, border) = self.lock(guard, key);
        let slot = match leaf.found {
            Found::Word { slot, word } if word == old => Some(slot),
            _ => None,
        };
        if let Some(slot) = slot {
            border.set_word(slot, new);
        }
        border.version.unlock();
        slot.is_some()
    }
}
