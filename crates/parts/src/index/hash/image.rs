//! The whole index as bytes and back, for a checkpoint: an image of its structure, so that loading copies segments and
//! hashes no key.
//!
//! ```text
//! head     ImageShape (32 bytes) | SegmentImage (8 bytes) for each segment, in the order of their hashes
//!          | overflow entries, each hash (8 bytes) and reference (8 bytes), in the order of their segments
//! slots    the slots of each segment, 8 bytes each, in the same order
//! ```
//!
//! All integers are little-endian. Where a segment begins in the space of hashes follows from the depths of those before
//! it. Counts of keys are not in the image; they come from the slots.
//!
//! A loader believes nothing: whatever the bytes are, what comes out is an index whose references all satisfied the
//! caller, or nothing. Slots in the wrong bucket only hide their keys.

use super::probe::{Bucket, SLOTS};
use super::segment::EntryWord;
use super::settings::BUCKET_BITS_MAX;
use super::slab::Slabs;
use super::slot::{EMPTY, REFERENCE_MASK, reference_of};
use super::split::WINDOW_LAG;
use super::table::HashIndex;
use crate::epoch::Guard;
use crate::index::directory::{Directory, deepest, following, prefix};
use crate::index::{Image, ImageError, ImageSource, Imaged};
use crate::table;
use crate::table::Table;
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Version of the image that this release writes, and the only one that it loads.
const VERSION: u32 = 1;
/// Bytes of a slot.
const SLOT: usize = size_of::<u64>();

/// What an image begins with.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ImageShape {
    version: U32,
    bucket_bits: U32,
    segments: U64,
    overflow: U64,
    reserved: [u8; 8],
}

/// One segment in the head.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SegmentImage {
    depth: u8,
    base: u8,
    reserved: U16,
    overflowing: U32,
}

/// A key of an overflow chain.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct OverflowImage {
    hash: U64,
    reference: U64,
}

impl ImageShape {
    /// Bytes of a shape.
    pub const LEN: usize = size_of::<ImageShape>();

    /// Reads the shape at the beginning of an image.
    ///
    /// # Errors
    /// [`ImageError`] if it is none, or of another version.
    pub fn read(bytes: &[u8]) -> Result<ImageShape, ImageError> {
        let (shape, _) = ImageShape::read_from_prefix(bytes).map_err(|_| ImageError)?;
        let known = shape.version == VERSION && shape.reserved == [0; 8];
        let bits = shape.bucket_bits.get();
        let countable = shape.segments.get().max(shape.overflow.get()) < 1 << 40;
        let sound = known && (1..=BUCKET_BITS_MAX).contains(&bits) && shape.segments != 0 && countable;
        sound.then_some(shape).ok_or(ImageError)
    }

    /// Bytes of the head, this shape included.
    pub fn head_len(&self) -> u64 {
        let segments = self.segments.get() * size_of::<SegmentImage>() as u64;
        ImageShape::LEN as u64 + segments + self.overflow.get() * size_of::<OverflowImage>() as u64
    }

    /// Bytes of the slots of one segment.
    pub fn segment_len(&self) -> u64 {
        (size_of::<Bucket>() as u64) << self.bucket_bits.get()
    }

    /// Segments of the index.
    pub fn segments(&self) -> u64 {
        self.segments.get()
    }

    /// Bytes of the image.
    pub fn len(&self) -> u64 {
        self.head_len() + self.segments() * self.segment_len()
    }

    /// Whether the image has no bytes: never.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// An index as it is being saved. Nobody changes it meanwhile.
pub struct HashImage<'a> {
    index: &'a HashIndex,
    entries: Vec<EntryWord>,
    shape: ImageShape,
    head: Vec<u8>,
}

