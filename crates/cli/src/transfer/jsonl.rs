//! The form `jsonl`: one JSON object a line, for backups and for other programs.
//!
//! An object has the key and the value as strings, or as hexadecimal digits where they are not UTF-8; so any
//! bytes go out and come back as they were. An export begins with a line that has its version and its tables,
//! and ends with one that proves it: that line has the number of records and the XXH3 of all bytes before it.
//! A file without such a first line comes from another program. It is read, and nothing proves it whole.

use super::Records;
use super::error::FormError;
use super::escape::escape;
use super::lines::Lines;
use super::tables::is_name;
use crate::output::counted;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::borrow::Cow;
use std::hash::Hasher;
use std::io::BufRead;
use twox_hash::XxHash3_64;

/// The version of the form.
const VERSION: u64 = 1;

/// The beginnings of a first line, and of last ones.
const FIRST: &[u8] = b"{\"quipu_export\":";
const LAST: [&[u8]; 2] = [b"{\"end\":", b"{\"incomplete\":"];

/// Bytes of a line beside key and value: for the list of the 4096 tables that a pool has at most, whose names
/// take 768 bytes each if all of their characters are escaped.
const MARGIN: usize = 4 << 20;

/// The first line of an export. Fields that a later program adds are passed over.
#[derive(Serialize, Deserialize)]
struct First<'t> {
    quipu_export: u64,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    tables: Cow<'t, [String]>,
}

/// A record as an object.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonRecord<'t> {
    table: Option<Cow<'t, str>>,
    key: Option<Cow<'t, str>>,
    key_hex: Option<Cow<'t, str>>,
    value: Option<Cow<'t, str>>,
    value_hex: Option<Cow<'t, str>>,
    expires: Option<u64>,
}

/// Bytes as a string, or else as digits.
type Field<'t> = (Option<Cow<'t, str>>, Option<Cow<'t, str>>);

fn field(bytes: &[u8]) -> Field<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(hex::encode(bytes).into())),
    }
}

/// Puts the bytes of a field into `out`, or tells its fault.
fn bytes((text, digits): Field<'_>, name: &'static str, out: &mut Vec<u8>) -> Result<(), String> {
    match (text, digits) {
        (Some(text), None) => out.extend_from_slice(text.as_bytes()),
        (None, Some(digits)) => {
            let wrong = |_| format!("{name}_hex is not two hexadecimal digits for each byte");
            out.extend(hex::decode(digits.as_bytes()).map_err(wrong)?);
        }
        (Some(_), Some(_)) => return Err(format!("there are both {name} and {name}_hex")),
        (None, None) => return Err(format!("there is no {name}, nor {name}_hex")),
    }
    Ok(())
}

impl<'t> JsonRecord<'t> {
    /// A whole record, with the time when it expires, in milliseconds since 1970.
    pub fn new(key: &'t [u8], value: &'t [u8], expires: Option<u64>) -> JsonRecord<'t> {
        let (value, value_hex) = field(value);
        JsonRecord { value, value_hex, expires, ..JsonRecord::of_key(key) }
    }

    /// A key alone.
    pub fn of_key(key: &'t [u8]) -> JsonRecord<'t> {
        let (key, key_hex) = field(key);
        JsonRecord { key, key_hex, ..JsonRecord::default() }
    }

    /// The same with the name of its table.
    pub fn in_table(self, table: Option<&'t str>) -> JsonRecord<'t> {
        JsonRecord { table: table.map(Cow::Borrowed), ..self }
    }

    /// The same with digits in place of strings, but for the table.
    pub fn in_hex(self) -> JsonRecord<'t> {
        let digits_of = |text: Option<Cow<'t, str>>| text.map(|text| hex::encode(text.as_bytes()).into());
        let key_hex = digits_of(self.key).or(self.key_hex);
        let value_hex = digits_of(self.value).or(self.value_hex);
        JsonRecord { key: None, key_hex, value: None, value_hex, ..self }
    }
}

/// Appends the first line of a file with these tables to `out`.
pub(super) fn first_line(tables: &[String], out: &mut Vec<u8>) {
    line(&First { quipu_export: VERSION, tables: tables.into() }, out);
}

/// Appends a record, or another object, to `out`, as a line.
pub(super) fn line(object: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, object).expect("strings are always JSON");
    out.push(b'\n');
}

/// The last line of a file with so many records, whole or not, and this checksum of all lines before it.
pub(super) fn last_line(is_complete: bool, records: u64, checksum: u64) -> String {
    let word = if is_complete { "end" } else { "incomplete" };
    format!("{{\"{word}\":{{\"records\":{records},\"xxh3\":\"{checksum:016x}\"}}}}\n")
}

/// Reads the form.
pub struct JsonlReader<R> {
    lines: Lines<R>,
    digest: XxHash3_64,
    /// The tables of the first line, if the file has one: then it must have a last line, too.
    listed: Option<Vec<String>>,
    records: u64,
    table: Option<String>,
    expires: Option<u64>,
    is_proved: bool,
}

