//! The hot set as a store uses it: clients that write, one that tends, loads of every kind.

use crate::shared::mix;
use crate::shared::zipf;

use mix::mix;
use quipu_parts::epoch::Current;
use quipu_parts::epoch::{Collector, Participant};
use quipu_parts::reclaim::hot::{HotSet, HotSetSettings, HotSetStats, Sampler};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zipf::Zipf;

/// Writes between two looks of the one in the background.
const TENDED_EVERY: u64 = 1000;

/// A store with one client, which tends its set itself now and then.
struct Store {
    set: HotSet,
    participant: Participant,
    sampler: Sampler,
    written: u64,
}

impl Store {
    fn new(settings: HotSetSettings) -> Store {
        let set = HotSet::new(settings);
        let (participant, sampler) = (Collector::new().register(), Sampler::new(&set));
        Store { set, participant, sampler, written: 0 }
    }

    /// Writes keys, given by the number of the write, and returns the share that was hot.
    fn write(&mut self, writes: u64, key: impl Fn(u64) -> u64) -> f64 {
        let mut hits = 0u64;
        for _ in 0..writes {
            let hash = mix(key(self.written));
            hits += u64::from(self.sampler.is_hot(&self.set, &self.participant, hash));
            self.written += 1;
            if self.written.is_multiple_of(TENDED_EVERY) {
                self.set.tend(&self.participant);
            }
        }
        hits as f64 / writes as f64
    }

    /// Writes until something is true of the set; returns how many writes that took, at most so many.
    fn write_until(
        &mut self,
        most: u64,
        key: impl Fn(u64) -> u64,
        is_so: impl Fn(HotSetStats) -> bool,
    ) -> u64 {
        let begun = self.written;
        while !is_so(self.set.stats()) {
            assert!(self.written - begun < most, "{:?} after {most} writes", self.set.stats());
            self.write(TENDED_EVERY, &key);
        }
        self.written - begun
    }
}

/// Small enough that a test sees many decisions.
fn small() -> HotSetSettings {
    HotSetSettings { keys: 2048, samples: 16 << 10, ..Default::default() }
}

/// Nobody writes the same keys as one with another seed.
fn draws(zipf: &Zipf, seed: u64) -> impl Fn(u64) -> u64 + '_ {
    move |number| seed << 32 | zipf.draw(mix(seed << 40 | number))
}

fn has_decided(stats: HotSetStats) -> bool {
    stats.rebuilds + stats.clears > 0
}

#[test]
fn a_zipfian_load_gets_a_set_that_is_near_the_best_of_its_size() {
    let settings = HotSetSettings::default();
    let zipf = Zipf::new(1_000_000, 0.99);
    let mut store = Store::new(settings);
    let key = draws(&zipf, 0);
    assert_eq!(store.write(100_000, &key), 0.0, "nothing is hot before there is a set");
    let round = settings.samples as u64 * u64::from(settings.interval);
    store.write_until(round * 11 / 10, &key, has_decided);
    let stats = store.set.stats();
    assert_eq!((stats.rebuilds, stats.clears, stats.sampling), (1, 0, false));
    assert!((30_000..=settings.keys as u64).contains(&stats.keys), "{stats:?}");
    let ratio = store.write(1_000_000, &key);
    let ideal = zipf.ideal(stats.keys as usize);
    assert!(ratio > ideal - 0.04 && ratio > 0.7, "{ratio} where {ideal} is possible");
    // What is reported is what was answered.
    let after = store.set.stats();
    let reported = (after.hits - stats.hits) as f64 / (after.lookups - stats.lookups) as f64;
    assert!((reported - ratio).abs() < 0.01, "{reported}");
    // And it stays.
    store.write(3_000_000, &key);
    assert_eq!(store.set.stats().rebuilds, 1);
}

#[test]
fn a_little_skew_is_not_sampled_for_ever() {
    let settings = small();
    let zipf = Zipf::new(100_000, 0.6);
    let mut store = Store::new(settings);
    let ratio = store.write(4_000_000, draws(&zipf, 0));
    assert!((0.05..0.2).contains(&ratio), "{ratio}");
    let stats = store.set.stats();
    assert_eq!((stats.rebuilds, stats.clears, stats.sampling), (1, 0, false));
}

