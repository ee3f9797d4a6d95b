//! The form `tsv`: key, tab, value, one record a line, for spreadsheets, `cut`, `awk` and `join`.
//!
//! Key and value are escaped as in the form `quipu`, which has a tab and a line feed for nothing else. The
//! form has neither a first nor a last line, so a file that was cut between two lines is not noticed; nor has
//! it a place for the time when a record expires.

use super::Records;
use super::error::FormError;
use super::escape::{escape, unescape_at};
use super::lines::{Lines, MARK};
use std::io::BufRead;

/// Tab and line feed.
const MARGIN: usize = 2;

/// Appends a record to `out`, as a line.
pub(super) fn line(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    // Bytes at the beginning of a file that look like a byte order mark are taken for one.
    let rest = key.strip_prefix(MARK);
    out.extend_from_slice(rest.map_or(b"", |_| b"\\xef\\xbb\\xbf"));
    escape(rest.unwrap_or(key), out);
    out.push(b'\t');
    escape(value, out);
    out.push(b'\n');
}

/// Reads the form.
pub struct TsvReader<R>(Lines<R>);

impl<R: BufRead> TsvReader<R> {
    /// A reader of records whose key and value have `longest` bytes together, at most; each byte takes four
    /// when it is escaped.
    pub fn new(input: R, longest: u64) -> TsvReader<R> {
        let longest = usize::try_from(longest).unwrap_or(usize::MAX).saturating_mul(4).saturating_add(MARGIN);
        TsvReader(Lines::new(input, longest))
    }
}

impl<R: BufRead> Records for TsvReader<R> {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>, FormError> {
        key.clear();
        value.clear();
        let line = self.0.number() + 1;
        let Some(whole) = self.0.next_text()? else { return Ok(None) };
        // A line that does not end may have been cut within its value.
        let text = whole.strip_suffix(b"\n").ok_or(FormError::Unended(line))?;
        if text.ends_with(b"\r") {
            return Err(FormError::CarriageReturn(line));
        }
        let tab = text.iter().position(|byte| *byte == b'\t').ok_or(FormError::NoTab(line))?;
        let (before, behind) = (&text[..tab], &text[tab + 1..]);
        if behind.contains(&b'\t') {
            return Err(FormError::SecondTab(line));
        }
        unescape_at(before, line, 0, key)?;
        unescape_at(behind, line, tab + 1, value)?;
        Ok(Some(line))
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}
