//! [`Region`]: a mapped stretch of a medium, and the only way to change a byte of it.
//!
//! The medium is a value, not a type parameter: on real media each call is the bare instruction behind one
//! predicted branch (is this the simulator?). Offsets are bytes from the start of the region; a range that
//! leaves the region is a broken invariant of the caller and panics before any byte is touched.

use crate::arch::{self, FlushKind, LINE};
use crate::copy;
use crate::durability::Statement;
use crate::error::MediumError;
use crate::map::{self, Claim, FileIdentity, Mapping, MediumKind};
use crate::sim::Sim;
use crate::witness::Witness;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Bytes in a word, the unit that a medium never tears.
pub const WORD: u64 = 8;

/// A mapped region of a medium. Clones are cheap and name the same bytes.
#[derive(Clone)]
pub struct Region {
    base: *mut u8,
    len: u64,
    flush: FlushKind,
    /// The one that hears of every access, if any does.
    pub(crate) witness: Option<Witness>,
    mapping: Arc<Mapping>,
}

// SAFETY: the pointer names a shared mapping kept alive by `mapping`; every safe access through it is either
// atomic or, like a plain write, documented to need exclusion by the caller's protocol (see `write`).
unsafe impl Send for Region {}
// SAFETY: as for Send.
unsafe impl Sync for Region {}

impl Region {
    pub(crate) fn new(mapping: Mapping, flush: FlushKind) -> Region {
        Region::of(Arc::new(mapping), flush, None)
    }

    pub(crate) fn simulated(mapping: Arc<Mapping>, sim: Arc<Sim>) -> Region {
        Region::of(mapping, FlushKind::Clwb, Some(Witness::Sim(sim)))
    }

    fn of(mapping: Arc<Mapping>, flush: FlushKind, witness: Option<Witness>) -> Region {
        assert!(mapping.len().is_multiple_of(WORD), "a word that begins in the region ends in it");
        Region { base: mapping.base(), len: mapping.len(), flush, witness, mapping }
    }

    /// The mapping behind a region that nobody else has.
    pub(crate) fn into_mapping(self) -> Option<Mapping> {
        Arc::into_inner(self.mapping)
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The instruction that makes lines durable here.
    #[inline]
    pub fn flush_kind(&self) -> FlushKind {
        self.flush
    }

    /// The simulator behind this region, if it is simulated. For the proofs of the store, not for the store.
    #[inline]
    pub fn simulator(&self) -> Option<&Arc<Sim>> {
        match &self.witness {
            Some(Witness::Sim(sim)) => Some(sim),
            _ => None,
        }
    }

    /// The mapping behind the region.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Takes the region for one user: two engines that write the same bytes would destroy each other's work,
    /// and the lock of a file keeps out only other processes and other descriptors.
    ///
    /// # Errors
    /// [`MediumError::InUse`] while an earlier claim lives.
    pub fn claim(&self) -> Result<Claim, MediumError> {
        Claim::new(self.mapping.clone())
    }

    /// Whether this is a file [for reading only](Region::open_read_only): writes stay in this process.
    pub fn is_read_only(&self) -> bool {
        self.simulator().is_none() && self.mapping.is_private()
    }

    /// The kind of medium.
    pub fn kind(&self) -> MediumKind {
        if self.simulator().is_some() { MediumKind::Sim } else { self.mapping.statement().medium }
    }

    /// The failures that writes survive here, with the evidence.
    pub fn statement(&self) -> Statement {
        if self.simulator().is_some() { Statement::simulated() } else { self.mapping.statement().clone() }
    }

    /// The identity of this boot of the machine. If it differs from that of the last run, the system stopped
    /// in between.
    pub fn boot_id(&self) -> [u8; 16] {
        self.simulator().map_or_else(map::boot_id, |sim| sim.boot_id())
    }

    /// The identity of the file behind the region, or behind its first part; `None` for a device and for
    /// memory.
    pub fn identity(&self) -> Option<FileIdentity> {
        if self.simulator().is_some() { None } else { self.mapping.identity() }
    }

    /// Milliseconds since 1970, by the system's clock, which may be set back; on the simulator, the time of
    /// the last [`Sim::set_now`].
    pub fn now(&self) -> u64 {
        self.simulator().map_or_else(map::now, |sim| sim.now())
    }

    /// Milliseconds of a clock that never goes back, for waits and paces; on the simulator, the latest time
    /// that was [set](Sim::set_now).
    pub fn ticks(&self) -> u64 {
        self.simulator().map_or_else(map::ticks, |sim| sim.ticks())
    }

    /// As [`ticks`](Region::ticks), but cheap and some milliseconds behind.
    #[inline]
    pub fn coarse_ticks(&self) -> u64 {
        self.simulator().map_or_else(map::coarse_ticks, |sim| sim.ticks())
    }

    /// The number of this thread: the system's; on the simulator, that of the task.
    #[inline]
    pub fn thread_number(&self) -> u32 {
        self.simulator().map_or_else(map::thread_number, |_| crate::sim::sched::task_id())
    }

    /// The name of the thread of this number, if it has one.
    pub fn thread_name(&self, number: u32) -> Option<String> {
        self.simulator().map_or_else(|| map::thread_name(number), |_| None)
    }

    /// Lets this thread rest for so many microseconds; on the simulator, lets another one run.
    pub fn pause(&self, microseconds: u64) {
        match self.simulator() {
            Some(_) => crate::sim::sched::spin(),
            None => map::pause(microseconds),
        }
    }

    /// Fills `out` with unpredictable bytes; on the simulator, with bytes that its seed determines.
    pub fn entropy(&self, out: &mut [u8]) {
        match self.simulator() {
            Some(sim) => sim.entropy(out),
            None => map::entropy(out),
        }
    }

    #[inline]
    pub(crate) fn at(&self, offset: u64, len: u64) -> *mut u8 {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            leaves_region(offset, len, self.len);
        }
        // SAFETY: in bounds by the check.
        unsafe { self.base.add(offset as usize) }
    }