#[test]
fn a_uniform_load_has_no_hot_keys_and_is_seldom_sampled() {
    let round = 64 << 10;
    // Fewer keys than the set may hold, as many as are sampled, far more; and all keys in turn.
    for keys in [500, 3_000, 20_000, 10_000_000] {
        for in_turn in [false, true] {
            let mut store = Store::new(small());
            let key = |number| if in_turn { number % keys } else { mix(number) % keys };
            store.write_until(2 * round, key, has_decided);
            let mut samplings = 0;
            let windows = 60 * round / TENDED_EVERY;
            for _ in 0..windows {
                assert_eq!(store.write(TENDED_EVERY, key), 0.0);
                samplings += u64::from(store.set.stats().sampling);
            }
            let stats = store.set.stats();
            assert_eq!((stats.rebuilds, stats.keys), (0, 0), "{keys} keys");
            // After rests of 1, 2, 4, 8, and 16 rounds.
            assert!((4..=7).contains(&stats.clears), "{stats:?}");
            assert!(samplings * 5 < windows, "{samplings} of {windows}");
        }
    }
}

#[test]
fn a_shift_of_the_hot_keys_is_noticed_and_the_set_replaced() {
    let settings = small();
    let round = settings.samples as u64 * u64::from(settings.interval);
    let zipf = Zipf::new(100_000, 0.99);
    let mut store = Store::new(settings);
    for shift in 0..5 {
        let key = draws(&zipf, shift);
        // Twice an eighth of a round to notice, a round to sample.
        store.write_until(round * 3 / 2, &key, |stats| stats.rebuilds > shift);
        let ratio = store.write(100_000, &key);
        let ideal = zipf.ideal(store.set.stats().keys as usize);
        assert!(ratio > ideal - 0.06, "{ratio} where {ideal} is possible");
        assert!(store.write(10_000, draws(&zipf, shift + 1)) < 0.05, "the old set is of no use now");
    }
    assert_eq!(store.set.stats().clears, 0);
}

#[test]
fn a_load_that_becomes_uniform_loses_its_set_and_one_that_is_no_longer_gets_one() {
    let settings = small();
    let round = settings.samples as u64 * u64::from(settings.interval);
    let zipf = Zipf::new(100_000, 0.99);
    let mut store = Store::new(settings);
    store.write_until(2 * round, draws(&zipf, 0), |stats| stats.rebuilds == 1);
    let uniform = |number| (7 << 40) + mix(number) % 100_000;
    store.write_until(round * 3 / 2, uniform, |stats| stats.clears == 1);
    assert_eq!(store.set.stats().keys, 0);
    // However long that lasts, ...
    store.write(100 * round, uniform);
    let stats = store.set.stats();
    assert_eq!(stats.rebuilds, 1);
    // ... a rest ends.
    store.write_until(19 * round, draws(&zipf, 1), |stats| stats.rebuilds == 2);
}

#[test]
fn runs_repeat() {
    let zipf = Zipf::new(10_000, 0.99);
    let run = || {
        let mut store = Store::new(small());
        let hits: Vec<f64> = (0..4).map(|seed| store.write(100_000, draws(&zipf, seed))).collect();
        (hits, store.set.stats())
    };
    assert_eq!(run(), run());
}

#[test]
fn any_settings_work() {
    let zipf = Zipf::new(20, 0.99);
    for keys in [0, 1, 5, usize::MAX] {
        for (interval, samples) in [(0, 0), (1, 100), (u32::MAX, 10)] {
            for (shift, uniform) in [(0.5, 3.0), (f64::NAN, f64::NAN), (-1.0, 0.0), (2.0, f64::INFINITY)] {
                let mut store = Store::new(HotSetSettings {
                    keys,
                    interval,
                    samples,
                    shift,
                    uniform,
                    ..Default::default()
                });
                store.write(100_000, draws(&zipf, 0));
            }
        }
    }
    // A test of a store can have decisions after few writes.
    let mut store = Store::new(HotSetSettings { interval: 1, samples: 256, ..Default::default() });
    let ratio = store.write(10_000, draws(&zipf, 0));
    assert!(ratio > 0.5 && (1..=5).contains(&store.set.stats().keys), "{ratio}");
}

/// Counts those of its kind that are alive.
struct Counted(Arc<AtomicU64>, [u64; 8]);

