//! Figures 14 and 16: memtables and the Reorder Ring, each alone.

use super::super::statements::{Cell, best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::MODELLED;
use crate::bench::memtables::{FFM, FPM, Order, SLM, SPM_D, SPM_P};
use crate::bench::patterns::Pattern;
use crate::bench::ring::{Items, LOCK, TICKET};
use quipu::Design;
use quipu_bench::config::Config;
use quipu_bench::ops::OpsPhase;
use quipu_bench::report::Row;
use quipu_parts::commit::ring::Grants;

const SEQUENTIAL: &str = "sequential";
const RANDOM: &str = "random";
const STORES: &str = "whole stores";

/// Records of an item where their number is not what varies.
const USUAL: u64 = 50;

pub(super) const MEMTABLES: Preset = Preset {
    figure: "14",
    section: "4.2",
    title: "memtables: index, and place of its nodes",
    about: "Records of 8 + 32 bytes in items of 50, nothing flushed or compacted; then as many random lookups. SPM-D: records \
            in PM memtables, nodes in DRAM, Masstree in place of the paper's radix tree. FFM: the same records, FAST&FAIR in \
            PM, which has keys of eight bytes in its nodes, where the paper's has pointers to them. SLM: a skip list with its \
            records in DRAM; nothing of it is durable, in the paper neither. The whole stores have the same records, and \
            versions, locks and clients too: xp is the memtable of SPM-D, flatstore-m has Masstree in DRAM behind another log, \
            flatstore-ff FAST&FAIR in PM. Scans are not run.",
    runs: memtables,
    statements: &[
        says("sequential inserts, SPM-D over SLM, most threads (up to, of 1 to 32)", "5.9")
            .times(memtable(SPM_D, SEQUENTIAL, INSERT), memtable(SLM, SEQUENTIAL, INSERT)),
        says("sequential inserts, SPM-D over FFM", "5.8")
            .times(memtable(SPM_D, SEQUENTIAL, INSERT), memtable(FFM, SEQUENTIAL, INSERT)),
        says("sequential inserts, SPM-D over FPM", "8.3")
            .times(memtable(SPM_D, SEQUENTIAL, INSERT), memtable(FPM, SEQUENTIAL, INSERT)),
        says("random inserts, SPM-D over SLM", "2.9")
            .times(memtable(SPM_D, RANDOM, INSERT), memtable(SLM, RANDOM, INSERT)),
        says("random inserts, SPM-D over FFM", "5.7")
            .times(memtable(SPM_D, RANDOM, INSERT), memtable(FFM, RANDOM, INSERT)),
        says("random inserts, SPM-D over FPM", "6.0")
            .times(memtable(SPM_D, RANDOM, INSERT), memtable(FPM, RANDOM, INSERT)),
        says("inserts, SPM-P over SPM-D", "about 1")
            .times(memtable(SPM_P, RANDOM, INSERT), memtable(SPM_D, RANDOM, INSERT)),
        says("lookups, SPM-D over SLM", "2.7")
            .times(memtable(SPM_D, RANDOM, GET), memtable(SLM, RANDOM, GET)),
        says("lookups, SPM-D over FFM", "14").times(memtable(SPM_D, RANDOM, GET), memtable(FFM, RANDOM, GET)),
        says("lookups, SPM-D over FPM", "16").times(memtable(SPM_D, RANDOM, GET), memtable(FPM, RANDOM, GET)),
    ],
    carries_over: "That an index in PM pays for its own fences at each insert, and that a skip list reads more lines for a key than \
                   a tree does. In memory a fence and a read cost a fraction of what they do on Optane, so FFM is closer; there \
                   its lookups also read nodes from PM, and keys behind pointers. The order of inserts counts with the caches.",
};

const INSERT: &str = "insert";
const GET: &str = "get";

/// The throughput of a memtable with the most threads.
const fn memtable(name: &'static str, setting: &'static str, phase: &'static str) -> Cell {
    best(setting, phase).of(name).most()
}

fn memtables(scale: &Scale) -> Vec<Run> {
    let records = scale.records;
    let usual = |config: Config| Config {
        records,
        operations: records,
        key_size: 8,
        value_size: 32,
        batch: USUAL as usize,
        ..config
    };
    let run =
        |setting: &str, config: Config, order| Run::new(setting, usual(config), Benchmark::Memtables(order));
    let designs = vec![Design::XP, Design::FLATSTORE_M, Design::FLATSTORE_FF];
    let stores = |config: Config| {
        let config = Config { designs: designs.clone(), phases: vec![OpsPhase::Get], ..usual(config) };
        Run::new(STORES, config, Benchmark::Ops)
    };
    let timed = scale.over_threads().filter(|_| !scale.is_simulated());
    let timed = timed.flat_map(|config| {
        [
            run(SEQUENTIAL, config.clone(), Order::Sequential),
            run(RANDOM, config.clone(), Order::Random),
            stores(config),
        ]
    });
    let sim = scale.on_sim();
    let modelled = Run::new(
        MODELLED,
        Config { records: sim.records, operations: sim.records, ..usual(sim.base) },
        Benchmark::Memtables(Order::Random),
    );
    timed.chain([modelled]).collect()
}

pub(super) const RING: Preset = Preset {
    figure: "16",
    section: "4.3",
    title: "the Reorder Ring: records of an item, and threads",
    about: "Records of 8 + 16 bytes without an index; here as many in all rows, in the paper a million a thread. Items of 1 to 128 \
            records with the most threads (the paper has 32), and items of 50 with each number of threads. The turn goes by a lock, \
            or by the paper's ticket. The limit beside is that of items of the same bytes, streamed with a fence each. Raw random \
            writes are of 24 bytes at random places, each durable before the next.",
    runs: ring,
    statements: &[
        says("items of 90 over items of 1, throughput, lock", "49").times(by(LOCK, NINETY), by(LOCK, ONE)),
        says("items of 90 over items of 1, throughput, ticket", "49")
            .times(by(TICKET, NINETY), by(TICKET, ONE)),
        says("items of 90 over items of 1, median time of an item", "1.3")
            .times(by(LOCK, NINETY).value(p50), by(LOCK, ONE).value(p50)),
        says("items of 90 over items of 1, 99 % of items within", "1.7")
            .times(by(LOCK, NINETY).value(p99), by(LOCK, ONE).value(p99)),
        says("items of 90 over items of 50, throughput", "1.4").times(by(LOCK, NINETY), by(LOCK, FIFTY)),
        says("items of 90 over items of 50, 99 % of items within", "1.7")
            .times(by(LOCK, NINETY).value(p99), by(LOCK, FIFTY).value(p99)),
        says("items of 128 over items of 90, throughput", "below 1 (100)")
            .times(by(LOCK, "items of 128"), by(LOCK, NINETY)),
        says("raw random writes, most threads", "24").value("Mops/s", best(RAW, AT_RANDOM).of(MEDIUM).most()),
        says("items of 90 over raw random writes, most threads", "1.3")
            .times(by(LOCK, NINETY), best(RAW, AT_RANDOM).of(MEDIUM).most()),
        says("items of 50, most threads over one, lock", "nearly 16 (16)")
            .times(best(THREADS, FIFTY).of(LOCK).most(), best(THREADS, FIFTY).of(LOCK).one()),
        says("fences of an item of one record (algorithms 2 and 3)", "3")
            .value("fences", best(MODELLED, ONE).of(LOCK).value(|row| row.fences_per_op)),
    ],
    carries_over: "That items of many records share a fence, the header of their chunk and the turn: how much a fence and a line cost on \
                   the medium decides how much is gained. A chunk begins at a line, and so an item of one record writes two lines \
                   for 24 bytes. Scaling, as far as there are processors; with more threads than these, one that sleeps \
                   between its grant and its end holds up all. The count of fences, exactly.",
};

const BATCHES: &str = "batches";
const THREADS: &str = "threads";
const RAW: &str = "raw";

const ONE: &str = "items of 1";
const FIFTY: &str = "items of 50";
const NINETY: &str = "items of 90";

/// As rows of access patterns are called.
const MEDIUM: &str = "medium";
const AT_RANDOM: &str = "24 B at random";

/// The numbers of records of an item: powers of two, and those that the paper's text names.
const SIZES: [u64; 10] = [1, 2, 4, 8, 16, 32, USUAL, 64, 90, 128];
const SIZES_MODELLED: [u64; 4] = [1, 10, USUAL, 90];

/// The throughput of a way of granting with items of a size.
const fn by(grants: &'static str, items: &'static str) -> Cell {
    best(BATCHES, items).of(grants)
}

fn p50(row: &Row) -> Option<f64> {
    row.p50_ns.map(|ns| ns as f64)
}

fn p99(row: &Row) -> Option<f64> {
    row.p99_ns.map(|ns| ns as f64)
}

fn ring(scale: &Scale) -> Vec<Run> {
    let usual = |config: Config, records| Config {
        records,
        operations: records,
        key_size: 8,
        value_size: 16,
        ..config
    };
    let run = |setting: &str, config: Config, batches: &[u64], grants: &[Grants]| {
        let items = Items { batches: batches.to_vec(), grants: grants.to_vec(), buckets: None };
        Run::new(setting, config, Benchmark::Ring(items))
    };
    let both = [Grants::Lock, Grants::Ticket];
    let sim = scale.on_sim();
    // So that zones and memtables, which are begun now and then, hardly count.
    let modelled = run(MODELLED, usual(sim.base, sim.records * 10), &SIZES_MODELLED, &both[..1]);
    if scale.is_simulated() {
        return vec![modelled];
    }
    let most = usual(scale.most_threads(), scale.records);
    let over_threads = || scale.over_threads().map(|config| usual(config, scale.records));
    let raw = |config| Run::new(RAW, config, Benchmark::Patterns(vec![Pattern::Records(24)]));
    let mut runs = vec![run(BATCHES, most, &SIZES, &both)];
    runs.extend(over_threads().map(|config| run(THREADS, config, &[USUAL], &both)));
    runs.extend(over_threads().map(raw));
    runs.push(modelled);
    runs
}
