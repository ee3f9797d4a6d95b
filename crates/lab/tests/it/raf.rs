//! The cache in front of the index on memory of two nodes: the remote lines that reads cost, by policy,
//! counted exactly (NStore, sections III-B and V-D).
//!
//! If every node reads every key in the same proportion, the weights of RAF change nothing: it is LFU. Where
//! each key is read from one node, RAF keeps what is far.

use quipu::internals::{CacheSize, Policy};
use quipu::{Client, Design, Options, Store};
use quipu_bench::workload::Zipfian;
use quipu_medium::sim::{self, SimOptions};
use quipu_medium::{Node, Region};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const KEYS: u64 = 8_000;
const VALUE: usize = 200;
/// Of 100 keys, so many have room in the cache: a head, key and value, and a sixth of a bucket.
const SHARE: u64 = 5;
const BUDGET: u64 = KEYS * SHARE / 100 * (24 + 8 + VALUE as u64 + 11);
const WARM: u64 = 3_000_000;
const READS: u64 = 200_000;

/// Which node reads a key.
#[derive(Clone, Copy)]
enum Reader {
    /// Each as often as the other.
    Both,
    /// One of them, whatever node the key is on.
    ItsOwn,
}

/// What `READS` reads cost, and how many of them were hits.
struct Cost {
    remote_lines: u64,
    hits: u64,
    /// Nanoseconds a read by the simulator's model, in which a hit takes none.
    time: f64,
}

impl Cost {
    /// The time of a read if a hit takes as long as one of DRAM.
    fn time_with_hits(&self) -> f64 {
        self.time + self.hits as f64 / READS as f64 * 80.0
    }
}

/// The cost of zipfian reads on two nodes, once the cache is warm.
fn cost(design: Design, policy: Option<Policy>, reader: Reader) -> Cost {
    let region = Region::sim(SimOptions { len: 16 << 20, nodes: 2, ..SimOptions::default() });
    let mut options = Options::new().design(design).cleaner(false);
    options.cache = policy.map_or(CacheSize::Off, |_| CacheSize::Bytes(BUDGET));
    options.cache_policy = policy.unwrap_or_default();
    let store = Store::create_on(region.clone(), &options).unwrap();
    let mut clients: Vec<Client> = (0..2).map(|node| store.client_on(node).unwrap()).collect();
    let mut rng = SmallRng::seed_from_u64(7);
    for number in 0..KEYS {
        let node = rng.random_range(0..2u16);
        region.pin(Node(node)).unwrap();
        clients[usize::from(node)].put(&number.to_le_bytes(), &[node as u8; VALUE]).unwrap();
    }
    let owners: Vec<u16> = (0..KEYS).map(|_| rng.random_range(0..2)).collect();
    let choice = Zipfian::new(KEYS, 0.99).unwrap();
    let mut out = Vec::new();
    let mut before = (sim::Cost::default(), 0);
    for turn in 0..WARM + READS {
        if turn == WARM {
            before = (region.simulator().unwrap().cost(), store.stats().cache_hits);
        }
        let number = choice.draw(&mut rng);
        let both = rng.random_range(0..2u16);
        let node = if matches!(reader, Reader::Both) { both } else { owners[number as usize] };
        region.pin(Node(node)).unwrap();
        assert!(clients[usize::from(node)].get_into(&number.to_le_bytes(), &mut out).unwrap());
        assert_eq!(out.len(), VALUE);
    }
    let stats = store.stats();
    assert!(policy.is_none() || stats.cache_bytes <= BUDGET, "{stats:?}");
    let cost = region.simulator().unwrap().cost() - before.0;
    let (remote_lines, hits) = (cost.remote_lines_read, stats.cache_hits - before.1);
    let cost = Cost { remote_lines, hits, time: cost.estimate_ns() / READS as f64 };
    let [remote, hits] = [remote_lines, hits].map(|count| count as f64 / READS as f64);
    println!("{design} {policy:?}: {remote:.3} remote lines and {hits:.3} hits a read, {:.2} ns", cost.time);
    cost
}

#[test]
fn a_cache_halves_remote_reads_and_raf_is_lfu_where_nodes_read_alike() {
    for design in [Design::NSTORE, Design::QUIPU] {
        let of = |policy| cost(design, policy, Reader::Both).remote_lines as f64;
        let (none, lfu, raf) = (of(None), of(Some(Policy::Lfu)), of(Some(Policy::Raf)));
        assert!(raf <= 0.5 * none, "{design}: {raf} of {none}");
        assert!((raf / lfu - 1.0).abs() <= 0.02, "{design}: {raf} and {lfu}");
    }
}

#[test]
fn raf_keeps_what_is_far_where_each_node_has_its_own_keys() {
    let of = |policy| cost(Design::NSTORE, Some(policy), Reader::ItsOwn);
    let (lfu, raf, net) = (of(Policy::Lfu), of(Policy::Raf), of(Policy::RafNet));
    let share = |cost: &Cost| cost.remote_lines as f64 / lfu.remote_lines as f64;
    assert!(share(&raf) <= 0.97, "{}", share(&raf));
    assert!(share(&net) <= 0.92, "{}", share(&net));
    assert!(raf.time <= lfu.time, "{} and {} ns", raf.time, lfu.time);
    // Its weights are what a hit saves.
    assert!(net.time_with_hits() <= lfu.time_with_hits());
}
