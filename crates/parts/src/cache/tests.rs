use super::*;
use crate::epoch::Collector;
use crate::twin::{Twin, leave_out};

fn cache_of(budget: u64, policy: Policy, nodes: usize, distance: impl Fn(usize, usize) -> u16) -> Cache {
    Cache::new(CacheSettings { policy, ..CacheSettings::of(budget) }, nodes, distance)
}

/// Distances of two nodes, as most machines tell them.
fn two_nodes(own: usize, reader: usize) -> u16 {
    if own == reader { 10 } else { 21 }
}

fn item<'a>(hash: u64, key: &'a [u8], value: &'a [u8], node: u16) -> Item<'a> {
    Item { hash, key, value, expires: 0, node }
}

fn value<'g>(cache: &'g Cache, guard: &'g Guard<'_>, hash: u64, key: &[u8]) -> Option<&'g [u8]> {
    cache.get(guard, hash, key).map(|hit| hit.value())
}

#[test]
fn a_pair_is_there_until_it_is_written() {
    let cache = cache_of(1 << 20, Policy::Raf, 1, |_, _| 10);
    let participant = Collector::new().register();
    let guard = participant.pin();
    let empty = cache.bytes();
    cache.fill(&guard, &Item { expires: 7, ..item(1 << 60 | 3, b"key", b"value", 0) }, 0);
    let hit = cache.get(&guard, 1 << 60 | 3, b"key").expect("it was put in");
    assert_eq!((hit.value(), hit.expires()), (&b"value"[..], 7));
    assert_eq!(value(&cache, &guard, 1 << 60 | 3, b"kez"), None, "another key of the same hash");
    assert_eq!(value(&cache, &guard, 2 << 60 | 3, b"key"), None, "the same bucket, another tag");
    // The same key again changes nothing.
    cache.fill(&guard, &item(1 << 60 | 3, b"key", b"other", 0), 0);
    assert_eq!(value(&cache, &guard, 1 << 60 | 3, b"key"), Some(&b"value"[..]));
    cache.forget(&guard, 1 << 60 | 3);
    assert_eq!(value(&cache, &guard, 1 << 60 | 3, b"key"), None);
    assert_eq!(hit.value(), b"value", "a reader may have it still");
    assert!(cache.bytes() > empty);
    drop(guard);
    participant.collect();
    assert_eq!(cache.bytes(), empty);
}

#[test]
fn it_takes_no_more_than_its_budget() {
    const BUDGET: u64 = 100_000;
    let cache = cache_of(BUDGET, Policy::Lfu, 1, |_, _| 10);
    let participant = Collector::new().register();
    let (mut rng, mut most) = (1u64, 0);
    for number in 0..20_000u64 {
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let bytes = vec![1; (rng >> 33) as usize % 5000];
        let guard = participant.pin();
        cache.fill(&guard, &item(rng, &number.to_le_bytes(), &bytes, 0), 0);
        most = most.max(cache.bytes());
        assert!(cache.bytes() <= BUDGET, "{} bytes", cache.bytes());
    }
    assert!(most > BUDGET / 10 * 9, "{most} bytes at most: it is not used");
}

/// Fills a bucket by six pairs that are read as often as these tell, by readers of node 0. Returns which of
/// them goes for a seventh.
fn goes_first(policy: Policy, pairs: [(u16, usize); 6]) -> usize {
    let cache = cache_of(8192, policy, 2, two_nodes);
    let participant = Collector::new().register();
    let guard = participant.pin();
    let hash = |i: usize| (i as u64 + 1) << 48;
    let key = |i: usize| [i as u8];
    for (i, (node, _)) in pairs.into_iter().enumerate() {
        cache.fill(&guard, &item(hash(i), &key(i), b"", node), 0);
    }
    for (i, (_, reads)) in pairs.into_iter().enumerate() {
        for _ in 1..reads {
            let hit = cache.get(&guard, hash(i), &key(i)).expect("it is there");
            cache.note_hit(&hit, 0);
        }
    }
    cache.fill(&guard, &item(hash(6), &key(6), b"", 0), 0);
    assert!(value(&cache, &guard, hash(6), &key(6)).is_some());
    let mut gone = (0..6).filter(|i| value(&cache, &guard, hash(*i), &key(*i)).is_none());
    gone.next().expect("one of six slots is another's now")
}

