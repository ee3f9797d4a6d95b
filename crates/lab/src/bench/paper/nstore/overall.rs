//! Figures 7 and 8: seven mixes on two sets of keys.

use super::super::statements::{Cell, best, says};
use super::super::{Benchmark, Preset, Run, Scale};
use super::{
    FLATSTORE_FF, FLATSTORE_M, MIXED, Mix, NSTORE, SOCKETS, VIPER, most, nstore, of_set, rivals, simulated,
    words,
};
use quipu_bench::config::Config;
use quipu_bench::ops::OpsPhase;
use quipu_bench::workload::KeySet;

pub(super) const YCSB: Preset = Preset {
    figure: "7",
    section: "V-B",
    title: "seven mixes over threads, YCSB",
    about: "Records of 8 + 8 bytes, their keys any 64 bits; --records stands for the 200 million. Rows alone have put100, get100, upd100 \
            and delete100: all records are put into one store, then as many gets, updates and deletes follow. Each mix has a store of its \
            own, loaded first, and as many operations as records; the paper has a 20th of them. Modelled rows have two nodes with a \
            client on each.",
    runs: |scale| mixes(scale, KeySet::Uniform),
    statements: &[
        says("put, over Viper, most threads (32)", "2.2 to 13.9 over all (LLT)")
            .times(most(NSTORE, ALONE, PUT), most(VIPER, ALONE, PUT)),
        says("get, over Viper, most threads (32)", "1.4 to 11.2 over all (LLT)")
            .times(most(NSTORE, ALONE, GET), most(VIPER, ALONE, GET)),
        says("put, most threads over one", "(increases steadily)")
            .times(best(ALONE, PUT).of(NSTORE).many(), best(ALONE, PUT).of(NSTORE).one()),
        says("update over put50 get50, most threads", "about 1 (very similar)")
            .times(most(NSTORE, ALONE, UPDATE), most(NSTORE, HALF_PUT, MIXED)),
        says("delete over put, most threads", "about 1 (similar)")
            .times(most(NSTORE, ALONE, DELETE), most(NSTORE, ALONE, PUT)),
        says("put50 get50 over put, most threads", "(between put and get)")
            .times(most(NSTORE, HALF_PUT, MIXED), most(NSTORE, ALONE, PUT)),
        says("fences of a put (modelled)", "1 (a single local write)")
            .value("fences", modelled(NSTORE, PUT).value(|row| row.fences_per_op)),
        says("lines of the other node that a put writes (modelled)", "0")
            .value("lines", modelled(NSTORE, PUT).value(|row| row.remote_writes_per_op)),
        says("lines of the other node that an update writes (modelled)", "0")
            .value("lines", modelled(NSTORE, UPDATE).value(|row| row.remote_writes_per_op)),
        says("lines of the other node that a delete writes (modelled)", "0")
            .value("lines", modelled(NSTORE, DELETE).value(|row| row.remote_writes_per_op)),
        says("lines that a get of Viper reads (modelled)", "at least 3 accesses")
            .value("lines", modelled(VIPER, GET).value(|row| row.lines_read_per_op)),
        says("time of a put, Viper over NStore (modelled)", "2.2 to 13.9 of all (LLT)")
            .times(waits(VIPER, PUT), waits(NSTORE, PUT)),
    ],
    carries_over: CARRIES_OVER,
};

