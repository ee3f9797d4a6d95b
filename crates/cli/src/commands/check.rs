//! `quipu check`: proves a pool.

use crate::args::PoolChoice;
use crate::failure::{Failure, Outcome};
use crate::leftover::Unnamed;
use crate::output::{self, Bar, counted};
use crate::pool;
use quipu::internals::shown_key;
use quipu::{
    CheckReport, DamagedPlace, Design, Error, ErrorKind, Instead, Levels, LostKey, Options, RecoveryReport,
    SalvageReport, Store,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Exit codes:
  0  the pool is sound
  1  it is damaged, and the places are listed
  2  it is not a pool

Examples:
  quipu check animals.pool
  quipu check animals.pool --json && echo sound
  quipu check animals.pool --salvage rescued.pool
  quipu check animals.pool --accept-damage

Fields of the JSON object: pool, sound (nothing damaged was found), segments, values (large ones), records, keys, free_zones, \
damage, lost and torn (lists of what, offset, len), lost_keys (with --accept-damage; as below) and unproved (list of what the \
design's format has no check for). With --salvage: pool, salvaged_to, sound, keys (copied), damage, missing (keys that a closed pool \
had and whose latest record is lost; null if that is not known), named (how many of them lost_keys names), lost_keys (list of key, escaped, and \
instead: nothing, older_value or deleted_value).";

/// Prove every structure and record, and that no space leaks.
///
/// Damage is reported and never repaired: the pool is only read. A crash of the system may take records if
/// the durability of the pool does not cover it. These count as lost and not as damage, and are reported
/// until a command that writes opens the pool.
///
/// With --salvage everything that proves itself is copied into a new pool. With --accept-damage the pool
/// itself gives up what does not prove itself, and opens like any other from then on. Keys whose latest
/// record is lost are named, as far as they can still be read. Designs whose records do not prove themselves,
/// or do not show which of them count, can do neither; `quipu designs` says which.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pool: PoolChoice,
    /// Copy what proves itself into this new pool, of the same size.
    #[arg(long, value_name = "NEWPOOL")]
    salvage: Option<PathBuf>,
    /// Give up what does not prove itself, for good, and name it.
    #[arg(long, conflicts_with = "salvage")]
    accept_damage: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// From here on it is told that the clock of expiry is ahead of the system's.
const FAR_AHEAD: Duration = Duration::from_secs(600);
/// Lost keys and damaged places that are listed before the rest is only counted.
const LISTED: usize = 20;

/// The findings, of a pool that could be opened or of one whose damage forbade it.
#[derive(Default)]
struct Findings {
    report: Option<CheckReport>,
    damage: Vec<DamagedPlace>,
    recovery: RecoveryReport,
    /// The design, if the superblock tells.
    design: Option<Design>,
}

impl Findings {
    /// The parts that the format of the pool cannot prove, as far as is known.
    fn unproved(&self) -> Option<&'static [&'static str]> {
        let of_design = || self.design.map(|design| design.can().unproved);
        self.report.as_ref().map(|report| report.unproved).or_else(of_design)
    }
}

impl Args {
    /// Checks the pool.
    pub fn run(self) -> Result<Outcome, Failure> {
        if let Some(into) = &self.salvage {
            return self.rescue(into);
        }
        let findings = self.examine()?;
        output::told(self.json, &self.object(&findings), || self.text(&findings))?;
        let is_lost = self.accept_damage && !findings.recovery.lost.is_empty();
        Ok(Outcome::Fine.and(findings.damage.is_empty() && !is_lost))
    }

    fn rescue(&self, into: &Path) -> Result<Outcome, Failure> {
        let levels = if into.exists() { Levels::Beside } else { Levels::beside(into) };
        let options = Options::new().levels(levels).levels_of_damaged(self.pool.levels.told());
        let salvage = |into: &Path| {
            let salvaged = Bar::during("reading", |bar| {
                let progress = |done, total| bar.of_store(done, total);
                Store::salvage(&self.pool.path, into, &options, &progress)
            });
            salvaged.map_err(|error| self.unsalvaged(error).naming(&self.pool.path))
        };
        let report = if into.exists() {
            // A device; the name of a file is taken.
            salvage(into)?
        } else {
            // The copy of a salvage that was killed is not to be taken for all that there was.
            let unnamed = Unnamed::of(into).map_err(|error| Failure::file("make", into, &error))?;
            let report = salvage(unnamed.path())?;
            unnamed.name()?;
            report
        };
        let whole = report.damage.places.is_empty()
            && report.lost.is_empty()
            && report.missing.unwrap_or_default() == 0;
        output::told(self.json, &self.rescued_object(into, &report), || self.rescued_text(into, &report))?;
        Ok(Outcome::Fine.and(whole))
    }

    fn unsalvaged(&self, error: Error) -> Failure {
        match (error, Store::design_of(&self.pool.path)) {
            (Error::Unsupported { .. }, Ok(design)) => Failure::Usage(format!(
                "pools of design {design} cannot be salvaged, and nothing was copied; restore it from a copy or from an export"
            )),
            (error, _) => error.into(),
        }
    }

    fn rescued_object(&self, into: &Path, report: &SalvageReport) -> Value {
        let lost = lost_objects(&report.lost);
        json!({
            "pool": self.pool.path.to_string_lossy(),
            "salvaged_to": into.to_string_lossy(),
            "sound": report.damage.places.is_empty() && lost.is_empty(),
            "keys": report.keys,
            "damage": objects(&report.damage.places),
            "missing": report.missing,
            "named": report.named(),
            "lost_keys": lost,
        })
    }

    fn rescued_text(&self, into: &Path, report: &SalvageReport) -> String {
        let mut lines = listed("damaged", &report.damage.places);
        lines.extend(lost_lines(&report.lost));
        let (pool, into) = (self.pool.path.display(), into.display());
        lines.push(format!(
            "Copied {} from {pool} to {into}; {}, and {} can be named. {pool} was not changed.",
            counted(report.keys, "key"),
            match report.missing {
                Some(missing) => format!("{} missing", counted(missing, "key")),
                None => "how many keys are missing is not known, since the pool was not closed".to_owned(),
            },
            report.named()
        ));
        lines.join("\n")
    }

    fn examine(&self) -> Result<Findings, Failure> {
        let damaged = |damage| {
            let design = Store::design_of(&self.pool.path).ok();
            Ok(Findings { damage, design, ..Findings::default() })
        };
        let opened = match self.accept_damage {
            true => pool::open_with(&self.pool, &self.pool.options().accept_damage(true)),
            false => pool::open_read_only(&self.pool, &self.pool.options()),
        };
        let mut store = match opened {
            Ok(store) => store,
            Err(Error::Damaged(damage)) => return damaged(damage.places),
            Err(error) if error.kind() == ErrorKind::Damaged => {
                return damaged(vec![DamagedPlace { what: error.to_string(), offset: 0, len: 0 }]);
            }
            Err(error) => return Err(Failure::from(error).naming(&self.pool.path)),
        };
        let report = Bar::during("checking", |bar| store.check(&|done, total| bar.of_store(done, total)))?;
        let (recovery, design) = (store.recovery().clone(), Some(store.design()));
        // Closing would declare a damaged pool clean.
        if report.is_sound() {
            store.close()?;
        }
        Ok(Findings { damage: report.damage.places.clone(), report: Some(report), recovery, design })
    }

    fn object(&self, findings: &Findings) -> Value {
        let report = findings.report.as_ref();
        json!({
            "pool": self.pool.path.to_string_lossy(),
            "sound": findings.damage.is_empty(),
            "segments": report.map(|report| report.segments),
            "values": report.map(|report| report.values),
            "records": report.map(|report| report.records),
            "keys": report.map(|report| report.keys),
            "free_zones": report.map(|report| report.free_zones),
            "damage": objects(&findings.damage),
            "lost": objects(&findings.recovery.lost),
            "lost_keys": lost_objects(&findings.recovery.lost_keys),
            "torn": objects(&findings.recovery.torn),
            "unproved": findings.unproved(),
        })
    }

    fn text(&self, findings: &Findings) -> String {
        let mut lines = listed("damaged", &findings.damage);
        lines.extend(missed(&findings.recovery));
        let pool = self.pool.path.display();
        let can = findings.design.map(|design| design.can());
        let unproved = findings.unproved().unwrap_or_default();
        lines.push(match &findings.report {
            Some(report) if findings.damage.is_empty() => {
                let keys = counted(report.keys, "key");
                let records = counted(report.records, "record");
                let segments = counted(report.segments as u64, "segment");
                // Designs that have none say nothing of them.
                let values = match can.is_some_and(|can| can.value_zones) {
                    true => format!(" and {}", counted(report.values, "large value")),
                    false => String::new(),
                };
                let free = counted(report.free_zones, "zone");
                match unproved {
                    [] => format!("{pool} is sound: {keys}, {records} in {segments}{values} proved, {free} free."),
                    unproved => format!(
                        "{pool} shows no damage: {keys}, {records} in {segments}, {free} free. Not proved, since its format has no \
                         check for it: {}.",
                        unproved.join("; ")
                    ),
                }
            }
            _ => {
                let places = counted(findings.damage.len() as u64, "place");
                let salvages = can.is_none_or(|can| can.salvages);
                let or = if salvages { ", or rescue what it has with --salvage NEWPOOL" } else { "" };
                format!("{pool} is damaged in {places}. Restore it from a copy{or}.")
            }
        });
        lines.join("\n")
    }
}

/// Records that recovery did not find, in words.
pub fn missed(recovery: &RecoveryReport) -> Vec<String> {
    let mut lines = listed("lost", &recovery.lost);
    lines.extend(lost_lines(&recovery.lost_keys));
    lines.extend(listed("lost or never finished", &recovery.torn));
    if recovery.expiry_ahead >= FAR_AHEAD {
        lines.push(format!(
            "the clock by which values expire is {:.1} hours ahead of the system's, which was set back or was wrong; no value \
             expires until the system's clock has come there; `quipu sync POOL --reset-expiry` sets it back",
            recovery.expiry_ahead.as_secs_f64() / 3600.0
        ));
    }
    lines
}

fn lost_objects(keys: &[LostKey]) -> Vec<Value> {
    let object = |lost: &LostKey| {
        let instead = match lost.instead {
            Instead::Nothing => "nothing",
            Instead::OlderValue => "older_value",
            Instead::DeletedValue => "deleted_value",
        };
        json!({"key": lost.key.escape_ascii().to_string(), "instead": instead})
    };
    keys.iter().map(object).collect()
}

fn lost_lines(keys: &[LostKey]) -> Vec<String> {
    let line = |lost: &LostKey| {
        let instead = match lost.instead {
            Instead::Nothing => "nothing of it is left",
            Instead::OlderValue => "an older value stands for it",
            Instead::DeletedValue => "it had been deleted, and the value before that is back",
        };
        format!("lost: the latest record of {}; {instead}", shown_key(&lost.key))
    };
    let mut lines: Vec<String> = keys.iter().take(LISTED).map(line).collect();
    if keys.len() > LISTED {
        lines.push(format!("lost: {} more keys; --json names all", keys.len() - LISTED));
    }
    lines
}

/// Damaged places for programs.
pub fn objects(places: &[DamagedPlace]) -> Vec<Value> {
    let object = |place: &DamagedPlace| json!({"what": place.what, "offset": place.offset, "len": place.len});
    places.iter().map(object).collect()
}

/// Damaged or lost places in words, so many of them that a person can read them.
pub fn listed(fate: &str, places: &[DamagedPlace]) -> Vec<String> {
    let mut lines: Vec<String> = places
        .iter()
        .take(LISTED)
        .map(|DamagedPlace { what, offset, len }| match (offset, len) {
            (0, 0) => format!("{fate}: {what}"),
            (_, 0) => format!("{fate}: {what}, at byte {offset}"),
            _ => format!("{fate}: {what}, at byte {offset} ({})", counted(*len, "byte")),
        })
        .collect();
    if places.len() > LISTED {
        lines.push(format!("{fate}: {} more places; --json lists all", places.len() - LISTED));
    }
    lines
}
