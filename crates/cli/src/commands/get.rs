//! `quipu get`: prints the value of a key.

use crate::failure::{Failure, Outcome};
use crate::{output, pool, text};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  quipu get animals.pool llama
  quipu get animals.pool picture > llama.png
  quipu get animals.pool 00ff --hex";

/// Print the value of a key.
///
/// Into a file or a pipe the value goes byte for byte; at a terminal an end of line follows it. A key that is
/// absent is exit code 1, and so is one whose record does not prove itself.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The pool.
    pool: PathBuf,
    /// The key.
    key: OsString,
    /// The key is hexadecimal digits, and so will the value be.
    #[arg(long)]
    hex: bool,
}

impl Args {
    /// Prints the value.
    pub fn run(self) -> Result<Outcome, Failure> {
        let key = text::bytes_of(&self.key, "key", self.hex)?;
        match pool::with(&self.pool, |store| Ok(store.client().get(&key)?))? {
            Some(value) if self.hex => output::value(text::encode(&value).as_bytes())?,
            Some(value) => output::value(&value)?,
            None => return Err(absent(&self.key)),
        }
        Ok(Outcome::Fine)
    }
}

/// What is said of a key that is not there, in the form in which it was asked for.
pub fn absent(key: &OsString) -> Failure {
    Failure::Problem(format!("the key {} is absent", key.display()))
}
