//! `quipu del`: deletes a key.

use super::get::absent;
use crate::failure::{Failure, Outcome};
use crate::{pool, text};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  quipu del animals.pool llama
  quipu del animals.pool 00ff --hex";

/// Delete a key.
///
/// A key that is absent is exit code 1.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The pool.
    pool: PathBuf,
    /// The key.
    key: OsString,
    /// The key is hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    /// Deletes the key.
    pub fn run(self) -> Result<Outcome, Failure> {
        let key = text::bytes_of(&self.key, "key", self.hex)?;
        if pool::with(&self.pool, |store| Ok(store.client().remove(&key)?))? {
            Ok(Outcome::Fine)
        } else {
            Err(absent(&self.key))
        }
    }
}
