//! Records on their way out, in one of the forms.

use super::{JsonRecord, jsonl, text, tsv};
use std::hash::Hasher;
use std::io::{self, Write};
use twox_hash::XxHash3_64;

/// The forms of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Key, tab and value, with a first and a last line that prove the file: for backups, and for import.
    #[default]
    #[value(alias = "text")]
    Quipu,
    /// Key, tab and value, and nothing else; without the time when a record expires, and of one table.
    Tsv,
    /// A JSON object a line: key, value, and when it expires; its table, if there are others.
    Jsonl,
}

/// Writes records.
///
/// They gather until they are [drained](Writer::drain), so that they can be taken from a store that is
/// pinned, and written when it is not.
pub struct Writer<W> {
    form: Form,
    out: W,
    pending: Vec<u8>,
    digest: XxHash3_64,
    records: u64,
    bytes: u64,
    without_expiry: u64,
    names_tables: bool,
    /// The table of the records to come, if the file names it with each.
    table: Option<String>,
}

/// The result.
#[derive(Debug)]
pub struct Written<W> {
    /// The output.
    pub out: W,
    /// Records.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
    /// XXH3 of all bytes before the last line, or of all where the form has none such.
    pub checksum: u64,
    /// Records that expire and whose form has no place for the time.
    pub without_expiry: u64,
}

impl<W: Write> Writer<W> {
    /// A writer that has only its first lines, which are not drained yet. It names these tables, in this
    /// order, or none.
    pub fn new(out: W, form: Form, tables: &[String]) -> Writer<W> {
        let (digest, names_tables) = (XxHash3_64::new(), !tables.is_empty());
        let mut pending = Vec::new();
        if form == Form::Quipu {
            text::first_lines(tables, &mut pending);
        }
        Writer {
            form,
            out,
            pending,
            digest,
            records: 0,
            bytes: 0,
            without_expiry: 0,
            names_tables,
            table: None,
        }
    }

    /// Lets the records to come be of this table. A file that names no tables does not tell it.
    pub fn begin(&mut self, table: &str) {
        if self.names_tables {
            match self.form {
                Form::Quipu => text::table_line(table, &mut self.pending),
                Form::Jsonl => self.table = Some(table.to_owned()),
                Form::Tsv => {}
            }
        }
    }

    /// Adds a record, with the time when it expires, in milliseconds since 1970.
    pub fn record(&mut self, key: &[u8], value: &[u8], expires: Option<u64>) {
        match self.form {
            Form::Quipu => text::line(key, value, expires, &mut self.pending),
            Form::Jsonl => {
                let record = JsonRecord::new(key, value, expires);
                jsonl::line(&record.in_table(self.table.as_deref()), &mut self.pending);
            }
            Form::Tsv => {
                tsv::line(key, value, &mut self.pending);
                self.without_expiry += u64::from(expires.is_some());
            }
        }
        self.records += 1;
    }

    /// Bytes that wait to be drained.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Hands on the added records.
    pub fn drain(&mut self) -> io::Result<()> {
        self.digest.write(&self.pending);
        self.bytes += self.pending.len() as u64;
        let written = self.out.write_all(&self.pending);
        self.pending.clear();
        written
    }

    /// Writes the last line, if the form has one. It says whether records are missing, since the pool was
    /// damaged.
    pub fn finish(mut self, is_complete: bool) -> io::Result<Written<W>> {
        self.drain()?;
        let checksum = self.digest.finish();
        let last = match self.form {
            Form::Quipu => text::last_line(is_complete, self.records, checksum),
            Form::Tsv | Form::Jsonl => String::new(),
        };
        self.out.write_all(last.as_bytes())?;
        self.out.flush()?;
        let Writer { out, records, bytes, without_expiry, .. } = self;
        Ok(Written { out, records, bytes: bytes + last.len() as u64, checksum, without_expiry })
    }
}