/// The pairs of node 1 are far from the reader: a read of them counts 1.6 times by RAF, 3.1 times by what a
/// hit saves, and once otherwise.
#[test]
fn each_policy_lets_go_of_the_pair_that_it_names() {
    let pairs = [(0, 9), (1, 6), (0, 9), (1, 5), (0, 8), (0, 9)];
    assert_eq!(goes_first(Policy::Lfu, pairs), 3, "the one that is read least");
    assert_eq!(goes_first(Policy::Raf, pairs), 3, "5 reads from afar count as 8 and a half of 16ths less");
    let pairs = [(0, 9), (1, 6), (0, 9), (1, 6), (0, 8), (0, 9)];
    assert_eq!(goes_first(Policy::Lfu, pairs), 1);
    assert_eq!(goes_first(Policy::Raf, pairs), 4, "6 reads from afar count as more than 9");
    let pairs = [(0, 9), (1, 4), (0, 9), (1, 4), (0, 8), (0, 9)];
    assert_eq!(goes_first(Policy::Raf, pairs), 1);
    assert_eq!(goes_first(Policy::RafNet, pairs), 4, "4 reads from afar save as much as 12");
    let pairs = [(0, 2), (1, 3), (0, 2), (1, 3), (0, 1), (0, 1)];
    assert_eq!(goes_first(Policy::Lru, pairs), 4, "it has not been read since it came");
    assert_eq!(goes_first(Policy::LruRaf, [(1, 1), (1, 1), (0, 1), (1, 1), (1, 1), (1, 1)]), 2);
}

#[test]
fn worths_that_overflow_are_halved_together() {
    let cache = cache_of(8192, Policy::Lfu, 1, |_, _| 10);
    let participant = Collector::new().register();
    let guard = participant.pin();
    for i in 1..=6u64 {
        cache.fill(&guard, &item(i << 48, &[i as u8], b"", 0), 0);
    }
    let read = |i: u64, times| {
        let hit = cache.get(&guard, i << 48, &[i as u8]).expect("it is there");
        (0..times).for_each(|_| cache.note_hit(&hit, 0));
    };
    read(2, 2000);
    // More than 16 bits can count: all are halved.
    read(1, 4200);
    for i in 3..=6 {
        read(i, 1200);
    }
    cache.fill(&guard, &item(7 << 48, b"7", b"", 0), 0);
    assert_eq!(value(&cache, &guard, 2 << 48, &[2]), None, "2,000 reads before count less than 1,200 after");
}

/// So many windows of a client with 32 reads at a time, with these hits and so many writes, until the cache
/// turns.
fn windows_until(cache: &Arc<Cache>, (hits, writes): (u32, u64), is_on: bool) -> u64 {
    let participant = Collector::new().register();
    let (each, counts) = (32 + writes, Counts { reads: 32, hits });
    let was_off = !cache.is_on();
    for reports in 1..20_000_000 / each {
        (0..writes).for_each(|_| cache.forget(&participant.pin(), 0));
        let is_to_collect = cache.report(&participant.pin(), counts);
        if cache.pulse.is_turning() {
            assert!(is_to_collect && !is_on);
            participant.collect();
            // A cache that goes off is emptied by the next sampled read.
            cache.report(&participant.pin(), Counts::default());
            assert!(!cache.is_on() && !cache.pulse.is_turning());
            return (reports * each) >> 16;
        }
        if was_off && cache.is_on() {
            assert!(is_on);
            return (reports * each) >> 16;
        }
    }
    u64::MAX
}