    /// Writes `src` with ordinary stores. Not durable before a [`flush`](Region::flush) and a
    /// [`fence`](Region::fence); any subset of its words may have arrived before that.
    ///
    /// The caller's protocol must keep other threads from reading these bytes meanwhile, except through
    /// [`read_racing`](Region::read_racing) and the atomics.
    #[inline]
    pub fn write(&self, offset: u64, src: &[u8]) {
        let dst = self.at(offset, src.len() as u64);
        if let Some(witness) = &self.witness {
            return witnessed(move || witness.write(offset, src));
        }
        // SAFETY: `dst` is in bounds for `src.len()` bytes; a shared slice cannot overlap the mapping, which
        // is lent out only for bytes that no one writes (`bytes`).
        unsafe { std::ptr::copy_nonoverlapping(src.as_ptr(), dst, src.len()) }
    }

    /// Writes `src` by the route that makes bulk data durable soonest: non-temporal stores, or ordinary ones
    /// where caches survive. Durable after the next [`fence`](Region::fence) of this thread, without a flush;
    /// until then unordered against everything. Readers as for [`write`](Region::write).
    #[inline]
    pub fn write_nt(&self, offset: u64, src: &[u8]) {
        let dst = self.at(offset, src.len() as u64);
        if let Some(witness) = &self.witness {
            return witnessed(move || witness.write_nt(offset, src));
        }
        // SAFETY: as in `write`.
        unsafe {
            if self.flush == FlushKind::None {
                std::ptr::copy_nonoverlapping(src.as_ptr(), dst, src.len());
            } else {
                arch::stream(dst, src.as_ptr(), src.len(), self.flush);
            }
        }
    }

    /// Writes whole lines by the route of [`write_nt`](Region::write_nt). The first `known` bytes, less than
    /// a line, stand there already and do not change: this appends behind them.
    ///
    /// A line that is written whole leaves the processor at once. One that is written in part waits in a
    /// write-combining buffer for the fence, which then takes the whole way to the medium. Media that do not
    /// gain from whole lines leave the known bytes alone; others write them again, so that readers of them
    /// see no change. On all of them the known bytes may be read meanwhile.
    ///
    /// # Panics
    /// If `offset` or the length is no multiple of a line.
    #[inline]
    pub fn write_lines_nt(&self, offset: u64, lines: &[u8], known: usize) {
        if !(offset | lines.len() as u64).is_multiple_of(LINE) || known as u64 >= LINE {
            not_aligned(offset);
        }
        if let Some(witness) = &self.witness {
            self.at(offset, lines.len() as u64);
            return witnessed(move || witness.write_lines_nt(offset, lines, known));
        }
        #[cfg(target_arch = "x86_64")]
        if self.flush != FlushKind::None {
            let dst = self.at(offset, lines.len() as u64);
            // SAFETY: in bounds, whole lines by the test above, no overlap as in `write`. Non-temporal stores
            // are instructions that the compiler does not look into; to the language, these store the bytes
            // behind the known ones and nothing else, since rewriting bytes with their own values cannot be
            // observed.
            unsafe { arch::stream_lines(dst, lines.as_ptr(), lines.len()) }
            return;
        }
        self.write_nt(offset + known as u64, &lines[known..]);
    }

