//! The header of a part: which pool it belongs to, which part it is, and of which run.
//!
//! A pool may lie on several files or devices, its *parts*, one behind the other in its region. The header of
//! part 0 stands behind the third copy of the superblock, that of each other part at its beginning. All hold
//! the same list of parts, so any of them tells where the others are. Part 0 has the superblock, and is the
//! one that is named.
//!
//! # A part of another time
//!
//! A part that was restored from an old copy would pass for the right one by all that never changes. So the
//! header has the number of the run, in two words. When a run begins, it is *raised* in all other parts, then
//! written to the superblock, then *confirmed* in the parts, durably each, before anything else changes. So a
//! part whose raised run is below the superblock's is older than the pool, and one whose confirmed run is
//! above it is younger.

use super::error::SpaceError;
use super::superblock::{COPY_LEN, MAX_EXTENTS, Superblock};
use quipu_medium::{LINE, MediumError, Region, Span, WORD};
use std::ffi::OsStr;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use twox_hash::{XxHash3_64, XxHash3_128};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Bytes of the header.
pub(super) const PART_HEADER_LEN: u64 = size_of::<PartHeader>() as u64;
const MAGIC: [u8; 8] = *b"QUIPUPRT";
const PATHS_LEN: usize = 3840;

/// The header of a part.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PartHeader {
    pub(super) checksum: U64,
    pub(super) magic: [u8; 8],
    /// Identity of the pool, which follows from its secret.
    pub(super) pool: [u8; 16],
    /// Number of this part; part 0 has the superblock.
    pub(super) number: U16,
    /// Parts of the pool.
    pub(super) count: U16,
    pub(super) reserved_a: [u8; 28],
    /// Run that has begun or is about to, with a check.
    pub(super) raised: U64,
    /// Run that has begun, with a check.
    pub(super) confirmed: U64,
    pub(super) reserved_b: [u8; 48],
    /// Bytes of each part.
    pub(super) lens: [U64; MAX_EXTENTS],
    /// Path of each part behind two bytes of length: relative to the folder of part 0, or absolute.
    pub(super) paths: [u8; PATHS_LEN],
}

const RAISED: u64 = offset_of!(PartHeader, raised) as u64;
const CONFIRMED: u64 = offset_of!(PartHeader, confirmed) as u64;

const _: () = {
    assert!(size_of::<PartHeader>() == 4096);
    assert!(RAISED == LINE && CONFIRMED < 2 * LINE, "the words that change have a line of their own");
    assert!(offset_of!(PartHeader, lens) == 128);
};

impl PartHeader {
    /// The header of a part of a new pool.
    fn new(superblock: &Superblock, number: usize, lens: &[u64], paths: &[u8; PATHS_LEN]) -> PartHeader {
        let mut header = PartHeader::new_zeroed();
        header.magic = MAGIC;
        header.pool = identity(superblock);
        header.number.set(number as u16);
        header.count.set(lens.len() as u16);
        header.lens.iter_mut().zip(lens).for_each(|(entry, len)| entry.set(*len));
        header.paths = *paths;
        let word = header.run_word(superblock.run.get());
        header.raised.set(word);
        header.confirmed.set(word);
        header.checksum.set(header.expected_checksum());
        header
    }

    /// The header at this offset, if it certifies itself.
    pub(super) fn read(region: &Region, offset: u64) -> Option<PartHeader> {
        if region.len() < offset + PART_HEADER_LEN {
            return None;
        }
        let mut header = PartHeader::new_zeroed();
        region.read_racing(offset, header.as_mut_bytes());
        let is_one = header.magic == MAGIC && header.checksum.get() == header.expected_checksum();
        (is_one && (2..=MAX_EXTENTS).contains(&header.count())).then_some(header)
    }

    /// Of all bytes but its own and the line of the run.
    fn expected_checksum(&self) -> u64 {
        let bytes = self.as_bytes();
        let (first, rest) = (&bytes[size_of::<U64>()..RAISED as usize], &bytes[2 * LINE as usize..]);
        XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(first), rest)
    }

    fn run_word(&self, run: u64) -> u64 {
        let seed = XxHash3_64::oneshot(&self.pool);
        run << 16 | XxHash3_64::oneshot_with_seed(seed, &run.to_le_bytes()) & 0xFFFF
    }

    fn run_of(&self, word: U64) -> Option<u64> {
        let run = word.get() >> 16;
        (self.run_word(run) == word.get()).then_some(run)
    }

    pub(super) fn number(&self) -> usize {
        usize::from(self.number.get())
    }

    pub(super) fn count(&self) -> usize {
        usize::from(self.count.get())
    }

    pub(super) fn lens(&self) -> Vec<u64> {
        self.lens[..self.count()].iter().map(|len| len.get()).collect()
    }

    /// The paths of all parts, as they were given to the pool; the folder of part 0 is unknown here.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut rest = &self.paths[..];
        let mut next = || {
            let (len, behind) = rest.split_first_chunk()?;
            let (path, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
            rest = behind;
            Some(PathBuf::from(OsStr::from_bytes(path)))
        };
        (0..self.count()).map_while(|_| next()).collect()
    }

    /// Whether this is the header of part `number` of the pool of another part. The error tells what it is
    /// instead.
    pub(super) fn is_part_of(&self, first: &PartHeader, number: usize) -> Result<(), String> {
        if self.pool != first.pool {
            return Err("it belongs to another pool".to_owned());
        }
        if self.number() != number {
            return Err(format!("it is part {} of this pool, and part {number} is wanted", self.number()));
        }
        if self.lens() != first.lens() {
            return Err("it and part 0 tell different lengths of the parts".to_owned());
        }
        Ok(())
    }
}

