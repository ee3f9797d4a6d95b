//! The whole index as bytes and back, for a checkpoint: an image of its structure, so that loading copies
//! segments and hashes no key.
//!
//! `docs/FORMAT.md` draws the image. The place of a segment in the space of hashes follows from the depths of
//! those before it, and counts of keys come from the slots. A loader believes nothing: of any bytes it makes
//! an index whose references all satisfied the source, or nothing. Slots in the wrong bucket only hide their
//! keys.

use super::probe::{Bucket, SLOTS};
use super::settings::BUCKET_BITS_MAX;
use super::slab::Slabs;
use super::slot::{EMPTY, REFERENCE_MASK, reference_of};
use super::split::WINDOW_LAG;
use super::table::HashIndex;
use crate::epoch::Guard;
use crate::index::directory::{EntryWord, deepest, following, prefix};
use crate::index::{Image, ImageError, ImageSource, Imaged};
use crate::table;
use crate::table::Table;
use std::sync::OnceLock;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Version of the image that this release writes, and the only one that it loads.
const VERSION: u32 = 2;
/// Bytes of a slot.
const SLOT: usize = size_of::<u64>();

/// The beginning of an image.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ImageShape {
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
    /// The shape at the beginning of an image.
    fn read(source: &impl ImageSource) -> Result<ImageShape, ImageError> {
        let bytes = source.copy(0, size_of::<ImageShape>() as u64)?;
        let shape = ImageShape::read_from_bytes(&bytes).map_err(|_| ImageError)?;
        let known = shape.version == VERSION && shape.reserved == [0; 8];
        let sound = known && (1..=BUCKET_BITS_MAX).contains(&shape.bucket_bits.get()) && shape.segments != 0;
        let countable = shape.segments.get().max(shape.overflow.get()) < 1 << 40;
        (sound && countable && shape.len() == source.len()).then_some(shape).ok_or(ImageError)
    }

    /// Bytes of this shape and of the descriptions of the segments.
    fn head_len(&self) -> u64 {
        let segments = self.segments.get() * size_of::<SegmentImage>() as u64;
        size_of::<ImageShape>() as u64 + segments + self.overflow.get() * size_of::<OverflowImage>() as u64
    }

    /// Bytes of the slots of one segment.
    fn segment_len(&self) -> u64 {
        (size_of::<Bucket>() as u64) << self.bucket_bits.get()
    }

    /// Bytes of the image.
    fn len(&self) -> u64 {
        self.head_len() + self.segments.get() * self.segment_len()
    }
}

impl Imaged for HashIndex {
    fn image<'a>(&'a self, _guard: &'a Guard<'_>) -> Option<Image<'a>> {
        if self.stats().strays > 0 {
            return None;
        }
        let (mut entries, mut segments, mut overflow) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = Some(0);
        while let Some(start) = next {
            let (entry, state) = self.lock(start);
            entries.push(entry);
            let in_chain = self.slabs.meta(entry).overflowing();
            overflow.extend(
                in_chain.map(|(hash, reference)| OverflowImage {
                    hash: hash.into(),
                    reference: reference.into(),
                }),
            );
            segments.push(SegmentImage {
                depth: state.depth as u8,
                base: entry.number() as u8,
                reserved: 0.into(),
                overflowing: state.overflowing.into(),
            });
            next = following(start, state.depth);
        }
        let shape = ImageShape {
            version: VERSION.into(),
            bucket_bits: (self.slabs.bucket_mask() + 1).ilog2().into(),
            segments: (segments.len() as u64).into(),
            overflow: (overflow.len() as u64).into(),
            reserved: [0; 8],
        };
        Some(Image::new(shape.len(), move |sink| {
            [shape.as_bytes(), segments.as_bytes(), overflow.as_bytes()].into_iter().for_each(&mut *sink);
            let mut bytes = Vec::with_capacity(shape.segment_len() as usize);
            for entry in &entries {
                bytes.clear();
                for bucket in self.slabs.segment(*entry).buckets {
                    (0..SLOTS).for_each(|slot| bytes.extend_from_slice(&bucket.load(slot).to_le_bytes()));
                }
                sink(&bytes);
            }
        }))
    }

    fn of_image(source: &impl ImageSource) -> Result<HashIndex, ImageError> {
        let shape = ImageShape::read(source)?;
        let parts = parts_of(source, &shape)?;
        let slabs = Slabs::new(shape.bucket_bits.get());
        let fill = |number: usize| {
            let at = shape.head_len() + number as u64 * shape.segment_len();
            parts[number].fill(&slabs, source, at, shape.segment_len())
        };
        if !source.all(parts.len(), fill) {
            return Err(ImageError);
        }
        let entry = |part: &Part| part.entry.get().map(|entry| (*entry, part.depth));
        let segments: Option<Vec<_>> = parts.iter().map(entry).collect();
        Ok(HashIndex::of(slabs, &segments.ok_or(ImageError)?))
    }
}

