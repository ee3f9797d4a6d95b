//! Adding keys.

use super::border::{Entry, Found};
use super::descend::Leaf;
use super::key::Piece;
use super::tree::Masstree;
use crate::epoch::Guard;
use crate::index::IndexError;

impl Masstree {
    /// Adds a key that is absent, at its locked border node, which is then unlocked.
    pub(super) fn add(
        &self,
        guard: &Guard<'_>,
        leaf: Leaf,
        piece: &Piece<'_>,
        word: u64,
    ) -> Result<(), IndexError> {
        let border = self.nodes.border(leaf.number);
        let is_full = border.permutation().is_full();
        let other = match leaf.found {
            Found::Other { slot } => Some(slot),
            _ => None,
        };
        if (is_full || other.is_some()) && !self.nodes.has_room() {
            border.version.unlock();
            return Err(IndexError::OutOfNumbers);
        }
        self.count.add(leaf.number.into(), 1);
        let entry = Entry::of(piece, word);
        if let Some(slot) = other {
            self.add_layer(guard, leaf.number, slot, piece, word);
        } else if is_full {
            self.split(guard, leaf.number, &entry);
        } else {
            let replaced = border.insert(&self.nodes, leaf.number, guard, &entry);
            border.version.unlock();
            self.nodes.retire_suffixes(guard, replaced);
        }
        Ok(())
    }
}
