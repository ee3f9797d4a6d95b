//! [`Failure`] and [`Summary`]: what a test has found, in words.

use crate::recorder::{END, Entry};
use crate::search::Found;
use crate::setup::VARIABLE;
use crate::tapes::Tapes;
use quipu::Design;
use std::fmt::{self, Write};

/// Lines of a long history that a report shows: the first ones, and the last ones.
const SHOWN: (usize, usize) = (30, 50);

/// How much a test has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Histories: runs of all tasks, each with choices and switches of its own.
    pub histories: u64,
    /// States after a cut that were recovered and judged.
    pub cuts: u64,
}

/// The kind of a failure, which says where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The invariant does not hold.
    Invariant,
    /// A task has returned an error or has panicked, or the tasks do not end, or the program panicked as it
    /// dropped. There was no cut.
    Task,
    /// The program does not start, on an empty pool or after a cut.
    Start,
    /// The store does not recover: a fault of Quipu. Please report it with its seed.
    Store,
    /// The program does something that cannot be simulated.
    Refused,
    /// The same history ended in another way the second time.
    NotRepeatable,
    /// The test itself cannot be carried out.
    Setup,
}

impl FailureKind {
    /// In words, with the next step.
    fn words(self) -> &'static str {
        match self {
            FailureKind::Invariant => "the invariant does not hold",
            FailureKind::Task => "a task of the program failed, without a cut",
            FailureKind::Start => "the program does not start",
            FailureKind::Store => {
                "the store does not recover. This is a fault of Quipu: please report it with this text"
            }
            FailureKind::Refused => "the program cannot be simulated",
            FailureKind::NotRepeatable => {
                "not repeatable: the same history ended in another way the second time. Something decides in the program \
                 that is not drawn by Task::draw: a clock, random numbers, the order of a HashMap, or a static or \
                 thread-local that outlives a history. The first time it was"
            }
            FailureKind::Setup => "the test cannot be carried out",
        }
    }
}

/// A failed test. Its text is the report, also for `unwrap` and `expect`.
#[derive(thiserror::Error)]
pub struct Failure {
    kind: FailureKind,
    what: String,
    history: Vec<String>,
    calls: usize,
    cut: Option<String>,
    seed: Option<String>,
    summary: Summary,
    tries: u64,
}

impl Failure {
    /// Its kind.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The words of the invariant, of the task, or of the refusal.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// All lines of the shortest history that was found, in their order: calls with their answers, and
    /// events. The report leaves out the middle of a long one.
    pub fn history(&self) -> &[String] {
        &self.history
    }

    /// Calls of the store in that history, up to the cut.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// The seed by which that history can be [run again](crate::CrashTest::replay), if there is one.
    pub fn seed(&self) -> Option<&str> {
        self.seed.as_deref()
    }

    /// A failure without a history.
    pub(crate) fn of(kind: FailureKind, what: String) -> Failure {
        let (history, cut, seed, summary) = Default::default();
        Failure { kind, what, history, calls: 0, cut, seed, summary, tries: 0 }
    }

    pub(crate) fn found(found: Found, design: Design, summary: Summary, tries: u64) -> Failure {
        let history = found.lines();
        let seed = (found.kind != FailureKind::Refused).then(|| format!("{design}:{}", found.tapes));
        let calls = found.calls();
        let Found { kind, what, cut, .. } = found;
        Failure { kind, what, history, calls, cut, seed, summary, tries }
    }
}

/// A history in lines. A call stands with its answer if nothing came in between.
pub(crate) fn lines_of(log: &[Entry]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut at = 0;
    let name = |task: u64| match task {
        0 => "start   ".into(),
        END => "end     ".into(),
        task => format!("task {task:<3}"),
    };
    while let Some(entry) = log.get(at) {
        at += 1;
        match entry {
            Entry::Clock { step } => lines.push(format!("clock   moves by {step} ms")),
            Entry::Note { task, text } => lines.push(format!("{}{text}", name(*task))),
            Entry::Call { task, text } => {
                let own = at - 1;
                let later = || {
                    log[at..].iter().any(|entry| matches!(entry, Entry::Answer { call, .. } if *call == own))
                };
                let answer = match log.get(at) {
                    Some(Entry::Answer { call, text }) if *call == own => {
                        at += 1;
                        format!(" -> {text}")
                    }
                    _ if later() => " ...".into(),
                    _ => " ... had not returned".into(),
                };
                lines.push(format!("{}{text}{answer}", name(*task)));
            }
            Entry::Answer { call, text } => {
                let Some(Entry::Call { task, text: asked }) = log.get(*call) else { continue };
                lines.push(format!("{}... {asked} -> {text}", name(*task)));
            }
        }
    }
    lines
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:\n\n  {}", self.kind.words(), self.what.replace('\n', "\n  "))?;
        let Summary { histories, cuts } = self.summary;
        if !self.history.is_empty() {
            let (calls, plural) = (self.calls, if self.calls == 1 { "" } else { "s" });
            writeln!(f, "\nThe shortest history found, {calls} call{plural}:\n")?;
            let behind = self.history.len().saturating_sub(SHOWN.1).max(SHOWN.0);
            for (at, line) in self.history.iter().enumerate() {
                match at {
                    at if at < SHOWN.0 || at >= behind => writeln!(f, "  {line}")?,
                    at if at == SHOWN.0 => writeln!(f, "  … {} lines …", behind - at)?,
                    _ => {}
                }
            }
        }
        if let Some(cut) = &self.cut {
            writeln!(f, "  cut     {cut}")?;
        }
        if histories > 0 {
            write!(f, "\nFound in history {histories}, after {cuts} cuts")?;
            match self.tries {
                0 => writeln!(f, ".")?,
                tries => writeln!(f, "; shortened by {tries} tries.")?,
            }
        }
        if let Some(seed) = &self.seed {
            write!(f, "To see it again:\n\n  {VARIABLE}={seed} cargo test")?;
            // Of a test by the standard harness this is the name.
            if let Some(name) = std::thread::current().name().filter(|name| *name != "main") {
                write!(f, " {name} -- --exact")?;
            }
            f.write_char('\n')?;
        }
        Ok(())
    }
}

/// The design and the tapes of a report's seed, for a test with so many tasks.
pub(crate) fn parse(seed: &str, tasks: usize) -> Result<(Design, Tapes), String> {
    let (design, tapes) = seed.split_once(':').ok_or_else(|| format!("{seed:?} is no seed of a report"))?;
    let (design, tapes) = (design.parse::<Design>()?, tapes.parse::<Tapes>()?);
    if tapes.tapes.len() != tasks + 1 || tapes.runs.len() != tasks {
        return Err(format!(
            "the seed is of a test with {} tasks, and this one has {tasks}",
            tapes.runs.len()
        ));
    }
    Ok((design, tapes))
}
