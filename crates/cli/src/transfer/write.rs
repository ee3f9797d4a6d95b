//! Records on their way out, in one of the forms.

use super::{JsonRecord, jsonl, tsv};
use std::hash::Hasher;
use std::io::{self, Write};
use twox_hash::XxHash3_64;

/// Bytes of text after which they are written.
const PENDING: usize = 1 << 20;

/// The forms of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// A JSON object a line, with a first and a last line that prove the file: for backups and programs.
    #[default]
    Jsonl,
    /// Key, tab and value, and nothing else; without the time when a record expires, and of one table.
    Tsv,
}

/// Writes records.
pub struct Writer<W> {
    form: Form,
    out: W,
    pending: Vec<u8>,
    digest: XxHash3_64,
    names_tables: bool,
    /// The table of the records to come, if the file names it.
    table: Option<String>,
    /// Records so far.
    pub records: u64,
    /// Bytes written so far.
    pub bytes: u64,
    /// Records that expire and whose form has no place for the time.
    pub without_expiry: u64,
}

impl<W: Write> Writer<W> {
    /// A writer that has only its first line. It names these tables, or none.
    pub fn new(out: W, form: Form, tables: &[String]) -> Writer<W> {
        let (digest, names_tables, mut pending) = (XxHash3_64::new(), !tables.is_empty(), Vec::new());
        if form == Form::Jsonl {
            jsonl::first_line(tables, &mut pending);
        }
        let (records, bytes, without_expiry) = (0, 0, 0);
        Writer { form, out, pending, digest, names_tables, table: None, records, bytes, without_expiry }
    }

    /// Lets the records to come be of this table. A file that names no tables does not tell it.
    pub fn begin(&mut self, table: &str) {
        self.table = self.names_tables.then(|| table.to_owned());
    }

    /// Adds a record, with the time when it expires, in milliseconds since 1970.
    pub fn record(&mut self, key: &[u8], value: &[u8], expires: Option<u64>) -> io::Result<()> {
        match self.form {
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
        if self.pending.len() > PENDING { self.drain() } else { Ok(()) }
    }

    /// Writes what has gathered.
    fn drain(&mut self) -> io::Result<()> {
        self.digest.write(&self.pending);
        self.bytes += self.pending.len() as u64;
        let written = self.out.write_all(&self.pending);
        self.pending.clear();
        written
    }

    /// Writes the last line, if the form has one. It says whether records are missing, since the pool was
    /// damaged. Returns the XXH3 of all bytes before that line, or of all where there is none.
    pub fn finish(&mut self, is_complete: bool) -> io::Result<u64> {
        self.drain()?;
        let checksum = self.digest.finish();
        if self.form == Form::Jsonl {
            self.pending = jsonl::last_line(is_complete, self.records, checksum).into_bytes();
            self.drain()?;
        }
        self.out.flush()?;
        Ok(checksum)
    }
}
