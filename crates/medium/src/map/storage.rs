//! Storage in units: the blocks behind a mapped file are set aside and given back only in whole units.
//!
//! The system keeps pages of a mapped file in large folios of up to 2 MiB, at multiples of their size in the
//! file. The first store into a folio needs blocks behind all of it. On a full disk, a store next to a hole
//! would end the process by a signal, although the page itself has its block. How large the folios are is not
//! for us to say: any program that reads the file makes them, and other kernels and other reads make others.
//! So a unit is as large as the largest folio, and begins at a multiple of its size. The last unit may be
//! shorter, since a folio needs no blocks behind the end of the file.
//!
//! # Invariant
//!
//! A store through the mapping goes only to a unit that this handle has set aside since it opened the file. A
//! unit that is known stays whole until this handle gives some of it back, so the system is asked once. No
//! other program may cut holes into the file meanwhile, nor make a copy that shares its blocks.
//!
//! A file whose blocks are [shared](super::extents) with a copy needs others at the next store. Each unit of
//! it gets blocks of its own when it is set aside.

use super::extents;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of a unit: the largest folio on systems with pages of 4 KiB.
pub(super) const UNIT: u64 = 2 << 20;

/// The units of a file on a disk.
pub(super) struct Storage {
    /// Bytes of the whole file, beyond its mapping too.
    len: u64,
    /// A bit for each unit that is known to have storage.
    known: Box<[AtomicU64]>,
    /// Whether the file shared blocks with another one when it was opened.
    shares: bool,
    /// Held while shared bytes are copied to blocks of their own.
    copying: Mutex<()>,
}

impl Storage {
    /// The units of a file of `len` bytes, of which nothing is known.
    pub(super) fn of(file: &File, len: u64) -> Result<Storage, Errno> {
        let words = len.div_ceil(UNIT).div_ceil(u64::BITS.into());
        Ok(Storage {
            len,
            known: (0..words).map(|_| AtomicU64::new(0)).collect(),
            shares: extents::shares_blocks(file)?,
            copying: Mutex::new(()),
        })
    }

    fn bit(&self, unit: u64) -> (&AtomicU64, u64) {
        (&self.known[(unit / u64::from(u64::BITS)) as usize], 1 << (unit % u64::from(u64::BITS)))
    }

    fn is_known(&self, unit: u64) -> bool {
        let (word, bit) = self.bit(unit);
        word.load(Ordering::Acquire) & bit != 0
    }

    fn note(&self, units: Range<u64>) {
        for (word, bit) in units.map(|unit| self.bit(unit)) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    fn forget(&self, units: Range<u64>) {
        for (word, bit) in units.map(|unit| self.bit(unit)) {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// See [`crate::Region::shares_blocks`].
    pub(super) fn shares_blocks(&self) -> bool {
        self.shares
    }

    /// Whether the byte lies in a unit that has storage.
    pub(super) fn covers(&self, offset: u64) -> bool {
        self.is_known(offset / UNIT)
    }

    /// The bytes of some units, up to the end of the file.
    fn bytes(&self, units: &Range<u64>) -> Range<u64> {
        units.start * UNIT..(units.end * UNIT).min(self.len)
    }

    /// Sets aside all units that a range touches, with one call for each run of them that is not known. An
    /// error tells how many bytes there was no storage for.
    pub(super) fn set_aside(&self, file: &File, bytes: Range<u64>) -> Result<(), (Errno, u64)> {
        let (mut unit, end) = (bytes.start / UNIT, bytes.end.min(self.len).div_ceil(UNIT));
        while unit < end {
            if self.is_known(unit) {
                unit += 1;
                continue;
            }
            let run = unit..(unit + 1..end).find(|next| self.is_known(*next)).unwrap_or(end);
            let bytes = self.bytes(&run);
            self.allocate(file, &bytes).map_err(|error| (error, bytes.end - bytes.start))?;
            unit = run.end;
            self.note(run);
        }
        Ok(())
    }

    fn allocate(&self, file: &File, bytes: &Range<u64>) -> Result<(), Errno> {
        let fill = |bytes: &Range<u64>| {
            let len = bytes.end - bytes.start;
            retry_on_intr(|| fallocate(file, FallocateFlags::empty(), bytes.start, len))
        };
        match fill(bytes) {
            // Some file systems, such as XFS, want room for all of the range before they look what it lacks.
            Err(full @ (Errno::NOSPC | Errno::DQUOT)) => {
                let holes = extents::holes_within(file, bytes).map_err(|_| full)?;
                holes.iter().try_for_each(fill)?;
            }
            outcome => outcome?,
        }
        if !self.shares {
            return Ok(());
        }
        // Another thread may have copied this unit meanwhile, and others may store to it since.
        let _copying = self.exclusive();
        let unknown = (bytes.start / UNIT..bytes.end.div_ceil(UNIT)).filter(|unit| !self.is_known(*unit));
        for unit in unknown {
            extents::unshare(file, &self.bytes(&(unit..unit + 1)))?;
            self.note(unit..unit + 1);
        }
        Ok(())
    }

    /// Keeps others from copying bytes to blocks of their own, as long as the result lives.
    pub(super) fn exclusive(&self) -> impl Drop + '_ {
        self.copying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back the units that lie within a range, for nobody to use meanwhile. Returns their bytes.
    pub(super) fn give_back(&self, bytes: Range<u64>) -> Range<u64> {
        let end = if bytes.end >= self.len { self.len.div_ceil(UNIT) } else { bytes.end / UNIT };
        let units = bytes.start.div_ceil(UNIT)..end;
        if units.is_empty() {
            return 0..0;
        }
        self.forget(units.clone());
        self.bytes(&units)
    }

    /// Gives back the rest of the unit at `from`, if that unit lies within a stretch that the caller has for
    /// itself. Returns the bytes, in whole pages.
    pub(super) fn give_back_rest(&self, stretch: Range<u64>, from: u64) -> Range<u64> {
        let unit = from / UNIT;
        let bytes = self.bytes(&(unit..unit + 1));
        let rest = from.next_multiple_of(rustix::param::page_size() as u64)..bytes.end;
        if from == bytes.start || rest.is_empty() || bytes.start < stretch.start || stretch.end < bytes.end {
            return 0..0;
        }
        self.forget(unit..unit + 1);
        rest
    }
}
