//! `quipu table list`: the tables of a pool with their sizes.

use crate::args::PoolChoice;
use crate::failure::{Failure, Outcome};
use crate::output::{self, counted};
use crate::pool;
use crate::transfer::escape;
use quipu::{Error, Store, Table, TableStats};
use quipu_bench::size::human;
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  quipu table list herds.pool
  quipu table list herds.pool --json

Fields of the JSON objects: name, records, live_bytes (of its records, about), bytes (of the zones that it takes).";

/// List the tables of a pool with their sizes, in the order in which they were created.
///
/// The pool is only read.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// Print one JSON object a line, one for each table.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Prints the tables.
    pub fn run(self) -> Result<Outcome, Failure> {
        let tables = pool::read(&self.pool, |store| Ok(sizes(store, store.tables()?)?))?;
        for (table, stats) in &tables {
            output::told(self.json, &object(table, stats), || row(table, stats))?;
        }
        Ok(Outcome::Fine)
    }
}

/// Tables with their sizes.
pub fn sizes(store: &Store, tables: Vec<Table>) -> Result<Vec<(Table, TableStats)>, Error> {
    let sized = |table: Table| store.table_stats(&table).map(|stats| (table, stats));
    tables.into_iter().map(sized).collect()
}

/// A table for programs.
pub fn object(table: &Table, stats: &TableStats) -> Value {
    json!({
        "name": table.name(),
        "records": stats.records,
        "live_bytes": stats.live_bytes,
        "bytes": stats.bytes,
    })
}

/// A table in words. A terminal obeys no name.
pub fn row(table: &Table, stats: &TableStats) -> String {
    let mut name = Vec::new();
    escape(table.name().as_bytes(), &mut name);
    format!(
        "{}: {}, {} live, {} of zones",
        String::from_utf8_lossy(&name),
        counted(stats.records, "record"),
        human(stats.live_bytes),
        human(stats.bytes)
    )
}
