//! Figures 10 and 11: zipfian choices, and the cache.

use super::super::statements::{Cell, best, says};
use super::super::{Preset, Run, Scale};
use super::{MIXED, Mix, NSTORE, SOCKETS, most, nstore, rivals, simulated, words};
use quipu_bench::config::Config;
use quipu_bench::report::Row;

pub(super) const SKEW: Preset = Preset {
    figure: "10",
    section: "V-C",
    title: "updates and gets by skew",
    about: "Zipfian choices with constants from 0.5 to 0.99, and the most threads (the paper has 32); as many operations as records. \
            NStore has its cache, of a 50th of the bytes of all keys and values: the paper's 64 MB beside 3.2 GB. On \
            the simulator there are two nodes with a client on each.",
    runs: skewed,
    statements: &[
        says("get, 0.99 over 0.5", "(above 1)")
            .times(most(NSTORE, "0.99, get", MIXED), most(NSTORE, "0.5, get", MIXED)),
        says("update, 0.99 over 0.9", "(below 1: its locks are coarse)")
            .times(most(NSTORE, "0.99, update", MIXED), most(NSTORE, "0.9, update", MIXED)),
        says("update, Viper, 0.99 over 0.5", "(above 1)")
            .times(most("viper", "0.99, update", MIXED), most("viper", "0.5, update", MIXED)),
        says("get, over Viper, 0.99", "(above 1)")
            .times(most(NSTORE, "0.99, get", MIXED), most("viper", "0.99, get", MIXED)),
    ],
    carries_over: "That a skewed choice is served by the processor's caches, in all stores. A cache in DRAM in front of DRAM saves nothing \
                   but costs a look at it. NStore's updates here lock a stripe of keys and swap a word of the index, not a leaf of 512 \
                   KB, and two threads hardly meet.",
};

pub(super) const CACHES: Preset = Preset {
    figure: "11",
    section: "V-D, V-F",
    title: "policies of the cache by skew",
    about: "NStore without a cache (NStore-w/o-RAF), with RAF, and with caches that know no nodes: LFU, and the hot set of Nap, which \
            changes as a whole. Four operations a record, as the paper's 64 million of 16 million. Each cache has room for a 160th of the \
            records, as the paper's 100 K. Timed rows have the most threads. Modelled rows have two nodes with a client on each and \
            count hits and lines of the other node. More operations follow there, since one get of 32 counts for the cache. Nap's views \
            of hot records in PM are not built, so there is no row of Nap-FF, and Nap-NStore has none of their writes.",
    runs: caches,
    statements: &[
        says("get, RAF over no cache, 0.99", "(above 1)")
            .times(timed("raf, 0.99, get"), timed("off, 0.99, get")),
        says("get, RAF over no cache, 0.5", "(slightly below 1)")
            .times(timed("raf, 0.5, get"), timed("off, 0.5, get")),
        says("update, RAF over no cache, 0.9", "1 (the same)")
            .times(timed("raf, 0.9, update"), timed("off, 0.9, update")),
        says("get, over Nap-FF, 0.9", "20").times(timed("raf, 0.9, get"), most(NAP_FF, "0.9, get", MIXED)),
        says("update, over Nap-FF, 0.9", "15")
            .times(timed("raf, 0.9, update"), most(NAP_FF, "0.9, update", MIXED)),
        says("gets that miss RAF, 0.99 (modelled)", "below 10")
            .value("%", modelled("modelled, raf, 0.99").value(missed)),
        says("gets that miss Nap's hot set, 0.99 (modelled)", "over 20")
            .value("%", modelled("modelled, nap, 0.99").value(missed)),
        says("reads of PM behind Nap's hot set that are remote, 0.99 (modelled)", "up to 50")
            .value("%", modelled("modelled, nap, 0.99").value(remote_share)),
        says("get, Nap's hot set over no cache, 0.99", "below 1 (Nap-NStore)")
            .times(timed("nap, 0.99, get"), timed("off, 0.99, get")),
        says("remote reads, RAF over no cache, 0.99 (modelled)", "(minimal)").times(
            modelled("modelled, raf, 0.99").value(remote),
            modelled("modelled, off, 0.99").value(remote),
        ),
        says("remote reads, RAF over LFU, 0.99 (modelled)", "(below 1)").times(
            modelled("modelled, raf, 0.99").value(remote),
            modelled("modelled, lfu, 0.99").value(remote),
        ),
        says("time of a get, RAF over no cache, 0.99 (modelled)", "(below 1)").times(
            modelled("modelled, raf, 0.99").value(waits),
            modelled("modelled, off, 0.99").value(waits),
        ),
    ],
    carries_over: "The counts, exactly. Both nodes choose alike here, as in the paper: then every record is read from near and far in the \
                   same proportion, RAF weighs all records alike, and keeps what LFU keeps. It gains over LFU where records are read \
                   mostly from one node. The most popular 100 K of 16 million records get 69 % of the gets at 0.99, and 48 % as YCSB \
                   draws them, from 10^10 ranks that it folds: misses below 10 % are not to be had. A slot of our cache takes 267 bytes \
                   of its budget. Times on memory do not carry over: a hit saves nothing there.",
};

