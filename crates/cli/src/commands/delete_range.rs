//! `quipu delete-range`: deletes all keys between two, at once.

use crate::args::{PoolChoice, TableChoice};
use crate::failure::{Failure, Outcome};
use crate::{output, pool, text};
use std::ffi::OsString;
use std::ops::Bound;

const EXAMPLES: &str = "\
Examples:
  quipu create log.pool --size 1G --design xp          # a design that has range deletes
  quipu delete-range log.pool --to 2026                # all keys below 2026
  quipu delete-range log.pool --from 2026-01 --to 2026-02
  quipu delete-range log.pool --prefix session/
  quipu delete-range log.pool --prefix session/ --table web

Fields of the JSON object: pool, table (unless it is default).";

/// Delete all keys between two, at once, however many there are.
///
/// It is one write, which happens wholly or not at all. Their space is freed afterwards. To delete all keys,
/// give `--all`. Only designs with range deletes can do this; `quipu designs` says which.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[group(id = "range", required = true, multiple = true)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// Delete only this key and those above it.
    #[arg(long, value_name = "KEY", group = "range")]
    from: Option<OsString>,
    /// Delete only keys below this one.
    #[arg(long, value_name = "KEY", group = "range")]
    to: Option<OsString>,
    /// Delete only keys that begin with these bytes.
    #[arg(long, value_name = "BYTES", group = "range", conflicts_with_all = ["from", "to", "all"])]
    prefix: Option<OsString>,
    /// Delete all keys of the table.
    #[arg(long, group = "range", conflicts_with_all = ["from", "to"])]
    all: bool,
    #[command(flatten)]
    table: TableChoice,
    /// The keys given are hexadecimal digits.
    #[arg(long)]
    hex: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The answer in JSON.
#[derive(serde::Serialize)]
struct Done<'a> {
    pool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'a str>,
}

impl Args {
    /// Deletes the keys.
    pub fn run(self) -> Result<Outcome, Failure> {
        let key = |key: &Option<OsString>, what| match key {
            Some(key) => text::bytes_of(key, what, self.hex).map(Some),
            None => Ok(None),
        };
        let (from, to) = (key(&self.from, "first key")?, key(&self.to, "last key")?);
        let prefix = key(&self.prefix, "prefix")?;
        let first = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let last = to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        pool::with(&self.pool, |store| {
            let mut client = self.table.client(store)?;
            match &prefix {
                Some(prefix) => client.delete_prefix(prefix)?,
                None => client.delete_range(first, last)?,
            }
            Ok(())
        })?;
        if self.json {
            let pool = self.pool.path.display().to_string();
            output::json_line(&Done { pool, table: self.table.told() })?;
        }
        Ok(Outcome::Fine)
    }
}
