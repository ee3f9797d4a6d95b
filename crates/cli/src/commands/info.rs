//! `quipu info`: what a pool is and holds.

use super::table;
use crate::args::PoolChoice;
use crate::failure::{Failure, Outcome};
use crate::output::wrapped;
use crate::transfer::tables_of;
use crate::{output, pool};
use quipu::{Error, Part, Statement, Stats, Store, Table, TableStats};
use quipu_bench::size::human;
use serde_json::{Map, Value, json};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  quipu info animals.pool
  quipu info animals.pool --json

Fields of the JSON object: pool, design, settings (of the design, an object), medium, durability, survives (process_crash, os_crash, power_loss: \
yes, no or unknown; evidence), pool_bytes, zone_bytes, zones, free_zones, records, record_bytes, \
garbage_bytes, garbage_is_known (false while the garbage of earlier runs is still counted, where the \
index is in the pool), value_bytes (zones of large values), free_bytes (for puts), usable_bytes (what puts may fill at most), reserved_bytes \
(what puts leave to deletes and compaction), live_bytes, wanted_bytes (free for puts when compaction rests), utilization (live of usable, 0 \
to 1), goal_zones (as wanted_bytes), owed_zones (missing to this goal), index_bytes, index_pm_bytes, longest_key, longest_value, closed_cleanly, \
from_checkpoint, levels (an object: folder, files, bytes, records with superseded ones, debt_bytes that compaction is behind, dram_bytes; \
null if the pool can have none), parts (a list of objects: path, node, bytes, zones, free_zones), spills (zones and pieces of zones that were \
taken from another node since open), tables (a list of objects as of `quipu table list`; null if the design has none).";

/// Show a pool: size, contents and settings, and the failures that it survives.
///
/// The pool is only read. A pool that was not closed is recovered in memory, and its file stays as it is.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Tables that are listed before the rest is only counted.
const LISTED: usize = 20;

/// When compaction works.
fn compaction(store: &Store, stats: &Stats) -> String {
    let wanted = human(wanted_bytes(stats));
    match (stats.goal_zones, stats.owed_zones) {
        (0, _) if store.design().can().has_blocks => "begins when few blocks are free".to_owned(),
        (0, _) => "begins when few zones are free".to_owned(),
        (_, 0) => format!("rests: it wants {wanted} free for puts"),
        (_, owed) => {
            format!("works: it wants {wanted} free for puts, {} more", human(owed * stats.zone_bytes))
        }
    }
}

/// The levels of a pool, for programs.
fn levels_object(store: &Store, stats: &Stats) -> Option<Value> {
    let of = |folder: &Path| {
        json!({
            "folder": folder.to_string_lossy(),
            "files": stats.level_files,
            "bytes": stats.level_bytes,
            "records": stats.level_records,
            "debt_bytes": stats.level_debt,
            "dram_bytes": stats.level_dram,
        })
    };
    store.levels().map(of)
}

/// The levels of a pool in words.
fn levels(folder: &Path, stats: &Stats) -> String {
    let folder = folder.display();
    if stats.level_files == 0 {
        return format!("none yet; {folder} will have them when the pool is full");
    }
    let debt = match stats.level_debt {
        0 => "compaction rests".to_owned(),
        debt => format!("compaction is behind by {}", human(debt)),
    };
    format!(
        "{} of {} in {folder}, with {} (superseded ones too) and {} of DRAM; {debt}",
        output::counted(stats.level_files, "file"),
        human(stats.level_bytes),
        output::counted(stats.level_records, "record"),
        human(stats.level_dram),
    )
}

/// Bytes that are to be free for puts.
fn wanted_bytes(stats: &Stats) -> u64 {
    stats.goal_zones * stats.zone_bytes
}

/// The tables of a pool with their sizes, if its design has tables.
fn tables(store: &Store) -> Result<Option<Vec<(Table, TableStats)>>, Error> {
    tables_of(store)?.map(|tables| table::sizes(store, tables)).transpose()
}

/// A part of the pool, for programs.
fn part_object(part: &Part) -> Value {
    json!({
        "path": part.path.as_ref().map(|path| path.to_string_lossy()),
        "node": part.node,
        "bytes": part.bytes,
        "zones": part.zones,
        "free_zones": part.free_zones,
    })
}

/// A part of the pool in words.
fn part(part: &Part) -> String {
    let path = part.path.as_deref().unwrap_or(Path::new("memory")).display();
    let (bytes, node) = (human(part.bytes), part.node);
    format!("{bytes} on node {node}, {} of {} zones free, {path}", part.free_zones, part.zones)
}

