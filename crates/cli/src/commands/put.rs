//! `quipu put`: gives a key a value.

use crate::args::{PoolChoice, TableChoice};
use crate::failure::{Failure, Outcome};
use crate::transfer::JsonRecord;
use crate::{output, pool, text};
use quipu::Error;
use quipu_bench::size;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  quipu put animals.pool llama wool
  quipu put animals.pool picture - < llama.png
  quipu put animals.pool session open --for 1h
  quipu put animals.pool 00ff 6b6e6f74 --hex
  quipu put animals.pool -- -1 '--an odd value--'
  quipu put herds.pool llama wool --table andes   # after quipu table create herds.pool andes

Fields of the JSON object: pool, key (key_hex with --hex, or if it is not UTF-8), value_bytes, table (unless it is default).";

/// Set the value of a key, replacing any that it has.
///
/// When the command ends, the value is as safe as `quipu info` says.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// The key.
    key: OsString,
    /// The value; `-` reads it from standard input, to its end.
    value: OsString,
    #[command(flatten)]
    table: TableChoice,
    /// Let the value expire after this time, such as 90s, 30m, 1h, 7d or 1h30m; a bare number is seconds.
    /// Then the key is absent, and its space can be used again.
    #[arg(long = "for", value_name = "TIME", value_parser = size::time)]
    time: Option<Duration>,
    /// Key and value, standard input too, are hexadecimal digits.
    #[arg(long)]
    hex: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The result of `put` and `del`, for programs.
#[derive(Serialize)]
pub struct Done<'a> {
    pool: String,
    #[serde(flatten)]
    key: JsonRecord<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_bytes: Option<usize>,
}

impl<'a> Done<'a> {
    /// Something was done to this key.
    pub fn new(pool: &Path, key: &'a [u8], table: &'a TableChoice, hex: bool) -> Done<'a> {
        let key = JsonRecord::of_key(key).in_table(table.told());
        let key = if hex { key.in_hex() } else { key };
        Done { pool: pool.display().to_string(), key, value_bytes: None }
    }
}

impl Args {
    /// Puts the pair.
    pub fn run(self) -> Result<Outcome, Failure> {
        let key = text::key(&self.key, self.hex)?;
        let value = if self.value == "-" {
            self.read_input()?
        } else {
            text::bytes_of(&self.value, "value", self.hex)?
        };
        pool::with(&self.pool, |store| {
            let mut client = self.table.client(store)?;
            let put = match self.time {
                None => client.put(&key, &value),
                Some(time) => client.put_for(&key, &value, time),
            };
            put.map_err(|error| match error {
                Error::PoolFull { .. } => {
                    Failure::Problem(pool::full(store, (key.len() + value.len()) as u64))
                }
                error => error.into(),
            })
        })?;
        if self.json {
            let done = Done::new(&self.pool.path, &key, &self.table, self.hex);
            output::json_line(&Done { value_bytes: Some(value.len()), ..done })?;
        }
        Ok(Outcome::Fine)
    }

    fn read_input(&self) -> Result<Vec<u8>, Failure> {
        let mut input = Vec::new();
        std::io::stdin().lock().read_to_end(&mut input).map_err(|error| {
            Failure::Problem(format!("cannot read the value from standard input: {error}"))
        })?;
        if self.hex { text::decode(&input, "value") } else { Ok(input) }
    }
}
