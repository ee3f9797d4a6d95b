//! `quipu table drop`: drops a table.

use crate::args::PoolChoice;
use crate::failure::{Failure, Outcome};
use crate::output::{self, counted};
use crate::pool;
use crate::transfer::DEFAULT;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  quipu table drop herds.pool andes               # refused if it holds records
  quipu table drop herds.pool andes --yes

Fields of the JSON object: pool, name, records (that it held).";

/// Drop a table with all that it holds, at once, however much that is.
///
/// The command does not ask. A table that holds records is dropped only with --yes. The table called default
/// stays.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// The name of the table.
    name: String,
    /// Drop it with its records.
    #[arg(long)]
    yes: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Drops the table.
    pub fn run(self) -> Result<Outcome, Failure> {
        let records = pool::with(&self.pool, |store| {
            let table = store.table(&self.name)?;
            let records = store.table_stats(&table)?.records;
            // The library refuses the table that stays, whatever it holds.
            if records > 0 && !self.yes && self.name != DEFAULT {
                return Err(Failure::Usage(format!(
                    "the table {:?} holds {}; add --yes to drop it with its records, or export it first with --table",
                    self.name,
                    counted(records, "record")
                )));
            }
            store.drop_table(&table)?;
            Ok(records)
        })?;
        if self.json {
            let pool = self.pool.path.to_string_lossy();
            output::json_line(&json!({ "pool": pool, "name": self.name, "records": records }))?;
        }
        Ok(Outcome::Fine)
    }
}
