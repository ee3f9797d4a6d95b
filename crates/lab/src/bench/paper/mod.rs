//! The evaluations of papers, to be repeated here: its runs, at any scale, and the paper's numbers.
//!
//! A paper's figure is a [`Preset`]: runs of the benchmarks of this room, each with its settings, and the
//! paper's own statements about it, each with what the rows say in its place. Only numbers that stand in a
//! paper's text are statements; none is read off a plot. They come from another machine, mostly from Optane,
//! and so a preset also says what carries over to the medium at hand and what does not. Ratios within one run
//! are what to look at.
//!
//! The presets of a paper are a file of their own; there is no other code for a figure than the benchmarks
//! have.

mod mpkv;
mod nstore;
mod pacman;
mod ratios;
mod run;
mod statements;
mod text;
mod viper;
mod xp;

pub use ratios::Ratio;
pub use run::{Scale, paper};
pub use statements::{Compared, Statement};
pub use text::text;

use super::memtables::Order;
use super::patterns::Pattern;
use super::ring::Items;
use super::steady::SteadyLoad;
use super::util::Overwrites;
use quipu_bench::config::Config;
use quipu_bench::workload::Workload;

/// The evaluation of a paper.
pub struct Paper {
    /// The system, as the command line calls it.
    pub name: &'static str,
    /// Authors, title, and where it was published.
    pub title: &'static str,
    /// The machine it was measured on, and its usual settings.
    pub machine: &'static str,
    /// Its figures, in the paper's order.
    pub presets: &'static [Preset],
    /// How settings end that are compared with each other, where all else is the same: the first over the
    /// second.
    pub compared: Option<(&'static str, &'static str)>,
    /// Whether its stores can issue several puts together.
    pub batches: bool,
}

/// All papers whose evaluation can be repeated.
pub static PAPERS: &[&Paper] = &[&viper::PAPER, &pacman::PAPER, &mpkv::PAPER, &xp::PAPER, &nstore::PAPER];

impl Paper {
    /// The paper of that name.
    ///
    /// # Errors
    /// The names that there are, in words.
    pub fn named(name: &str) -> Result<&'static Paper, String> {
        let named = PAPERS.iter().copied().find(|paper| paper.name == name);
        named.ok_or_else(|| {
            let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
            format!("use one of: {}", names.join(", "))
        })
    }

    /// The figures of these numbers, in this order; all if one of them is `all`.
    ///
    /// # Errors
    /// The numbers that there are, in words.
    pub fn figures(&self, numbers: &[String]) -> Result<Vec<&'static Preset>, String> {
        if numbers.iter().any(|number| number == "all") {
            return Ok(self.presets.iter().collect());
        }
        let figure = |number: &String| {
            self.figure(number).ok_or_else(|| {
                let known: Vec<&str> = self.presets.iter().map(|preset| preset.figure).collect();
                format!("{} has no figure {number} here; use {}, or all", self.name, known.join(", "))
            })
        };
        numbers.iter().map(figure).collect()
    }

    /// The figure of that number, or the section where there is no figure.
    pub fn figure(&self, number: &str) -> Option<&'static Preset> {
        self.presets.iter().find(|preset| preset.figure == number)
    }
}

/// One figure of a paper.
pub struct Preset {
    /// Its number; where there is no figure, that of the section.
    pub figure: &'static str,
    /// The section that describes it.
    pub section: &'static str,
    /// Its subject.
    pub title: &'static str,
    /// The paper's run, and the run here in its place.
    pub about: &'static str,
    /// The runs at a scale, in the order of their rows.
    pub runs: fn(&Scale) -> Vec<Run>,
    /// The numbers of the paper's text.
    pub statements: &'static [Statement],
    /// The part that can be expected on another medium than the paper's, and the part that cannot.
    pub carries_over: &'static str,
}

/// One run of a benchmark.
pub struct Run {
    /// The mark of its rows among those of the figure.
    pub setting: String,
    /// Its settings.
    pub config: Config,
    /// The benchmark.
    pub benchmark: Benchmark,
    /// Whether it is about a setting that other engines do not have, so that they are not run beside it.
    pub is_of_ours: bool,
}

impl Run {
    fn new(setting: impl Into<String>, config: Config, benchmark: Benchmark) -> Run {
        Run { setting: setting.into(), config, benchmark, is_of_ours: false }
    }

    /// The same without other engines beside it.
    fn of_ours(self) -> Run {
        Run { is_of_ours: true, ..self }
    }
}

/// A benchmark of this room.
pub enum Benchmark {
    /// [`ops`](quipu_bench::ops()).
    Ops,
    /// [`ycsb`](quipu_bench::ycsb()).
    Ycsb(Box<Workload>),
    /// [`recovery`](super::recovery()).
    Recovery,
    /// [`reclaim`](super::reclaim()).
    Reclaim,
    /// [`cleaning`](super::cleaning()).
    Cleaning,
    /// [`patterns`](super::patterns()).
    Patterns(Vec<Pattern>),
    /// [`memtables`](super::memtables()).
    Memtables(Order),
    /// [`ring`](super::ring()).
    Ring(Items),
    /// [`levels`](super::levels()).
    Levels {
        /// Whether all is compacted to the end before it is read.
        compacts: bool,
    },
    /// [`allocation`](super::allocation()), of objects of so many bytes.
    Allocation(Vec<u64>),
    /// [`steps`](super::steps()).
    Steps,
    /// [`steady`](super::steady()).
    Steady(SteadyLoad),
    /// [`util`](super::util()).
    Util(Overwrites),
    /// [`recovery_of_overwritten`](super::recovery_of_overwritten()).
    Disorder(Overwrites),
    /// [`transfers`](quipu_bench::transfers()).
    Transfers {
        /// The accounts that all threads meet at.
        few: u64,
    },
    /// A workload that scans, of designs that cannot: a row that says so.
    NoScans,
}
