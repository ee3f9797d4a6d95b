//! `quipu crash`: explores what power failures may leave.

use crate::args::{Assignment, DesignChoice, chosen};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Bar, counted};
use crate::size;
use clap::ValueEnum;
use quipu::internals::{SlotSettings, TieBreak, Twin};
use quipu::{Design, Setting};
use quipu_lab::crash::{CrashConfig, CrashReport, explore};
use quipu_lab::settings;
use quipu_medium::sim::Fault;

const EXAMPLES: &str = "\
Examples:
  quipu crash --design quipu --states 5000
  quipu crash --design all --states 100k --threads 3 --json
  quipu crash --design quipu --seed 17 --runs 1            # replays one run
  quipu crash --design flatstore-ph --states 20k --set pacman=off
  quipu crash --design quipu --states 20k --twin publish-before-persist

Fields of the JSON objects: design, seed, operations, states, nested, during_compaction, during_recovery, \
during_growth, during_index_split, after_index_split, after_index_removal, during_index_zone, after_index_zone, \
word_keys, after_clock, expired, during_survey, during_close, fixed, during_in_place, from_checkpoint, eliminated (puts, not \
states), violations; with violations also details, a list of seed, operation, what, image, replay. A violation is exit code 1.";

/// States judged if neither these nor runs are limited.
const STATES: u64 = 5000;

/// With the twin that leaves fences out, the distance between those: enough remain for the store to get
/// anywhere.
const OMITTED_FENCES: u64 = 3;

/// Look for a power failure that the store does not survive.
///
/// Runs generated work on a simulated medium, stops it at every kind of moment, forms the images that a power
/// failure may leave there, recovers the store from each, and judges what it then says against all that was
/// acknowledged. A violation is printed with the command that replays it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The designs, separated by commas, or all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "quipu")]
    design: Vec<DesignChoice>,
    /// A setting of the designs that have it; may be repeated. `quipu designs` lists them with their values.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<Assignment>,
    /// Distinct states to judge. [default: 5000, or without limit if --runs is given]
    #[arg(long, value_name = "N", value_parser = size::count)]
    states: Option<u64>,
    /// Seed of the first run; the following runs have the following seeds.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Operations of each thread in a long run.
    #[arg(long, value_name = "N", value_parser = size::count, default_value = "40")]
    ops: u64,
    /// Threads of the work, interleaved as the seed has it.
    #[arg(long, value_name = "T", value_parser = size::count, default_value = "2")]
    threads: u64,
    /// Stop after this many runs.
    #[arg(long, value_name = "N", value_parser = size::count)]
    runs: Option<u64>,
    /// Break the store on purpose, to see that the explorer notices: a self-test, which must end with
    /// violations.
    #[arg(long, value_enum, value_name = "NAME")]
    twin: Option<TwinChoice>,
    /// Print one JSON object a line, one for each design.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TwinChoice {
    /// Readers see a record before it is durable.
    PublishBeforePersist,
    /// The check of a record ignores the life of its segment.
    LifeLeftOut,
    /// Recovery goes on appending to a segment of an earlier run.
    AppendAfterRecovery,
    /// Compaction drops tombstones while older segments remain.
    TombstoneDroppedEarly,
    /// Compaction takes a segment for gone before its zone is durably free.
    FreedInDramOnly,
    /// The records of an atomic batch are written one by one.
    BatchInPieces,
    /// Open believes an old checkpoint after the pool has changed.
    StaleCheckpoint,
    /// The zones of a large value are committed after the head that names them.
    ValueCommittedLate,
    /// The page of a record can be read before the one that it replaces is durably gone, and ties are broken by the order of
    /// blocks.
    BlockOrder,
    /// The record that another is about to replace is deleted first.
    ReleasedBeforePersist,
    /// The record that another has replaced stays marked.
    OldNotReleased,
    /// The key of a put that is published late is free before the record that it has replaced is durably gone.
    KeyFreeBeforeRelease,
    /// A copy that reclamation was making counts, although its original was superseded.
    LosingCopyKept,
    /// A block is marked free while copies of what it held are on their way.
    VictimFreedEarly,
    /// What a cleaner changed last in an index in the pool is not flushed.
    LastRepointedUnflushed,
    /// Some fences do nothing.
    FenceLeftOut,
}