impl HashIndex {
    /// The index as bytes. Nobody may change it while the image lives; else the image is not of any one moment.
    pub fn image(&self) -> HashImage<'_> {
        let (mut entries, mut segments, mut overflow) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = 0;
        loop {
            let (entry, state) = self.lock(next);
            entries.push(entry);
            let in_chain = overflow.len();
            overflow.extend(self.slabs.meta(entry).overflow_entries().filter_map(|entry| {
                entry
                    .load()
                    .map(|(hash, reference)| OverflowImage { hash: hash.into(), reference: reference.into() })
            }));
            segments.push(SegmentImage {
                depth: state.depth as u8,
                base: entry.base() as u8,
                reserved: 0.into(),
                overflowing: ((overflow.len() - in_chain) as u32).into(),
            });
            next = match following(next, state.depth) {
                Some(next) => next,
                None => break,
            };
        }
        let shape = ImageShape {
            version: VERSION.into(),
            bucket_bits: (self.slabs.bucket_mask() + 1).ilog2().into(),
            segments: (entries.len() as u64).into(),
            overflow: (overflow.len() as u64).into(),
            reserved: [0; 8],
        };
        let head = [shape.as_bytes(), segments.as_bytes(), overflow.as_bytes()].concat();
        HashImage { index: self, entries, shape, head }
    }
}

impl HashImage<'_> {
    /// What the image begins with.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Hands the bytes of the image to `sink`, piece after piece.
    pub fn write(&self, sink: &mut dyn FnMut(&[u8])) {
        sink(&self.head);
        let mut bytes = Vec::with_capacity(self.shape.segment_len() as usize);
        for &entry in &self.entries {
            bytes.clear();
            for bucket in self.index.slabs.segment(entry).buckets {
                (0..SLOTS).for_each(|slot| bytes.extend_from_slice(&bucket.load(slot).to_le_bytes()));
            }
            sink(&bytes);
        }
    }
}

/// Makes an index of an image. Segments can be filled by several threads at once.
pub struct Loader {
    shape: ImageShape,
    slabs: Slabs,
    parts: Vec<Part>,
    depth: u32,
}

/// A segment that is being loaded.
struct Part {
    depth: u32,
    base: u32,
    overflow: Vec<(u64, u64)>,
    /// The directory entry, once the segment is filled; 0 until then.
    entry: AtomicU64,
}

impl Loader {
    /// Begins with the head of an image.
    ///
    /// # Errors
    /// [`ImageError`] if it describes no index, or `is_reference` says no to a reference.
    pub fn new(head: &[u8], is_reference: impl Fn(u64) -> bool) -> Result<Loader, ImageError> {
        let shape = ImageShape::read(head)?;
        if head.len() as u64 != shape.head_len() {
            return Err(ImageError);
        }
        let (segments, overflow) =
            head[ImageShape::LEN..].split_at(shape.segments() as usize * size_of::<SegmentImage>());
        let segments = <[SegmentImage]>::ref_from_bytes(segments).map_err(|_| ImageError)?;
        let overflow = <[OverflowImage]>::ref_from_bytes(overflow).map_err(|_| ImageError)?;
        let mut overflow = overflow.iter().map(|entry| (entry.hash.get(), entry.reference.get()));
        let mut parts = Vec::with_capacity(segments.len());
        let mut next = Some(0);
        for segment in segments {
            let start = next.ok_or(ImageError)?;
            let (depth, base) = (u32::from(segment.depth), u32::from(segment.base));
            let window = base <= depth && depth - base <= WINDOW_LAG;
            let aligned = |depth| start == prefix(start, depth) << 1 << (63 - depth);
            if depth > deepest(shape.segments()) || !window || segment.reserved != 0 || !aligned(depth) {
                return Err(ImageError);
            }
            let own: Vec<_> = overflow.by_ref().take(segment.overflowing.get() as usize).collect();
            let belongs = |&(hash, reference): &(u64, u64)| {
                prefix(hash, depth) == prefix(start, depth) && is_word(reference) && is_reference(reference)
            };
            if own.len() != segment.overflowing.get() as usize || !own.iter().all(belongs) {
                return Err(ImageError);
            }
            parts.push(Part { depth, base, overflow: own, entry: AtomicU64::new(0) });
            next = following(start, depth);
        }
        if next.is_some() || overflow.next().is_some() {
            return Err(ImageError);
        }
        let depth = parts.iter().map(|part| part.depth).max().unwrap_or_default();
        Ok(Loader { slabs: Slabs::new(shape.bucket_bits.get()), shape, parts, depth })
    }

