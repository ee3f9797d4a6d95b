//! `quipu sync`: writes a pool back to its device.

use crate::args::PoolChoice;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::pool;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  quipu sync animals.pool
  quipu sync animals.pool --json
  quipu sync animals.pool --reset-expiry

Fields of the JSON object: pool, medium, survives (process_crash, os_crash, power_loss: of later writes).";

/// Write a pool back to its device.
///
/// Afterwards, a crash of the system loses nothing of what the pool holds now.
///
/// Commands that change a pool do this by themselves before they end. It is for a pool in a file whose
/// process was killed, or left it without closing it: its writes may still be in the memory of the system
/// alone. Such a pool is recovered and closed, so that commands which only read need not recover it each
/// time. On persistent memory there is nothing else to do.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// Set the clock by which values expire back to the system's, after the system's was wrong. Values that
    /// have expired by the wrong clock may be there again.
    #[arg(long)]
    reset_expiry: bool,
    /// Accept a copy of a pool that was not closed. Only if no process had the pool open while it was
    /// copied: otherwise keys are lost without notice.
    #[arg(long)]
    accept_copy: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Recovers the pool, if that is due, and writes it back.
    pub fn run(self) -> Result<Outcome, Failure> {
        let options = self.pool.options().reset_expiry(self.reset_expiry).accept_copy(self.accept_copy);
        let statement = pool::with_options(&self.pool, options, |store| {
            store.sync()?;
            Ok(store.statement())
        })?;
        if self.json {
            output::json_line(&json!({
                "pool": self.pool.path.display().to_string(),
                "medium": statement.medium.name(),
                "survives": output::statement_json(&statement),
            }))?;
        }
        Ok(Outcome::Fine)
    }
}
