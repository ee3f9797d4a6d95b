//! The whole index as bytes and back, for a checkpoint: its keys in order, so that loading needs no search.
//!
//! `docs/FORMAT.md` draws the image. Nodes and layers are not in it and follow from the
//! keys, so any image that loads makes a sound index.

use super::load::Loader;
use super::scan::Cursor;
use super::tree::Masstree;
use crate::epoch::Guard;
use crate::index::image::Bytes;
use crate::index::{Image, ImageError, ImageSource, Imaged};
use crate::table;
use crate::table::Table;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// No image of another kind of index begins so.
const MAGIC: [u8; 4] = *b"SORT";
/// Version of the image that this release writes, and the only one that it loads.
const VERSION: u32 = 1;

/// The beginning of an image.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SortedShape {
    magic: [u8; 4],
    version: U32,
    keys: U64,
    reserved: [u8; 16],
}

/// The bytes before each key.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SortedEntry {
    word: U64,
    common: U16,
    rest: U16,
}

const _: () = assert!(size_of::<SortedShape>() == 32);
const _: () = assert!(size_of::<SortedEntry>() == 12);

impl Masstree {
    /// Tells each entry of the image with the new bytes of its key.
    fn each_entry(&self, guard: &Guard<'_>, mut each: impl FnMut(SortedEntry, &[u8])) {
        let mut before = Vec::new();
        self.scan(guard, &mut Cursor::default(), usize::MAX, |key, word| {
            let common = before.iter().zip(key).take_while(|(one, other)| one == other).count();
            let rest = key.get(common..).unwrap_or_default();
            // No key is longer than 16 bits can say.
            let (of_common, of_rest) = (common as u16, rest.len() as u16);
            each(SortedEntry { word: word.into(), common: of_common.into(), rest: of_rest.into() }, rest);
            before.truncate(common);
            before.extend_from_slice(rest);
        });
    }
}

impl Imaged for Masstree {
    fn image<'a>(&'a self, guard: &'a Guard<'_>) -> Option<Image<'a>> {
        let (mut keys, mut len) = (0u64, size_of::<SortedShape>());
        self.each_entry(guard, |entry, rest| {
            keys += 1;
            len += size_of_val(&entry) + rest.len();
        });
        let shape =
            SortedShape { magic: MAGIC, version: VERSION.into(), keys: keys.into(), reserved: [0; 16] };
        Some(Image::new(len as u64, move |sink| {
            sink(shape.as_bytes());
            self.each_entry(guard, |entry, rest| {
                sink(entry.as_bytes());
                sink(rest);
            });
        }))
    }

    fn of_image(source: &impl ImageSource) -> Result<Masstree, ImageError> {
        let mut bytes = Bytes::of(source.pieces(0, source.len()));
        let shape: SortedShape = bytes.read()?;
        if shape.magic != MAGIC || shape.version != VERSION || shape.reserved != [0; 16] {
            return Err(ImageError);
        }
        let mut loader = Loader::new();
        let mut rest = Vec::new();
        for _ in 0..shape.keys.get() {
            let entry: SortedEntry = bytes.read()?;
            rest.resize(usize::from(entry.rest.get()), 0);
            bytes.fill(&mut rest)?;
            if !source.is_word(entry.word.get()) {
                return Err(ImageError);
            }
            loader.push(usize::from(entry.common.get()), &rest, entry.word.get())?;
        }
        if !bytes.are_over() {
            return Err(ImageError);
        }
        loader.finish()
    }
}

/// The image's structures with their fields, for the check of `docs/FORMAT.md` against the code.
pub fn image_tables() -> Vec<Table> {
    vec![table!(SortedShape: magic, version, keys, reserved), table!(SortedEntry: word, common, rest)]
}