impl Counted {
    fn new(alive: &Arc<AtomicU64>, number: u64) -> Counted {
        alive.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(alive), [number; 8])
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        self.1 = [u64::MAX; 8];
    }
}

#[test]
fn what_is_replaced_goes_when_nobody_looks_at_it_and_no_later() {
    let alive = Arc::new(AtomicU64::new(0));
    let count = || alive.load(Ordering::Relaxed);
    let collector = Collector::new();
    let (reader, writer) = (collector.register(), collector.register());
    let current = Current::default();
    assert!(current.get(&reader.pin()).is_none());
    current.replace(&writer.pin(), Some(Counted::new(&alive, 0)));
    {
        let guard = reader.pin();
        let seen = current.get(&guard).expect("one is here");
        current.replace(&writer.pin(), Some(Counted::new(&alive, 1)));
        (0..10).for_each(|_| _ = writer.collect());
        assert_eq!((count(), seen.1), (2, [0; 8]));
        assert_eq!(current.get(&guard).expect("one is here").1, [1; 8]);
    }
    // Any participant that collects frees it.
    (0..3).for_each(|_| _ = reader.collect());
    assert_eq!(count(), 1);
    for number in 0..100 {
        current.replace(&writer.pin(), (number % 3 != 0).then(|| Counted::new(&alive, number)));
        writer.collect();
        assert!(count() <= 4, "replaced ones pile up");
    }
    drop(current);
    drop((reader, writer, collector));
    assert_eq!(count(), 0);
}

#[test]
fn threads_look_while_another_replaces() {
    const THREADS: u64 = 3;
    let alive = Arc::new(AtomicU64::new(0));
    let collector = Collector::new();
    let current = Current::default();
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let participant = collector.register();
                let mut newest = 0;
                while newest < 20_000 {
                    let guard = participant.pin();
                    if let Some(Counted(_, words)) = current.get(&guard) {
                        assert!(words.iter().all(|word| *word == words[0]) && words[0] >= newest);
                        newest = words[0];
                    }
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        let participant = collector.register();
        let mut number = 0;
        while done.load(Ordering::Relaxed) < THREADS {
            number += 1;
            current.replace(&participant.pin(), (number % 5 != 0).then(|| Counted::new(&alive, number)));
            participant.collect();
        }
    });
    drop((current, collector));
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn clients_write_while_another_thread_tends() {
    const CLIENTS: u64 = 3;
    let set = HotSet::new(small());
    let collector = Collector::new();
    let zipf = Zipf::new(100_000, 0.99);
    let done = AtomicU64::new(0);
    let shifts = std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (set, collector, zipf, done) = (&set, &collector, &zipf, &done);
            scope.spawn(move || {
                let participant = collector.register();
                let mut sampler = Sampler::new(set);
                // All shift at about the same time: each time that there is another set.
                let (mut number, mut hits, mut seen) = (client << 33, 0u64, 0);
                while seen < 4 {
                    let key = seen << 32 | zipf.draw(mix(number));
                    hits += u64::from(sampler.is_hot(set, &participant, mix(key)));
                    number += 1;
                    seen = if number.is_multiple_of(1000) { set.stats().rebuilds } else { seen };
                }
                assert!(hits > 0);
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        let participant = collector.register();
        while done.load(Ordering::Relaxed) < CLIENTS {
            set.tend(&participant);
            participant.collect();
            std::thread::yield_now();
        }
        set.stats()
    });
    assert!(shifts.rebuilds >= 4 && shifts.keys > 0, "{shifts:?}");
}

#[test]
fn one_client_with_another_load_does_not_unseat_the_set_of_many() {
    let set = HotSet::new(small());
    let participant = Collector::new().register();
    let zipf = Zipf::new(100_000, 0.99);
    let mut samplers: Vec<Sampler> = (0..8).map(|_| Sampler::new(&set)).collect();
    let key = draws(&zipf, 0);
    for number in 0..3_000_000u64 {
        let client = (number % 8) as usize;
        let key = if client == 7 { mix(number) } else { key(number) };
        samplers[client].is_hot(&set, &participant, mix(key));
        if number.is_multiple_of(TENDED_EVERY) {
            set.tend(&participant);
        }
    }
    let stats = set.stats();
    assert_eq!((stats.rebuilds, stats.clears, stats.sampling), (1, 0, false));
}
