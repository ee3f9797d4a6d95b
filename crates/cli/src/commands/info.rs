//! `quipu info`: what a pool is and holds.

use crate::failure::{Failure, Outcome};
use crate::{output, pool, size};
use quipu::{Stats, Store};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  quipu info animals.pool
  quipu info animals.pool --json

Fields of the JSON object: pool, design, settings (of the design, an object), medium, durability, survives (process_crash, os_crash, power_loss: \
yes, no or unknown; evidence), pool_bytes, zone_bytes, zones, free_zones, records, record_bytes, \
garbage_bytes, value_bytes (zones of large values), utilization, goal_zones (free for puts when compaction rests), owed_zones (missing to that), index_bytes, index_pm_bytes, longest_key, longest_value, closed_cleanly, \
from_checkpoint.";

/// Say what a pool is, what it holds, and which failures its contents survive.
///
/// A pool that was not closed is recovered first, as by every command that opens it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The pool.
    pool: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What compaction owes.
fn to_clean(stats: &Stats) -> String {
    match (stats.goal_zones, stats.owed_zones) {
        (0, _) => "whenever few blocks are left".to_owned(),
        (goal, 0) => format!("nothing yet: the {goal} zones are free that are to be left for puts"),
        (goal, owed) => {
            format!("until {owed} more of the {goal} zones are free that are to be left for puts")
        }
    }
}

impl Args {
    /// Prints what there is to say.
    pub fn run(self) -> Result<Outcome, Failure> {
        let described = pool::with(&self.pool, |store| {
            Ok(if self.json { self.object(store).to_string() } else { self.text(store) })
        })?;
        output::line(described)?;
        Ok(Outcome::Fine)
    }

    fn object(&self, store: &Store) -> Value {
        let (statement, stats, (key, value)) = (store.statement(), store.stats(), store.limits());
        json!({
            "pool": self.pool.to_string_lossy(),
            "design": store.design().name(),
            "settings": store.settings().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>(),
            "medium": statement.medium.name(),
            "durability": statement.durability.to_string(),
            "survives": output::statement_json(&statement),
            "pool_bytes": stats.pool_bytes,
            "zone_bytes": stats.zone_bytes,
            "zones": stats.zones,
            "free_zones": stats.free_zones,
            "records": stats.records,
            "record_bytes": stats.record_bytes,
            "garbage_bytes": stats.garbage_bytes,
            "value_bytes": stats.value_bytes,
            "utilization": stats.utilization(),
            "goal_zones": stats.goal_zones,
            "owed_zones": stats.owed_zones,
            "index_bytes": stats.index_bytes,
            "index_pm_bytes": stats.index_pm_bytes,
            "longest_key": key,
            "longest_value": value,
            "closed_cleanly": store.recovery().was_clean,
            "from_checkpoint": store.recovery().from_checkpoint,
        })
    }

    fn text(&self, store: &Store) -> String {
        let (stats, (key, value), recovery) = (store.stats(), store.limits(), store.recovery());
        let segments = output::counted(recovery.segments as u64, "segment");
        let closed = match (recovery.was_clean, recovery.from_checkpoint) {
            (true, true) => "closed cleanly; opened from its checkpoint".to_owned(),
            (true, false) => format!("closed cleanly, without a checkpoint; {segments} scanned"),
            (false, _) => format!("was not closed; recovered from {segments}"),
        };
        let mut index = format!("{} of DRAM", size::human(stats.index_bytes));
        if stats.index_pm_bytes > 0 {
            index.push_str(&format!(", {} of zones", size::human(stats.index_pm_bytes)));
        }
        let settings: String =
            store.settings().iter().map(|(name, value)| format!("  {name}={value}\n")).collect();
        let rows = [
            ("design", store.design().to_string()),
            (
                "size",
                format!(
                    "{} in {} zones of {}, {} of them free",
                    size::human(stats.pool_bytes),
                    stats.zones,
                    size::human(stats.zone_bytes),
                    stats.free_zones
                ),
            ),
            ("records", stats.records.to_string()),
            (
                "used",
                format!(
                    "{} by records, {} of it garbage; {} by large values; utilization {:.1} %",
                    size::human(stats.record_bytes),
                    size::human(stats.garbage_bytes),
                    size::human(stats.value_bytes),
                    stats.utilization() * 100.0
                ),
            ),
            ("to clean", to_clean(&stats)),
            ("index", index),
            ("limits", format!("keys of {}, values of {}", size::human(key), size::human(value))),
            ("last use", closed),
        ];
        let rows: String = rows.iter().map(|(name, what)| format!("  {name:<9} {what}\n")).collect();
        format!("{}\n{rows}{settings}\n{}", self.pool.display(), store.statement())
    }
}