fn identity(superblock: &Superblock) -> [u8; 16] {
    XxHash3_128::oneshot(superblock.secret()).to_le_bytes()
}

/// Where the header of each part of a pool stands, if it has several.
pub(super) fn places(superblock: &Superblock) -> impl DoubleEndedIterator<Item = (usize, u64)> {
    let extents = if superblock.has_parts() { superblock.extents() } else { &[] };
    let place = |(number, entry): (usize, &super::ExtentEntry)| match number {
        0 => (0, superblock.third_copy.get().saturating_add(COPY_LEN)),
        _ => (number, entry.start.get().saturating_sub(PART_HEADER_LEN)),
    };
    extents.iter().enumerate().map(place)
}

/// The paths of the parts, as they are stored.
pub(super) fn encode<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<[u8; PATHS_LEN], SpaceError> {
    let paths: Vec<PathBuf> =
        paths.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned())).collect();
    let (mut bytes, folder) = (Vec::new(), paths.first().and_then(|path| path.parent()));
    for path in &paths {
        let near = folder.and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        bytes.extend_from_slice(&(near.as_os_str().len() as u16).to_le_bytes());
        bytes.extend_from_slice(near.as_os_str().as_bytes());
    }
    let mut field = [0; PATHS_LEN];
    let place = field.get_mut(..bytes.len()).ok_or(SpaceError::Options {
        reason: "the paths of the parts are too long for the header of a part; choose shorter ones",
    })?;
    place.copy_from_slice(&bytes);
    Ok(field)
}

/// Writes the headers of a new pool. A fence follows.
pub(super) fn format(region: &Region, superblock: &Superblock, spans: &[Span], paths: &[u8; PATHS_LEN]) {
    let lens: Vec<u64> = spans.iter().map(|span| span.len).collect();
    for (number, at) in places(superblock).rev() {
        region.write_nt(at, PartHeader::new(superblock, number, &lens, paths).as_bytes());
    }
}

/// Tells the parts that a run is about to begin, or has begun, durably.
pub(super) fn note_run(region: &Region, superblock: &Superblock, begun: bool) {
    let mut header = PartHeader::new_zeroed();
    header.pool = identity(superblock);
    let (word, field) = (header.run_word(superblock.run.get()), if begun { CONFIRMED } else { RAISED });
    let mut noted = false;
    for (_, at) in places(superblock).skip(1) {
        region.store(at + field, word);
        region.flush(at + field, WORD);
        noted = true;
    }
    if noted {
        region.fence();
        // On a file, the device must have it before the superblock, or before anything else; see
        // `Clock::raise`.
        places(superblock).skip(1).for_each(|(_, at)| drop(region.write_back(at, PART_HEADER_LEN)));
    }
}

/// Whether all parts are there, in their order and of the same time. With a lost copy of the superblock, the
/// last run may be missing in it.
pub(super) fn verify(region: &Region, superblock: &Superblock, copy_lost: bool) -> Result<(), SpaceError> {
    let mut first: Option<PartHeader> = None;
    let (mut run, mut oldest) = (superblock.run.get(), None);
    for (number, at) in places(superblock) {
        let reject = |reason: String| Err(unfit(&path_in(region, number), &reason).into());
        let Some(header) = PartHeader::read(region, at) else {
            return reject("its header is damaged, or it is no part of a pool".to_owned());
        };
        if header.pool != identity(superblock) {
            return reject("it belongs to another pool".to_owned());
        }
        if let Err(reason) = header.is_part_of(first.as_ref().unwrap_or(&header), number) {
            return reject(reason);
        }
        let of = |word| header.run_of(word);
        let (Some(raised), Some(confirmed)) = (of(header.raised), of(header.confirmed)) else {
            return reject("the number of its run is damaged".to_owned());
        };
        let own = superblock.run.get();
        if number > 0 && confirmed > own + u64::from(copy_lost) {
            let reason = format!("it is of run {own} and part {number} of run {confirmed}: an older copy");
            return Err(unfit(&path_in(region, 0), &reason).into());
        }
        if number > 0 {
            run = run.max(confirmed);
            oldest = oldest.filter(|(_, least)| *least <= raised).or(Some((number, raised)));
        }
        first.get_or_insert(header);
    }
    match oldest {
        Some((number, raised)) if raised < run => {
            let reason = format!("it is of run {raised} and the pool of run {run}: an older copy");
            Err(unfit(&path_in(region, number), &reason).into())
        }
        _ => Ok(()),
    }
}

/// The error about a part, with the next step.
pub(super) fn unfit(path: &Path, reason: &str) -> MediumError {
    let next = "nothing was changed; restore the right one, or name its place (--part NUMBER=PATH)";
    MediumError::Part { path: path.to_owned(), reason: format!("{reason}; {next}") }
}

fn path_in(region: &Region, number: usize) -> PathBuf {
    let path = region.mapping().paths().nth(number);
    path.map_or_else(|| PathBuf::from(format!("part {number}")), Path::to_owned)
}
