//! The indexes in order, where keys are decimal numbers, and where keys come and go.
//!
//! ```sh
//! cargo run --release -p quipu-parts --example ordered_bench                        # everything
//! cargo run --release -p quipu-parts --example ordered_bench -- alex decimals random
//! ```
//!
//! Times are of the processor, so other programs on the machine disturb less.

use quipu_parts::epoch::{Collector, Participant};
use quipu_parts::index::alex::Alex;
use quipu_parts::index::masstree::Masstree;
use quipu_parts::index::{BothWays, ImageSource, Imaged, Index, Key, Records};

/// A key by its number, which is also its word, less one.
type Shape = fn(u64) -> Vec<u8>;

struct Keys(Shape);

impl Records for Keys {
    fn hash_of(&self, _word: u64) -> u64 {
        unreachable!("indexes in order ask for keys")
    }

    fn key_of(&self, word: u64, out: &mut Vec<u8>) {
        out.extend(self.0(word - 1));
    }
}

const SHAPES: &[(&str, Shape)] = &[
    ("{:016}", |number| format!("{number:016}").into_bytes()),
    ("{:08}", |number| format!("{number:08}").into_bytes()),
    ("big-endian", |number| number.to_be_bytes().to_vec()),
    ("user{}", |number| format!("user{number}").into_bytes()),
    ("halves", |number| [mix(number / 3).to_be_bytes(), mix(number).to_be_bytes()].concat()),
];

/// A bijection of 64-bit numbers whose outputs look random.
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Nanoseconds that this thread has spent on a processor.
fn processor_time() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedstat.split_whitespace().next().and_then(|field| field.parse().ok());
    nanoseconds.expect("this benchmark reads the processor time from Linux's /proc/thread-self/schedstat")
}

/// An index with its thread.
struct Bench<I> {
    index: I,
    participant: Participant,
    shape: Shape,
}

impl<I: Index + BothWays> Bench<I> {
    fn new(index: I, shape: Shape) -> Bench<I> {
        Bench { index, participant: Collector::new().register(), shape }
    }

    fn put(&self, number: u64) {
        self.put_key(&(self.shape)(number), number);
    }

    fn put_key(&self, key: &[u8], number: u64) {
        let key = Key { bytes: key, hash: number };
        let (guard, word, keys) = (self.participant.pin(), number + 1, Keys(self.shape));
        let had = self.index.upsert(&guard, key, word, None, |found| found == word, &keys);
        assert_eq!(had.expect("it never fails"), None);
    }

    fn get(&self, number: u64) {
        let key = (self.shape)(number);
        let key = Key { bytes: &key, hash: number };
        let found = self.index.get(&self.participant.pin(), key, |found| found == number + 1);
        assert_eq!(found.expect("it never fails"), Some(number + 1));
    }

    fn take(&self, number: u64) {
        let key = (self.shape)(number);
        let key = Key { bytes: &key, hash: number };
        let had = self.index.take(&self.participant.pin(), key, None, |found| found == number + 1);
        assert_eq!(had.expect("it never fails"), Some(number + 1));
    }

    fn first(&self) -> Option<u64> {
        let (mut scan, mut first) = (self.index.scan_from(&[]), None);
        let guard = self.participant.pin();
        self.index.next_words(&guard, &mut scan, 1, |word| first = Some(word - 1)).expect("it never fails");
        first
    }

    fn bytes(&self) -> u64 {
        (0..3).for_each(|_| _ = self.participant.collect());
        self.index.stats().bytes
    }
}

/// Inserts in an order, then reads in it. Tells the mean of an insertion, and that of the slowest fifth.
fn decimals<I: Index + BothWays>(name: &str, make: fn() -> I, count: u64, orders: &[&str]) {
    for (shape_name, shape) in &SHAPES[..2] {
        for order in orders {
            let mut numbers: Vec<u64> = (0..count).collect();
            match *order {
                "random" => numbers.sort_by_key(|number| mix(*number)),
                "multiplicative" => (0..count).for_each(|i| numbers[i as usize] = i * 618_033_989 % count),
                _ => {}
            }
            let bench = Bench::new(make(), *shape);
            let keys: Vec<Vec<u8>> = numbers.iter().map(|number| shape(*number)).collect();
            let mut parts: Vec<f64> = Vec::new();
            for (numbers, keys) in numbers.chunks(10_000).zip(keys.chunks(10_000)) {
                let start = processor_time();
                numbers.iter().zip(keys).for_each(|(number, key)| bench.put_key(key, *number));
                parts.push((processor_time() - start) / numbers.len() as f64);
            }
            let mean = parts.iter().sum::<f64>() / parts.len() as f64;
            parts.sort_by(f64::total_cmp);
            let worst = &parts[parts.len() * 4 / 5..];
            let worst = worst.iter().sum::<f64>() / worst.len() as f64;
            let (bytes, splits) = (bench.bytes() as f64 / count as f64, bench.index.stats().splits);
            let start = processor_time();
            numbers.iter().for_each(|number| bench.get(*number));
            let get = (processor_time() - start) / count as f64;
            println!(
                "{name:<9} {shape_name:<7} {order:<15} insert {mean:>6.0} ns, worst fifth {worst:>6.0} ns; get {get:>5.0} ns; \
                 {bytes:>5.1} bytes a key; {splits} splits"
            );
        }
    }
}