    /// Stores one word of a line, by its number, with its value in `line`, atomically: readers see the old
    /// word or the new. All other words of `line` stand there already, and nobody else writes to the line
    /// meanwhile. Durable after the next [`fence`](Region::fence), without a flush; until then unordered
    /// against everything.
    ///
    /// For words that the cache need not keep: a line that is written whole leaves the processor at once, and
    /// need not have been in the cache. Media that do not gain from whole lines store the word alone.
    ///
    /// # Panics
    /// If `offset` is no multiple of a line, or a line has no such word.
    #[inline]
    pub fn store_line_nt(&self, offset: u64, line: &[u8; LINE as usize], word: usize) {
        if !offset.is_multiple_of(LINE) || word >= line.len() / WORD as usize {
            not_aligned(offset);
        }
        if let Some(witness) = &self.witness {
            self.at(offset, LINE);
            return witnessed(move || witness.store_line_nt(offset, line, word));
        }
        #[cfg(target_arch = "x86_64")]
        if self.flush != FlushKind::None {
            let dst = self.at(offset, LINE);
            // SAFETY: in bounds, a whole line by the test above, no overlap as in `write`. To the language
            // this stores one word, as in `write_lines_nt`.
            unsafe { arch::stream_line(dst, line) }
            return;
        }
        let (at, (words, _)) = (offset + word as u64 * WORD, line.as_chunks::<{ WORD as usize }>());
        self.store(at, u64::from_le_bytes(words[word]));
        self.flush(at, WORD);
    }

    /// Fills a range with zeros, by the route of [`write_nt`](Region::write_nt).
    pub fn zero(&self, offset: u64, len: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut done = 0;
        while done < len {
            let take = (len - done).min(ZEROS.len() as u64);
            self.write_nt(offset + done, &ZEROS[..take as usize]);
            done += take;
        }
    }

    #[inline(always)]
    pub(crate) fn word(&self, offset: u64) -> &AtomicU64 {
        if !offset.is_multiple_of(WORD) {
            not_aligned(offset);
        }
        if offset >= self.len {
            leaves_region(offset, WORD, self.len);
        }
        // SAFETY: aligned, since mappings start on a page; in bounds, since the length is a multiple of eight
        // as well (`of`); all bit patterns are valid.
        unsafe { &*self.base.add(offset as usize).cast::<AtomicU64>() }
    }

    /// Starts writing back every line that the range touches.
    #[inline]
    pub fn flush(&self, offset: u64, len: u64) {
        let start = self.at(offset, len);
        if let Some(sim) = self.simulator() {
            return witnessed(move || sim.flush(offset, len));
        }
        // SAFETY: in bounds of a live mapping.
        unsafe { arch::flush_lines(self.flush, start, len as usize) }
    }

    /// Waits until this thread's earlier flushes and non-temporal writes are durable.
    #[inline]
    pub fn fence(&self) {
        if let Some(sim) = self.simulator() {
            return witnessed(move || sim.fence());
        }
        arch::fence(self.flush);
    }

    /// [`flush`](Region::flush), then [`fence`](Region::fence).
    #[inline]
    pub fn persist(&self, offset: u64, len: u64) {
        self.flush(offset, len);
        self.fence();
    }

    /// Copies out bytes that others may be changing: a mix of old and new ones, for the caller to validate.
    #[inline]
    pub fn read_racing(&self, offset: u64, dst: &mut [u8]) {
        let src = self.at_to_read(offset, dst.len() as u64);
        // SAFETY: in bounds; regions are whole pages, so the covering words are mapped.
        unsafe { copy::racing(src, dst.as_mut_ptr(), dst.len()) }
    }

    /// Appends bytes that others may be changing to `out`: a mix of old and new ones, for the caller to
    /// validate.
    #[inline(always)]
    pub fn append_racing(&self, offset: u64, len: u64, out: &mut Vec<u8>) {
        let (src, len) = (self.at_to_read(offset, len), len as usize);
        out.reserve(len);
        // SAFETY: in bounds as in `read_racing`; the room behind the bytes of `out` was just made, and is
        // filled before it counts.
        unsafe {
            copy::racing(src, out.as_mut_ptr().add(out.len()), len);
            out.set_len(out.len() + len);
        }
    }

