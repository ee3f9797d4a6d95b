//! `quipu export`: writes a pool into a file.

use crate::failure::{Failure, Outcome};
use crate::output::{self, Bar, counted};
use crate::pool;
use crate::size::human;
use quipu::Store;
use quipu_cli::transfer::{self, ExportError, Exported};
use serde_json::json;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  quipu export animals.pool animals.txt
  quipu export animals.pool - | gzip > animals.txt.gz
  quipu export small.pool - | quipu import larger.pool -

Fields of the JSON object: pool, file, records, bytes, checksum (as in the last line of the file), seconds.";

/// Write all records of a pool into a file, as text.
///
/// Every record is a line of its own, in order of the keys, so that equal contents give equal files; docs/EXPORT.md
/// describes them. A file that is there already is not overwritten.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The pool.
    pool: PathBuf,
    /// The file, which must not exist; `-` is standard output.
    file: PathBuf,
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
            pool::with(&self.pool, |store| {
                export(store, io::stdout().lock()).map_err(|error| match error {
                    ExportError::Store(error) => error.into(),
                    ExportError::Write(error) => Failure::output(&error),
                })
            })?;
            return Ok(Outcome::Fine);
        }
        let exported = pool::with(&self.pool, |store| self.export_to_file(store))?;
        self.report(exported, begun.elapsed().as_secs_f64())?;
        Ok(Outcome::Fine)
    }

    /// Exports into a new file, which is on its device when this returns, or is gone.
    fn export_to_file(&self, store: &Store) -> Result<Exported, Failure> {
        let wrong = |error: io::Error| format!("cannot write {}: {error}", self.file.display());
        // A pool is never overwritten by an export of itself, nor an export by one that fails.
        let mut file = File::create_new(&self.file).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::Usage(format!("{} exists already; choose another name", self.file.display()))
            }
            _ => Failure::Usage(wrong(error)),
        })?;
        let exported = export(store, &mut file).and_then(|exported| {
            file.sync_all()?;
            Ok(exported)
        });
        exported.map_err(|error| {
            // Without its last line it would be refused by every import; it is of no use.
            let _ = std::fs::remove_file(&self.file);
            match error {
                ExportError::Store(error) => error.into(),
                ExportError::Write(error) => Failure::Problem(wrong(error)),
            }
        })
    }

    fn report(&self, exported: Exported, seconds: f64) -> Result<(), Failure> {
        let Exported { records, bytes, checksum } = exported;
        if self.json {
            return output::json_line(&json!({
                "pool": self.pool.to_string_lossy(),
                "file": self.file.to_string_lossy(),
                "records": records,
                "bytes": bytes,
                "checksum": format!("{checksum:016x}"),
                "seconds": seconds,
            }));
        }
        let (records, bytes) = (counted(records, "record"), human(bytes));
        output::line(format!("Exported {records}, {bytes} in {seconds:.1} s."))
    }
}

fn export(store: &Store, out: impl Write) -> Result<Exported, ExportError> {
    let bar = Bar::new("exporting");
    let exported = transfer::export(&store.client(), out, &|done, total| bar.at(done.min(total), total));
    bar.clear();
    exported
}
