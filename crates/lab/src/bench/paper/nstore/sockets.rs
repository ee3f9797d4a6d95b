//! Figure 12: sockets.

use super::super::statements::{Cell, best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{NSTORE, VIPER, nstore, rivals, simulated, words};
use quipu_bench::ops::OpsPhase;
use quipu_bench::report::Row;

pub(super) const SOCKETS: Preset = Preset {
    figure: "12",
    section: "V-E",
    title: "sockets (modelled)",
    about: "All rows are of the simulator, on machines of one, two and four nodes with a client on each: puts, then gets of records chosen \
            uniformly. There is no throughput: lines of other nodes are counted, and the time that a thread waits for the medium is \
            estimated from the paper's latencies (section II-A). The paper has 1 to 32 threads, the first 16 on one socket.",
    runs: sockets,
    statements: &[
        says("time of a put, NStore, two nodes over one", "(hardly affected)")
            .times(of(NSTORE, "2 nodes", PUT), of(NSTORE, "1 node", PUT)),
        says("time of a put, Viper, two nodes over one", "(rises)")
            .times(of(VIPER, "2 nodes", PUT), of(VIPER, "1 node", PUT)),
        says("time of a get, NStore, two nodes over one", "(rises)")
            .times(of(NSTORE, "2 nodes", GET), of(NSTORE, "1 node", GET)),
        says("time of a get, Viper, two nodes over one", "(rises)")
            .times(of(VIPER, "2 nodes", GET), of(VIPER, "1 node", GET)),
        says("lines of other nodes that a put of NStore writes, two nodes", "0")
            .value("lines", of(NSTORE, "2 nodes", PUT).value(|row| row.remote_writes_per_op)),
        says("lines that a get of Viper reads", "at least 3 accesses")
            .value("lines", of(VIPER, "2 nodes", GET).value(|row| row.lines_read_per_op)),
    ],
    carries_over: "Which accesses go to other nodes. The simulator has no processor's caches, so that a tree in PM pays for each read of a \
                   node, and its time says little. Our Viper keeps the versions of pages in DRAM, where the paper's reads a lock in PM \
                   before a record and behind it. Our clients of all designs take zones of their own node, as the paper has had its \
                   rivals do, so that puts write locally in all of them but for an index in PM. The model knows latencies, and no \
                   bandwidth: what many threads do to a link between sockets is the paper's subject and not here.",
};

const PUT: &str = "insert";
const GET: &str = "get";

/// The modelled time of an operation.
const fn of(design: &'static str, setting: &'static str, phase: &'static str) -> Cell {
    best(setting, phase).of(design).value(waits)
}

fn waits(row: &Row) -> Option<f64> {
    row.modelled_ns_per_op
}

fn sockets(scale: &Scale) -> Vec<Run> {
    let on = |(nodes, setting): (u16, &str)| {
        let (config, records) = simulated(scale, nodes);
        let config = words(config, records);
        [nstore(config.clone()), rivals(config)].map(|mut config| {
            config.phases = vec![OpsPhase::Get];
            Run::new(setting, config, Benchmark::Ops)
        })
    };
    [(1, "1 node"), (2, "2 nodes"), (4, "4 nodes")].into_iter().flat_map(on).collect()
}
