//! The whole comparison in one run: every engine in a process of its own, one after another.
//!
//! Processes of their own, because an engine leaves threads and memory behind that would burden the next, and
//! because pmemkv's libraries can be set once only. On each medium and with each number of threads the first
//! engine is measured before the others and once more after them. The distance of its two figures tells how
//! far the machine can be trusted.

use crate::markdown::{Cell, Table};
use crate::output::{Failure, print};
use quipu::MediumKind;
use quipu_rivals::Level;
use quipu_rivals::engines::Choice;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::Instant;

/// The commands that are run for each engine.
const BENCHMARKS: [&[&str]; 2] = [&["ops"], &["ycsb", "a", "b"]];

/// Bytes of a value, in YCSB too, so that all phases write the same.
const VALUE: &str = "200";

/// A comparison.
pub struct Campaign {
    /// The engines; the others are compared with the first.
    pub choices: Vec<Choice>,
    /// The media, one table each.
    pub media: Vec<MediumKind>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Records loaded.
    pub records: u64,
    /// Operations of each phase after the inserts.
    pub operations: u64,
    /// Records and operations where each write waits for the disk.
    pub synced: u64,
    /// A folder on the disk.
    pub folder: PathBuf,
    /// Whether to print JSON in place of tables.
    pub json: bool,
}

impl Campaign {
    /// Runs everything, and prints it.
    ///
    /// # Errors
    /// [`Failure::Incomplete`] at the end, if something did not run.
    pub fn run(&self) -> Result<(), Failure> {
        let (mut runs, mut failed) = (0, 0);
        for &medium in &self.media {
            let mut table = self.table(medium);
            for run in self.runs(medium) {
                let begun = Instant::now();
                let lines = run.measure(runs)?;
                eprintln!("{run}: {:.1} s", begun.elapsed().as_secs_f64());
                runs += 1;
                match lines {
                    Some(lines) if self.json => print(&lines)?,
                    Some(lines) => {
                        cells(&lines)?.iter().for_each(|cell| table.add(run.row, run.column, cell));
                    }
                    None => failed += 1,
                }
            }
            if !self.json {
                print(&table.text())?;
            }
        }
        if failed > 0 { Err(Failure::Incomplete { failed, runs }) } else { Ok(()) }
    }

    fn table(&self, medium: MediumKind) -> Table {
        let choices = self.choices_on(medium);
        let mut table = Table::new(medium, &choices, &self.threads);
        for (row, choice) in choices.iter().enumerate() {
            if let Some(records) = self.synced_records(choice) {
                table.mark_synced(row, records);
            }
        }
        table
    }

    /// The engines that are measured on a medium: a sync into memory makes nothing safer, and so means
    /// nothing.
    fn choices_on(&self, medium: MediumKind) -> Vec<Choice> {
        let meant = |choice: &Choice| medium == MediumKind::File || choice.level != Level::Power;
        self.choices.iter().copied().filter(meant).collect()
    }

    /// All runs on a medium, in order: the first engine once more behind the others.
    fn runs(&self, medium: MediumKind) -> Vec<Run<'_>> {
        let choices = self.choices_on(medium);
        let mut runs = Vec::new();
        for (column, &threads) in self.threads.iter().enumerate() {
            for (row, choice) in choices.iter().chain(choices.first()).copied().enumerate() {
                for benchmark in BENCHMARKS {
                    runs.push(Run { campaign: self, row, column, choice, medium, threads, benchmark });
                }
            }
        }
        runs
    }

    /// The number of records for an engine whose every write waits for the disk.
    fn synced_records(&self, choice: &Choice) -> Option<u64> {
        (choice.level == Level::Power).then_some(self.synced)
    }
}

/// The rows of a run, from its JSON.
fn cells(lines: &str) -> Result<Vec<Cell>, Failure> {
    let read = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Cell>, _>>();
    read.map_err(|error| Failure::Run { what: "a part of the comparison".to_owned(), source: error.into() })
}

/// One engine in one process.
struct Run<'a> {
    campaign: &'a Campaign,
    /// Where its figures stand in the table.
    row: usize,
    column: usize,
    choice: Choice,
    medium: MediumKind,
    threads: usize,
    benchmark: &'static [&'static str],
}

impl fmt::Display for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { choice, medium, threads, benchmark, .. } = self;
        write!(f, "{choice} on {medium}, threads {threads}, {}", benchmark.join(" "))
    }
}

impl Run<'_> {
    /// Its rows as JSON, one a line; nothing if it failed, which it has then explained on standard error.
    fn measure(&self, number: usize) -> Result<Option<String>, Failure> {
        let failed = |source| Failure::Run { what: format!("{} as a process", self.choice), source };
        let program = env::current_exe().map_err(failed)?;
        let Campaign { records, operations, folder, .. } = self.campaign;
        let synced = self.campaign.synced_records(&self.choice);
        let folder = if self.medium == MediumKind::Dram { Path::new("/dev/shm") } else { folder };
        let place = folder.join(format!("quipu-rivals-{}-{}", process::id(), number));
        let mut command = Command::new(program);
        command.args(self.benchmark).args(["--value-size", VALUE, "--json"]);
        command.arg("--pool").arg(&place);
        for (flag, value) in [
            ("--engine", self.choice.to_string()),
            ("--medium", self.medium.to_string()),
            ("--threads", self.threads.to_string()),
            ("--records", synced.unwrap_or(*records).to_string()),
            ("--ops", synced.unwrap_or(*operations).to_string()),
        ] {
            command.args([flag, &value]);
        }
        let output = command.stderr(Stdio::inherit()).output().map_err(failed)?;
        Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
    }
}
