//! The failures that an acknowledged write survives, said of every engine in the same words.
//!
//! Engines name their settings differently (write-ahead log, persist mode, durability), and few figures are
//! compared at the same one. A [`Level`] is the failure that a setting is safe against. A [`Survival`] is the
//! part of that which a given medium keeps: a sync into memory protects from nothing that memory does not
//! survive.

use quipu_medium::{Answer, MediumKind, Statement, Survives};
use serde::Serialize;
use std::fmt;

/// The worst failure that acknowledged writes survive, if the medium does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// None: acknowledged writes are in the memory of the process alone.
    Memory,
    /// A crash of the process: the operating system has the write.
    Process,
    /// A crash of the system and a power loss: the write was synced to the medium.
    Power,
}

impl Level {
    /// All levels, the weakest first.
    pub const ALL: [Level; 3] = [Level::Memory, Level::Process, Level::Power];

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Memory => "memory",
            Level::Process => "process",
            Level::Power => "power",
        }
    }

    /// The survival that this level gives on `medium` to an engine that uses files.
    pub fn on(self, medium: MediumKind) -> Survival {
        let lasting = matches!(medium, MediumKind::File | MediumKind::Dax);
        let synced = if self == Level::Power && lasting { "yes" } else { "no" };
        Survival {
            process_crash: if self == Level::Memory { "no" } else { "yes" },
            os_crash: synced,
            power_loss: synced,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether acknowledged writes survive each failure: `yes`, `no` or `unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Survival {
    /// A crash of the process.
    pub process_crash: &'static str,
    /// A crash of the operating system.
    pub os_crash: &'static str,
    /// A loss of power.
    pub power_loss: &'static str,
}

impl From<&Statement> for Survival {
    fn from(statement: &Statement) -> Survival {
        let word = |answer: &Answer| match answer.survives {
            Survives::Yes => "yes",
            Survives::No => "no",
            Survives::Unknown => "unknown",
        };
        Survival {
            process_crash: word(&statement.process_crash),
            os_crash: word(&statement.os_crash),
            power_loss: word(&statement.power_loss),
        }
    }
}

impl fmt::Display for Survival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Survival { process_crash, os_crash, power_loss } = self;
        write!(f, "process crash: {process_crash}, system crash: {os_crash}, power loss: {power_loss}")
    }
}
