//! Images of indexes, as bytes and back.

use quipu_parts::epoch::Collector;
use quipu_parts::index::{ImageSource, Imaged};

/// An image in pieces of so many bytes, each a multiple of eight but the last.
pub struct InPieces<'b, F> {
    pub bytes: &'b [u8],
    pub piece: usize,
    /// Whether a word may be one of the index.
    pub is_word: F,
}

impl<F: Fn(u64) -> bool + Sync> ImageSource for InPieces<'_, F> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn pieces(&self, from: u64, len: u64) -> impl Iterator<Item = &[u8]> {
        self.bytes[from as usize..][..len as usize].chunks(self.piece)
    }

    fn is_word(&self, word: u64) -> bool {
        (self.is_word)(word)
    }

    fn all(&self, jobs: usize, job: impl Fn(usize) -> bool + Sync) -> bool {
        (0..jobs).rev().all(job)
    }
}

/// An index as bytes.
pub fn bytes_of(index: &impl Imaged) -> Vec<u8> {
    let participant = Collector::new().register();
    let guard = participant.pin();
    let image = index.image(&guard).expect("it knows of no damage");
    let mut bytes = Vec::new();
    image.write(&mut |piece| bytes.extend_from_slice(piece));
    assert_eq!(bytes.len() as u64, image.len());
    bytes
}
