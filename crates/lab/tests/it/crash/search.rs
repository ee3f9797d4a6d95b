//! The search for seeds that convict a broken store: for pinning, and for a campaign at night.

use super::twins::{Row, TWINS, Trial};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Seeds that are pinned for each.
const PINNED: usize = 3;

/// States after which a twin has got away, for each seed that is missing.
const MOST: u64 = 200_000;

/// A number of the environment.
pub fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

/// The beginning of a violation, which says of what.
fn charge_of(what: &str) -> String {
    what.chars().take(120).collect()
}

/// Prints one JSON object for a twin, as soon as it has its seeds or has got away; `false` then.
fn search_for(row: &Row) -> bool {
    let (first, most) = (number("QUIPU_SEED", 1), number("QUIPU_STATES", MOST));
    let begun = Instant::now();
    let (mut states, mut since, mut runs) = (0, 0, 0);
    let (mut seeds, mut took, mut charges) = (Vec::new(), Vec::new(), Vec::new());
    // The short runs, which are explored in full, take longest.
    for seed in (first..).filter(|seed| !seed.is_multiple_of(64)) {
        if seeds.len() == PINNED || since >= most {
            break;
        }
        let Trial { convicts, report } = row.trial(seed);
        runs += 1;
        states += report.states;
        since += row.effort(&report);
        if convicts {
            charges.extend(report.details.first().map(|violation| charge_of(&violation.what)));
            seeds.push(seed);
            took.push(std::mem::take(&mut since));
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{{\"twin\": \"{}\", \"seeds\": {seeds:?}, \"states_until\": {took:?}, \"states\": {states}, \"runs\": {runs}, \
         \"charges\": {charges:?}, \"seconds\": {seconds:.1}}}",
        row.name
    );
    seeds.len() == PINNED
}

/// See the documentation of the table.
#[test]
#[ignore = "a search: cargo test -p quipu-lab --test it -- --ignored --nocapture crash::search"]
fn search() {
    let asked = std::env::var("QUIPU_TWIN").unwrap_or_default();
    let rows: Vec<_> = TWINS.iter().filter(|row| row.name.contains(&asked)).collect();
    assert!(!rows.is_empty(), "no twin is called {asked}");
    let (next, got_away) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            got_away.fetch_add(!search_for(row) as usize, Ordering::Relaxed);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(rows.len());
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    assert_eq!(got_away.into_inner(), 0, "twins got away");
}
