//! Mapping a path, a device or anonymous memory as a [`Region`].

use crate::arch::FlushKind;
use crate::error::MediumError;
use crate::region::Region;

/// Bytes mapped into this process, unmapped when dropped.
pub struct Mapping {
    base: *mut u8,
    len: u64,
}

// SAFETY: the mapping is plain shared memory; access rules are those of `Region`.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
    pub(crate) fn reserve(&self, _offset: u64, _len: u64) -> Result<(), MediumError> {
        Ok(())
    }
    pub(crate) fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
    pub(crate) fn prefault(&self, _offset: u64, _len: u64) -> Result<(), MediumError> {
        Ok(())
    }
    pub(crate) fn anonymous(len: u64) -> Result<Mapping, MediumError> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), len as usize, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }
        .map_err(|e| MediumError::Io { action: "map", path: "anonymous memory".into(), source: e.into() })?;
        Ok(Mapping { base: base.cast(), len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `anonymous`, and no Region outlives its Mapping.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.len as usize) };
    }
}

/// Placeholder.
pub enum MediumKind {}
/// Placeholder.
pub enum DaxSource {}
/// Placeholder.
pub struct PoolFile;
/// Placeholder.
pub fn probe() {}

impl Region {
    /// Anonymous memory with the processor's own persistence instructions: for measuring, not durable.
    pub fn dram(len: u64) -> Result<Region, MediumError> {
        Ok(Region::new(Mapping::anonymous(len)?, FlushKind::detect().unwrap_or(FlushKind::None), None))
    }
}
