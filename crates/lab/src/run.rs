//! The common parts of runs over real threads and processes: [`linear`](crate::linear),
//! [`isolation`](crate::isolation), [`kill`](crate::kill) and [`soak`](crate::soak).

use quipu::Error;
use serde::Serialize;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;

/// A violation, and the command that looks for it again.
#[derive(Clone, Debug, Serialize)]
pub struct Conviction {
    /// Where in the run it showed.
    #[serde(flatten)]
    pub at: At,
    /// The fault, in lines.
    pub what: String,
    /// The command that makes the same calls again. Real threads and processes may need several tries to meet
    /// as they did.
    pub replay: String,
}

/// A place in a run.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// Number of the history.
    History(u64),
    /// The seed of the history.
    Seed(u64),
    /// Number of the round, from 0.
    Round(u64),
    /// Reopenings before it.
    Reopenings(u64),
}

impl fmt::Display for Conviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = match self.at {
            At::History(number) => format!("in history {number}"),
            At::Seed(seed) => format!("in the history of seed {seed}"),
            At::Round(number) => format!("in round {number}"),
            At::Reopenings(1) => "after 1 reopening".to_owned(),
            At::Reopenings(number) => format!("after {number} reopenings"),
        };
        write!(f, "violation {at}: {}\n  replay: {}", self.what, self.replay)
    }
}

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A number is impossible.
    #[error("--{setting} is {found}; it must be {}", words(range))]
    Setting {
        /// The setting.
        setting: &'static str,
        /// The number asked for.
        found: u64,
        /// The numbers that make sense.
        range: RangeInclusive<u64>,
    },
    /// The pool could not be made.
    #[error(transparent)]
    Create(Error),
    /// A call on the store failed.
    #[error("{doing} failed: {source}")]
    Store {
        /// The part of the run.
        doing: String,
        /// The store's answer.
        source: Error,
    },
    /// Calls of threads did not meet.
    #[error(
        "only {met} calls met another thread's at their key, of {asked} that were asked for: leave processors \
         idle, or ask for fewer"
    )]
    Met {
        /// Calls that met.
        met: u64,
        /// The number asked for.
        asked: u64,
    },
    /// A file or a process could not be handled.
    #[error("{what}: {source}")]
    System {
        /// The file, or the failed step.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

fn words(range: &RangeInclusive<u64>) -> String {
    match range.end() {
        &u64::MAX => format!("at least {}", range.start()),
        end => format!("{} to {end}", range.start()),
    }
}

impl RunError {
    /// Holds numbers of the settings against their ranges.
    pub(crate) fn check<const N: usize>(
        numbers: [(&'static str, u64, RangeInclusive<u64>); N],
    ) -> Result<(), RunError> {
        let wrong = numbers.into_iter().find(|(_, found, range)| !range.contains(found));
        wrong.map_or(Ok(()), |(setting, found, range)| Err(RunError::Setting { setting, found, range }))
    }

    /// Makes answers of the system this error.
    pub(crate) fn system(what: impl fmt::Display) -> impl FnOnce(io::Error) -> RunError {
        let what = what.to_string();
        move |source| RunError::System { what, source }
    }
}
