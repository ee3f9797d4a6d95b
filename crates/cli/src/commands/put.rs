//! `quipu put`: gives a key a value.

use crate::failure::{Failure, Outcome};
use crate::{pool, text};
use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  quipu put animals.pool llama wool
  quipu put animals.pool picture - < llama.png
  quipu put animals.pool session open --for 3600
  quipu put animals.pool 00ff 6b6e6f74 --hex
  quipu put animals.pool -- -1 '--an odd value--'";

/// Give a key a value, in place of any that it has.
///
/// When the command ends, the value is as safe as `quipu info` says.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The pool.
    pool: PathBuf,
    /// The key.
    key: OsString,
    /// The value; `-` reads it from standard input, to its end.
    value: OsString,
    /// Seconds for which the key has the value; then it is absent, and its space comes back.
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Key and value, standard input too, are hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    /// Puts the pair.
    pub fn run(self) -> Result<Outcome, Failure> {
        let key = text::bytes_of(&self.key, "key", self.hex)?;
        let value = if self.value == "-" {
            self.read_input()?
        } else {
            text::bytes_of(&self.value, "value", self.hex)?
        };
        let time =
            self.seconds.map(Duration::try_from_secs_f64).transpose().map_err(|error| {
                Failure::Usage(format!("--for: {error}; give seconds, such as 3600 or 0.5"))
            })?;
        pool::with(&self.pool, |store| {
            let mut client = store.client();
            Ok(match time {
                None => client.put(&key, &value),
                Some(time) => client.put_for(&key, &value, time),
            }?)
        })?;
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
