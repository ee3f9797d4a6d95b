//! `quipu import`: fills a pool from a file.

use crate::args::PoolChoice;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Bar, counted};
use crate::pool;
use crate::transfer::{
    self, DebianReader, ImportCause, ImportError, Imported, JsonlReader, Records, TsvReader,
};
use clap::ValueEnum;
use quipu::{Error, Store};
use quipu_bench::size::human;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::time::Instant;

/// Bytes read at once.
const BUFFER: usize = 256 << 10;

const EXAMPLES: &str = "\
Examples:
  quipu import animals.pool animals.jsonl
  zcat animals.jsonl.gz | quipu import animals.pool -
  printf 'llama\\twool\\n' | quipu import animals.pool - --form tsv
  quipu import packages.pool /var/lib/dpkg/status --form debian --key Package
  quipu import herds.pool herds.jsonl --table andes  # of a file with tables, one of them

Fields of the JSON object: pool, file, form, records, replaced (records whose key was in the pool, or earlier in \
the file; null if some are on levels, where nobody counts keys), bytes, seconds, created (the names of tables that were missing), passed_over (records of other tables), proved (whether the file \
proved itself whole).";

/// Put all records of a file into a pool.
///
/// Keys that the pool has get the value of the file; others stay as they are. If the file is damaged or the
/// pool becomes full on the way, what stands before is kept, and importing the whole file again does no harm.
///
/// Records go into the table that the file names, and else into the one called default. A table that is
/// missing is created.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// The file; `-` is standard input.
    file: PathBuf,
    /// The form of the file.
    #[arg(long, value_enum, default_value_t = Form::Jsonl)]
    form: Form,
    /// With `--form debian`: the fields that make the key, with colons between.
    #[arg(
        long,
        value_name = "FIELDS",
        value_delimiter = ',',
        default_value = "Package,Architecture,Version"
    )]
    key: Vec<String>,
    /// Take the records of this table alone, or put those that name no table into it.
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Form {
    /// A JSON object a line. The last one proves an export; a file of another program needs none.
    Jsonl,
    /// Key, tab and value, escaped as `quipu export --form tsv` does.
    Tsv,
    /// The package index of a Debian installation, of which every stanza becomes a record.
    Debian,
}

/// A file that is to be imported.
struct Input {
    reader: Box<dyn BufRead>,
    len: Option<u64>,
}

impl Args {
    /// Imports the file.
    pub fn run(self) -> Result<Outcome, Failure> {
        let input = self.open()?;
        let begun = Instant::now();
        let (imported, replaced) = pool::with(&self.pool, |store| {
            let before = store.stats().records;
            let imported = self.import(store, input).map_err(|error| self.failure(store, error))?;
            let after = store.stats();
            let fresh = after.records.saturating_sub(before);
            // Nobody counts the keys of levels.
            let replaced = (after.level_records == 0).then(|| imported.records.saturating_sub(fresh));
            Ok((imported, replaced))
        })?;
        self.report(&imported, replaced, begun.elapsed().as_secs_f64())?;
        Ok(Outcome::Fine)
    }

    fn open(&self) -> Result<Input, Failure> {
        if self.file.as_os_str() == "-" {
            return Ok(Input { reader: Box::new(BufReader::with_capacity(BUFFER, io::stdin())), len: None });
        }
        let wrong = |error| Failure::file("read", &self.file, &error);
        let file = File::open(&self.file).map_err(wrong)?;
        let about = file.metadata().map_err(wrong)?;
        let len = about.is_file().then_some(about.len());
        Ok(Input { reader: Box::new(BufReader::with_capacity(BUFFER, file)), len })
    }

    fn import(&self, store: &Store, input: Input) -> Result<Imported, ImportError> {
        let (key, value) = store.limits();
        let bar = Bar::bytes("importing", input.len);
        let progress = |bytes| bar.reached(bytes);
        let mut records: Box<dyn Records> = match self.form {
            Form::Jsonl => Box::new(JsonlReader::new(input.reader, key + value)),
            Form::Tsv => Box::new(TsvReader::new(input.reader, key + value)),
            Form::Debian => Box::new(DebianReader::new(input.reader, value, self.key.clone())),
        };
        let imported = transfer::import(store, self.table.as_deref(), &mut *records, &progress);
        bar.clear();
        imported
    }

    fn failure(&self, store: &Store, error: ImportError) -> Failure {
        let text = match &error.cause {
            ImportCause::Store { line, source: Error::PoolFull { .. }, wanted } => {
                format!("line {line}: {}", pool::full(store, *wanted))
            }
            _ => error.to_string(),
        };
        let (what, hint) = text.split_once("; ").unwrap_or((&text, "mend that"));
        let (file, pool) = (self.file.display(), self.pool.path.display());
        if error.is_refusal() {
            return Failure::Usage(format!(
                "cannot import {file} into {pool}: {what}; {hint}. Nothing was put"
            ));
        }
        let kept = counted(error.imported, "record");
        Failure::Problem(format!(
            "cannot import {file} into {pool}: {what} ({kept} before it kept); {hint}. Importing the whole file again does no harm"
        ))
    }

    fn report(&self, imported: &Imported, replaced: Option<u64>, seconds: f64) -> Result<(), Failure> {
        let Imported { records, bytes, ref created, passed_over, proved } = *imported;
        if self.json {
            return output::json_line(&json!({
                "pool": self.pool.path.to_string_lossy(),
                "file": self.file.to_string_lossy(),
                "form": self.form.to_possible_value().map(|form| form.get_name().to_owned()),
                "records": records,
                "replaced": replaced,
                "bytes": bytes,
                "seconds": seconds,
                "created": created,
                "passed_over": passed_over,
                "proved": proved,
            }));
        }
        if matches!(self.form, Form::Jsonl) && !proved {
            let file = self.file.display();
            output::aside(format!(
                "{file} has no first and last line that prove it whole, as an export has; compare the number of records with its source"
            ));
        }
        let said = |number: u64, text: String| if number > 0 { text } else { String::new() };
        let replaced = replaced.unwrap_or(0);
        let replaced = said(replaced, format!(", {replaced} of them in place of others"));
        let tables = created.len() as u64;
        let tables = said(tables, format!(" Created {}.", counted(tables, "table")));
        let passed = counted(passed_over, "record");
        let passed = said(passed_over, format!(" Passed over {passed} of other tables."));
        output::line(format!(
            "Imported {}{replaced}, from {} in {seconds:.1} s.{tables}{passed}",
            counted(records, "record"),
            human(bytes)
        ))
    }
}
