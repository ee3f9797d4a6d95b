//! The Debian form: the package index of an installation (`/var/lib/dpkg/status`) or of a mirror
//! (`Packages`).
//!
//! Such a file is a row of stanzas with empty lines between; a stanza is a row of fields, `Name: value`,
//! whose further lines are indented (Debian Policy, section 5.1). A stanza becomes a record. Its value is the
//! stanza, byte for byte, with the end of its last line; its key is made of the fields that are asked for,
//! with colons between. The file proves nothing about itself, so what was cut off at the end of a line cannot
//! be noticed.

use super::Records;
use super::error::FormError;
use super::lines::Lines;
use std::collections::HashSet;
use std::io::BufRead;
use twox_hash::XxHash3_128;

/// Reads stanzas.
pub struct DebianReader<R> {
    lines: Lines<R>,
    fields: Vec<String>,
    longest: u64,
    seen: HashSet<u128>,
}

impl<R: BufRead> DebianReader<R> {
    /// A reader of stanzas of at most `longest` bytes, whose keys are made of these fields.
    pub fn new(input: R, longest: u64, fields: Vec<String>) -> DebianReader<R> {
        DebianReader { lines: Lines::new(input, longest, 1, 0), fields, longest, seen: HashSet::new() }
    }
}

impl<R: BufRead> Records for DebianReader<R> {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>, FormError> {
        key.clear();
        value.clear();
        let mut first = 0;
        loop {
            let line = self.lines.number() + 1;
            let Some(text) = self.lines.next()? else { break };
            if text.trim_ascii().is_empty() {
                if value.is_empty() {
                    continue;
                }
                break;
            }
            if (value.len() + text.len()) as u64 > self.longest {
                return Err(FormError::too_long(line, self.longest));
            }
            let indented = matches!(text, [b' ' | b'\t', ..]) && !value.is_empty();
            if !indented && name_and_rest(text).is_none() {
                let what = "is neither a field with a colon nor indented; is this a Debian package index, uncompressed?";
                return Err(FormError::at(line, what));
            }
            if value.is_empty() {
                first = line;
            }
            value.extend_from_slice(text);
        }
        if value.is_empty() {
            return Ok(None);
        }
        for (i, field) in self.fields.iter().enumerate() {
            if i > 0 {
                key.push(b':');
            }
            let missing = || format!("begins a stanza without a field {field}; name others with --key");
            let found = field_of(value, field).ok_or_else(|| FormError::at(first, missing()))?;
            key.extend_from_slice(found);
        }
        // By a hash of 128 bits, since the keys of a file need not fit into memory.
        if !self.seen.insert(XxHash3_128::oneshot(key)) {
            let what = format!("begins another stanza with the key {}", key.escape_ascii());
            return Err(FormError::at(first, format!("{what}; name more fields with --key")));
        }
        Ok(Some(first))
    }

    fn bytes(&self) -> u64 {
        self.lines.bytes()
    }
}

/// A line that opens a field, as the name and what follows the colon.
fn name_and_rest(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, rest) = line.split_at(colon);
    let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic());
    is_name.then(|| (name, rest.get(1..).unwrap_or_default()))
}

/// The first line of a field's value, without white space around it. Names of fields have no case.
fn field_of<'s>(stanza: &'s [u8], field: &str) -> Option<&'s [u8]> {
    let mut fields = stanza.split(|byte| *byte == b'\n').filter_map(name_and_rest);
    let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case(field.as_bytes()))?;
    Some(value.trim_ascii()).filter(|value| !value.is_empty())
}