impl<R: BufRead> JsonlReader<R> {
    /// A reader of records whose key and value have `longest` bytes together, at most; each byte takes six
    /// when it is escaped.
    pub fn new(input: R, longest: u64) -> JsonlReader<R> {
        let (lines, digest) = (Lines::new(input, longest, 6, MARGIN), XxHash3_64::new());
        JsonlReader { lines, digest, listed: None, records: 0, table: None, expires: None, is_proved: false }
    }
}

fn no_record(line: u64, what: &str) -> FormError {
    let fields = "key or key_hex, value or value_hex, and perhaps expires and table";
    FormError::at(
        line,
        format!(
            "is no record: {what}; each line is an object with {fields}, and other forms are named by --form"
        ),
    )
}

/// The object of a line.
fn parsed<'t, T: Deserialize<'t>>(line: u64, text: &'t [u8]) -> Result<T, FormError> {
    serde_json::from_slice(text).map_err(|error| {
        let what = error.to_string();
        // It repeats names that stand in the file, which may be anything that a terminal obeys.
        let mut printable = Vec::new();
        escape(what.split(" at line ").next().unwrap_or_default().as_bytes(), &mut printable);
        no_record(line, &String::from_utf8_lossy(&printable))
    })
}

/// The tables of a first line.
fn listed(text: &[u8]) -> Result<Vec<String>, FormError> {
    let First { quipu_export, tables } = parsed(1, text)?;
    if quipu_export != VERSION {
        let newer = format!(
            "is of an export of version {quipu_export}; use a program that reads it, this one reads {VERSION}"
        );
        return Err(FormError::at(1, newer));
    }
    match tables.iter().all(|name| is_name(name)) {
        true => Ok(tables.into_owned()),
        false => Err(no_record(1, "the name of a table has 1 to 128 bytes")),
    }
}

/// Whether a last line says that no record is missing, if it is the one of the lines before it.
fn is_complete(line: u64, text: &[u8], records: u64, checksum: u64) -> Result<bool, FormError> {
    let says = |is_complete| text == last_line(is_complete, records, checksum).as_bytes();
    if !says(true) && !says(false) {
        let found = format!("{} before it, whose checksum is {checksum:016x}", counted(records, "record"));
        return Err(FormError::at(line, format!("does not prove the {found}; get an unchanged copy")));
    }
    Ok(says(true))
}

impl<R: BufRead> Records for JsonlReader<R> {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>, FormError> {
        key.clear();
        value.clear();
        if self.is_proved {
            return Ok(None);
        }
        let line = self.lines.number() + 1;
        let Some(text) = self.lines.next_text()? else {
            // A pipe from a command that failed is empty, and no export is.
            let may_end = self.listed.is_none() && line > 1;
            return if may_end { Ok(None) } else { Err(FormError::Cut(line - 1)) };
        };
        let is_first = line == 1 && text.starts_with(FIRST);
        if is_first || self.listed.is_some() {
            // A line that does not end was cut within, and might say anything.
            let whole = text.strip_suffix(b"\n").ok_or(FormError::Cut(line))?;
            FormError::expect_no_return(line, whole)?;
        }
        if is_first {
            self.listed = Some(listed(text)?);
            self.digest.write(text);
            return self.next(key, value);
        }
        let records = self.records;
        if LAST.iter().any(|word| text.starts_with(word)) {
            if self.listed.is_none() {
                return Err(FormError::at(line, "ends an export whose first line is missing; get it whole"));
            }
            let is_complete = is_complete(line, text, records, self.digest.finish())?;
            if self.lines.next()?.is_some() {
                return Err(FormError::at(line + 1, "stands behind the last; give each export its own file"));
            }
            self.is_proved = true;
            return if is_complete { Ok(None) } else { Err(FormError::Incomplete { line, records }) };
        }
        let record: JsonRecord<'_> = parsed(line, text)?;
        bytes((record.key, record.key_hex), "key", key)
            .and_then(|()| bytes((record.value, record.value_hex), "value", value))
            .map_err(|what| no_record(line, &what))?;
        let table = record.table.as_deref();
        if table.is_some_and(|table| !is_name(table)) {
            return Err(no_record(line, "the name of a table has 1 to 128 bytes"));
        }
        let is_listed = |listed: &Vec<String>| match table {
            // That of the record before is mostly the one.
            Some(table) => self.table.as_deref() == Some(table) || listed.iter().any(|name| name == table),
            None => listed.is_empty(),
        };
        if !self.listed.as_ref().is_none_or(is_listed) {
            let what = "is of no table that the first line lists; get an unchanged copy";
            return Err(FormError::at(line, what));
        }
        self.table = record.table.map(Cow::into_owned);
        self.expires = record.expires;
        self.records += 1;
        self.digest.write(text);
        Ok(Some(line))
    }

    fn tables(&self) -> &[String] {
        self.listed.as_deref().unwrap_or_default()
    }

    fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    fn expires(&self) -> Option<u64> {
        self.expires
    }

    fn is_proved(&self) -> bool {
        self.is_proved
    }

    fn bytes(&self) -> u64 {
        self.lines.bytes()
    }
}
