//! [`Image`]: one state that a crash may leave, as a difference to the words that are certainly durable.

use super::page::word_hash;
use super::snapshot::Snapshot;
use crate::region::WORD;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A crash image of one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Words that differ from the snapshot's durable image, with their values, ascending.
    changes: Vec<(u64, u64)>,
    hash: u64,
}

/// A word in which an image differs from the one where everything arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where the word is.
    pub offset: u64,
    /// The value in this image.
    pub holds: u64,
    /// The value had everything arrived.
    pub expected: u64,
}

impl Image {
    pub(super) fn new(snapshot: &Snapshot, changes: Vec<(u64, u64)>) -> Image {
        let hash = changes.iter().fold(snapshot.durable.hash, |hash, (word, value)| {
            hash ^ word_hash(*word, snapshot.durable.get(*word)) ^ word_hash(*word, *value)
        });
        Image { changes, hash }
    }

    /// Words that differ from the snapshot's durable image: index (offset divided by 8) and value, ascending.
    pub fn changes(&self) -> &[(u64, u64)] {
        &self.changes
    }

    /// Hash of the whole content. Equal images of different crash points have equal hashes.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The word of this image at an aligned offset.
    pub fn word(&self, snapshot: &Snapshot, offset: u64) -> u64 {
        let word = offset / WORD;
        match self.changes.binary_search_by_key(&word, |(word, _)| *word) {
            Ok(index) => self.changes[index].1,
            Err(_) => snapshot.durable.get(word),
        }
    }

    /// Where this image differs from the one in which everything arrived.
    pub fn differences(&self, snapshot: &Snapshot) -> Vec<Difference> {
        let everything = snapshot.everything();
        let mut words = BTreeMap::new();
        for (word, _) in self.changes.iter().chain(&everything.changes) {
            let offset = word * WORD;
            words.insert(offset, (self.word(snapshot, offset), everything.word(snapshot, offset)));
        }
        words
            .into_iter()
            .filter(|(_, (holds, expected))| holds != expected)
            .map(|(offset, (holds, expected))| Difference { offset, holds, expected })
            .collect()
    }

    /// The differences in words, for a report of a violation.
    pub fn describe(&self, snapshot: &Snapshot) -> String {
        const SHOWN: usize = 16;
        let differences = self.differences(snapshot);
        if differences.is_empty() {
            return "everything had arrived".to_owned();
        }
        let mut text = format!("{} words had not arrived as written:", differences.len());
        for Difference { offset, holds, expected } in differences.iter().take(SHOWN) {
            let _ = write!(text, "\n  at {offset:#x}: {holds:#018x} in place of {expected:#018x}");
        }
        if differences.len() > SHOWN {
            let _ = write!(text, "\n  and {} more", differences.len() - SHOWN);
        }
        text
    }
}
