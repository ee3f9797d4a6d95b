//! The whole index as bytes and back, for a checkpoint: its slots in order, so that loading needs no search.
//!
//! `docs/FORMAT.md` draws the image. Nodes are not in it and follow from the slots.

use super::key::{SLICE, Step, Target, of_layer, target};
use super::layer::Layer;
use super::leaf::Entry;
use super::walk::Alex;
use crate::epoch::Guard;
use crate::index::image::Bytes;
use crate::index::{Image, ImageError, ImageSource, Imaged};
use crate::sync::atomic::Ordering;
use crate::table;
use crate::table::Table;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// No image of another kind of index begins so.
const MAGIC: [u8; 4] = *b"ALEX";
/// Version of the image that this release writes, and the only one that it loads.
const VERSION: u32 = 1;
/// Slots that are copied at a time.
const AT_ONCE: usize = 256;
/// In the word of a layer, its slots are in the bits below this one, and its ends above.
const ENDS_SHIFT: u32 = 48;

/// The beginning of an image.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct LearnedShape {
    magic: [u8; 4],
    version: U32,
    keys: U64,
    slots: U64,
    reserved: [u8; 8],
}

/// A slot.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct LearnedSlot {
    slice: U64,
    word: U64,
}

const _: () = assert!(size_of::<LearnedShape>() == 32 && size_of::<LearnedSlot>() == 16);

impl Alex {
    /// Tells each slot of the image: those of the root, and behind the one of a layer those of that.
    fn each_slot(&self, guard: &Guard<'_>, mut each: impl FnMut(bool, u64, u64)) {
        let (mut from, mut slots) = (None, Vec::with_capacity(AT_ONCE));
        let mut layers: Vec<std::vec::IntoIter<(Step, u64)>> = Vec::new();
        loop {
            slots.clear();
            self.tree.copy::<false>(guard, from, AT_ONCE, &mut slots);
            let Some((Step::Slice(last), _)) = slots.last() else { return };
            from = Some((*last, false));
            for slot in &slots {
                let mut next = Some(*slot);
                while let Some((step, word)) = next {
                    let is_root = layers.is_empty();
                    let slice = match step {
                        Step::Slice(slice) => slice,
                        Step::End(len) => len.into(),
                    };
                    match target(word) {
                        Target::Layer(address) if matches!(step, Step::Slice(_)) => {
                            let below = {
                                // SAFETY: the word was found in this index under the guard.
                                let layer = unsafe { Layer::at(guard, address) };
                                layer.all(guard)
                            };
                            let is_end = |(step, _): &&(Step, u64)| matches!(step, Step::End(_));
                            let ends = below.iter().take_while(is_end).count() as u64;
                            each(is_root, slice, of_layer(below.len() as u64 | ends << ENDS_SHIFT));
                            layers.push(below.into_iter());
                        }
                        _ => each(is_root, slice, word),
                    }
                    next = loop {
                        let Some(layer) = layers.last_mut() else { break None };
                        match layer.next() {
                            None => _ = layers.pop(),
                            next => break next,
                        }
                    };
                }
            }
        }
    }
}

