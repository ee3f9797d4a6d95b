//! `quipu table create`: makes a table.

use crate::args::PoolChoice;
use crate::failure::{Failure, Outcome};
use crate::{output, pool};
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  quipu table create herds.pool andes
  quipu table create herds.pool 'high plains' --json

Fields of the JSON object: pool, name.";

/// Make a table, whose keys are its own.
///
/// Its name has 1 to 128 bytes, and no other table of the pool has it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// The name of the table.
    name: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Makes the table.
    pub fn run(self) -> Result<Outcome, Failure> {
        pool::with(&self.pool, |store| Ok(store.create_table(&self.name)?))?;
        if self.json {
            output::json_line(&json!({ "pool": self.pool.path.to_string_lossy(), "name": self.name }))?;
        }
        Ok(Outcome::Fine)
    }
}