pub(super) const LONGLAT: Preset = Preset {
    figure: "8",
    section: "V-B",
    title: "seven mixes over threads, longlat",
    about: "As figure 7 with keys that combine longitude and latitude of places around cities (bench index has the set): few lines fit \
            them, so that an index that learns them needs more and smaller leaves.",
    runs: |scale| mixes(scale, KeySet::LongLat),
    statements: &[
        says("put, over Viper, most threads (32)", "2.2 to 13.9 over all")
            .times(most(NSTORE, ALONE, PUT), most(VIPER, ALONE, PUT)),
        says("put95 get5, over Viper", "1.8").times(most(NSTORE, PUTS, MIXED), most(VIPER, PUTS, MIXED)),
        says("put95 get5, over µTree (flatstore-m)", "4.4")
            .times(most(NSTORE, PUTS, MIXED), most(FLATSTORE_M, PUTS, MIXED)),
        says("put95 get5, over FAST+FAIR (flatstore-ff)", "13.6")
            .times(most(NSTORE, PUTS, MIXED), most(FLATSTORE_FF, PUTS, MIXED)),
        says("get, over Viper", "2.1").times(most(NSTORE, ALONE, GET), most(VIPER, ALONE, GET)),
        says("get, over µTree (flatstore-m)", "1.4")
            .times(most(NSTORE, ALONE, GET), most(FLATSTORE_M, ALONE, GET)),
        says("get, over FAST+FAIR (flatstore-ff)", "5.1")
            .times(most(NSTORE, ALONE, GET), most(FLATSTORE_FF, ALONE, GET)),
        says("update, over Viper", "2.3").times(most(NSTORE, ALONE, UPDATE), most(VIPER, ALONE, UPDATE)),
        says("update, over µTree (flatstore-m)", "1.7")
            .times(most(NSTORE, ALONE, UPDATE), most(FLATSTORE_M, ALONE, UPDATE)),
        says("update, over FAST+FAIR (flatstore-ff)", "18")
            .times(most(NSTORE, ALONE, UPDATE), most(FLATSTORE_FF, ALONE, UPDATE)),
        says("delete, over Viper", "2 (or 5.8: six factors for five systems)")
            .times(most(NSTORE, ALONE, DELETE), most(VIPER, ALONE, DELETE)),
        says("delete, over µTree (flatstore-m)", "1.6")
            .times(most(NSTORE, ALONE, DELETE), most(FLATSTORE_M, ALONE, DELETE)),
        says("delete, over FAST+FAIR (flatstore-ff)", "32.3")
            .times(most(NSTORE, ALONE, DELETE), most(FLATSTORE_FF, ALONE, DELETE)),
    ],
    carries_over: CARRIES_OVER,
};

const CARRIES_OVER: &str = "On one node the order of the indexes: one that learns keys reads fewer lines of DRAM than a tree, and reads keys \
                            in no record. The factors do not: they are those of 32 threads on two sockets of Optane, where rivals write to \
                            the other one. Modelled rows count these writes exactly; their time weighs the lines and leaves out \
                            bandwidth, locks and the index in DRAM. On memory a put is bound by its fence and its misses. µTree and \
                            FAST+FAIR themselves write lists and nodes; their relatives here write logs, and FAST&FAIR its nodes besides.";

/// The settings of rows: four operations alone, each on one store, and the mixes.
const ALONE: &str = "alone";
const PUTS: &str = "put95 get5";
const HALF_PUT: &str = "put50 get50";
const HALF_UPDATED: &str = "get50 upd50";

const PUT: &str = "insert";
const GET: &str = "get";
const UPDATE: &str = "update";
const DELETE: &str = "remove";

const MIXES: [(&str, Mix); 3] = [
    (PUTS, Mix::uniform(5, 0, 95)),
    (HALF_PUT, Mix::uniform(50, 0, 50)),
    (HALF_UPDATED, Mix::uniform(50, 50, 0)),
];

const fn modelled(design: &'static str, phase: &'static str) -> Cell {
    best("modelled, alone", phase).of(design)
}

/// The modelled time of an operation.
const fn waits(design: &'static str, phase: &'static str) -> Cell {
    modelled(design, phase).value(|row| row.modelled_ns_per_op)
}

fn mixes(scale: &Scale, key_set: KeySet) -> Vec<Run> {
    let timed = scale.over_threads().filter(|_| !scale.is_simulated()).map(|config| {
        let config = of_set(words(config, scale.records), key_set);
        all(config, |setting| setting.to_owned())
    });
    let (sim, records) = simulated(scale, SOCKETS);
    let modelled = all(of_set(words(sim, records), key_set), |setting| format!("modelled, {setting}"));
    timed.flatten().chain(modelled).collect()
}

/// NStore and then the others, alone and in each mix.
fn all(config: Config, name: fn(&str) -> String) -> Vec<Run> {
    let phases = vec![OpsPhase::Get, OpsPhase::Update, OpsPhase::Remove];
    let alone = Config { phases, ..config.clone() };
    let of_both = |config: Config| [nstore(config.clone()), rivals(config)];
    let alone = of_both(alone).map(|config| Run::new(name(ALONE), config, Benchmark::Ops));
    let mixed = MIXES
        .iter()
        .flat_map(|(setting, mix)| of_both(config.clone()).map(|config| mix.run(name(setting), config)));
    alone.into_iter().chain(mixed).collect()
}
