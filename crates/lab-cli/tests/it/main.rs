//! The real program, run as people and scripts run it.

mod exploring;
mod help;
mod measuring;
#[path = "../../../cli/tests/it/program.rs"]
mod program;
mod proving;
mod refusals;
#[path = "../../../cli/tests/it/rows.rs"]
mod rows;

/// The program that is tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_quipu-lab");

/// Its name, with which its messages begin.
const NAME: &str = "quipu-lab";
