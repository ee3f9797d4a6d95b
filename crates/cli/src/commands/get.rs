//! `quipu get`: prints the value of a key.

use crate::args::{PoolChoice, TableChoice};
use crate::failure::{Failure, Outcome};
use crate::transfer::JsonRecord;
use crate::{output, pool, text};
use quipu::Expiry;
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  quipu get animals.pool llama
  quipu get animals.pool picture > llama.png
  quipu get animals.pool llama || test $? -eq 3   # absent, and nothing worse
  quipu get animals.pool 00ff --hex
  quipu get herds.pool llama --table andes        # of a table

Fields of the JSON object, as in an export of the form jsonl: key, value (key_hex, value_hex with --hex, or if they are not UTF-8), \
expires (milliseconds since 1970, if it does), table (unless it is default).";

/// Print the value of a key.
///
/// A file or a pipe gets exactly the bytes of the value; on a terminal an end of line follows. The exit code
/// is 3 if the key is absent, and 1 if its record does not prove itself.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// The key.
    key: OsString,
    #[command(flatten)]
    table: TableChoice,
    /// Take the key, and print the value, as hexadecimal digits.
    #[arg(long)]
    hex: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Prints the value.
    pub fn run(self) -> Result<Outcome, Failure> {
        let key = text::key(&self.key, self.hex)?;
        let found = pool::read(&self.pool, |store| {
            let client = self.table.client(store)?;
            // First the time: a value that is there afterwards has this one.
            let expires = client.expiry(&key)?.and_then(Expiry::time);
            Ok(client.get(&key)?.map(|value| (value, expires)))
        })?;
        let Some((value, expires)) = found else { return Err(absent(&self.key)) };
        if self.json {
            let record = JsonRecord::new(&key, &value, expires).in_table(self.table.told());
            output::json_line(&if self.hex { record.in_hex() } else { record })?;
        } else if self.hex {
            output::value(text::encode(&value).as_bytes())?;
        } else {
            output::value(&value)?;
        }
        Ok(Outcome::Fine)
    }
}

/// The failure of a key that is absent, in the form in which it was asked for.
pub fn absent(key: &OsString) -> Failure {
    Failure::Absent(format!("the key {} is absent", key.display()))
}
