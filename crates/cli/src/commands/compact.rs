//! `quipu compact`: gives the space of superseded and deleted records back.

use crate::args::PoolChoice;
use crate::failure::{Failure, Outcome};
use crate::output::{self, counted};
use crate::pool;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  quipu compact animals.pool
  quipu compact animals.pool --json

Fields of the JSON object: pool, segments (given back), moved (bytes of live records that were copied), zones, \
free_zones.";

/// Free the space of superseded and deleted records.
///
/// Writers do this by themselves when space becomes short; this is for a quiet hour, or before a pool is
/// copied. Every segment that holds something superseded or deleted is cleaned: live records move, and the
/// zone is free. If the pool is a file, the disk space of free zones goes back to the file system.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Compacts the pool.
    pub fn run(self) -> Result<Outcome, Failure> {
        let ((segments, moved), stats) = pool::with(&self.pool, |store| {
            let compacted = store.compact()?;
            store.trim()?;
            Ok((compacted, store.stats()))
        })?;
        let (zones, free_zones) = (stats.zones, stats.free_zones);
        let object = json!({
            "pool": self.pool.path.display().to_string(),
            "segments": segments,
            "moved": moved,
            "zones": zones,
            "free_zones": free_zones,
        });
        output::told(self.json, &object, || {
            let segments = counted(segments, "segment");
            format!("{segments} given back, {moved} bytes moved; {free_zones} of {zones} zones are free")
        })?;
        Ok(Outcome::Fine)
    }
}