/// A segment that is being loaded.
struct Part {
    depth: u32,
    base: u32,
    overflow: Vec<(u64, u64)>,
    /// The directory entry, once the segment is filled.
    entry: OnceLock<EntryWord>,
}

/// The segments that the head of an image describes.
fn parts_of(source: &impl ImageSource, shape: &ImageShape) -> Result<Vec<Part>, ImageError> {
    let (segments, overflow) = (shape.segments.get() as usize, shape.overflow.get() as usize);
    let described = size_of::<ImageShape>() as u64;
    let head = source.copy(described, shape.head_len() - described)?;
    let (segments, rest) =
        <[SegmentImage]>::ref_from_prefix_with_elems(&head, segments).map_err(|_| ImageError)?;
    let overflow = <[OverflowImage]>::ref_from_bytes_with_elems(rest, overflow).map_err(|_| ImageError)?;
    let mut overflow = overflow.iter().map(|entry| (entry.hash.get(), entry.reference.get()));
    let mut parts = Vec::with_capacity(segments.len());
    let mut next = Some(0);
    for segment in segments {
        let start = next.ok_or(ImageError)?;
        let (depth, base) = (u32::from(segment.depth), u32::from(segment.base));
        let window = base <= depth && depth - base <= WINDOW_LAG;
        let aligned = |depth| start == prefix(start, depth) << 1 << (63 - depth);
        if depth > deepest(shape.segments.get()) || !window || segment.reserved != 0 || !aligned(depth) {
            return Err(ImageError);
        }
        let own: Vec<_> = overflow.by_ref().take(segment.overflowing.get() as usize).collect();
        let belongs = |(hash, reference): &(u64, u64)| {
            prefix(*hash, depth) == prefix(start, depth) && is_reference(source, *reference)
        };
        if own.len() != segment.overflowing.get() as usize || !own.iter().all(belongs) {
            return Err(ImageError);
        }
        parts.push(Part { depth, base, overflow: own, entry: OnceLock::new() });
        next = following(start, depth);
    }
    let is_whole = next.is_none() && overflow.next().is_none();
    if is_whole { Ok(parts) } else { Err(ImageError) }
}

impl Part {
    /// Fills the segment with the slots that stand at this place of the image; says whether they are sound.
    fn fill(&self, slabs: &Slabs, source: &impl ImageSource, at: u64, len: u64) -> bool {
        let (mut read, mut keys, mut sound) = (0, 0, true);
        let slots = source.pieces(at, len).flat_map(|piece| piece.chunks_exact(SLOT));
        let words = slots.map(|slot| {
            let word = u64::from_le_bytes(slot.try_into().unwrap_or_default());
            read += 1;
            if word == EMPTY {
                return EMPTY;
            }
            // A tag without a reference would take up a slot for good.
            let named = is_reference(source, reference_of(word));
            sound &= named;
            keys += u32::from(named);
            if named { word } else { EMPTY }
        });
        let entry = slabs.allocate_filled(self.depth, self.base, words);
        let meta = slabs.segment(entry).meta;
        self.overflow.iter().for_each(|(hash, reference)| meta.push_overflow(*hash, *reference));
        meta.set_keys(keys + self.overflow.len() as u32);
        meta.state.lock().overflowing = self.overflow.len() as u32;
        sound && read * SLOT as u64 == len && self.entry.set(entry).is_ok()
    }
}

/// Whether an index of this store may have this reference.
fn is_reference(source: &impl ImageSource, reference: u64) -> bool {
    reference != 0 && reference <= REFERENCE_MASK && source.is_word(reference)
}

/// The image's structures with their fields, for the check of `docs/FORMAT.md` against the code.
pub fn image_tables() -> Vec<Table> {
    vec![
        table!(ImageShape: version, bucket_bits, segments, overflow, reserved),
        table!(SegmentImage: depth, base, reserved, overflowing),
        table!(OverflowImage: hash, reference),
    ]
}
