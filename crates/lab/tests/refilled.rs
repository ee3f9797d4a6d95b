//! A slot that a record has left is soon another key's. Who reads meanwhile must not take that for its key being gone: in
//! thousands of schedules of the simulator's scheduler, a key that is put again and again is there for every reader.

use quipu::{Client, Design, Options, RecordForm, Store};
use quipu_medium::Region;
use quipu_medium::sim::{SimOptions, sched};

/// Keys that take each other's slots, the first of which is read.
const KEYS: u64 = 4;

/// How often each is put again, and the first one read meanwhile.
const ROUNDS: u64 = 40;
const READS: usize = 80;

const SCHEDULES: u64 = 1000;

fn put(client: &mut Client, key: u64, round: u64) {
    client.put(&key.to_le_bytes(), &round.to_le_bytes()).expect("there is room");
}

/// One schedule; how many reads have found nothing.
fn absences(options: &Options, seed: u64) -> usize {
    let region = Region::sim(SimOptions { len: 1 << 20, seed, ..SimOptions::default() });
    let store = Store::create_on(region, options).expect("a new pool");
    let mut client = store.client();
    (0..KEYS).for_each(|key| put(&mut client, key, 0));
    let mut absences = 0;
    let write = || (1..=ROUNDS).for_each(|round| (0..KEYS).for_each(|key| put(&mut client, key, round)));
    let read = || {
        let (client, mut value) = (store.client(), Vec::new());
        for _ in 0..READS {
            let found = client.get_into(&0u64.to_le_bytes(), &mut value).expect("sound");
            absences += usize::from(!found);
        }
    };
    sched::run(seed, vec![Box::new(write), Box::new(read)]).expect("both come to an end");
    absences
}

fn is_never_absent(late: bool) {
    let mut options = Options {
        design: Some(Design::Viper),
        zone_size: Some(16 << 10),
        cleaner: false,
        late,
        ..Options::default()
    };
    options.slots.form = RecordForm::Fixed { key: 8, value: 8 };
    for seed in 0..SCHEDULES {
        assert_eq!(absences(&options, seed), 0, "late {late}, seed {seed}: a key that is always there");
    }
}

#[test]
fn a_key_that_is_put_again_is_never_absent() {
    is_never_absent(false);
}

#[test]
fn a_key_whose_puts_are_published_late_is_never_absent() {
    is_never_absent(true);
}
