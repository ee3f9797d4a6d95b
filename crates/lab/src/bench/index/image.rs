//! An index that is written down in one piece and loaded from that, as an open after a clean close does.

use quipu_parts::epoch::Guard;
use quipu_parts::index::{ImageSource, Imaged};

/// An index as bytes.
pub(super) struct Bytes {
    bytes: Vec<u8>,
    /// The highest word.
    words: u64,
}

impl Bytes {
    /// The bytes of an index whose words go up to this one.
    pub(super) fn of<I: Imaged>(index: &I, guard: &Guard<'_>, words: u64) -> Option<Bytes> {
        let image = index.image(guard)?;
        let mut bytes = Vec::with_capacity(image.len() as usize);
        image.write(&mut |piece| bytes.extend_from_slice(piece));
        Some(Bytes { bytes, words })
    }
}

impl ImageSource for Bytes {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn pieces(&self, from: u64, len: u64) -> impl Iterator<Item = &[u8]> {
        let end = from.saturating_add(len).min(ImageSource::len(self));
        self.bytes.get(from as usize..end as usize).into_iter()
    }

    fn is_word(&self, word: u64) -> bool {
        (1..=self.words).contains(&word)
    }

    fn all(&self, jobs: usize, job: impl Fn(usize) -> bool + Sync) -> bool {
        (0..jobs).all(job)
    }
}