/// The description of a pool, for programs.
pub fn object(pool: &Path, store: &Store, statement: &Statement) -> Result<Value, Error> {
    let tables = tables(store)?;
    let objects = |tables: Vec<(Table, TableStats)>| -> Vec<Value> {
        tables.iter().map(|(table, stats)| table::object(table, stats)).collect()
    };
    // Asked first, so that later counts are not called known too early.
    let garbage_is_known = !store.activity().is_surveying;
    let (stats, (key, value)) = (store.stats(), store.limits());
    Ok(json!({
        "pool": pool.to_string_lossy(),
        "design": store.design().name(),
        "settings": store.settings().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>(),
        "medium": statement.medium.name(),
        "durability": statement.durability.to_string(),
        "survives": output::statement_json(statement),
        "pool_bytes": stats.pool_bytes,
        "zone_bytes": stats.zone_bytes,
        "zones": stats.zones,
        "free_zones": stats.free_zones,
        "records": stats.records,
        "record_bytes": stats.record_bytes,
        "garbage_bytes": stats.garbage_bytes,
        "garbage_is_known": garbage_is_known,
        "value_bytes": stats.value_bytes,
        "free_bytes": stats.free_bytes,
        "usable_bytes": stats.usable_bytes(),
        "reserved_bytes": stats.reserved_bytes,
        "live_bytes": stats.live_bytes(),
        "wanted_bytes": wanted_bytes(&stats),
        "utilization": stats.utilization(),
        "goal_zones": stats.goal_zones,
        "owed_zones": stats.owed_zones,
        "index_bytes": stats.index_bytes,
        "index_pm_bytes": stats.index_pm_bytes,
        "longest_key": key,
        "longest_value": value,
        "closed_cleanly": store.recovery().was_clean,
        "from_checkpoint": store.recovery().from_checkpoint,
        "levels": levels_object(store, &stats),
        "parts": store.parts().iter().map(part_object).collect::<Vec<_>>(),
        "spills": stats.spills,
        "tables": tables.map(objects),
    }))
}

impl Args {
    /// Prints the description.
    pub fn run(self) -> Result<Outcome, Failure> {
        let described = pool::read(&self.pool, |store| {
            // The handle of a reader says of itself only that it writes nothing.
            let mut statement = quipu_medium::probe(&self.pool.path)?.statement;
            for path in store.parts().iter().skip(1).filter_map(|part| part.path.as_deref()) {
                statement = statement.and(&quipu_medium::probe(path)?.statement);
            }
            Ok(if self.json {
                object(&self.pool.path, store, &statement)?.to_string()
            } else {
                self.text(store, &statement)?
            })
        })?;
        output::line(described)?;
        Ok(Outcome::Fine)
    }

    fn text(&self, store: &Store, statement: &Statement) -> Result<String, Error> {
        let garbage = if store.activity().is_surveying { "at least " } else { "" };
        let (stats, (key, value), recovery) = (store.stats(), store.limits(), store.recovery());
        let segments = output::counted(recovery.segments as u64, "segment");
        let closed = match (recovery.was_clean, recovery.from_checkpoint) {
            (true, true) => "closed cleanly; opened from its checkpoint".to_owned(),
            (true, false) => format!("closed cleanly, without a checkpoint; {segments} scanned"),
            (false, _) => format!("was not closed; recovered from {segments}"),
        };
        let mut index = format!("{} of DRAM", human(stats.index_bytes));
        if stats.index_pm_bytes > 0 {
            index.push_str(&format!(", {} of zones", human(stats.index_pm_bytes)));
        }
        let settings: String =
            store.settings().iter().map(|(name, value)| format!("  {name}={value}\n")).collect();
        let records = match stats.level_files {
            0 => stats.records.to_string(),
            _ => format!("{} in the pool, and those on levels", stats.records),
        };
        let mut rows = vec![
            ("design", store.design().to_string()),
            (
                "size",
                format!(
                    "{} in {} zones of {}, {} of them free",
                    human(stats.pool_bytes),
                    stats.zones,
                    human(stats.zone_bytes),
                    stats.free_zones
                ),
            ),
            ("records", records),
            (
                "space",
                format!(
                    "{} free for puts, of {} that they may fill; {} reserved for deletes and compaction",
                    human(stats.free_bytes),
                    human(stats.usable_bytes()),
                    human(stats.reserved_bytes),
                ),
            ),
            (
                "used",
                format!(
                    "{} live ({:.1} % of what puts may fill), {garbage}{} garbage; of the live, {} in large values",
                    human(stats.live_bytes()),
                    stats.utilization() * 100.0,
                    human(stats.garbage_bytes),
                    human(stats.value_bytes),
                ),
            ),
            ("compaction", compaction(store, &stats)),
            ("index", index),
            ("limits", format!("keys of {}, values of {}", human(key), human(value))),
            ("last use", closed),
        ];
        let parts = store.parts();
        if parts.len() > 1 {
            rows.push(("parts", parts.iter().map(part).collect::<Vec<_>>().join("\n")));
        }
        if let Some(folder) = store.levels() {
            rows.push(("levels", levels(folder, &stats)));
        }
        if let Some(tables) = tables(store)? {
            let mut lines: Vec<String> =
                tables.iter().take(LISTED).map(|(table, stats)| table::row(table, stats)).collect();
            if tables.len() > LISTED {
                let more = tables.len() - LISTED;
                lines.push(format!("{more} more; `quipu table list {}` shows all", self.pool.path.display()));
            }
            rows.push(("tables", lines.join("\n")));
        }
        let line = |(name, what): &(&str, String)| wrapped(&format!("  {name:<10} "), what) + "\n";
        let rows: String = rows.iter().map(line).collect();
        let statement = wrapped("", &statement.to_string());
        Ok(format!("{}\n{rows}{settings}\n{statement}", self.pool.path.display()))
    }
}