#[test]
fn it_is_off_where_it_is_of_no_use_and_tries_again() {
    let (useful, few_hits, few_reads) = ((20, 10), (3, 10), (20, 400));
    let cache = Arc::new(cache_of(1 << 20, Policy::Lfu, 1, |_, _| 10));
    assert_eq!(windows_until(&cache, useful, true), u64::MAX);
    let cache = Arc::new(cache_of(1 << 20, Policy::Lfu, 1, |_, _| 10));
    let participant = Collector::new().register();
    cache.fill(&participant.pin(), &item(1, b"key", b"value", 0), 0);
    assert_eq!(windows_until(&cache, few_hits, false), 8);
    assert_eq!(value(&cache, &participant.pin(), 1, b"key"), None);
    assert_eq!(cache.bytes(), (cache.buckets.len() * 64) as u64, "its pairs are gone");
    cache.fill(&participant.pin(), &item(1, b"key", b"value", 0), 0);
    assert_eq!(cache.bytes(), (cache.buckets.len() * 64) as u64);
    assert_eq!(windows_until(&cache, few_reads, true), u64::MAX, "a cache would not help");
    assert!(windows_until(&cache, few_hits, true) <= 1, "it had rested");
    assert_eq!(windows_until(&cache, few_reads, false), 8);
    assert_eq!(windows_until(&cache, useful, true), 32, "it rests twice as long");
}

#[test]
fn it_is_off_where_all_pairs_are_read_alike() {
    let cache = Arc::new(cache_of(1 << 20, Policy::Raf, 1, |_, _| 10));
    let participant = Collector::new().register();
    for i in 0..100_000u64 {
        let key = i.to_le_bytes();
        cache.fill(&participant.pin(), &item(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), &key, b"", 0), 0);
    }
    assert_eq!(windows_until(&cache, (20, 0), false), 8);
}

/// As the baseline of the paper has it (section V-D): a set that changes as a whole.
#[test]
fn nap_caches_what_was_read_most_in_the_period_before() {
    let cache = Arc::new(cache_of(1 << 16, Policy::Nap, 1, |_, _| 10));
    let participant = Collector::new().register();
    // Of so many pairs a fifth has room, and a tenth is read eleven times as often as the others. Each read
    // is a sampled one. Returns the share of hits among those of hot keys.
    let read = |hot: std::ops::Range<u64>, times: u64| {
        let mut hits = 0;
        for turn in 0..times {
            let number =
                if turn % 2 == 0 { hot.start + turn / 2 % (hot.end - hot.start) } else { turn % 1000 };
            let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let key = number.to_le_bytes();
            let guard = participant.pin();
            let hit = cache.get(&guard, hash, &key);
            cache.report(&guard, Counts { reads: 32, hits: if hit.is_some() { 32 } else { 0 } });
            match hit {
                Some(hit) => {
                    cache.note_hit(&hit, 0);
                    hits += u64::from(turn % 2 == 0);
                }
                None => cache.fill(&guard, &item(hash, &key, &[0; 200], 0), 0),
            }
            drop(guard);
            participant.collect();
        }
        hits as f64 * 2.0 / times as f64
    };
    let period = u64::from(PERIOD) * cache.settings.window / 32;
    assert_eq!(read(0..100, period), 0.0, "no period has ended");
    let steady = read(0..100, period);
    let changed = read(50..150, period);
    let again = read(50..150, period);
    assert!(steady > 0.8 && again > 0.8, "{steady} and {again} of the reads of hot keys are hits");
    // Half of its keys are new, of which few are in this period's set.
    assert!((0.4..0.8).contains(&changed), "{changed}");
    assert!(cache.is_on() && cache.bytes() <= 1 << 16);
}

