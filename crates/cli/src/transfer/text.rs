//! The form `quipu`: its lines, and a reader. `docs/EXPORT.md` says what it is, and a test holds its example
//! against this.

use super::error::FormError;
use super::escape::unescape_at;
use super::lines::Lines;
use super::{Records, tsv};
use std::hash::Hasher;
use std::io::BufRead;
use twox_hash::XxHash3_64;

/// The first line: what the file is, and the version of the form.
pub const FIRST_LINE: &str = "quipu-export 1";

/// The first line up to its version.
const NAME: &str = "quipu-export ";

/// The word that begins the last line, and the one that begins it if the pool was damaged, so that records
/// are missing.
const END: &str = "end";
const INCOMPLETE: &str = "incomplete";

/// Bytes of the last line at most, and of the first: a file that is no export is not searched for long.
const MARGIN: usize = 128;

/// Appends a record to `out`, as a line.
pub(super) fn line(key: &[u8], value: &[u8], expires: Option<u64>, out: &mut Vec<u8>) {
    tsv::line(key, value, out);
    if let Some(time) = expires {
        out.pop();
        out.extend_from_slice(format!("\t{time}\n").as_bytes());
    }
}

/// The last line of a file with so many records, whole or not, and this checksum of what stands before it.
pub(super) fn last_line(is_complete: bool, records: u64, checksum: u64) -> String {
    let word = if is_complete { END } else { INCOMPLETE };
    format!("{word} {records} {checksum:016x}\n")
}

/// Reads the form.
pub struct TextReader<R> {
    lines: Lines<R>,
    digest: XxHash3_64,
    records: u64,
    expires: Option<u64>,
    ended: bool,
}

impl<R: BufRead> TextReader<R> {
    /// A reader of records whose key and value have `longest` bytes together, at most; each byte takes four
    /// when it is escaped.
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
            Some("1\r") => Err(FormError::CarriageReturn(1)),
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
            return Err(FormError::End(line));
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
            return Err(FormError::Surplus(self.lines.number()));
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
        let Some(whole) = self.lines.next()? else { return Err(FormError::Cut(before)) };
        let line = before + 1;
        // A line that does not end was cut within, and might say anything.
        let text = whole.strip_suffix(b"\n").ok_or(FormError::Cut(line))?;
        if text.ends_with(b"\r") {
            return Err(FormError::CarriageReturn(line));
        }
        let Some(tab) = text.iter().position(|byte| *byte == b'\t') else {
            let words: Vec<Vec<u8>> = text.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
            let mut words = words.iter().map(Vec::as_slice);
            let is_complete = match words.next() {
                Some(word) if word == END.as_bytes() => true,
                Some(word) if word == INCOMPLETE.as_bytes() => false,
                _ => return Err(FormError::NoTab(line)),
            };
            self.last_line(words)?;
            let records = self.records;
            return if is_complete { Ok(None) } else { Err(FormError::Incomplete { line, records }) };
        };
        unescape_at(&text[..tab], line, 0, key)?;
        let rest = &text[tab + 1..];
        let value_end = rest.iter().position(|byte| *byte == b'\t');
        unescape_at(&rest[..value_end.unwrap_or(rest.len())], line, tab + 1, value)?;
        self.expires = match value_end {
            None => None,
            Some(end) => Some(time(&rest[end + 1..]).ok_or(FormError::Expiry(line))?),
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
