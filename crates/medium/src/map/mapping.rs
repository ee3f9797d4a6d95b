//! [`Mapping`]: bytes of a medium mapped into this process, and the system calls on them.

use super::device::PmDevice;
use super::filesystem::{is_tmpfs, parent};
use super::kind::{MediumKind, Pages};
use crate::durability::Statement;
use crate::error::MediumError;
use crate::node::Node;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, SeekFrom, fallocate, flock, fstat, fsync, linkat, seek,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, msync, munmap};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Size and alignment of a huge page, on both processors that we know.
const HUGE: usize = 2 << 20;

/// How a file or device is mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackingKind {
    /// A file that is written to.
    File,
    /// A devdax device, which has neither storage to reserve nor a cache to write back.
    Device,
    /// A file that is only read: each page that this process changes becomes a copy of its own.
    Private,
}

/// The file or device behind mapped bytes. The descriptor is held because the lock ends with it.
pub(crate) struct Backing {
    kind: BackingKind,
    file: File,
    path: PathBuf,
}

impl Backing {
    pub(crate) fn new(kind: BackingKind, file: File, path: &Path) -> Backing {
        Backing { kind, file, path: path.to_owned() }
    }
}

/// Bytes mapped into this process, unmapped and unlocked when dropped.
///
/// They are this process's alone: a child that is forked does not have the bytes of a file or device. A
/// second engine on them would append where the first does, and both would have locked the file, since a lock
/// comes along with its descriptor.
pub struct Mapping {
    base: *mut u8,
    len: u64,
    backing: Option<Backing>,
    statement: Statement,
    node: Node,
    claimed: AtomicBool,
    /// A new file loses its name with the mapping, until the name is given for good.
    provisional: AtomicBool,
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

    /// The file or device that is mapped; `None` for plain memory.
    pub fn path(&self) -> Option<&Path> {
        self.backing.as_ref().map(|backing| backing.path.as_path())
    }

    /// The file that is mapped for writing; `None` for plain memory, a device, and a file that is only read.
    fn shared(&self) -> Option<(&File, &PathBuf)> {
        let backing = self.backing.as_ref().filter(|backing| backing.kind == BackingKind::File)?;
        Some((&backing.file, &backing.path))
    }

    /// The failures that writes survive here.
    pub(crate) fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The node that the memory is attached to; 0 where the system does not tell.
    pub(crate) fn node(&self) -> Node {
        self.node
    }

    /// Zeroed memory of this process, with pages as the system likes.
    pub(crate) fn anonymous(len: u64) -> Result<Mapping, MediumError> {
        let base = map_anonymous(len as usize)?;
        Ok(Mapping::new(None, len, base, Statement::anonymous(), Node(0)))
    }

    /// Zeroed memory of this process, with pages of the kind wanted.
    pub(crate) fn anonymous_pages(len: u64, pages: Pages) -> Result<Mapping, MediumError> {
        if pages == Pages::Ordinary {
            let mapping = Mapping::anonymous(len)?;
            mapping.advise(Advice::LinuxNoHugepage);
            return Ok(mapping);
        }
        // The system aligns to ordinary pages only, so a larger range is mapped and its ends are given back.
        let len = len as usize;
        let wide = map_anonymous(len + HUGE)?;
        let head = wide.align_offset(HUGE);
        let base = wide.wrapping_add(head);
        // SAFETY: both ends belong to the mapping just made and to nobody yet. `head` is below HUGE.
        unsafe {
            if head > 0 {
                let _ = munmap(wide.cast(), head);
            }
            let _ = munmap(base.wrapping_add(len).cast(), HUGE - head);
        }
        let mapping = Mapping::new(None, len as u64, base, Statement::anonymous(), Node(0));
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
        let node = device.and_then(|device| device.node).unwrap_or_default();
        let mapping = Mapping::new(Some(backing), len, base, statement, node);
        mapping.advise(Advice::LinuxDontFork);
        mapping
    }

    fn new(backing: Option<Backing>, len: u64, base: *mut u8, statement: Statement, node: Node) -> Mapping {
        Mapping {
            base,
            len,
            backing,
            statement,
            node,
            claimed: AtomicBool::new(false),
            provisional: AtomicBool::new(false),
            owner: process::id(),
        }
    }

    /// Hints may be refused (huge pages switched off); nothing but speed depends on them.
    pub(crate) fn advise(&self, advice: Advice) {
        // SAFETY: the whole of a live mapping; the advice given in this module never changes contents.
        let _ = unsafe { madvise(self.base.cast(), self.len as usize, advice) };
    }

    /// The file has a name, which goes with the mapping unless it is [given](Mapping::give_name).
    pub(crate) fn remove_unless_named(&self) {
        self.provisional.store(true, Ordering::Relaxed);
    }