/// The room of a set is of the mean pair of its period.
#[test]
fn one_long_pair_decides_no_set() {
    let periodic = Periodic::default();
    let end = |slots, room| {
        (0..10_000).for_each(|read| periodic.note(read % 100, 50));
        periodic.note(7, 4096);
        periodic.end(slots, room).len()
    };
    assert_eq!((end(1000, 4000), end(10, 4000), end(1000, 1 << 20)), (79, 10, 100));
}

/// Also where nothing else comes to its place.
#[test]
fn a_period_ends_with_what_its_set_has_not() {
    let cache = Arc::new(cache_of(1 << 16, Policy::Nap, 1, |_, _| 10));
    let participant = Collector::new().register();
    let periods = |key: &[u8], hash: u64, count: u32| {
        for _ in 0..u64::from(count * PERIOD) * cache.settings.window / 32 {
            let guard = participant.pin();
            cache.fill(&guard, &item(hash, key, b"value", 0), 0);
            cache.report(&guard, Counts { reads: 32, hits: 32 });
        }
    };
    periods(b"one", 1 << 60, 2);
    assert_eq!(value(&cache, &participant.pin(), 1 << 60, b"one"), Some(&b"value"[..]));
    periods(b"other", 5 << 60, 2);
    assert_eq!(value(&cache, &participant.pin(), 1 << 60, b"one"), None);
    assert!(value(&cache, &participant.pin(), 5 << 60, b"other").is_some());
}

/// The ways of a pair out of the cache, each beside a reader that may have it.
#[derive(Clone, Copy, Debug)]
enum Out {
    /// Its key is written.
    Written,
    /// Another pair comes to its place.
    Replaced,
    /// The cache turns off, and is emptied.
    Swept,
}

/// Whether the bytes of a pair stay until a reader is gone that was there before the pair went.
fn outlives_a_reader(out: Out) -> bool {
    let cache = Arc::new(cache_of(8192, Policy::Lfu, 1, |_, _| 10));
    let collector = Collector::new();
    let (reader, other) = (collector.register(), collector.register());
    let empty = cache.bytes();
    let fill = |key: u8| cache.fill(&other.pin(), &item(u64::from(key) << 48, &[key], b"value", 0), 0);
    (1..=6).for_each(fill);
    let full = cache.bytes();
    let each = (full - empty) / 6;
    let guard = reader.pin();
    assert!((1..=6).all(|key: u8| value(&cache, &guard, u64::from(key) << 48, &[key]).is_some()));
    match out {
        Out::Written => cache.forget(&other.pin(), 1 << 48),
        Out::Replaced => fill(7),
        Out::Swept => {
            let useless = Counts { reads: 1 << 16, hits: 0 };
            (0..8).for_each(|_| _ = cache.report(&other.pin(), useless));
            assert!(!cache.is_on());
        }
    }
    let step = || {
        other.collect();
        // A cache that goes off is emptied by a sampled read.
        cache.report(&other.pin(), Counts::default());
    };
    (0..4).for_each(|_| step());
    let kept = cache.bytes();
    drop(guard);
    // Each turn of the epoch takes a collection.
    (0..4).for_each(|_| step());
    let left = if matches!(out, Out::Swept) { empty } else { full - each };
    assert_eq!(cache.bytes(), left + if matches!(out, Out::Replaced) { each } else { 0 }, "{out:?}");
    kept == full + if matches!(out, Out::Replaced) { each } else { 0 }
}

#[test]
fn a_pair_that_leaves_stays_for_the_readers_that_may_have_it() {
    let holds = |rule| {
        let _left_out = leave_out(rule);
        [Out::Written, Out::Replaced, Out::Swept].map(outlives_a_reader)
    };
    assert_eq!(holds(None), [true; 3]);
    assert_eq!(holds(Some(Twin::BlockFreedEarly)), [false, false, true]);
    assert_eq!(holds(Some(Twin::SweptWhilePinned)), [true, true, false]);
}
