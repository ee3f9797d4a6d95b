//! The real program, run as people and scripts run it.

mod damage;
mod disk;
mod documents;
mod faults;
mod files;
mod forms;
mod help;
mod leftovers;
mod levels;
mod measuring;
mod pairs;
mod pools;
mod program;
mod reading;
mod refusals;
mod rows;
mod scripts;
mod support;
mod tables;
mod tour;
mod transfer;

/// The program that is tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_quipu");

/// Its name, with which its messages begin.
const NAME: &str = "quipu";
