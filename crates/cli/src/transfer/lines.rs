//! The lines of a file, with their numbers, of bounded length.
//!
//! A file need not have been made by this program, nor be text at all; without a bound, one without an end of
//! line would be read into memory whole.

use super::error::FormError;
use std::io::{BufRead, Read};

/// The byte order mark in UTF-8.
pub const MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads lines.
pub struct Lines<R> {
    input: R,
    longest: u64,
    buffer: Vec<u8>,
    number: u64,
    bytes: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `input`, for records of at most `longest` bytes, each of which takes up to `escaped`; and
    /// `margin` bytes of a line beside.
    pub fn new(input: R, longest: u64, escaped: u64, margin: usize) -> Lines<R> {
        let longest = longest.saturating_mul(escaped).saturating_add(margin as u64);
        Lines { input, longest, buffer: Vec::new(), number: 0, bytes: 0 }
    }

    /// The next line, with its end if it has one.
    pub fn next(&mut self) -> Result<Option<&[u8]>, FormError> {
        self.buffer.clear();
        let most = self.longest.saturating_add(1);
        let read = (&mut self.input).take(most).read_until(b'\n', &mut self.buffer)? as u64;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.bytes += read;
        if read == most {
            return Err(FormError::too_long(self.number, self.longest));
        }
        Ok(Some(&self.buffer))
    }

    /// The next line, without the byte order mark that some programs begin a file with.
    pub fn next_text(&mut self) -> Result<Option<&[u8]>, FormError> {
        let is_first = self.number == 0;
        let line = self.next()?;
        Ok(line.map(|line| line.strip_prefix(MARK).filter(|_| is_first).unwrap_or(line)))
    }

    /// The number of the line read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of all lines read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