    /// See [`crate::Region::give_name`].
    pub(crate) fn give_name(&self) -> Result<(), MediumError> {
        let Some((file, path)) = self.shared() else { return Ok(()) };
        let name = |error: Errno| match error {
            Errno::EXIST => MediumError::Exists { path: path.clone() },
            error => MediumError::io("give its name to", path, error),
        };
        if fstat(file).map_err(name)?.st_nlink == 0 {
            let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(name)?;
        }
        self.provisional.store(false, Ordering::Relaxed);
        let folder =
            File::open(parent(path)).map_err(|error| MediumError::io("open the folder of", path, error))?;
        retry_on_intr(|| fsync(&folder))
            .map_err(|error| MediumError::io("make durable the name of", path, error))
    }

    /// See [`crate::Region::reserve`].
    pub(crate) fn reserve(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let Some((file, path)) = self.shared() else { return Ok(()) };
        if len == 0 {
            return Ok(());
        }
        match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), offset, len)) {
            Ok(()) => Ok(()),
            Err(Errno::NOSPC | Errno::DQUOT) => {
                Err(MediumError::DiskFull { path: path.clone(), needed: len })
            }
            // Writing zeros instead would overwrite data: such file systems do not tell holes from data.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(MediumError::unsuitable(
                path,
                self.statement.medium.name(),
                "its file system cannot set storage aside, so that a full disk would end the process; \
                 use one that has fallocate, such as ext4, xfs, btrfs or tmpfs",
            )),
            Err(error) => Err(MediumError::io("reserve storage for", path, error)),
        }
    }

    /// See [`crate::Region::is_read_only`].
    pub(crate) fn is_private(&self) -> bool {
        self.backing.as_ref().is_some_and(|backing| backing.kind == BackingKind::Private)
    }

    /// The mapped file, written to or only read; `None` for plain memory and a device.
    fn file(&self) -> Option<&File> {
        let backing = self.backing.as_ref().filter(|backing| backing.kind != BackingKind::Device);
        backing.map(|backing| &backing.file)
    }

    /// See [`crate::Region::is_sparse`].
    pub(crate) fn is_sparse(&self) -> bool {
        self.file().is_some() && self.statement.medium != MediumKind::Dax
    }

    /// See [`crate::Region::reads_take_storage`].
    pub(crate) fn reads_take_storage(&self) -> bool {
        self.file().is_some_and(|file| is_tmpfs(file).unwrap_or(false))
    }

    /// See [`crate::Region::discard`].
    pub(crate) fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let Some((file, path)) = self.shared() else { return Ok(()) };
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| fallocate(file, flags, offset, len)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(MediumError::io("give storage back of", path, error)),
        }
    }

    /// See [`crate::Region::has_data`].
    pub(crate) fn has_data(&self, offset: u64, len: u64) -> bool {
        let Some(file) = self.file() else { return true };
        match seek(file, SeekFrom::Data(offset)) {
            Ok(data) => data < offset + len,
            // There is none behind this place; a file system that cannot tell says something else.
            Err(error) => error != Errno::NXIO,
        }
    }

    /// See [`crate::Region::sync`].
    pub(crate) fn sync(&self) -> Result<(), MediumError> {
        let Some((file, path)) = self.shared() else { return Ok(()) };
        // SAFETY: the whole of a live mapping; msync reads it only.
        unsafe { msync(self.base.cast(), self.len as usize, MsyncFlags::SYNC) }
            .and_then(|()| retry_on_intr(|| fsync(file)))
            .map_err(|error| MediumError::io("write back", path, error))
    }

    /// See [`crate::Region::write_back`].
    pub(crate) fn write_back(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let Some((_, path)) = self.shared() else { return Ok(()) };
        let page = rustix::param::page_size() as u64;
        let start = offset / page * page;
        let address = self.base.wrapping_add(start as usize);
        // SAFETY: in bounds (checked by the region) of a live mapping, from the start of a page; msync reads
        // it only.
        unsafe { msync(address.cast(), (offset + len - start) as usize, MsyncFlags::SYNC) }
            .map_err(|error| MediumError::io("write back", path, error))
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
        // SAFETY: the range was mapped for this value alone, and no Region outlives its Mapping.
        let _ = unsafe { munmap(self.base.cast(), self.len as usize) };
        if *self.provisional.get_mut()
            && let Some((_, path)) = self.shared()
        {
            let _ = std::fs::remove_file(path);
        }
        // Closing would do it too, but not while a child that is just being started holds a copy of the
        // descriptor.
        if let Some(backing) = &self.backing {
            let _ = flock(&backing.file, FlockOperation::Unlock);
        }
    }
}

fn map_anonymous(len: usize) -> Result<*mut u8, MediumError> {
    // SAFETY: a fresh anonymous mapping aliases nothing.
    let base = unsafe {
        mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    base.map(<*mut _>::cast).map_err(|error| MediumError::io("map", Path::new("anonymous memory"), error))
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
