//! The form `quipu`: its lines, and a reader. `docs/EXPORT.md` says what it is, and a test holds its examples
//! against this.

use super::error::FormError;
use super::escape::{escape, unescape_at};
use super::lines::Lines;
use super::tables::is_name;
use super::{Records, tsv};
use std::hash::Hasher;
use std::io::BufRead;
use twox_hash::XxHash3_64;

/// The first line: what the file is, and the version of the form.
pub const FIRST_LINE: &str = "quipu-export 1";

/// The first line of a file that names tables.
const FIRST_LINE_OF_TABLES: &str = "quipu-export 2";

/// The first line up to its version.
const NAME: &str = "quipu-export ";

/// The word before the number of tables, and the one before the name of the table whose records follow.
const TABLES: &str = "tables ";
const IN: &str = "in ";

/// The word that begins the last line, and the one that begins it if the pool was damaged, so that records
/// are missing.
const END: &str = "end";
const INCOMPLETE: &str = "incomplete";

/// Bytes of a line at most that is no record. A file that is no export is not searched for long.
const MARGIN: usize = 640;

/// Tables that a file lists at most. No pool has so many.
const TABLES_MAX: usize = 1 << 16;

/// Appends the lines before the first record to `out`.
pub(super) fn first_lines(tables: &[String], out: &mut Vec<u8>) {
    if tables.is_empty() {
        return out.extend_from_slice(format!("{FIRST_LINE}\n").as_bytes());
    }
    out.extend_from_slice(format!("{FIRST_LINE_OF_TABLES}\n{TABLES}{}\n", tables.len()).as_bytes());
    for table in tables {
        escape(table.as_bytes(), out);
        out.push(b'\n');
    }
}

/// Appends the line before the records of a table to `out`.
pub(super) fn table_line(table: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(IN.as_bytes());
    escape(table.as_bytes(), out);
    out.push(b'\n');
}

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
    /// The tables that the file lists, if it names any; of these, so many have begun.
    tables: Option<Vec<String>>,
    begun: usize,
    records: u64,
    expires: Option<u64>,
    ended: bool,
}

/// The next line with its end.
fn whole_line<R: BufRead>(lines: &mut Lines<R>) -> Result<(u64, &[u8]), FormError> {
    let before = lines.number();
    let Some(whole) = lines.next()? else { return Err(FormError::Cut(before)) };
    let line = before + 1;
    // A line that does not end was cut within, and might say anything.
    match whole.strip_suffix(b"\n") {
        None => Err(FormError::Cut(line)),
        Some(text) if text.ends_with(b"\r") => Err(FormError::CarriageReturn(line)),
        Some(_) => Ok((line, whole)),
    }
}

impl<R: BufRead> TextReader<R> {
    /// A reader of records whose key and value have `longest` bytes together, at most; each byte takes four
    /// when it is escaped.
    pub fn new(input: R, longest: u64) -> TextReader<R> {
        let longest = usize::try_from(longest).unwrap_or(usize::MAX).saturating_mul(4).saturating_add(MARGIN);
        let (lines, digest) = (Lines::new(input, longest), XxHash3_64::new());
        TextReader { lines, digest, tables: None, begun: 0, records: 0, expires: None, ended: false }
    }

    /// Reads the lines before the first record, unless they have been read.
    fn begin(&mut self) -> Result<(), FormError> {
        if self.lines.number() > 0 {
            return Ok(());
        }
        let line = match self.lines.next() {
            Ok(line) => line.unwrap_or_default(),
            Err(FormError::TooLong { .. }) => return Err(FormError::Foreign),
            Err(error) => return Err(error),
        };
        self.digest.write(line);
        let line = String::from_utf8_lossy(line);
        match line.strip_suffix('\n').and_then(|line| line.strip_prefix(NAME)) {
            Some("1") => Ok(()),
            Some("2") => self.list(),
            Some(version) if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(FormError::Newer { version: version.to_owned() })
            }
            Some("1\r" | "2\r") => Err(FormError::CarriageReturn(1)),
            _ => Err(FormError::Foreign),
        }
    }

    /// Reads the list of tables.
    fn list(&mut self) -> Result<(), FormError> {
        // A reader that goes on after a fault here finds no table, so no record either.
        let tables = self.tables.insert(Vec::new());
        let (line, whole) = whole_line(&mut self.lines)?;
        let count = whole[..whole.len() - 1].strip_prefix(TABLES.as_bytes()).and_then(number);
        let what = "the word tables and how many there are";
        let count = count.filter(|count| *count <= TABLES_MAX as u64);
        let count = count.ok_or(FormError::List { line, what })?;
        self.digest.write(whole);
        for _ in 0..count {
            let (line, whole) = whole_line(&mut self.lines)?;
            let mut name = Vec::new();
            unescape_at(&whole[..whole.len() - 1], line, 0, &mut name)?;
            let name = String::from_utf8(name).ok().filter(|name| is_name(name));
            tables
                .push(name.ok_or(FormError::List { line, what: "the name of a table, of 1 to 128 bytes" })?);
            self.digest.write(whole);
        }
        Ok(())
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
    fn tables(&mut self) -> Result<&[String], FormError> {
        self.begin()?;
        Ok(self.tables.as_deref().unwrap_or_default())
    }

    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>, FormError> {
        key.clear();
        value.clear();
        if self.ended {
            return Ok(None);
        }
        self.begin()?;
        loop {
            let (line, whole) = whole_line(&mut self.lines)?;
            let text = &whole[..whole.len() - 1];
            if let Some(tab) = text.iter().position(|byte| *byte == b'\t') {
                if self.tables.is_some() && self.begun == 0 {
                    return Err(FormError::Table(line));
                }
                unescape_at(&text[..tab], line, 0, key)?;
                let rest = &text[tab + 1..];
                let value_end = rest.iter().position(|byte| *byte == b'\t');
                unescape_at(&rest[..value_end.unwrap_or(rest.len())], line, tab + 1, value)?;
                self.expires = match value_end {
                    None => None,
                    Some(end) => Some(number(&rest[end + 1..]).ok_or(FormError::Expiry(line))?),
                };
                self.digest.write(whole);
                self.records += 1;
                return Ok(Some(line));
            }
            if let (Some(tables), Some(name)) = (&self.tables, text.strip_prefix(IN.as_bytes())) {
                unescape_at(name, line, IN.len(), key)?;
                let later = tables[self.begun..].iter().position(|table| table.as_bytes() == &key[..]);
                self.begun += later.ok_or(FormError::Table(line))? + 1;
                self.digest.write(whole);
                key.clear();
                continue;
            }
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
        }
    }

    fn table(&self) -> Option<&str> {
        self.begun.checked_sub(1).and_then(|at| self.tables.as_ref()?.get(at)).map(String::as_str)
    }

    fn expires(&self) -> Option<u64> {
        self.expires
    }

    fn bytes(&self) -> u64 {
        self.lines.bytes()
    }
}

/// A number as an export writes it: decimal digits and nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
