//! The extents of a file: which bytes have blocks, and which blocks the file shares with another one.
//!
//! A copy by `cp --reflink` shares all, and so does a snapshot. A store to a shared block needs a new one, so
//! a full disk would end the process by a signal, although the file has all its storage.

use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use rustix::ioctl::{Updater, ioctl, opcode};
use std::fs::File;
use std::ops::Range;

/// Extents that the system describes in one call.
const EXTENTS: usize = 64;
const LAST: u32 = 1;
const SHARED: u32 = 0x2000;

/// `struct fiemap_extent` of the kernel's interface.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    len: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_behind: [u32; 3],
}

/// `struct fiemap` without its extents, whose length the operation's number holds.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    start: u64,
    len: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
}

#[repr(C)]
struct Fiemap {
    request: Request,
    extents: [Extent; EXTENTS],
}

/// The parts of a range that have no blocks.
pub(super) fn holes_within(file: &File, bytes: &Range<u64>) -> Result<Vec<Range<u64>>, Errno> {
    let (mut holes, mut end) = (Vec::new(), bytes.start);
    walk(file, bytes.clone(), |extent, _| {
        if extent.start > end {
            holes.push(end..extent.start.min(bytes.end));
        }
        end = end.max(extent.end);
        true
    })?;
    if end < bytes.end {
        holes.push(end..bytes.end);
    }
    Ok(holes)
}

/// Gives a range blocks of its own, with its bytes as they are. Nobody stores to shared blocks of it
/// meanwhile.
pub(super) fn unshare(file: &File, bytes: &Range<u64>) -> Result<(), Errno> {
    let (start, len) = (bytes.start, bytes.end - bytes.start);
    match retry_on_intr(|| fallocate(file, FallocateFlags::UNSHARE_RANGE, start, len)) {
        Err(Errno::OPNOTSUPP) => {}
        outcome => return outcome,
    }
    // Btrfs has no such call. It gives a shared block another place when it writes the block back.
    for shared in shared_within(file, bytes)? {
        rewrite(file, shared)?;
    }
    retry_on_intr(|| fdatasync(file))
}

fn rewrite(file: &File, bytes: Range<u64>) -> Result<(), Errno> {
    let mut buffer = vec![0; (bytes.end - bytes.start) as usize];
    let mut done = 0;
    while done < buffer.len() {
        let read = retry_on_intr(|| pread(file, &mut buffer[done..], bytes.start + done as u64))?;
        if read == 0 {
            break;
        }
        done += read;
    }
    let mut rest = &buffer[..done];
    while !rest.is_empty() {
        let at = bytes.start + (done - rest.len()) as u64;
        let written = retry_on_intr(|| pwrite(file, rest, at))?;
        rest = &rest[written..];
    }
    Ok(())
}

/// Whether any block of the file is shared. `false` if its file system does not tell: then it has no copies
/// that share blocks, or no promise about a full disk.
pub(super) fn shares_blocks(file: &File) -> Result<bool, Errno> {
    match walk(file, 0..u64::MAX, |_, flags| flags & SHARED == 0) {
        Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS) => Ok(false),
        heard_of_all => heard_of_all.map(|all| !all),
    }
}

/// The shared parts of a range.
fn shared_within(file: &File, bytes: &Range<u64>) -> Result<Vec<Range<u64>>, Errno> {
    let mut shared = Vec::new();
    walk(file, bytes.clone(), |extent, flags| {
        let (start, end) = (extent.start.max(bytes.start), extent.end.min(bytes.end));
        shared.extend((flags & SHARED != 0 && start < end).then_some(start..end));
        true
    })?;
    Ok(shared)
}

/// Tells `each` the extents of a range and their flags, in order, until it declines. Returns whether it has
/// heard of all.
fn walk(
    file: &File,
    range: Range<u64>,
    mut each: impl FnMut(Range<u64>, u32) -> bool,
) -> Result<bool, Errno> {
    const FIEMAP: u32 = opcode::read_write::<Request>(b'f', 11);
    let mut start = range.start;
    while start < range.end {
        let (len, count) = (range.end - start, EXTENTS as u32);
        let request = Request { start, len, flags: 0, mapped: 0, count, reserved: 0 };
        let mut fiemap = Fiemap { request, extents: [Extent::default(); EXTENTS] };
        retry_on_intr(|| {
            // SAFETY: the operation writes the request and up to `count` extents behind it, and the value has
            // room for as many. Any bytes are valid ones.
            unsafe { ioctl(file, Updater::<FIEMAP, Fiemap>::new(&mut fiemap)) }
        })?;
        let found = fiemap.extents.get(..fiemap.request.mapped as usize).unwrap_or(&[]);
        for extent in found {
            let bytes = extent.logical..extent.logical.saturating_add(extent.len);
            if !each(bytes, extent.flags) {
                return Ok(false);
            }
        }
        match found.last() {
            Some(last) if last.flags & LAST == 0 => start = last.logical.saturating_add(last.len.max(1)),
            _ => break,
        }
    }
    Ok(true)
}
