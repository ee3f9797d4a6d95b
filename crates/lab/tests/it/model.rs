//! Random sequences of calls leave every design with what a `BTreeMap` would hold.
//!
//! `QUIPU_MODEL_SEEDS` runs more seeds than the few that every change can afford, and `QUIPU_MODEL_SEED` one
//! alone.

use quipu::Design;
use quipu_lab::contract::Medium;
use quipu_lab::model::explore;

const STEPS: usize = 250;

fn agrees(medium: &Medium, seeds: u64) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = match number("QUIPU_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("QUIPU_MODEL_SEEDS").unwrap_or(seeds),
    };
    for design in Design::ALL {
        for seed in seeds.clone() {
            if let Err(disagreement) = explore(*design, medium, seed, STEPS) {
                panic!("on {medium:?}, {disagreement}");
            }
        }
    }
}

#[test]
fn on_dram() {
    agrees(&Medium::Dram, 100);
}

#[test]
fn on_files() {
    let folder = tempfile::tempdir().unwrap();
    agrees(&Medium::File(folder.path().to_owned()), 8);
}

#[test]
fn on_files_in_memory() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return println!("skipped: this system has no /dev/shm");
    };
    agrees(&Medium::File(folder.path().to_owned()), 8);
}

#[test]
fn on_the_simulator() {
    agrees(&Medium::Sim, 40);
}
