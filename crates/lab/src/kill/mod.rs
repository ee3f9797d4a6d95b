//! `kill -9`: the writes that survive in a file, proved on processes that really die.
//!
//! The crash explorer judges simulated failures, so it believes in its own idea of a processor. This is the
//! other half: a writer process works on a pool in a file, and acknowledges every call through a pipe after
//! it has returned. It is killed at a moment drawn from a seed, which may lie within its recovery of the
//! pool. Its parent opens the pool, proves its structures, reads every key, and calls the linearizability
//! checker. Acknowledged writes must be there, a call in flight may have taken effect or not, and nothing
//! else may appear. Then the next writer continues with the same pool.
//!
//! Writers of a design with levels have more data than the pool has room for, in three tables. They live long
//! enough for dumps and compaction, and die within these, too.
//!
//! With transfers, writers move amounts between accounts by transactions, or by batches with conditions. Each
//! account must then have what all transfers that count make of it, and the sum must be what it was.
//!
//! This cannot show a failure of the system or of power: the page cache outlives the process.
//!
//! - [`explore`]: the parent.
//! - [`write()`]: the writer; the parent starts it as a process of its own by the command that it is given.
//! - [`judge_round`]: the judge of one writer that died with its whole machine.

mod config;
mod elsewhere;
mod frame;
mod judge;
mod mover;
mod plan;
mod round;
mod run;
mod transfers;
mod writer;

pub use config::{JudgeConfig, JudgeReport, KillConfig, KillReport, WriterConfig};
pub use elsewhere::judge_round;
pub use run::explore;
pub use writer::write;
