//! Figure 9: scans.

use super::super::statements::{Cell, best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{FLATSTORE_FF, FLATSTORE_M, NSTORE, SOCKETS, most, nstore, simulated, words};
use quipu::{Design, MediumKind};
use quipu_bench::config::Config;
use quipu_bench::ops::OpsPhase;

pub(super) const SCANS: Preset = Preset {
    figure: "9",
    section: "V-B, V-F",
    title: "scans, and sizes of values",
    about: "Scans of 100 records from a random one on. Values of 8 bytes with each number of threads, of the designs that keep keys in \
            order; then values of several sizes with the most threads, of nstore. Each scan is one operation; there are a 100th as many as \
            records. Local read threads need nodes. Modelled rows have two, with a client on each, without and with such threads, \
            which there are the clients themselves in another place. With --medium file and two threads the rows called told have \
            a machine whose processors are said to be two nodes, each with a part of the pool: what handing reads over to 1 or 2 threads \
            of a node costs where there is nothing to gain.",
    runs: scans,
    statements: &[
        says("values of 8 bytes, over µTree (flatstore-m), most threads (32)", "1.1")
            .times(most(NSTORE, OVER_THREADS, SCAN), most(FLATSTORE_M, OVER_THREADS, SCAN)),
        says("values of 8 bytes, over FAST+FAIR (flatstore-ff), most threads (32)", "below 1")
            .times(most(NSTORE, OVER_THREADS, SCAN), most(FLATSTORE_FF, OVER_THREADS, SCAN)),
        says("values of 512 bytes over those of 8", "(below 1)")
            .times(most(NSTORE, "512 B", SCAN), most(NSTORE, "8 B", SCAN)),
        says("lines of the other node, 512 B, without threads (modelled)", "(half of them)")
            .value("lines", modelled("modelled, 512 B, readers=0")),
        says("lines of the other node, 512 B, with threads (modelled)", "0")
            .value("lines", modelled("modelled, 512 B, readers=2")),
        says("values of 512 bytes, 2 threads a node over none (told)", "(far above 1)").times(
            most(NSTORE, "told, 512 B, readers=2", SCAN),
            most(NSTORE, "told, 512 B, readers=0", SCAN),
        ),
        says("values of 8 bytes, 2 threads a node over none (told)", "(far below 1)")
            .times(most(NSTORE, "told, 8 B, readers=2", SCAN), most(NSTORE, "told, 8 B, readers=0", SCAN)),
    ],
    carries_over: "That a scan of a log reads as many places as it finds records, and so costs more than one of a tree with values in \
                   its leaves. FAST+FAIR has them there, and flatstore-ff does not, so that the paper's order of the two is not to be \
                   expected. That hardly a line comes from the other node if threads there read for a scan. They are asked for at \
                   least 8 KiB at a time: of values of 8 and 64 bytes a scan reads all itself, and the paper's loss at 8 bytes is avoided. \
                   Their gain takes a link that is slower than memory, and processors that have nothing else to do.",
};

const OVER_THREADS: &str = "over threads";
const SCAN: &str = "scan";

/// The lines of the other node that a scan reads.
const fn modelled(setting: &'static str) -> Cell {
    best(setting, SCAN).of(NSTORE).value(|row| row.remote_reads_per_op)
}

/// Bytes of values. The paper names 8 and 512.
const SIZES: [usize; 4] = [8, 64, 256, 512];

fn run(setting: impl Into<String>, config: Config) -> Run {
    Run::new(setting, Config { phases: vec![OpsPhase::Scan], ..config }, Benchmark::Ops)
}

/// The same with so many local read threads a node.
fn read_near(mark: &str, config: &Config, value_size: usize, readers: u32) -> Run {
    let config = nstore(Config { value_size, ..config.clone() }).with("readers", &readers.to_string());
    run(format!("{mark}, {value_size} B, readers={readers}"), config).of_ours()
}

/// The processors of this machine as two nodes, each with a part of the pool and a client that fills it;
/// nothing if there is one processor or client, or no file for parts.
fn told(scale: &Scale) -> Option<Config> {
    let most = Some(scale.most_threads()).filter(|most| most.threads > 1)?;
    let pool = most.pool.as_ref().filter(|_| most.medium == MediumKind::File)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let half = processors / 2;
    let nodes = (half > 0).then(|| format!("0:0-{};1:{half}-{}@10,21/21,10", half - 1, processors - 1))?;
    let mut part = pool.clone().into_os_string();
    part.push(".part");
    Some(Config {
        topology: Some(nodes.parse().expect("two nodes and their distances")),
        parts: vec![part.into()],
        part_nodes: vec![0, 1],
        pins: true,
        ..words(most, scale.records)
    })
}

fn scans(scale: &Scale) -> Vec<Run> {
    let ordered = |config: Config| {
        let others = Config { designs: vec![Design::FLATSTORE_M, Design::FLATSTORE_FF], ..config.clone() };
        [nstore(config), others].map(|config| run(OVER_THREADS, config))
    };
    let (sim, records) = simulated(scale, SOCKETS);
    let sim = words(sim, records);
    let modelled =
        SIZES.iter().flat_map(|size| [0, 2].map(|readers| read_near("modelled", &sim, *size, readers)));
    if scale.is_simulated() {
        return modelled.collect();
    }
    let over_threads = scale.over_threads().flat_map(|config| ordered(words(config, scale.records)));
    let most = words(scale.most_threads(), scale.records);
    let sizes =
        SIZES.map(|value_size| run(format!("{value_size} B"), nstore(Config { value_size, ..most.clone() })));
    let told = told(scale).into_iter().flat_map(|config| {
        SIZES.iter().flat_map(move |size| [0, 1, 2].map(|readers| read_near("told", &config, *size, readers)))
    });
    over_threads.chain(sizes).chain(told).chain(modelled).collect()
}
