//! `quipu export`: writes a pool into a file.

use super::check::{listed, objects};
use crate::args::PoolChoice;
use crate::failure::{Failure, Outcome};
use crate::leftover::Unnamed;
use crate::output::{self, Bar, counted};
use crate::pool;
use crate::transfer::{self, ExportError, Exported, Form};
use clap::ValueEnum;
use quipu::Store;
use quipu_bench::size::human;
use serde_json::json;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  quipu export animals.pool animals.jsonl
  quipu export animals.pool - | gzip > animals.jsonl.gz
  quipu export small.pool - | quipu import larger.pool -
  quipu export animals.pool - --form tsv | cut -f 1
  quipu export herds.pool andes.jsonl --table andes  # of a pool with tables, one of them

Exit code 1 if the pool is damaged, or if opening it after a crash did not find all records: then the file has the \
records that prove themselves, and in the form jsonl it says in its last line that it is incomplete.

Fields of the JSON object: pool, file, form, tables (the names of those that the file names), records, bytes, checksum (as in the last line of the file; of the whole \
file where the form has none), without_expiry (records that expire, where the form cannot say so), seconds, complete, \
damage (list of what, offset, len).";

/// Write all records of a pool into a file, as text.
///
/// Every record is a line of its own, in order of the keys, so that equal contents give equal files;
/// docs/EXPORT.md describes the forms. Of a pool with tables, all are written, as they are at one moment. A
/// file that is there already is not overwritten, and the new one has its name only when it is whole. Every
/// record is proved before it is written.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// The file, which must not exist; `-` is standard output.
    file: PathBuf,
    /// The form of the file.
    #[arg(long, value_enum, default_value_t)]
    form: Form,
    /// Write this table alone.
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Exports the pool.
    pub fn run(self) -> Result<Outcome, Failure> {
        let piped = self.file.as_os_str() == "-";
        if piped && self.json {
            let both = "--json and the file - both want standard output; give the file a name".to_owned();
            return Err(Failure::Usage(both));
        }
        let begun = Instant::now();
        if piped {
            let exported = pool::read(&self.pool, |store| {
                self.export(store, io::stdout().lock()).map_err(|error| match error {
                    ExportError::Store(error) => error.into(),
                    ExportError::Write(error) => Failure::output(&error),
                    error => Failure::Usage(error.to_string()),
                })
            })?;
            return self.judge(&exported);
        }
        let exported = pool::read(&self.pool, |store| self.export_to_file(store))?;
        self.report(&exported, begun.elapsed().as_secs_f64())?;
        self.judge(&exported)
    }

    /// Refuses to end with success if records are missing.
    fn judge(&self, exported: &Exported) -> Result<Outcome, Failure> {
        if exported.without_expiry > 0 && !self.json {
            let records = counted(exported.without_expiry, "record");
            output::aside(format!("the time of expiry of {records} is left out; --form jsonl keeps it"));
        }
        if exported.damage.is_empty() {
            return Ok(Outcome::Fine);
        }
        if self.json {
            return Ok(Outcome::Problem);
        }
        let places = listed("damaged", &exported.damage).join("\n");
        Err(Failure::Problem(format!(
            "{} is damaged, and the export is incomplete: {} proved themselves, and these did not\n{places}; restore the pool, or \
             take the missing records from an older export",
            self.pool.path.display(),
            counted(exported.records, "record")
        )))
    }

    /// Exports into a new file, which is on its device when this returns, or is not there.
    fn export_to_file(&self, store: &Store) -> Result<Exported, Failure> {
        let wrong = |error: io::Error| match error.kind() {
            // A pool is never overwritten by an export of itself, nor an export by one that fails.
            io::ErrorKind::AlreadyExists => {
                Failure::Usage(format!("{} exists already; choose another name", self.file.display()))
            }
            _ => Failure::file("write", &self.file, &error),
        };
        let begin = || {
            let unnamed = Unnamed::of(&self.file)?;
            // For those who may read the pool, and no others.
            let file = File::options().write(true).create_new(true).mode(0o600).open(unnamed.path())?;
            Ok((unnamed, file))
        };
        let (unnamed, mut file) = begin().map_err(wrong)?;
        let exported = self.export(store, &mut file).and_then(|exported| {
            file.sync_all()?;
            Ok(exported)
        });
        let exported = exported.map_err(|error| match error {
            ExportError::Store(error) => error.into(),
            ExportError::Write(error) => wrong(error),
            error => Failure::Usage(error.to_string()),
        })?;
        unnamed.name()?;
        Ok(exported)
    }

    fn report(&self, exported: &Exported, seconds: f64) -> Result<(), Failure> {
        let Exported { records, bytes, checksum, without_expiry, ref tables, ref damage } = *exported;
        let object = json!({
            "pool": self.pool.path.to_string_lossy(),
            "file": self.file.to_string_lossy(),
            "form": self.form.to_possible_value().map(|form| form.get_name().to_owned()),
            "tables": tables,
            "records": records,
            "bytes": bytes,
            "checksum": format!("{checksum:016x}"),
            "without_expiry": without_expiry,
            "seconds": seconds,
            "complete": damage.is_empty(),
            "damage": objects(damage),
        });
        let (mut records, bytes) = (counted(records, "record"), human(bytes));
        if !tables.is_empty() {
            records.push_str(&format!(" of {}", counted(tables.len() as u64, "table")));
        }
        output::told(self.json, &object, || format!("Exported {records}, {bytes} in {seconds:.1} s."))
    }

    fn export(&self, store: &Store, out: impl Write) -> Result<Exported, ExportError> {
        // Most torn places are writes that a crash cut off: they are reported beside the export, which counts
        // them as never made.
        let missing = store.recovery().lost.clone();
        Bar::during("exporting", |bar| {
            let progress = |done: u64, total| bar.at(done.min(total), total);
            transfer::export(store, self.table.as_deref(), missing, self.form, out, &progress)
        })
    }
}