    /// What the image begins with.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Fills a segment, once, with the slots that stand in these pieces, each of a multiple of 8 bytes.
    ///
    /// # Errors
    /// [`ImageError`] if the pieces are not as long as a segment, or `is_reference` says no to a reference.
    pub fn fill<'p>(
        &self,
        number: usize,
        pieces: impl Iterator<Item = &'p [u8]>,
        is_reference: impl Fn(u64) -> bool,
    ) -> Result<(), ImageError> {
        let part = self.parts.get(number).ok_or(ImageError)?;
        let (mut read, mut keys, mut sound) = (0, 0, true);
        let words = pieces.flat_map(|piece| piece.chunks_exact(SLOT)).map(|slot| {
            let word = u64::from_le_bytes(slot.try_into().unwrap_or_default());
            read += 1;
            if word == EMPTY {
                return EMPTY;
            }
            // A tag without a reference would take up a slot for good.
            let named = is_word(reference_of(word)) && is_reference(reference_of(word));
            sound &= named;
            keys += u32::from(named);
            if named { word } else { EMPTY }
        });
        let entry = self.slabs.allocate_filled(part.depth, part.base, words);
        let segment = self.slabs.segment(entry);
        part.overflow.iter().for_each(|(hash, reference)| segment.meta.push_overflow(*hash, *reference));
        segment.meta.set_keys(keys + part.overflow.len() as u32);
        segment.meta.state.lock().overflowing = part.overflow.len() as u32;
        let whole = read as u64 * SLOT as u64 == self.shape.segment_len();
        let first = part.entry.swap(entry.0, Ordering::AcqRel) == 0;
        if sound && whole && first { Ok(()) } else { Err(ImageError) }
    }

    /// The index, once all segments have been filled.
    ///
    /// # Errors
    /// [`ImageError`] if one was not.
    pub fn finish(self) -> Result<HashIndex, ImageError> {
        let Loader { slabs, parts, depth, .. } = self;
        let mut entries = Vec::with_capacity(1 << depth);
        for part in &parts {
            let entry = EntryWord(part.entry.load(Ordering::Acquire));
            if entry.0 == 0 {
                return Err(ImageError);
            }
            entries.resize(entries.len() + (1 << (depth - part.depth)), entry);
        }
        // A line of the directory may have room for more entries than there are; no hash leads to those.
        let directory = Directory::new(depth, |i| entries[i % entries.len()]);
        Ok(HashIndex::of(directory, slabs, parts.len() as u64))
    }
}

impl Imaged for HashIndex {
    fn image<'a>(&'a self, _guard: &'a Guard<'_>) -> Option<Image<'a>> {
        if self.stats().strays > 0 {
            return None;
        }
        let image = self.image();
        Some(Image::new(image.shape().len(), move |sink| image.write(sink)))
    }

    fn of_image(source: &impl ImageSource) -> Result<HashIndex, ImageError> {
        let shape = ImageShape::read(&source.copy(0, ImageShape::LEN as u64)?)?;
        if shape.len() != source.len() {
            return Err(ImageError);
        }
        let loader = Loader::new(&source.copy(0, shape.head_len())?, |word| source.is_word(word))?;
        let fill = |number: usize| {
            let at = shape.head_len() + number as u64 * shape.segment_len();
            let pieces = source.pieces(at, shape.segment_len());
            loader.fill(number, pieces, |word| source.is_word(word)).is_ok()
        };
        if !source.all(shape.segments() as usize, fill) {
            return Err(ImageError);
        }
        loader.finish()
    }
}

/// Whether this can be a reference at all.
fn is_word(reference: u64) -> bool {
    reference != 0 && reference <= REFERENCE_MASK
}

/// The image's structures with their fields, for the check of `docs/FORMAT.md` against the code.
pub fn image_tables() -> Vec<Table> {
    vec![
        table!(ImageShape: version, bucket_bits, segments, overflow, reserved),
        table!(SegmentImage: depth, base, reserved, overflowing),
        table!(OverflowImage: hash, reference),
    ]
}
