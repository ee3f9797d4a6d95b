//! An answer to a reader is true after a power failure at that very moment, where the index lies in the pool.
//! A reader that acts on a word which its writer has not made durable yet does so first. In schedules of the
//! simulator's scheduler a reader looks on while a key is put or deleted, and the power fails once it has
//! seen that.

use quipu::internals::twin::leave_out;
use quipu::internals::{Testing, Twin};
use quipu::{Client, Design, Options, Store};
use quipu_medium::Region;
use quipu_medium::sim::{SimArena, SimOptions, sched};
use quipu_parts::sync::Waiter;
use std::cell::RefCell;

const DESIGNS: [Design; 3] = [Design::FLATSTORE_FF, Design::FLATSTORE_PH, Design::MPKV];

/// Schedules for each change in each design. A broken store is convicted in so many of them that three are
/// soon found.
const SCHEDULES: u64 = 60;
const SOON: u64 = 600;

/// A key of eight bytes, which indexes keep in their entries, and one that is not.
const KEYS: [&[u8]; 2] = [b"the key.", b"another key"];

/// The value of the key at first, and behind the change.
const BEFORE: &[u8] = b"before";
const BEHIND: [Option<&[u8]>; 2] = [Some(b"behind"), None];

/// Whether a reader is told of a change, and finds it undone after a power failure.
fn is_undone(design: Design, twin: Option<Twin>, behind: Option<&[u8]>, seed: u64) -> bool {
    let _left_out = leave_out(twin);
    let key = KEYS[seed as usize % KEYS.len()];
    let options = Options::new()
        .design(design)
        .zone_size(16 << 10)
        .recovery_threads(1)
        .cleaner(false)
        .with(|options| options.testing = Testing { tiny_index: true, ..Testing::default() });
    let region = Region::sim(SimOptions { len: 1 << 20, seed, ..SimOptions::default() });
    let store = Store::create_on(region, &options).expect("a new pool");
    let (mut writer, reader) = (store.client(), store.client());
    writer.put(key, BEFORE).expect("room");
    let look = |client: &Client| client.get(key).expect("sound");
    let told = RefCell::new(None);
    let write = || match behind {
        Some(value) => writer.put(key, value).expect("room"),
        None => writer.delete(key).expect("it is there"),
    };
    let read = || {
        let mut waiter = Waiter::default();
        while look(&reader).as_deref() != behind {
            waiter.wait();
        }
        *told.borrow_mut() = Some(store.region().simulator().expect("simulated").snapshot());
    };
    sched::run(seed, vec![Box::new(write), Box::new(read)]).expect("both come to an end");
    let power_lost = told.take().expect("the reader was told");
    let region = SimArena::new().boot(&power_lost, &power_lost.nothing(), seed);
    let store = Store::open_on(region, &options).expect("a pool");
    look(&store.client()).as_deref() != behind
}

#[test]
fn an_answer_is_durable() {
    for design in DESIGNS {
        for behind in BEHIND {
            let undone = (0..SCHEDULES).find(|seed| is_undone(design, None, behind, *seed));
            assert_eq!(undone, None, "{design}, {behind:?}");
        }
    }
}

/// So that the one above can fail.
#[test]
fn readers_that_do_not_help_are_convicted() {
    let twin = Some(Twin::ReadersDoNotHelp);
    for design in DESIGNS {
        for behind in BEHIND {
            let undone = (0..SOON).filter(|seed| is_undone(design, twin, behind, *seed));
            assert_eq!(undone.take(3).count(), 3, "{design}, {behind:?}");
        }
    }
}
