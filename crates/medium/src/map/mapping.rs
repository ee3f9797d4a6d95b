//! [`Mapping`]: bytes of a medium mapped into this process, and the system calls on them.

use super::device::PmDevice;
use super::identity::FileIdentity;
use super::kind::{MediumKind, Pages};
use super::piece::{Backing, Piece};
use crate::durability::Statement;
use crate::error::MediumError;
use crate::node::{Node, Span};
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{
    Advice, MapFlags, MremapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, mremap_fixed, msync,
    munmap,
};
use std::fs::File;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};

/// Size and alignment of a huge page, on both processors that we know.
pub(super) const HUGE: usize = 2 << 20;

/// Bytes mapped into this process, unmapped and unlocked when dropped.
///
/// They are this process's alone: a child that is forked does not have the bytes of a file or device. A
/// second engine on them would append where the first does, and both would have locked the file, since a lock
/// comes along with its descriptor.
pub struct Mapping {
    base: *mut u8,
    len: u64,
    /// One behind the other.
    pieces: Vec<Piece>,
    statement: Statement,
    claimed: AtomicBool,
    /// Whether holes are covered.
    covered: Once,
    /// The process that made the mapping.
    owner: u32,
}

/// Exclusive use of a mapping, until it drops.
pub struct Claim(Arc<Mapping>);

impl Claim {
    pub(crate) fn new(mapping: Arc<Mapping>) -> Result<Claim, MediumError> {
        if mapping.claimed.swap(true, Ordering::AcqRel) {
            let path = mapping.path().unwrap_or(Path::new("this memory")).to_owned();
            return Err(MediumError::InUse { path, process: Some(process::id()) });
        }
        // Parts are moved behind each other before, which needs each in one mapping. Later claims find there
        // what earlier ones have written.
        mapping.covered.call_once(|| mapping.cover_holes());
        Ok(Claim(mapping))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.claimed.store(false, Ordering::Release);
    }
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

    /// The file or device that is mapped, the first of several; `None` for plain memory.
    pub fn path(&self) -> Option<&Path> {
        self.paths().next()
    }

    /// The files or devices that are mapped, in their order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.pieces.iter().filter_map(Piece::path)
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The parts of a range in each piece that it touches, with the offset in that piece.
    fn each(&self, offset: u64, len: u64) -> impl Iterator<Item = (&Piece, u64, u64)> {
        self.pieces.iter().filter_map(move |piece| {
            let start = offset.max(piece.start);
            let end = (offset + len).min(piece.start + piece.len);
            (start < end).then(|| (piece, start - piece.start, end - start))
        })
    }

    /// The failures that writes survive here.
    pub(crate) fn statement(&self) -> &Statement {
        &self.statement
    }

