//! `quipu check`: proves a pool.

use crate::failure::{Failure, Outcome};
use crate::output::{self, Bar, counted};
use crate::pool;
use quipu::{CheckReport, DamagedPlace, Error, ErrorKind};
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Exit codes:
  0  the pool is sound
  1  it is damaged, and the places are listed
  2  it is not a pool

Examples:
  quipu check animals.pool
  quipu check animals.pool --json && echo sound

Fields of the JSON object: pool, sound, segments, records, keys, free_zones, damage and lost (lists of what, \
offset, len).";

/// Prove every structure and every record of a pool, and that no space leaks.
///
/// Damage is reported and never repaired. What a crash of the system took, where the durability of the pool
/// does not cover that, is lost and not damage; it is reported by the first command that opens the pool
/// afterwards.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The pool.
    pool: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What was found, of a pool that could be opened or of one whose damage forbade it.
#[derive(Default)]
struct Findings {
    report: Option<CheckReport>,
    damage: Vec<DamagedPlace>,
    lost: Vec<DamagedPlace>,
}

impl Args {
    /// Checks the pool.
    pub fn run(self) -> Result<Outcome, Failure> {
        let findings = self.examine()?;
        if self.json {
            output::json_line(&self.object(&findings))?;
        } else {
            output::line(self.text(&findings))?;
        }
        Ok(if findings.damage.is_empty() { Outcome::Fine } else { Outcome::Problem })
    }

    fn examine(&self) -> Result<Findings, Failure> {
        let mut store = match pool::open(&self.pool) {
            Ok(store) => store,
            Err(Error::Damaged(damage)) => {
                return Ok(Findings { damage: damage.places, ..Findings::default() });
            }
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let place = DamagedPlace { what: error.to_string(), offset: 0, len: 0 };
                return Ok(Findings { damage: vec![place], ..Findings::default() });
            }
            Err(error) => return Err(error.into()),
        };
        let bar = Bar::new("checking");
        let report = store.check(&|done, total| bar.at(done as u64, total as u64));
        bar.clear();
        let report = report?;
        let lost = store.recovery().lost.clone();
        // Closing would declare a damaged pool clean.
        if report.is_sound() {
            store.close()?;
        }
        Ok(Findings { damage: report.damage.places.clone(), report: Some(report), lost })
    }

    fn object(&self, findings: &Findings) -> Value {
        let report = findings.report.as_ref();
        let places = |places: &[DamagedPlace]| -> Vec<Value> {
            places
                .iter()
                .map(|place| json!({"what": place.what, "offset": place.offset, "len": place.len}))
                .collect()
        };
        json!({
            "pool": self.pool.to_string_lossy(),
            "sound": findings.damage.is_empty(),
            "segments": report.map(|report| report.segments),
            "records": report.map(|report| report.records),
            "keys": report.map(|report| report.keys),
            "free_zones": report.map(|report| report.free_zones),
            "damage": places(&findings.damage),
            "lost": places(&findings.lost),
        })
    }

    fn text(&self, findings: &Findings) -> String {
        let mut lines = Vec::new();
        for (fate, places) in [("damaged", &findings.damage), ("lost", &findings.lost)] {
            lines.extend(places.iter().map(|DamagedPlace { what, offset, len }| {
                if *len == 0 && *offset == 0 {
                    format!("{fate}: {what}")
                } else {
                    format!("{fate}: {what}, at byte {offset} ({})", counted(*len, "byte"))
                }
            }));
        }
        let pool = self.pool.display();
        lines.push(match &findings.report {
            Some(report) if findings.damage.is_empty() => format!(
                "{pool} is sound: {}, {} in {} proved, {} free.",
                counted(report.keys, "key"),
                counted(report.records, "record"),
                counted(report.segments as u64, "segment"),
                counted(report.free_zones, "zone")
            ),
            _ => format!(
                "{pool} is damaged in {}. Restore it from a copy, and keep this one for salvage.",
                counted(findings.damage.len() as u64, "place")
            ),
        });
        lines.join("\n")
    }
}
