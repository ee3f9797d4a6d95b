//! Images: an index in DRAM as bytes and back, for a checkpoint. The contents of an image are the index's own
//! affair; it is there so that an open reads no record and looks for no key.
//!
//! A reader of an image believes nothing: of any bytes it makes a sound index whose words all satisfied
//! the source, or an error. That the bytes are those that were written is for the source to prove.

use super::seam::Index;
use crate::epoch::Guard;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// The bytes are no image of an index, or not of one that this release knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageError;

/// An index as it is being written down. Nobody changes it meanwhile.
pub struct Image<'a> {
    len: u64,
    write: Box<Write<'a>>,
}

/// Hands bytes to a sink, piece after piece.
type Write<'a> = dyn Fn(&mut dyn FnMut(&[u8])) + 'a;

impl<'a> Image<'a> {
    /// An image of `len` bytes, which `write` hands to a sink.
    pub fn new(len: u64, write: impl Fn(&mut dyn FnMut(&[u8])) + 'a) -> Image<'a> {
        Image { len, write: Box::new(write) }
    }

    /// Bytes of the image.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the image has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Hands the bytes to `sink`, piece after piece.
    pub fn write(&self, sink: &mut dyn FnMut(&[u8])) {
        (self.write)(sink);
    }
}

/// The bytes of an image, with a judge of its words.
pub trait ImageSource: Sync {
    /// Bytes of the image.
    fn len(&self) -> u64;

    /// Whether the image has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces that make up `len` bytes of it from `from` on; fewer if it ends before. Each begins at a
    /// multiple of 8 in the image, if `from` is one.
    fn pieces(&self, from: u64, len: u64) -> impl Iterator<Item = &[u8]>;

    /// Whether an index of this store may have a word.
    fn is_word(&self, word: u64) -> bool;

    /// Does the jobs `0..jobs`, perhaps several at a time; tells whether all said yes. A no may end the rest.
    fn all(&self, jobs: usize, job: impl Fn(usize) -> bool + Sync) -> bool;

    /// A range, copied.
    ///
    /// # Errors
    /// [`ImageError`] if the image ends before it does.
    fn copy(&self, from: u64, len: u64) -> Result<Vec<u8>, ImageError> {
        if from.checked_add(len).is_none_or(|end| end > self.len()) {
            return Err(ImageError);
        }
        Ok(self.pieces(from, len).collect::<Vec<_>>().concat())
    }
}

/// An index in DRAM that can be written as an image and made again of it.
pub trait Imaged: Index + Sized {
    /// The index as bytes. Nobody changes it while the image lives. `None` if it has met records that changed
    /// by themselves, so that the next open should look at them all.
    fn image<'a>(&'a self, guard: &'a Guard<'_>) -> Option<Image<'a>>;

    /// The index that an image was made of.
    ///
    /// # Errors
    /// [`ImageError`] if the bytes are none, or have a word that the source does not know.
    fn of_image(source: &impl ImageSource) -> Result<Self, ImageError>;
}

/// The bytes of an image, one after the other.
pub(super) struct Bytes<'b, I> {
    pieces: I,
    /// The rest of the present one.
    piece: &'b [u8],
}

impl<'b, I: Iterator<Item = &'b [u8]>> Bytes<'b, I> {
    /// The bytes of these pieces.
    pub(super) fn of(pieces: I) -> Self {
        Bytes { pieces, piece: &[] }
    }

    /// The next bytes, as many as there is room for.
    #[inline]
    pub(super) fn fill(&mut self, mut out: &mut [u8]) -> Result<(), ImageError> {
        while !out.is_empty() {
            if self.piece.is_empty() {
                self.piece = self.pieces.next().ok_or(ImageError)?;
            }
            let (now, later) = out.split_at_mut(out.len().min(self.piece.len()));
            let (taken, left) = self.piece.split_at(now.len());
            now.copy_from_slice(taken);
            (out, self.piece) = (later, left);
        }
        Ok(())
    }

    /// The next structure.
    #[inline]
    pub(super) fn read<T: FromBytes + FromZeros + IntoBytes>(&mut self) -> Result<T, ImageError> {
        let mut value = T::new_zeroed();
        self.fill(value.as_mut_bytes())?;
        Ok(value)
    }

    /// Whether there are no more.
    pub(super) fn are_over(&mut self) -> bool {
        self.piece.is_empty() && self.pieces.all(<[u8]>::is_empty)
    }
}
