//! The form `jsonl`: one JSON object a line, for programs.
//!
//! An object has the key and the value as strings, or as hexadecimal digits where they are not UTF-8; so any
//! bytes go out and come back as they were. There is no last line: a file that was cut between two lines is
//! not noticed.

use super::Records;
use super::error::FormError;
use super::escape::escape;
use super::lines::Lines;
use super::tables::is_name;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::borrow::Cow;
use std::io::BufRead;

/// Bytes of an object beside key and value: for its table, and with room for some white space.
const MARGIN: usize = 1536;

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

/// Appends a record to `out`, as a line.
pub(super) fn line(record: &JsonRecord<'_>, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, record).expect("strings are always JSON");
    out.push(b'\n');
}

/// Reads the form.
pub struct JsonlReader<R> {
    lines: Lines<R>,
    table: Option<String>,
    expires: Option<u64>,
}

impl<R: BufRead> JsonlReader<R> {
    /// A reader of records whose key and value have `longest` bytes together, at most; each byte takes six
    /// when it is escaped.
    pub fn new(input: R, longest: u64) -> JsonlReader<R> {
        let longest = usize::try_from(longest).unwrap_or(usize::MAX).saturating_mul(6).saturating_add(MARGIN);
        JsonlReader { lines: Lines::new(input, longest), table: None, expires: None }
    }
}

impl<R: BufRead> Records for JsonlReader<R> {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>, FormError> {
        key.clear();
        value.clear();
        let line = self.lines.number() + 1;
        let Some(text) = self.lines.next_text()? else { return Ok(None) };
        let record: JsonRecord<'_> = serde_json::from_slice(text).map_err(|error| {
            let what = error.to_string();
            // It repeats names that stand in the file, which may be anything that a terminal obeys.
            let mut printable = Vec::new();
            escape(what.split(" at line ").next().unwrap_or_default().as_bytes(), &mut printable);
            FormError::Object { line, what: String::from_utf8_lossy(&printable).into_owned() }
        })?;
        let wrong = |what| FormError::Object { line, what };
        bytes((record.key, record.key_hex), "key", key).map_err(wrong)?;
        bytes((record.value, record.value_hex), "value", value).map_err(wrong)?;
        if record.table.as_deref().is_some_and(|table| !is_name(table)) {
            return Err(wrong("the name of a table has 1 to 128 bytes".to_owned()));
        }
        self.table = record.table.map(Cow::into_owned);
        self.expires = record.expires;
        Ok(Some(line))
    }

    fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    fn expires(&self) -> Option<u64> {
        self.expires
    }

    fn bytes(&self) -> u64 {
        self.lines.bytes()
    }
}
