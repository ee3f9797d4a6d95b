//! Holes of a file that is only read, on a file system in memory.
//!
//! A read of such a hole through a mapping takes a page of the file system. If that has none left, the system
//! ends the process by a signal. So zeroed memory of this process lies where the holes are. Nobody writes to
//! the file meanwhile, so they stay holes.

use super::mapping::{Mapping, map_zeros};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::ops::Range;

/// Each hole divides a mapping, and the system allows a process some 65,000. A file of more holes keeps those
/// behind.
const MOST: usize = 16_384;

impl Mapping {
    /// Lays zeroed memory over the holes of files that are only read, where reads of holes take storage.
    pub(super) fn cover_holes(&self) {
        let page = rustix::param::page_size() as u64;
        for piece in self.pieces() {
            let Some(file) = piece.file().filter(|_| piece.is_private() && piece.reads_take_storage()) else {
                continue;
            };
            for hole in (Holes { file, at: 0, len: piece.len }).take(MOST) {
                let (start, end) = (hole.start.next_multiple_of(page), hole.end / page * page);
                if start < end {
                    // SAFETY: in bounds of a mapping that its first claim alone uses. A hole holds zeros.
                    unsafe {
                        map_zeros(self.base().wrapping_add((piece.start + start) as usize), end - start)
                    };
                }
            }
        }
    }
}

/// The holes of a file, up to a length.
struct Holes<'a> {
    file: &'a File,
    at: u64,
    len: u64,
}

impl Iterator for Holes<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let start = seek(self.file, SeekFrom::Hole(self.at)).ok().filter(|start| *start < self.len)?;
        let end = match seek(self.file, SeekFrom::Data(start)) {
            Ok(data) => data.min(self.len),
            Err(Errno::NXIO) => self.len,
            Err(_) => return None,
        };
        self.at = end;
        Some(start..end)
    }
}
