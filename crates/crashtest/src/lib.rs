#![doc = include_str!("../README.md")]
#![expect(clippy::test_attr_in_doctest, reason = "the page shows a whole test, which tests/it/page.rs runs")]

mod judge;
mod moments;
mod mutex;
mod panics;
mod program;
mod recorder;
mod report;
mod search;
mod setup;
mod shorten;
mod tapes;
mod watch;

pub use mutex::Mutex;
pub use program::{After, Event, Outcome, Task};
pub use report::{Failure, FailureKind, Summary};
pub use setup::CrashTest;