    /// See [`crate::Region::spans`].
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.pieces.iter().map(Piece::span).collect()
    }

    /// Zeroed memory of this process, with pages as the system likes.
    pub(crate) fn anonymous(len: u64) -> Result<Mapping, MediumError> {
        let base = map_anonymous(len as usize, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Mapping::of_piece(None, len, base, Statement::anonymous(), None))
    }

    /// Zeroed memory of this process, with pages of the kind wanted.
    pub(crate) fn anonymous_pages(len: u64, pages: Pages) -> Result<Mapping, MediumError> {
        if pages == Pages::Ordinary {
            let mapping = Mapping::anonymous(len)?;
            mapping.advise(Advice::LinuxNoHugepage);
            return Ok(mapping);
        }
        let len = len as usize;
        let base = map_aligned(len, ProtFlags::READ | ProtFlags::WRITE)?;
        let mapping = Mapping::of_piece(None, len as u64, base, Statement::anonymous(), None);
        mapping.advise(Advice::LinuxHugepage);
        Ok(mapping)
    }

    /// The first `len` bytes of a locked file or device, mapped at `base` for this value alone.
    pub(crate) fn of(
        backing: Backing,
        len: u64,
        base: *mut u8,
        statement: Statement,
        device: Option<&PmDevice>,
    ) -> Mapping {
        // Pages of an ordinary file are anywhere, whatever its disk is attached to.
        let node = device.filter(|_| statement.medium == MediumKind::Dax).and_then(|device| device.node);
        let mut mapping = Mapping::of_piece(Some(backing), len, base, statement, node);
        if let (Some(device), true) = (device, mapping.pieces[0].is_device()) {
            mapping.pieces[0].align = device.align;
        }
        mapping.advise(Advice::LinuxDontFork);
        mapping
    }

    fn of_piece(
        backing: Option<Backing>,
        len: u64,
        base: *mut u8,
        statement: Statement,
        node: Option<Node>,
    ) -> Mapping {
        let provisional = AtomicBool::new(false);
        let piece = Piece { backing, start: 0, len, node, align: 1, provisional };
        Mapping::new(vec![piece], len, base, statement)
    }

    /// Moves mappings of files or devices behind each other, in an address range that begins with a huge
    /// page. Each but the last is whole huge pages long.
    pub(super) fn joined(mut mappings: Vec<Mapping>, statement: Statement) -> Result<Mapping, MediumError> {
        let len = mappings.iter().map(|mapping| mapping.len).sum();
        let base = map_aligned(len as usize, ProtFlags::empty())?;
        let mut joined = Mapping::new(Vec::new(), len, base, statement);
        let mut start = 0;
        for mapping in &mut mappings {
            let (target, bytes) = (base.wrapping_add(start as usize), mapping.len as usize);
            // SAFETY: the source is the whole of a mapping that only this function has, and the target is
            // part of a range that was just reserved for this purpose and is not accessed before.
            let moved = unsafe {
                let flags = MremapFlags::MAYMOVE;
                mremap_fixed(mapping.base.cast(), bytes, bytes, flags, target.cast())
            };
            let path = || mapping.path().unwrap_or(Path::new("anonymous memory"));
            moved.map_err(|error| MediumError::io("move the mapping of", path(), error))?;
            mapping.len = 0;
            for piece in mapping.pieces.drain(..) {
                joined.pieces.push(Piece { start: start + piece.start, ..piece });
            }
            start += bytes as u64;
        }
        joined.advise(Advice::LinuxDontFork);
        Ok(joined)
    }

    /// Shortens a mapping of one file.
    pub(super) fn cut(&mut self, len: u64) {
        // SAFETY: the end of a mapping that only the caller has.
        let _ = unsafe { munmap(self.base.wrapping_add(len as usize).cast(), (self.len - len) as usize) };
        self.len = len;
        self.pieces.iter_mut().for_each(|piece| piece.len = len);
    }

    /// The unit of the mappings of a device, otherwise 1.
    pub(super) fn align(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.align).max().unwrap_or(1)
    }

    /// Gives a mapping of one file the node that the user says it is on.
    pub(super) fn set_node(&mut self, node: Node) {
        self.pieces.iter_mut().for_each(|piece| piece.node = Some(node));
    }

    fn new(pieces: Vec<Piece>, len: u64, base: *mut u8, statement: Statement) -> Mapping {
        Mapping {
            base,
            len,
            pieces,
            statement,
            claimed: AtomicBool::new(false),
            covered: Once::new(),
            owner: process::id(),
        }
    }

    /// Hints may be refused (huge pages switched off); nothing but speed depends on them.
    pub(crate) fn advise(&self, advice: Advice) {
        // SAFETY: the whole of a live mapping; the advice given in this module never changes contents.
        let _ = unsafe { madvise(self.base.cast(), self.len as usize, advice) };
    }

    fn set_provisional(&self, provisional: bool) {
        self.pieces.iter().for_each(|piece| piece.provisional.store(provisional, Ordering::Relaxed));
    }

    /// The file has a name, which goes with the mapping unless it is [given](Mapping::give_name).
    pub(crate) fn remove_unless_named(&self) {
        self.set_provisional(true);
    }

    /// See [`crate::Region::give_name`]. The first piece gets its name last.
    pub(crate) fn give_name(&self) -> Result<(), MediumError> {
        self.pieces.iter().rev().try_for_each(Piece::give_name)?;
        self.set_provisional(false);
        Ok(())
    }

    /// See [`crate::Region::reserve`].
    pub(crate) fn reserve(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let medium = self.statement.medium;
        self.each(offset, len).try_for_each(|(piece, offset, len)| piece.reserve(offset, len, medium))
    }

    /// See [`crate::Region::is_read_only`].
    pub(crate) fn is_private(&self) -> bool {
        self.pieces.iter().any(Piece::is_private)
    }

    /// See [`crate::Region::is_sparse`].
    pub(crate) fn is_sparse(&self) -> bool {
        self.pieces.iter().any(|piece| piece.file().is_some()) && self.statement.medium != MediumKind::Dax
    }

    /// See [`crate::Region::reads_take_storage`].
    pub(crate) fn reads_take_storage(&self) -> bool {
        self.pieces.iter().any(Piece::reads_take_storage)
    }

    /// See [`crate::Region::identity`].
    pub(crate) fn identity(&self) -> Option<FileIdentity> {
        self.pieces.first().and_then(Piece::identity)
    }

    /// See [`crate::Region::storage_unit`].
    pub(crate) fn storage_unit(&self) -> u64 {
        self.pieces.iter().map(Piece::storage_unit).min().unwrap_or(1)
    }

    /// See [`crate::Region::discard`].
    pub(crate) fn discard(&self, offset: u64, len: u64) -> Result<u64, MediumError> {
        self.each(offset, len).map(|(piece, offset, len)| piece.discard(offset, len)).sum()
    }

    /// See [`crate::Region::discard_rest`].
    pub(crate) fn discard_rest(&self, offset: u64, len: u64, from: u64) -> Result<u64, MediumError> {
        self.each(offset, len).map(|(piece, offset, len)| piece.discard_rest(offset, len, from)).sum()
    }

    /// See [`crate::Region::overwrite`]. Returns whether the bytes were written.
    pub(crate) fn overwrite(&self, offset: u64, bytes: &[u8]) -> bool {
        self.each(offset, bytes.len() as u64).all(|(piece, offset, _)| piece.overwrite(offset, bytes))
    }

    /// See [`crate::Region::shares_blocks`].
    pub(crate) fn shares_blocks(&self) -> bool {
        self.pieces.iter().any(Piece::shares_blocks)
    }

    /// See [`crate::Region::has_data`].
    pub(crate) fn has_data(&self, offset: u64, len: u64) -> bool {
        self.each(offset, len).any(|(piece, offset, len)| piece.has_data(offset, len))
    }

    /// See [`crate::Region::data_len`].
    pub(crate) fn data_len(&self, offset: u64, len: u64) -> u64 {
        let mut behind = 0;
        let ends = self.each(offset, len).map(|(piece, offset, len)| {
            let end = piece.data_len(offset, len);
            behind += len;
            if end > 0 { behind - len + end } else { 0 }
        });
        ends.max().unwrap_or(0)
    }

    /// See [`crate::Region::sync`].
    pub(crate) fn sync(&self) -> Result<(), MediumError> {
        self.write_back(0, self.len)?;
        self.pieces.iter().try_for_each(Piece::sync)
    }

    /// See [`crate::Region::write_back`].
    pub(crate) fn write_back(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let page = rustix::param::page_size() as u64;
        for (piece, offset, len) in self.each(offset, len) {
            let Some((_, path)) = piece.shared() else { continue };
            let start = offset / page * page;
            let address = self.base.wrapping_add((piece.start + start) as usize);
            // SAFETY: in bounds (checked by the region) of a live mapping, from the start of a page; msync
            // reads it only.
            unsafe { msync(address.cast(), (offset + len - start) as usize, MsyncFlags::SYNC) }
                .map_err(|error| MediumError::io("write back", path, error))?;
        }
        Ok(())
    }

    /// See [`crate::Region::prefault`].
    pub(crate) fn prefault(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // Each page would be copied.
        if len == 0 || self.is_private() {
            return Ok(());
        }
        let page = rustix::param::page_size() as u64;
        let start = offset / page * page;
        let len = offset + len - start;
        let base = self.base.wrapping_add(start as usize);
        // SAFETY: the range is in bounds (checked by the region) and begins on a page; populating keeps
        // contents.
        let populated =
            retry_on_intr(|| unsafe { madvise(base.cast(), len as usize, Advice::LinuxPopulateWrite) });
        match populated {
            Ok(()) => Ok(()),
            // Systems before 5.14, and special mappings.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                (0..len).step_by(page as usize).for_each(|at| touch(base.wrapping_add(at as usize)));
                Ok(())
            }
            Err(error) => {
                let path = self.path().unwrap_or(Path::new("anonymous memory"));
                Err(MediumError::io("touch the pages (is there storage behind them?) of", path, error))
            }
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // In a forked child, something else may be mapped there by now, and the lock is still its parent's.
        if self.owner != process::id() {
            return;
        }
        if self.len > 0 {
            // SAFETY: the range was mapped for this value alone, and no Region outlives its Mapping.
            let _ = unsafe { munmap(self.base.cast(), self.len as usize) };
        }
        self.pieces.iter().for_each(Piece::unlock);
    }
}

