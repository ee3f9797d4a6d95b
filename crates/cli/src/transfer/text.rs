//! The text form: written and read. `docs/EXPORT.md` says what it is, and a test holds its example against this.

use super::Records;
use super::error::FormError;
use super::escape::{Misfit, escape, unescape};
use super::lines::Lines;
use std::hash::Hasher;
use std::io::{self, BufRead, Write};
use twox_hash::XxHash3_64;

/// The first line: what the file is, and the version of the form.
pub const FIRST_LINE: &str = "quipu-export 1";

/// The first line up to its version.
const NAME: &str = "quipu-export ";

/// The word that begins the last line, and the one that begins it if the pool was damaged, so that records are missing.
const END: &[u8] = b"end";
const INCOMPLETE: &[u8] = b"incomplete";

/// Bytes of the last line at most, and of the first: a file that is no export is not searched for long.
const MARGIN: usize = 128;

/// Writes the text form.
///
/// Records gather until they are [drained](TextWriter::drain), so that they can be taken from a store that is pinned,
/// and written when it is not.
pub struct TextWriter<W> {
    out: W,
    pending: Vec<u8>,
    digest: XxHash3_64,
    records: u64,
    bytes: u64,
}

impl<W: Write> TextWriter<W> {
    /// A writer that has only its first line, which is not drained yet.
    pub fn new(out: W) -> TextWriter<W> {
        let pending = format!("{FIRST_LINE}\n").into_bytes();
        TextWriter { out, pending, digest: XxHash3_64::new(), records: 0, bytes: 0 }
    }

    /// Adds a record, with the time when it expires, in milliseconds since 1970.
    pub fn record(&mut self, key: &[u8], value: &[u8], expires: Option<u64>) {
        escape(key, &mut self.pending);
        self.pending.push(b'\t');
        escape(value, &mut self.pending);
        if let Some(time) = expires {
            self.pending.extend_from_slice(format!("\t{time}").as_bytes());
        }
        self.pending.push(b'\n');
        self.records += 1;
    }

    /// Bytes that wait to be drained.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Hands on what was added.
    ///
    /// # Errors
    /// Those of what it writes to.
    pub fn drain(&mut self) -> io::Result<()> {
        self.digest.write(&self.pending);
        self.bytes += self.pending.len() as u64;
        let written = self.out.write_all(&self.pending);
        self.pending.clear();
        written
    }

    /// Writes the last line, and returns what was written to, the records, the bytes and the checksum.
    ///
    /// # Errors
    /// As for [`drain`](TextWriter::drain).
    pub fn finish(self) -> io::Result<(W, u64, u64, u64)> {
        self.end(END)
    }

    /// Writes a last line which says that records are missing, and returns what [`finish`](TextWriter::finish) does.
    ///
    /// # Errors
    /// As for [`drain`](TextWriter::drain).
    pub fn finish_incomplete(self) -> io::Result<(W, u64, u64, u64)> {
        self.end(INCOMPLETE)
    }

    fn end(mut self, word: &[u8]) -> io::Result<(W, u64, u64, u64)> {
        self.drain()?;
        let checksum = self.digest.finish();
        let last = [word, format!(" {} {checksum:016x}\n", self.records).as_bytes()].concat();
        self.out.write_all(&last)?;
        self.out.flush()?;
        Ok((self.out, self.records, self.bytes + last.len() as u64, checksum))
    }
}

/// Reads the text form.
pub struct TextReader<R> {
    lines: Lines<R>,
    digest: XxHash3_64,
    records: u64,
    expires: Option<u64>,
    ended: bool,
}

impl<R: BufRead> TextReader<R> {
    /// A reader of records whose key and value have `longest` bytes together, at most; each byte takes four when it is
    /// escaped.
    pub fn new(input: R, longest: u64) -> TextReader<R> {
        let longest = usize::try_from(longest).unwrap_or(usize::MAX).saturating_mul(4).saturating_add(MARGIN);
        let (lines, digest) = (Lines::new(input, longest), XxHash3_64::new());
        TextReader { lines, digest, records: 0, expires: None, ended: false }
    }

