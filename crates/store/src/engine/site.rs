//! [`Site`]: where a walk is opened, and how.

use crate::engine::Engine;
use crate::options::Options;
use crate::settings::image::Image;
use crate::types::error::Error;
use crate::types::reports::RecoveryReport;
use quipu_medium::MediumKind;
use quipu_parts::heap::{Clock, ClockSettings};
use quipu_parts::space::{Space, SpaceRecovery};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a walk is opened, and how.
pub(crate) struct Site<'o> {
    pub(crate) space: Arc<Space>,
    /// A folder for files of a walk beside that of the pool, if it may have some.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) options: &'o Options,
    pub(crate) how: How<'o>,
}

pub(crate) enum How<'o> {
    /// The pool is new and empty.
    New,
    /// The pool was mapped and must be recovered.
    Existing(Existing<'o>),
    /// The pool is not changed, for a salvage.
    Unrecovered,
}

pub(crate) struct Existing<'o> {
    pub(crate) holes: Holes,
    pub(crate) found: SpaceRecovery,
    /// Is told how many segments or blocks are recovered, and how many there are.
    pub(crate) progress: &'o (dyn Fn(usize, usize) + Sync),
}

pub(crate) struct NewPool {
    pub(crate) len: u64,
    pub(crate) zone_size: u64,
    pub(crate) medium: MediumKind,
}

impl NewPool {
    /// That which a pool once was.
    pub(crate) fn of(space: &Space) -> NewPool {
        let region = space.region();
        NewPool { len: region.len(), zone_size: space.zone_size(), medium: region.kind() }
    }
}

pub(crate) struct Opened {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) recovery: RecoveryReport,
}

/// Numbers between two durable raises of the clock's ceiling.
const CLOCK_BLOCK: u64 = 1 << 20;

const HANDFUL: u64 = 64;

impl Site<'_> {
    /// The settings that the pool keeps.
    pub(crate) fn settings<I: Image>(&self) -> Result<I, Error> {
        I::decode(&self.space.superblock().settings)
    }

    /// Whether the index begins at its smallest size.
    pub(crate) fn is_tiny(&self) -> bool {
        self.options.testing.tiny_index
    }

    /// Whether a copy of the superblock is lost.
    pub(crate) fn copy_lost(&self) -> bool {
        matches!(&self.how, How::Existing(pool) if pool.found.superblock_copy_lost)
    }

    /// Whether a checkpoint counts. If a copy of the superblock is lost, it may have been the one that
    /// recorded a change of the pool.
    pub(crate) fn believes_checkpoints(&self) -> bool {
        !(self.options.verify || self.options.accept_damage || self.copy_lost())
    }

    pub(crate) fn clock(&self) -> Clock {
        let testing = &self.options.testing;
        let settings = ClockSettings {
            block: testing.clock_block.unwrap_or(CLOCK_BLOCK),
            handful: testing.handful.unwrap_or(HANDFUL),
        };
        Clock::resume(&self.space, settings, self.copy_lost())
    }
}

/// How to treat holes in the pool: as damage, or as the price of a durability that does not cover the crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    /// They are damage: refuse.
    AreDamage,
    /// The operating system crashed under a pool whose durability covers process crashes only: report holes
    /// as lost. The pool's pages may be of different times, so a segment whose zone is free by the table may
    /// have been freed, and is not reported.
    AreLost,
    /// The user accepts damage: report all of it as lost.
    AreAccepted,
    /// Take all records around holes that can be proved, and change nothing.
    Salvaged,
}