fn map_anonymous(len: usize, protection: ProtFlags) -> Result<*mut u8, MediumError> {
    // SAFETY: a fresh anonymous mapping aliases nothing.
    let base = unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE) };
    base.map(<*mut _>::cast).map_err(|error| MediumError::io("map", Path::new("anonymous memory"), error))
}

/// Anonymous memory that begins with a huge page. The system aligns to ordinary pages only, so a larger range
/// is mapped and its ends are given back.
fn map_aligned(len: usize, protection: ProtFlags) -> Result<*mut u8, MediumError> {
    let wide = map_anonymous(len + HUGE, protection)?;
    let head = wide.align_offset(HUGE);
    let base = wide.wrapping_add(head);
    // SAFETY: both ends belong to the mapping just made and to nobody yet. `head` is below HUGE.
    unsafe {
        if head > 0 {
            let _ = munmap(wide.cast(), head);
        }
        let _ = munmap(base.wrapping_add(len).cast(), HUGE - head);
    }
    Ok(base)
}

/// Maps a file or device for sharing. With `sync`, a store that has been flushed needs nothing more from the
/// system, or the call fails.
///
/// The kernel's own guess about reading ahead is kept: it helps the sequential scan of a recovery, and stops
/// by itself where accesses prove to be random.
pub(crate) fn map_shared(file: &File, len: u64, sync: bool) -> rustix::io::Result<*mut u8> {
    let flags = if sync { MapFlags::SHARED_VALIDATE | MapFlags::SYNC } else { MapFlags::SHARED };
    // SAFETY: a fresh mapping at an address of the system's choice aliases no memory of this process. Its
    // pages are shared with the file until they are written to: those who may change the file hold its lock
    // alone, which the caller has shared.
    unsafe { mmap(std::ptr::null_mut(), len as usize, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0) }
        .map(<*mut _>::cast)
}

