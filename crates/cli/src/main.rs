//! The `quipu` program: makes, uses, checks and measures pools from a command line.
//!
//! Scripts rely on it, so three things are promised. Results go to standard output and nothing else does;
//! with `--json` they are one object a line. The exit code is 0 if all is well, 1 if a problem was found, 2
//! if the command was misused or the file is no pool, 3 if the key is absent. Long work shows its
//! progress on standard error, where a person would see it: on a terminal.

use quipu_bench::alloc::Counting;
use std::process::ExitCode;

/// Counts allocations, so that DRAM per record is a result of benchmarks and not a guess.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    quipu_cli::main()
}
