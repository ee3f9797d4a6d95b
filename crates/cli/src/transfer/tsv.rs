//! The form `tsv`: key, tab, value, one record a line, for spreadsheets, `cut`, `awk` and `join`.
//!
//! Key and value are escaped, so a tab and a line feed stand for nothing else. The form has neither a first
//! nor a last line, so a file that was cut between two lines is not noticed; nor has it a place for the time
//! when a record expires.

use super::Records;
use super::error::FormError;
use super::escape::{escape, unescape};
use super::lines::{Lines, MARK};
use std::io::BufRead;

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
        TsvReader(Lines::new(input, longest, 4, "\t\n".len()))
    }
}

impl<R: BufRead> Records for TsvReader<R> {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>, FormError> {
        key.clear();
        value.clear();
        let line = self.0.number() + 1;
        let Some(whole) = self.0.next_text()? else { return Ok(None) };
        let wrong = |what: &str| FormError::at(line, what);
        // A line that does not end may have been cut within its value.
        let unended = "has no line feed at its end; get the file whole, or add one if nothing is missing";
        let text = whole.strip_suffix(b"\n").ok_or_else(|| wrong(unended))?;
        FormError::expect_no_return(line, text)?;
        let mut fields = text.split(|byte| *byte == b'\t');
        let (before, behind) = (fields.next().unwrap_or_default(), fields.next());
        let behind = behind.ok_or_else(|| wrong("has no tab; a record is a key, a tab and a value"))?;
        if fields.next().is_some() {
            return Err(wrong("has a second tab; write a tab within a key or a value as \\t"));
        }
        unescape(before, (line, 1), key)?;
        unescape(behind, (line, before.len() + 2), value)?;
        Ok(Some(line))
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}
