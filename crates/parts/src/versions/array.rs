//! The word of a key: one version, or an array of them in DRAM.
//!
//! ```text
//! tag 0, 1   reference of the only version; 1 if it deletes the key
//! tag 2      where the array is, divided by 8
//! array      how many | number, reference | number, reference | ..   the newest first
//! ```
//!
//! An array never changes. A writer puts another one in its place, and gives the old one back when nobody
//! can be reading it.

use crate::epoch::Guard;
use crate::heap::Reference;

/// The tag of a version that deletes its key.
const TOMBSTONE: u64 = 1;
const ARRAY: u64 = 2;

/// A record of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Version {
    /// Its number.
    pub number: u64,
    /// Where it stands; a [tag](Version::is_tombstone) tells its kind.
    pub reference: Reference,
}

impl Version {
    /// A record of this number; `deletes` says whether it is a tombstone.
    #[inline]
    pub fn new(number: u64, reference: Reference, deletes: bool) -> Version {
        Version { number, reference: reference.with_tag(u64::from(deletes)) }
    }

    /// Whether its number is not known, since its record does not prove itself.
    #[inline]
    pub fn is_unproved(&self) -> bool {
        self.number == 0
    }

    /// Whether it deletes the key.
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.reference.tag() == TOMBSTONE
    }
}

/// The versions that a word leads to.
pub(super) enum Found<'g> {
    /// One; its record tells the number.
    One(Reference),
    /// Several, the newest first.
    Several(&'g [Version]),
}

/// The word of these versions.
pub(super) fn word_of(versions: &[Version]) -> u64 {
    match versions {
        [only] => only.reference.word(),
        _ => {
            let words = versions.iter().flat_map(|version| [version.number, version.reference.word()]);
            let array: Box<[u64]> = [versions.len() as u64].into_iter().chain(words).collect();
            let address = Box::into_raw(array).cast::<u64>().expose_provenance() as u64;
            debug_assert!(address >> 49 == 0, "an address of a program, in units of 8");
            Reference::from_word(address >> 3).with_tag(ARRAY).word()
        }
    }
}

/// The versions that a word leads to.
///
/// # Safety
/// The word is one that [`word_of`] made. If it is an array's, that is given back only after the guard
/// drops.
#[inline]
pub(super) unsafe fn found<'g>(word: u64, _guard: &'g Guard<'_>) -> Found<'g> {
    let Some(array) = array(word) else { return Found::One(Reference::from_word(word)) };
    // SAFETY: it is there, by the caller's promise, and never changes. A `Version` is two words, of any
    // bits.
    unsafe { Found::Several(std::slice::from_raw_parts(array.add(1).cast(), *array as usize)) }
}

/// Gives back the array of a word, if it has one.
///
/// # Safety
/// The word is one that [`word_of`] made, nobody reads its array any more, and it is not given back twice.
pub(super) unsafe fn give_back(word: u64) {
    let Some(array) = array(word) else { return };
    // SAFETY: it was a box of so many words; nobody else has it, by the caller's promise.
    unsafe {
        let len = 1 + 2 * *array as usize;
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(array.cast_mut(), len)));
    }
}

/// Bytes of DRAM of an array of so many words.
pub(super) fn bytes_of(words: usize) -> u64 {
    (words * size_of::<u64>()) as u64
}

/// Whether a word leads to an array.
#[inline]
pub(super) fn has_array(word: u64) -> bool {
    Reference::from_word(word).tag() == ARRAY
}

#[inline]
fn array(word: u64) -> Option<*const u64> {
    has_array(word).then(|| std::ptr::with_exposed_provenance(Reference::from_word(word).distance() as usize))
}