impl Imaged for Alex {
    fn image<'a>(&'a self, guard: &'a Guard<'_>) -> Option<Image<'a>> {
        if self.size.strays.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let (mut keys, mut slots, mut all) = (0u64, 0u64, 0u64);
        self.each_slot(guard, |is_root, _, word| {
            keys += u64::from(!matches!(target(word), Target::Layer(_)));
            slots += u64::from(is_root);
            all += 1;
        });
        let shape = LearnedShape {
            magic: MAGIC,
            version: VERSION.into(),
            keys: keys.into(),
            slots: slots.into(),
            reserved: [0; 8],
        };
        let len = size_of::<LearnedShape>() as u64 + all * size_of::<LearnedSlot>() as u64;
        Some(Image::new(len, move |sink| {
            sink(shape.as_bytes());
            self.each_slot(guard, |_, slice, word| {
                sink(LearnedSlot { slice: slice.into(), word: word.into() }.as_bytes());
            });
        }))
    }

    fn of_image(source: &impl ImageSource) -> Result<Alex, ImageError> {
        let mut bytes = Bytes::of(source.pieces(0, source.len()));
        let shape: LearnedShape = bytes.read()?;
        if shape.magic != MAGIC || shape.version != VERSION || shape.reserved != [0; 8] {
            return Err(ImageError);
        }
        let (size, mut keys) = (Alex::size(), 0u64);
        let mut levels = vec![Level { slice: 0, left: shape.slots.get(), ends: 0, steps: Vec::new() }];
        let root = loop {
            let level = levels.last_mut().ok_or(ImageError)?;
            if level.left == 0 {
                let mut done = levels.pop().ok_or(ImageError)?;
                let Some(above) = levels.last_mut() else { break done };
                // A layer without keys would never go.
                if !done.steps.is_empty() {
                    let layer = Layer::of(std::mem::take(&mut done.steps), &size).into_word();
                    above.steps.push((Step::Slice(done.slice), layer));
                }
                continue;
            }
            let slot: LearnedSlot = bytes.read()?;
            let (slice, word) = (slot.slice.get(), slot.word.get());
            let step = level.take(slice)?;
            match (target(word), step) {
                (Target::Layer(shape), Step::Slice(_)) if word >= of_layer(0) => {
                    let (left, ends) = (shape & ((1 << ENDS_SHIFT) - 1), shape >> ENDS_SHIFT);
                    if ends > left.min(SLICE as u64 + 1) {
                        return Err(ImageError);
                    }
                    levels.push(Level { slice, left, ends, steps: Vec::new() });
                }
                (Target::Exact(own), _) | (Target::Long(own), Step::Slice(_))
                    if own != 0 && source.is_word(own) =>
                {
                    keys += 1;
                    level.steps.push((step, word));
                }
                _ => return Err(ImageError),
            }
        };
        if !bytes.are_over() || keys != shape.keys.get() {
            return Err(ImageError);
        }
        let index = Alex::of_entries(root.into_entries(), keys, size);
        index.size.splits.store(0, Ordering::Relaxed);
        Ok(index)
    }
}

/// A layer that is being loaded, or the root.
struct Level {
    /// The slice that leads to it.
    slice: u64,
    /// Slots that are to come, and those of them that are ends.
    left: u64,
    ends: u64,
    steps: Vec<(Step, u64)>,
}

impl Level {
    /// The step of the next slot, which must come behind that of the slot before.
    fn take(&mut self, slice: u64) -> Result<Step, ImageError> {
        self.left -= 1;
        let step = match self.ends.checked_sub(1) {
            Some(ends) => {
                self.ends = ends;
                Step::End(
                    u8::try_from(slice).ok().filter(|len| usize::from(*len) <= SLICE).ok_or(ImageError)?,
                )
            }
            None => Step::Slice(slice),
        };
        match self.steps.last() {
            Some((before, _)) if *before >= step => Err(ImageError),
            _ => Ok(step),
        }
    }

    fn into_entries(mut self) -> Vec<Entry> {
        let entry = |(step, word)| match step {
            Step::Slice(slice) => (slice, word),
            Step::End(_) => unreachable!("the root has none"),
        };
        std::mem::take(&mut self.steps).into_iter().map(entry).collect()
    }
}

/// Layers of an image that is none.
impl Drop for Level {
    fn drop(&mut self) {
        for (step, word) in &self.steps {
            if let (Step::Slice(_), Target::Layer(address)) = (step, target(*word)) {
                // SAFETY: a layer of this image, which nobody else has.
                unsafe { Layer::drop_at(address) };
            }
        }
    }
}

/// The image's structures with their fields, for the check of `docs/FORMAT.md` against the code.
pub fn image_tables() -> Vec<Table> {
    vec![table!(LearnedShape: magic, version, keys, slots, reserved), table!(LearnedSlot: slice, word)]
}
