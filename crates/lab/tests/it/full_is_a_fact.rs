//! Writers that all have to make room, in a pool that is nearly full: no order of theirs refuses a write.

use quipu::internals::Twin;
use quipu::internals::twin::leave_out;
use quipu::{Design, Error, Levels, Options, Store};
use quipu_medium::Region;
use quipu_medium::sim::{SimOptions, sched};
use std::cell::RefCell;

const WRITERS: u64 = 3;

/// Writers share a pool of this length, whose live bytes are this share of what it can use. Returns the first
/// refusal.
fn refusal(design: Design, (len, share): (u64, f64), seed: u64) -> Option<String> {
    let region = Region::sim(SimOptions { len, seed, ..SimOptions::default() });
    let zone = if [Design::VIPER, Design::VIPER_PACMAN].contains(&design) { 64 << 10 } else { 16 << 10 };
    let options = Options::new().design(design).zone_size(zone).levels(Levels::Off);
    // The smallest pools have no room for all designs.
    let store = Store::create_on(region, &options).ok()?;
    let mut clients: Vec<_> = (0..WRITERS).map(|_| store.client()).collect();
    for (client, number) in clients.iter_mut().zip(0u64..) {
        client.put(&number.to_le_bytes(), &[0; 400]).ok()?;
    }
    let stats = store.stats();
    let record = stats.live_bytes() / WRITERS;
    let keys = ((stats.fillable_bytes() as f64 * share) as u64 / record / WRITERS).max(1);
    let refused = RefCell::new(None);
    let write = |client: &mut quipu::Client, writer: u64| {
        for number in 0..keys * 6 {
            let key = ((number * 5 % keys) * WRITERS + writer).to_le_bytes();
            if let Err(error) = client.put(&key, &[number as u8; 400]) {
                let text = format!("{design}, seed {seed}, writer {writer}, put {number} of {keys}: {error}");
                refused.borrow_mut().get_or_insert(text);
                return;
            }
        }
    };
    let write = &write;
    let tasks: Vec<Box<dyn FnOnce() + '_>> = (clients.iter_mut().zip(0..WRITERS))
        .map(|(client, writer)| Box::new(move || write(client, writer)) as Box<dyn FnOnce() + '_>)
        .collect();
    let ran = sched::run(seed, tasks);
    ran.unwrap_or_else(|error| panic!("{design}, seed {seed}: {error}"));
    drop(clients);
    refused.into_inner()
}

const DESIGNS: [Design; 6] =
    [Design::QUIPU, Design::FLATSTORE_PH, Design::MPKV, Design::NSTORE, Design::XP, Design::VIPER];

/// A pool, and the share of what it can use. In `xp` a memtable that is rewritten has to give a 32nd back,
/// and each zone of copies may end early.
fn pool(design: Design) -> (u64, f64) {
    (1 << 20, if design == Design::XP { 0.8 } else { 0.9 })
}

#[test]
fn no_order_of_writers_refuses_a_write_that_has_room() {
    for design in DESIGNS {
        let refused: Vec<String> = (0..12).filter_map(|seed| refusal(design, pool(design), seed)).collect();
        assert!(refused.is_empty(), "{} of 12: {}", refused.len(), refused[0]);
    }
}

/// The look at readers is needed: without it, some order of writers refuses a write that is not refused
/// otherwise. In a pool of few segments each of them counts. The looks at other writers are convicted in
/// `regressions`.
#[test]
fn a_driver_that_forgets_readers_refuses_a_write() {
    let pools = |design| [(240 << 10, 0.5), (160 << 10, 0.4), pool(design)];
    let runs = || {
        let of_design = |design| pools(design).into_iter().map(move |pool| (design, pool));
        let of_pool = |(design, pool)| (0..50).map(move |seed| (design, pool, seed));
        DESIGNS.into_iter().flat_map(of_design).flat_map(of_pool)
    };
    let is_convicted = |(design, pool, seed): &(Design, (u64, f64), u64)| {
        let under = |twin| {
            let _left_out = leave_out(twin);
            refusal(*design, *pool, *seed).is_some()
        };
        under(Some(Twin::ReadersForgotten)) && !under(None)
    };
    let convicts: Vec<_> = runs().filter(is_convicted).take(3).collect();
    assert_eq!(convicts.len(), 3, "{convicts:?}");
}

/// Puts that were refused as a pool is full, and those of them that were accepted when tried again at once,
/// by the only client. Pairs of all lengths come, change and leave.
fn tried_again(design: Design, seed: u64) -> (u32, u32) {
    let region = Region::sim(SimOptions { len: 1 << 20, seed, ..SimOptions::default() });
    let zone = if [Design::VIPER, Design::VIPER_PACMAN].contains(&design) { 64 << 10 } else { 16 << 10 };
    let options = Options::new().design(design).zone_size(zone).levels(Levels::Off).cleaner(false);
    let mut client = Store::create_on(region, &options).expect("room").client();
    let mut random = seed;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..4_000 {
        let key = draw(2_000).to_le_bytes();
        let value = vec![1; draw(1_500) as usize];
        if draw(8) == 0 {
            client.remove(&key).expect("deletions have room");
            continue;
        }
        match client.put(&key, &value) {
            Ok(_) => {}
            Err(Error::PoolFull { .. }) => {
                refused += 1;
                accepted += u32::from(client.put(&key, &value).is_ok());
            }
            Err(error) => panic!("{design}, seed {seed}: {error}"),
        }
    }
    (refused, accepted)
}

/// Otherwise the refusal was the end of patience. In designs of slots it is that still, one time in some
/// thousand: whether records fit the pages better in another order is not computed but tried.
#[test]
fn who_is_refused_is_refused_again() {
    for design in Design::ALL {
        let tried = (0..2).map(|seed| tried_again(*design, seed));
        let (refused, accepted) =
            tried.fold((0, 0), |sum, (refused, accepted)| (sum.0 + refused, sum.1 + accepted));
        let is_of_slots = [Design::VIPER, Design::VIPER_PACMAN].contains(design);
        let most = if is_of_slots { refused / 2_000 } else { 0 };
        assert!(refused > 800 && accepted <= most, "{design}: {accepted} of {refused}");
    }
}
