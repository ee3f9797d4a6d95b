//! `quipu del`: deletes a key.

use super::get::absent;
use super::put::Done;
use crate::args::{PoolChoice, TableChoice};
use crate::failure::{Failure, Outcome};
use crate::{output, pool, text};
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  quipu del animals.pool llama
  quipu del animals.pool 00ff --hex
  quipu del herds.pool llama --table andes

Fields of the JSON object: pool, key (key_hex with --hex, or if it is not UTF-8), table (unless it is default).";

/// Delete a key.
///
/// The exit code is 3 if the key is absent.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// The key.
    key: OsString,
    #[command(flatten)]
    table: TableChoice,
    /// The key is hexadecimal digits.
    #[arg(long)]
    hex: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Deletes the key.
    pub fn run(self) -> Result<Outcome, Failure> {
        let key = text::key(&self.key, self.hex)?;
        if !pool::with(&self.pool, |store| Ok(self.table.client(store)?.remove(&key)?))? {
            return Err(absent(&self.key));
        }
        if self.json {
            output::json_line(&Done::new(&self.pool.path, &key, &self.table, self.hex))?;
        }
        Ok(Outcome::Fine)
    }
}