/// A queue: keys are put at the end and taken from the front.
fn queue<I: Index + BothWays>(name: &str, make: fn() -> I, pushes: u64, live: u64) {
    for (shape_name, shape) in &SHAPES[..3] {
        let bench = Bench::new(make(), *shape);
        let (mut pops, mut pushed, mut early) = (Vec::new(), 0.0, 0);
        for part in 0..100 {
            let mut popped = 0.0;
            for batch in 0..pushes / 100_000 {
                let from = part * (pushes / 100) + batch * 1_000;
                let start = processor_time();
                (from..from + 1_000).for_each(|number| bench.put(number));
                pushed += processor_time() - start;
                let start = processor_time();
                for number in (from + 1_000).saturating_sub(live + 1_000)..(from + 1_000).saturating_sub(live)
                {
                    assert_eq!(bench.first(), Some(number));
                    bench.take(number);
                }
                popped += processor_time() - start;
            }
            pops.push(popped / (pushes / 100) as f64);
            if part == 1 {
                early = bench.bytes();
            }
        }
        // The first pops are those behind the live keys.
        let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len() as f64;
        println!(
            "{name:<9} {shape_name:<10} push {:>5.0} ns; pop {:>5.0} ns in the first tenth, {:>5.0} in the last; {early} bytes after a fiftieth, \
             {} at the end",
            pushed / pushes as f64,
            mean(&pops[(live * 100).div_ceil(pushes) as usize..][..10]),
            mean(&pops[90..]),
            bench.bytes()
        );
    }
}

/// The bytes of an image.
struct Bytes(Vec<u8>);

impl ImageSource for Bytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn pieces(&self, from: u64, len: u64) -> impl Iterator<Item = &[u8]> {
        self.0.get(from as usize..(from + len) as usize).into_iter()
    }

    fn is_word(&self, _word: u64) -> bool {
        true
    }

    fn all(&self, jobs: usize, job: impl Fn(usize) -> bool + Sync) -> bool {
        (0..jobs).all(job)
    }
}

/// Rounds of new keys that all go again, in the order of their numbers or in another.
fn rounds<I: Index + BothWays + Imaged>(name: &str, make: fn() -> I, keys: u64) {
    for (shape_name, shape) in SHAPES {
        for goes_mixed in [false, true] {
            let bench = Bench::new(make(), *shape);
            let (mut peak, mut taken) = (0, 0.0);
            for round in 0..6 {
                let mut numbers: Vec<u64> = (round * keys..(round + 1) * keys).collect();
                numbers.iter().for_each(|number| bench.put(*number));
                peak = peak.max(bench.bytes());
                if goes_mixed {
                    numbers.sort_by_key(|number| mix(*number));
                }
                let start = processor_time();
                numbers.iter().for_each(|number| bench.take(*number));
                taken += processor_time() - start;
            }
            let left = bench.bytes();
            let start = processor_time();
            (0..100_000).for_each(|_| assert_eq!(bench.first(), None));
            let first = (processor_time() - start) / 100_000.0;
            let guard = bench.participant.pin();
            let mut image = Vec::new();
            bench.index.image(&guard).expect("an image").write(&mut |piece| image.extend_from_slice(piece));
            let again = I::of_image(&Bytes(image)).unwrap_or_else(|_| panic!("its own image"));
            println!(
                "{name:<9} {shape_name:<10} {} {peak} bytes at most, {left} when empty, {} after a close; take {:.0} ns; first {first:.0} ns",
                if goes_mixed { "mixed" } else { "order" },
                again.stats().bytes,
                taken / (6 * keys) as f64
            );
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |name: &str, all: &[&str]| {
        let is_any = arguments.iter().any(|argument| all.contains(&&**argument));
        !is_any || arguments.iter().any(|argument| argument == name)
    };
    const WORKS: &[&str] = &["decimals", "queue", "rounds"];
    const INDEXES: &[&str] = &["alex", "masstree"];
    const ORDERS: &[&str] = &["random", "multiplicative", "rising"];
    let orders: Vec<&str> = ORDERS.iter().copied().filter(|order| is_asked(order, ORDERS)).collect();
    let (of_alex, of_masstree) = (is_asked("alex", INDEXES), is_asked("masstree", INDEXES));
    if is_asked("decimals", WORKS) {
        of_alex.then(|| decimals("alex", Alex::new, 1_000_000, &orders));
        of_masstree.then(|| decimals("masstree", Masstree::new, 1_000_000, &orders));
    }
    if is_asked("queue", WORKS) {
        of_alex.then(|| queue("alex", Alex::new, 1_000_000, 10_000));
        of_masstree.then(|| queue("masstree", Masstree::new, 1_000_000, 10_000));
    }
    if is_asked("rounds", WORKS) {
        of_alex.then(|| rounds("alex", Alex::new, 200_000));
        of_masstree.then(|| rounds("masstree", Masstree::new, 200_000));
    }
}
