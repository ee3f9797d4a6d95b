//! The `quipu-lab` program: proves what Quipu promises, and repeats the evaluations of papers.
//!
//! It speaks as `quipu` does: results on standard output, with `--json` one object a line, and the same exit
//! codes. A violation that it finds is a problem, code 1.

mod args;
mod commands;

use quipu_bench::alloc::Counting;
use std::process::ExitCode;

/// Counts allocations, so that DRAM per record is a result of benchmarks and not a guess.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    args::main()
}
