//! The `quipu-rivals` program: measures other engines beside Quipu, with the flags of `quipu bench`.
//!
//! As there, only results go to standard output, with `--json` as one object a line. The exit code is 1 if
//! something failed on the way and 2 if the command was misused.

mod again;
mod args;
mod campaign;
mod evaluation;
mod index;
mod markdown;
mod output;
mod transfers;

use clap::Parser;
use quipu_bench::alloc::Counting;
use std::process::ExitCode;

/// Counts the allocations of the engines in Rust; those of libraries in C and C++ are seen as resident
/// memory.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    match args::Line::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quipu-rivals: {error}");
            ExitCode::from(error.code())
        }
    }
}