impl Args {
    /// Explores each design.
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut outcome = Outcome::Fine;
        let designs = chosen(&self.design);
        settings::check(&self.settings(|_| true), &designs)?;
        for design in designs {
            let config = CrashConfig { design, settings: self.settings_of(design), ..self.config() };
            let bar = Bar::new(&format!("{design}: states"));
            let mut report = explore(&config, &mut |done, total| {
                bar.at(done, if total == u64::MAX { done } else { total })
            })?;
            bar.clear();
            self.complete(&mut report);
            if report.violations > 0 {
                outcome = Outcome::Problem;
            }
            if self.json {
                output::json_line(&report)?;
            } else {
                output::line(text(&report))?;
            }
        }
        Ok(outcome)
    }

    /// The settings that were chosen, if this holds of their names.
    fn settings(&self, holds: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let chosen = self.set.iter().filter(|set| holds(&set.name));
        chosen.map(|set| (set.name.clone(), set.value.clone())).collect()
    }

    /// Those that this design has.
    fn settings_of(&self, design: Design) -> Vec<(String, String)> {
        self.settings(|name| Setting::of(design).any(|setting| setting.name == name))
    }

    fn config(&self) -> CrashConfig {
        let (twin, fault) = match self.twin {
            None => (None, None),
            Some(TwinChoice::PublishBeforePersist) => (Some(Twin::PublishBeforePersist), None),
            Some(TwinChoice::LifeLeftOut) => (Some(Twin::LifeLeftOut), None),
            Some(TwinChoice::AppendAfterRecovery) => (Some(Twin::AppendAfterRecovery), None),
            Some(TwinChoice::TombstoneDroppedEarly) => (Some(Twin::TombstoneDroppedEarly), None),
            Some(TwinChoice::FreedInDramOnly) => (Some(Twin::FreedInDramOnly), None),
            Some(TwinChoice::BatchInPieces) => (Some(Twin::BatchInPieces), None),
            Some(TwinChoice::StaleCheckpoint) => (Some(Twin::StaleCheckpoint), None),
            Some(TwinChoice::ValueCommittedLate) => (Some(Twin::ValueCommittedLate), None),
            Some(TwinChoice::BlockOrder) => (Some(Twin::PageFreeBeforeRelease), None),
            Some(TwinChoice::ReleasedBeforePersist) => (Some(Twin::ReleasedBeforePersist), None),
            Some(TwinChoice::OldNotReleased) => (Some(Twin::OldNotReleased), None),
            Some(TwinChoice::KeyFreeBeforeRelease) => (Some(Twin::KeyFreeBeforeRelease), None),
            Some(TwinChoice::LosingCopyKept) => (Some(Twin::LosingCopyKept), None),
            Some(TwinChoice::VictimFreedEarly) => (Some(Twin::VictimFreedEarly), None),
            Some(TwinChoice::LastRepointedUnflushed) => (Some(Twin::LastRepointedUnflushed), None),
            Some(TwinChoice::FenceLeftOut) => (None, Some(Fault::FenceOmitted { every: OMITTED_FENCES })),
        };
        let tie_break = match self.twin {
            Some(TwinChoice::BlockOrder) => TieBreak::BlockOrder,
            _ => TieBreak::Sequence,
        };
        CrashConfig {
            states: self.states.unwrap_or(if self.runs.is_some() { u64::MAX } else { STATES }),
            seed: self.seed,
            runs: self.runs,
            ops: self.ops as usize,
            threads: self.threads as usize,
            slots: SlotSettings { tie_break, ..SlotSettings::default() },
            twin,
            fault,
            ..CrashConfig::default()
        }
    }

    /// A violation of a broken store is replayed on a store broken in the same way.
    fn complete(&self, report: &mut CrashReport) {
        let Some(twin) = self.twin.and_then(|twin| twin.to_possible_value()) else { return };
        for violation in &mut report.details {
            if !violation.replay.contains("--twin") {
                violation.replay.push_str(&format!(" --twin {}", twin.get_name()));
            }
        }
    }
}

/// Per cent of all states.
fn share(states: u64, all: u64) -> f64 {
    100.0 * states as f64 / all.max(1) as f64
}

fn text(report: &CrashReport) -> String {
    let mut text = format!(
        "{}: {} in {} of {}, seed {}, {:.1} s; {} nested, {} during recovery, {} during growth, {} during and {} after a \
         split of the index, {} after a removal from it, {} during and {} after a link of its zones, {} with keys of one \
         word, {} after the clock had moved, {} with an expired value, {} during compaction ({:.1} %), {} during a survey, {} during a close, {} with records of one size, {} during an \
         update in place, {} opened from a checkpoint; {} eliminated\n",
        report.design,
        counted(report.states, "state"),
        counted(report.runs, "run"),
        counted(report.operations, "operation"),
        report.seed,
        report.seconds,
        report.nested,
        report.during_recovery,
        report.during_growth,
        report.during_index_split,
        report.after_index_split,
        report.after_index_removal,
        report.during_index_zone,
        report.after_index_zone,
        report.word_keys,
        report.after_clock,
        report.expired,
        report.during_compaction,
        share(report.during_compaction, report.states),
        report.during_survey,
        report.during_close,
        report.fixed,
        report.during_in_place,
        report.from_checkpoint,
        counted(report.eliminated, "put"),
    );
    for violation in &report.details {
        text.push_str(&format!(
            "\nviolation: {}\n  seed {}, before operation {} on the medium\n",
            violation.what, violation.seed, violation.operation
        ));
        if !violation.image.is_empty() {
            text.push_str(&format!("  image: {}\n", violation.image.replace('\n', "\n  ")));
        }
        text.push_str(&format!("  replay: {}\n", violation.replay));
    }
    text.push_str(&match report.violations {
        0 => "no violation".to_owned(),
        count => format!("\n{}", counted(count, "violation")),
    });
    text
}