/// Maps a file for reading. Writes go to pages of this process alone, and never to the file.
///
/// Memory for these pages is not set aside: few will be written, of a file that may be larger than all
/// memory.
pub(crate) fn map_private(file: &File, len: u64) -> rustix::io::Result<*mut u8> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a fresh mapping at an address of the system's choice aliases no memory of this process. Its
    // pages are shared with the file until they are written to: those who may change the file hold its lock
    // alone, which the caller has shared.
    unsafe { mmap(std::ptr::null_mut(), len as usize, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0) }
        .map(<*mut _>::cast)
}

/// Lays zeroed memory of this process over a part of a private mapping, as far as the system has mappings.
///
/// # Safety
/// The range is whole pages of a mapping, holds zeros, and nobody else uses it meanwhile.
pub(super) unsafe fn map_zeros(at: *mut u8, len: u64) {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: as the caller promises. Without it, the range stays a part of the file.
    let _ = unsafe { mmap_anonymous(at.cast(), len as usize, ProtFlags::READ | ProtFlags::WRITE, flags) };
}

/// Whether a file or device grants `MAP_SYNC`, tried on its first `len` bytes, which are not touched.
pub(crate) fn grants_sync(file: &File, len: u64) -> bool {
    let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
    // SAFETY: a fresh mapping at an address of the system's choice, unmapped before anyone learns of it.
    unsafe {
        mmap(std::ptr::null_mut(), len as usize, ProtFlags::READ, flags, file, 0)
            .and_then(|base| munmap(base, len as usize))
            .is_ok()
    }
}

/// Makes the page of an aligned word present for writing without changing the word, beside any other threads.
///
/// A compare-and-swap of a value for itself, since compilers turn an addition of 0 into a load.
fn touch(word: *mut u8) {
    // SAFETY: the start of a page of a live mapping: aligned, valid, and accessed atomically.
    let word = unsafe { &*word.cast::<AtomicU64>() };
    let value = std::hint::black_box(word.load(Ordering::Relaxed));
    let _ = word.compare_exchange(value, value, Ordering::Relaxed, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_changes_no_byte_and_makes_the_page_ready_for_writing() {
        let mapping = Mapping::anonymous_pages(1 << 20, Pages::Ordinary).unwrap();
        let own = |page: usize| {
            let file = File::open("/proc/self/pagemap").unwrap();
            let mut entry = [0; 8];
            let at = (mapping.base() as u64 / 4096 + page as u64) * 8;
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut entry, at).unwrap();
            // Bit 63: present; bit 56: mapped here alone, which the shared page of zeros, all that a read
            // gets, is not.
            u64::from_le_bytes(entry) & (1 << 63 | 1 << 56) == (1 << 63 | 1 << 56)
        };
        if rustix::param::page_size() == 4096 {
            assert!(!own(3));
            touch(mapping.base().wrapping_add(3 * 4096));
            assert!(own(3));
        }
        // SAFETY: in bounds of the mapping, aligned, no other thread.
        let word = unsafe { &*mapping.base().cast::<AtomicU64>() };
        word.store(77, Ordering::Relaxed);
        touch(mapping.base());
        assert_eq!(word.load(Ordering::Relaxed), 77);
    }

    #[test]
    fn huge_pages_are_asked_for_on_an_aligned_range() {
        for len in [4096, HUGE as u64, 3 * HUGE as u64 + 4096] {
            let mapping = Mapping::anonymous_pages(len, Pages::Huge).unwrap();
            assert_eq!(mapping.base() as usize % HUGE, 0);
            mapping.prefault(0, len).unwrap();
        }
    }
}