    /// Whether these bytes stand at `offset`, where others may be changing them: if so, the answer means
    /// nothing.
    #[inline(always)]
    pub fn equals_racing(&self, offset: u64, bytes: &[u8]) -> bool {
        let src = self.at_to_read(offset, bytes.len() as u64);
        // SAFETY: as in `read_racing`.
        unsafe { copy::equals(src, bytes) }
    }

    /// The first of some bytes that are about to be read.
    #[inline(always)]
    fn at_to_read(&self, offset: u64, len: u64) -> *const u8 {
        let src = self.at(offset, len);
        self.note_read(offset, len);
        src
    }

    /// Lends out bytes in place, or `None` if the range leaves the region (a damaged reference).
    ///
    /// # Safety
    /// No thread may write these bytes while the slice lives: they belong to a published, immutable record
    /// that an epoch guard keeps from reuse, or the caller has exclusive use of the pool.
    #[inline]
    pub unsafe fn bytes(&self, offset: u64, len: u64) -> Option<&[u8]> {
        // SAFETY: as the caller promises.
        let bytes = unsafe { self.bytes_in_pieces(offset, len) }?;
        self.note_read(offset, len);
        Some(bytes)
    }

    /// Lends out bytes in place as [`bytes`](Region::bytes) does, to a reader that goes over them piece by
    /// piece. The reader [notes](Region::note_read) each piece that it reads.
    ///
    /// # Safety
    /// As for [`bytes`](Region::bytes).
    #[inline]
    pub unsafe fn bytes_in_pieces(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let is_inside = offset <= self.len && len <= self.len - offset;
        // SAFETY: in bounds; the caller rules out writers.
        is_inside.then(|| unsafe { std::slice::from_raw_parts(self.base.add(offset as usize), len as usize) })
    }

    /// Tells the simulator that bytes which were lent out are read.
    #[inline]
    pub fn note_read(&self, offset: u64, len: u64) {
        if let Some(witness) = &self.witness {
            witnessed(move || witness.note_read(offset, len));
        }
    }

    /// Lends out an item that tells its own length: `total` reads it from the first `head` bytes. `None` if
    /// either leaves the region. On the simulator this counts as one read of the whole item.
    ///
    /// # Safety
    /// As for [`bytes`](Region::bytes).
    #[inline]
    pub unsafe fn bytes_sized(
        &self,
        offset: u64,
        head: u64,
        total: impl FnOnce(&[u8]) -> u64,
    ) -> Option<&[u8]> {
        // SAFETY: forwarded.
        unsafe {
            let len = total(self.bytes_in_pieces(offset, head)?);
            self.bytes(offset, len)
        }
    }

    /// Asks for the line at `offset` ahead of its use; a hint.
    #[inline]
    pub fn prefetch(&self, offset: u64) {
        arch::prefetch(self.base.wrapping_add(offset as usize));
    }

    /// Writes a range back to the device beneath a file, where a crash of the system cannot take it. Memory
    /// without a file needs no more than a fence, and nothing happens. Slow; not for the write path.
    ///
    /// # Errors
    /// [`MediumError::Io`] if the system could not.
    pub fn write_back(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.at(offset, len);
        if self.simulator().is_some() { Ok(()) } else { self.mapping.write_back(offset, len) }
    }

    /// Writes everything back to the device beneath a file. Slow; for clean shutdown, not for the write path.
    ///
    /// # Errors
    /// [`MediumError::Io`] if the system could not.
    pub fn sync(&self) -> Result<(), MediumError> {
        if let Some(sim) = self.simulator() {
            sim.sync();
            return Ok(());
        }
        self.mapping.sync()
    }

    /// Touches every page of the range for writing, so that later stores meet no page fault.
    ///
    /// # Errors
    /// [`MediumError::Io`] if the system could not.
    pub fn prefault(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.at(offset, len);
        if self.simulator().is_some() {
            return Ok(());
        }
        self.mapping.prefault(offset, len)
    }
}

/// Takes the side of an operation that has a witness out of line. Were it inlined, every operation without
/// one would save the registers that only this side needs.
#[cold]
#[inline(never)]
pub(crate) fn witnessed<T>(operation: impl FnOnce() -> T) -> T {
    operation()
}

#[cold]
#[inline(never)]
fn leaves_region(offset: u64, len: u64, region: u64) -> ! {
    panic!("range {offset}+{len} leaves a region of {region} bytes")
}

#[cold]
#[inline(never)]
fn not_aligned(offset: u64) -> ! {
    panic!("word at {offset} is not aligned")
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region").field("len", &self.len).field("flush", &self.flush).finish_non_exhaustive()
    }
}
