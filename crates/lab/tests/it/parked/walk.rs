//! A walk in order beside a writer and a reader: it shows all that was acknowledged before it began, also
//! while another thread publishes it.

use super::{options, store_of};
use quipu::internals::twin::leave_out;
use quipu::internals::{IndexChoice, Twin};
use quipu_medium::sim::sched;
use std::cell::Cell;
use std::ops::Bound;

const KEYS: usize = 3;
const WRITES: usize = 24;

/// Whether a walk has missed a write that had returned.
fn misses(twin: Option<Twin>, seed: u64) -> bool {
    let _left_out = leave_out(twin);
    let store = store_of(&options().with(|options| options.index = IndexChoice::Alex), seed);
    let (mut writer, reader, walker) = (store.client(), store.client(), store.client());
    let acknowledged: [Cell<u8>; KEYS] = Default::default();
    let (is_over, misses) = (Cell::new(false), Cell::new(false));
    let key = |at: usize| [b'k', at as u8];
    let writes = || {
        for write in 1..=WRITES {
            writer.put(&key(write % KEYS), &[write as u8; 40]).expect("room");
            acknowledged[write % KEYS].set(write as u8);
        }
        is_over.set(true);
    };
    let reads = || {
        for at in 0.. {
            if is_over.get() {
                break;
            }
            reader.get(&key(at % KEYS)).expect("a read");
        }
    };
    let walks = || {
        while !is_over.get() {
            let least: Vec<u8> = acknowledged.iter().map(Cell::get).collect();
            let mut seen = [0; KEYS];
            let guard = walker.pin();
            for pair in guard.range(Bound::Unbounded, Bound::Unbounded).expect("an order") {
                let (key, value) = pair.expect("sound");
                seen[usize::from(key[1])] = value[0];
            }
            misses.set(misses.get() || seen.iter().zip(&least).any(|(seen, least)| seen < least));
        }
    };
    sched::run(seed, vec![Box::new(writes), Box::new(reads), Box::new(walks)]).expect("no panic");
    misses.get()
}

#[test]
fn a_walk_shows_what_was_acknowledged_before() {
    assert!(!(0..200).any(|seed| misses(None, seed)));
}

#[test]
fn a_walk_misses_what_a_client_leaves_to_another_that_publishes_it() {
    let twin = Some(Twin::PublisherNotAwaited);
    let missed = (0..200).filter(|seed| misses(twin, *seed)).count();
    assert!(missed > 0, "the twin does no harm, so the test above proves nothing");
}