/// No design of ours.
const NAP_FF: &str = "nap-ff";

/// The constants, as settings and workloads have them.
const CONSTANTS: [&str; 6] = ["0.5", "0.6", "0.7", "0.8", "0.9", "0.99"];
const OF_CACHES: [&str; 4] = ["0.5", "0.7", "0.9", "0.99"];

/// Of the records, one in so many has room in the cache.
const CACHED: u64 = 160;

/// Bytes of the cache for a record. It has a slot for so many of them, however small its records are.
const CACHED_RECORD: u64 = 267;

/// Bytes of the smallest cache.
const LEAST_CACHE: u64 = 4096;

/// Bytes of all keys and values for each byte of the cache.
const DATA_OVER_CACHE: u64 = 50;

/// Operations for each record, and in modelled rows: enough for the cache to have seen each hot record often.
const OPERATIONS: u64 = 4;
const OPERATIONS_MODELLED: u64 = 100;

/// Times the usual records of modelled rows, so that the cache has room for more than a few.
const LARGER_MODELLED: u64 = 10;

const fn timed(setting: &'static str) -> Cell {
    most(NSTORE, setting, MIXED)
}

const fn modelled(setting: &'static str) -> Cell {
    best(setting, MIXED).of(NSTORE)
}

/// Gets that the cache did not answer, in per cent.
fn missed(row: &Row) -> Option<f64> {
    Some((1.0 - row.cache_hits_per_op?) * 100.0)
}

fn remote(row: &Row) -> Option<f64> {
    row.remote_reads_per_op
}

/// Lines of the other node among all that were read, in per cent.
fn remote_share(row: &Row) -> Option<f64> {
    Some(row.remote_reads_per_op? / row.lines_read_per_op? * 100.0)
}

fn waits(row: &Row) -> Option<f64> {
    row.modelled_ns_per_op
}

/// NStore with a cache of so many bytes and a policy.
fn cached(config: Config, bytes: u64, policy: &str) -> Config {
    let bytes = bytes.max(LEAST_CACHE).to_string();
    nstore(config).with("cache", &bytes).with("cache-policy", policy)
}

/// Gets alone and updates alone.
fn both(theta: &'static str) -> [(Mix, &'static str); 2] {
    let zipf = Some(theta);
    [(Mix { zipf, ..Mix::uniform(0, 100, 0) }, "update"), (Mix { zipf, ..Mix::uniform(100, 0, 0) }, "get")]
}

fn skewed(scale: &Scale) -> Vec<Run> {
    let (base, records) =
        if scale.is_simulated() { simulated(scale, SOCKETS) } else { (scale.most_threads(), scale.records) };
    let config = &words(base, records);
    let bytes = config.records * config.record_bytes() / DATA_OVER_CACHE;
    let of = |theta| {
        both(theta).into_iter().flat_map(move |(mix, name)| {
            let configs = [cached(config.clone(), bytes, "raf"), rivals(config.clone())];
            configs.map(|config| mix.run(format!("{theta}, {name}"), config))
        })
    };
    CONSTANTS.into_iter().flat_map(of).collect()
}

fn caches(scale: &Scale) -> Vec<Run> {
    let configs = |config: Config, policies: &[&'static str]| -> Vec<(&'static str, Config)> {
        let bytes = config.records / CACHED * CACHED_RECORD;
        let with = |policy: &&'static str| (*policy, cached(config.clone(), bytes, policy));
        [("off", nstore(config.clone()))].into_iter().chain(policies.iter().map(with)).collect()
    };
    let (sim, records) = simulated(scale, SOCKETS);
    let sim = words(sim, records * LARGER_MODELLED);
    let sim = Config { operations: sim.records * OPERATIONS_MODELLED, ..sim };
    let modelled = ["0.9", "0.99"].into_iter().flat_map(|theta| {
        let [_, (mix, _)] = both(theta);
        let of = configs(sim.clone(), &["raf", "raf-net", "lfu", "lru", "nap"]);
        of.into_iter().map(move |(policy, config)| mix.run(format!("modelled, {policy}, {theta}"), config))
    });
    if scale.is_simulated() {
        return modelled.collect();
    }
    let config = words(scale.most_threads(), scale.records);
    let config = Config { operations: config.records * OPERATIONS, ..config };
    let timed = OF_CACHES.into_iter().flat_map(|theta| {
        let of = configs(config.clone(), &["raf", "lfu", "nap"]);
        of.into_iter().flat_map(move |(policy, config)| {
            both(theta).map(|(mix, name)| mix.run(format!("{policy}, {theta}, {name}"), config.clone()))
        })
    });
    timed.chain(modelled).collect()
}
