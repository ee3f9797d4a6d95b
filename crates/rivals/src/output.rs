//! Results for people and for programs, each with what its acknowledged writes survive.

use quipu_bench::{BenchError, Config, Progress, Row, plot, table};
use quipu_lab::bench::paper::Benchmark;
use quipu_rivals::engines::Choice;
use quipu_rivals::{Place, Survival, compare};
use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

/// Why the program did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It was misused.
    #[error("{0}")]
    Usage(String),
    /// A benchmark failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The program could not be begun again, or a part of a comparison not at all.
    #[error("cannot run {what}: {source}")]
    Run {
        /// The command.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Parts of a comparison failed; each has said why.
    #[error("{failed} of {runs} runs failed: the tables have no figures of them")]
    Incomplete {
        /// Runs that failed.
        failed: usize,
        /// All runs.
        runs: usize,
    },
    /// A result could not be written.
    #[error("cannot write {what}: {source}")]
    Write {
        /// The output.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Bench(BenchError::Setting { .. }) => 2,
            Failure::Bench(_) | Failure::Run { .. } | Failure::Incomplete { .. } | Failure::Write { .. } => 1,
        }
    }
}

/// A row with what only a comparison says.
#[derive(Serialize)]
struct Compared<'a> {
    #[serde(flatten)]
    row: &'a Row,
    /// How the engine is set.
    setting: &'static str,
    #[serde(flatten)]
    survival: Survival,
}

/// A comparison on its way to the reader.
pub struct Report {
    heading: String,
    json: bool,
    picture: Option<PathBuf>,
    rows: Vec<Row>,
}

impl Report {
    /// A report that has nothing in it yet.
    pub fn new(heading: String, json: bool, picture: Option<PathBuf>) -> Report {
        Report { heading, json, picture, rows: Vec::new() }
    }

    /// Runs the benchmarks on all engines and writes the results, also if one of them fails on the way.
    pub fn run(
        mut self,
        choices: &[Choice],
        benchmarks: &[Benchmark],
        (config, place): (&Config, &Place),
    ) -> Result<(), Failure> {
        choices.iter().try_for_each(|choice| choice.kind.present())?;
        benchmarks.iter().try_for_each(|benchmark| can_all(choices, benchmark))?;
        let mut survivals = Vec::new();
        for choice in choices {
            survivals.push(compare::survival(choice, config, place)?);
        }
        let mut refused = None;
        let result = benchmarks.iter().try_for_each(|benchmark| {
            compare::run(choices, benchmark, config, place, &Stages, &mut |choice, row| {
                let survival = choices.iter().position(|other| other == choice).map(|at| survivals[at]);
                if let (true, Some(survival)) = (self.json, survival) {
                    let compared = Compared { row: &row, setting: choice.setting(), survival };
                    refused = refused.take().or(json_line(&compared).err());
                }
                self.rows.push(row);
            })
        });
        refused.map_or(Ok(()), Err)?;
        self.finish(choices, &survivals)?;
        Ok(result?)
    }

    fn finish(&self, choices: &[Choice], survivals: &[Survival]) -> Result<(), Failure> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let notes: Vec<String> = choices
            .iter()
            .zip(survivals)
            .map(|(choice, survival)| format!("{choice}: {}. Survives {survival}.", choice.setting()))
            .collect();
        if !self.json {
            let notes = notes.join("\n  ");
            let text = format!("{}\nAcknowledged writes:\n  {notes}\n\n{}", self.heading, table(&self.rows));
            print(&text)?;
        }
        if let Some(path) = &self.picture {
            fs::write(path, plot(&self.heading, &notes, &self.rows))
                .map_err(|source| Failure::Write { what: path.display().to_string(), source })?;
        }
        Ok(())
    }
}

/// Refuses a benchmark that not all engines can take, before anything runs.
pub fn can_all(choices: &[Choice], benchmark: &Benchmark) -> Result<(), Failure> {
    let refusal = |choice: &Choice| match benchmark {
        _ if benchmark.needs_order() && !choice.kind.is_ordered() => {
            Some("keeps no order of keys, and so cannot scan; leave it or the scans out")
        }
        _ if benchmark.needs_transactions() && !choice.kind.has_transactions() => {
            Some("has no transactions; leave it out, or name its form that has them (see engines)")
        }
        _ => None,
    };
    let refused = choices.iter().find_map(|choice| Some((choice, refusal(choice)?)));
    refused.map_or(Ok(()), |(choice, reason)| Err(Failure::Usage(format!("{choice} {reason}"))))
}

/// Prints every engine with its levels.
pub fn engines() -> Result<(), Failure> {
    for choice in Choice::all() {
        print(&format!("{:<26}  {}\n", choice.to_string(), choice.setting()))?;
        if let Err(missing) = choice.kind.present() {
            print(&format!("{:<26}  not here: {missing}\n", ""))?;
        }
    }
    Ok(())
}

/// Prints an object as a line.
pub fn json_line(object: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(object).map_err(io::Error::from);
    print(&format!("{}\n", text.map_err(refused)?))
}

/// Writes `text` to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(refused)
}

fn refused(source: io::Error) -> Failure {
    Failure::Write { what: "to standard output".to_owned(), source }
}

/// Names each stage on standard error as it begins, where a person would see it.
pub struct Stages;

impl Progress for Stages {
    fn begin(&self, stage: &str, total: u64) {
        if io::stderr().is_terminal() {
            eprint!("\r\x1b[K{stage}: {total} steps");
        }
    }

    fn advance(&self, _steps: u64) {}

    fn end(&self) {
        if io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}
