//! Storage behind a region: how it is set aside before the first store, and given back.
//!
//! A store to a mapped file without storage is a fault that ends the process if the disk is full. So the
//! layers above reserve what they store to. [Units](Region::storage_unit) are the business of this crate.

use crate::error::MediumError;
use crate::region::{Region, WORD};

impl Region {
    /// Makes sure that the range has storage behind it, so that a full disk is an error here and not a fault
    /// at the first store. A file on a disk takes storage in units of 2 MiB, at multiples of their size in
    /// the file; the last may end with the file. The range gets all units that it touches, since the system
    /// may ask for blocks behind a whole unit at any store to it.
    ///
    /// The system is asked once for each unit, by each region of a file that is opened. Blocks that the file
    /// shares with a copy are replaced by blocks of its own.
    ///
    /// # Errors
    /// [`MediumError::DiskFull`] if the file system has no room, [`MediumError::Io`] otherwise.
    pub fn reserve(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.at(offset, len);
        if let Some(sim) = self.simulator() {
            return sim.reserve(len);
        }
        self.mapping().reserve(offset, len)
    }

    /// The unit in which storage is [reserved](Region::reserve): if some of it cannot be had, none of it can.
    pub fn storage_unit(&self) -> u64 {
        if self.simulator().is_some() { 1 } else { self.mapping().storage_unit() }
    }

    /// Whether this is an ordinary file, which has storage only where some was [reserved](Region::reserve). A
    /// file on persistent memory is better reserved in large pieces, which huge pages can map.
    pub fn is_sparse(&self) -> bool {
        self.simulator().is_none() && self.mapping().is_sparse()
    }

    /// Gives the storage of a range back to the file system, where this [is sparse](Region::is_sparse): in
    /// whole pages, in a file on a disk in whole units as they are [reserved](Region::reserve). A unit that
    /// the range covers in part stays whole. Returns the bytes. They become zeros; nobody uses the range
    /// meanwhile.
    ///
    /// # Errors
    /// [`MediumError::Io`] if the system could not. A file system without holes is no error.
    pub fn discard(&self, offset: u64, len: u64) -> Result<u64, MediumError> {
        self.at(offset, len);
        if self.is_sparse() { self.mapping().discard(offset, len) } else { Ok(0) }
    }

    /// Gives back what [reservations](Region::reserve) have added behind the first `from` bytes of a range.
    /// In a file on a disk this is the rest of the unit in which they end, if the range has that unit for
    /// itself. On a file system in memory these are all pages behind them. Returns the bytes, which become
    /// zeros.
    ///
    /// Nobody stores to these bytes from now on, except by [`overwrite`](Region::overwrite), before it is
    /// reserved again.
    ///
    /// # Errors
    /// As for [`discard`](Region::discard).
    pub fn discard_rest(&self, offset: u64, len: u64, from: u64) -> Result<u64, MediumError> {
        self.at(offset, len);
        if self.is_sparse() && from <= len { self.mapping().discard_rest(offset, len, from) } else { Ok(0) }
    }

    /// Changes a word that was written before, where the rest of its unit may be without storage: by a system
    /// call then, which needs the block of the word alone. As for the other stores, a
    /// [`flush`](Region::flush) and a [`fence`](Region::fence) follow. For single words in places that are
    /// seldom changed.
    pub fn overwrite(&self, offset: u64, word: u64) {
        self.at(offset, WORD);
        if !self.is_sparse() || !self.mapping().overwrite(offset, &word.to_le_bytes()) {
            self.store(offset, word);
        }
    }

    /// Whether the file shared blocks with a copy when it was opened, so that each unit must be
    /// [reserved](Region::reserve) before the first store to it, in use or not.
    pub fn shares_blocks(&self) -> bool {
        self.simulator().is_none() && self.mapping().shares_blocks()
    }

    /// Whether even a read of a hole takes storage, as on a file system in memory. If that has no page left,
    /// the read is a fault that ends the process.
    pub fn reads_take_storage(&self) -> bool {
        self.simulator().is_none() && self.mapping().reads_take_storage()
    }

    /// Whether anything may have been written to a range. A hole of a sparse file holds only zeros, and even
    /// a read of it may ask the file system for a page that it does not have.
    pub fn has_data(&self, offset: u64, len: u64) -> bool {
        self.at(offset, len);
        self.simulator().is_some() || self.mapping().has_data(offset, len)
    }

    /// Bytes of a range up to the last that [may have been written](Region::has_data).
    pub fn data_len(&self, offset: u64, len: u64) -> u64 {
        self.at(offset, len);
        if self.simulator().is_some() { len } else { self.mapping().data_len(offset, len) }
    }
}