    fn first_line(&mut self) -> Result<(), FormError> {
        let line = match self.lines.next() {
            Ok(line) => line.unwrap_or_default(),
            Err(FormError::TooLong { .. }) => return Err(FormError::Foreign),
            Err(error) => return Err(error),
        };
        self.digest.write(line);
        let line = String::from_utf8_lossy(line);
        match line.strip_suffix('\n').and_then(|line| line.strip_prefix(NAME)) {
            Some("1") => Ok(()),
            Some(version) if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(FormError::Newer { version: version.to_owned() })
            }
            Some("1\r") => Err(FormError::CarriageReturn { line: 1 }),
            _ => Err(FormError::Foreign),
        }
    }

    /// Proves the last line, of which `words` follow the first.
    fn last_line<'w>(&mut self, mut words: impl Iterator<Item = &'w [u8]>) -> Result<(), FormError> {
        let line = self.lines.number();
        let text = |word: Option<&'w [u8]>| word.and_then(|word| std::str::from_utf8(word).ok());
        let said = text(words.next()).and_then(|word| word.parse::<u64>().ok());
        let checksum = text(words.next())
            .filter(|word| word.len() == 16)
            .and_then(|word| u64::from_str_radix(word, 16).ok());
        let (Some(said), Some(checksum), None) = (said, checksum, words.next()) else {
            return Err(FormError::End { line });
        };
        let found = self.records;
        if said != found {
            return Err(FormError::Count { line, said, found });
        }
        let found = self.digest.finish();
        if checksum != found {
            return Err(FormError::Checksum { line, said: checksum, found });
        }
        if self.lines.next()?.is_some() {
            return Err(FormError::Surplus { line: self.lines.number() });
        }
        self.ended = true;
        Ok(())
    }
}

impl<R: BufRead> Records for TextReader<R> {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>, FormError> {
        key.clear();
        value.clear();
        if self.ended {
            return Ok(None);
        }
        if self.lines.number() == 0 {
            self.first_line()?;
        }
        let before = self.lines.number();
        let Some(whole) = self.lines.next()? else { return Err(FormError::Cut { line: before }) };
        let line = before + 1;
        // A line that does not end was cut within, and might say anything.
        let text = whole.strip_suffix(b"\n").ok_or(FormError::Cut { line })?;
        if text.ends_with(b"\r") {
            return Err(FormError::CarriageReturn { line });
        }
        let Some(tab) = text.iter().position(|byte| *byte == b'\t') else {
            let words: Vec<Vec<u8>> = text.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
            let mut words = words.iter().map(Vec::as_slice);
            let is_complete = match words.next() {
                Some(END) => true,
                Some(INCOMPLETE) => false,
                _ => return Err(FormError::NoTab { line }),
            };
            self.last_line(words)?;
            let records = self.records;
            return if is_complete { Ok(None) } else { Err(FormError::Incomplete { line, records }) };
        };
        let placed = |start: usize| {
            move |misfit| match misfit {
                Misfit::Control(at, found) => FormError::Control { line, column: start + at + 1, found },
                Misfit::Escape(at) => FormError::Escape { line, column: start + at + 1 },
            }
        };
        unescape(&text[..tab], key).map_err(placed(0))?;
        let rest = &text[tab + 1..];
        let value_end = rest.iter().position(|byte| *byte == b'\t');
        unescape(&rest[..value_end.unwrap_or(rest.len())], value).map_err(placed(tab + 1))?;
        self.expires = match value_end {
            None => None,
            Some(end) => Some(time(&rest[end + 1..]).ok_or(FormError::Expiry { line })?),
        };
        self.digest.write(whole);
        self.records += 1;
        Ok(Some(line))
    }

    fn expires(&self) -> Option<u64> {
        self.expires
    }

    fn bytes(&self) -> u64 {
        self.lines.bytes()
    }
}

/// A time as an export writes it: decimal digits and nothing else.
fn time(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
