//! A YCSB workload on a store: loaded, then run, every value checked.
//!
//! Each replacement writes a version of its own, so a read can tell a value that was written from one that
//! never was. Records that inserts add are chosen only after they are stored, so a missing record is the
//! store's fault. Scans have a way of their own to be checked, in `scan`.

use super::batched::Batched;
use super::config::{Config, setting};
use super::drive::{Access, ENDLESS, Phase};
use super::engine::{Engine, EngineClient, OpenEngine};
use super::error::BenchError;
use super::memory::Memory;
use super::progress::Progress;
use super::report::{Row, Sink};
use super::roofline::{Limits, Roofline};
use super::scan::{Names, Scan, last_key};
use super::session::{Bounds, Session, WARM_UP, in_new_place};
use super::target::{Target, room};
use crate::workload::{AcknowledgedCounter, KeySet, KeyShape, Naming, Operation, Requests, Values, Workload};

/// Loads and runs `workload` on each design, and hands over two rows for each, `load_` and `run_` with the
/// workload's name. Records, operations and value size are the workload's and replace those of the settings.
/// Settings that name seconds end the run by the clock.
///
/// # Errors
/// As for [`ops`](super::ops()), and [`BenchError::NoOrder`] before anything runs, if the workload scans and
/// a design keeps no order.
pub fn ycsb(
    config: &Config,
    workload: &Workload,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    let config = &config.of_workload(workload);
    config.check()?;
    if workload.scans() {
        config.check_order(&workload.name)?;
    }
    let mut roofline = if config.roofline { Some(Roofline::new(config)?) } else { None };
    for &design in &config.designs {
        let writes = config.records + config.operations + WARM_UP * config.threads as u64;
        let target = Target::new(config, design, room(config, writes, 0))?;
        ycsb_of(config, workload, &target, roofline.as_mut(), progress, sink)?;
    }
    Ok(())
}

/// The same on any engine, whatever designs the settings name. Its limits are measured if there is something
/// to measure them with.
pub fn ycsb_of<E: Engine>(
    config: &Config,
    workload: &Workload,
    engine: &E,
    roofline: Option<&mut Roofline>,
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    let config = &config.of_workload(workload);
    config.check_run()?;
    let values = config.values()?;
    let requests = Requests::new(workload, config.seed);
    let stored = AcknowledgedCounter::new(config.records);
    let before = Memory::baseline(config.medium);
    if workload.scans() && workload.mix.update + workload.mix.read_modify_write > 0.0 {
        let reason =
            "must not update what it scans: of a scanned value it would not be known which one it has to be";
        return Err(setting("workload", reason));
    }
    // Versions are the calls' numbers from 1.
    let newest = config.seconds.map_or(config.operations, |_| ENDLESS * config.threads as u64);
    let session = Session { config, progress, target: engine, values, newest, before };
    let names = match config.key_set {
        KeySet::Uniform => RecordNames::Ycsb(workload.naming()),
        _ => RecordNames::OfSet(config.keys_of(config.records + config.operations)?),
    };
    let last = if workload.scans() { last_key(&names, workload.records) } else { Vec::new() };
    let all = |opened: E::Opened| {
        if workload.scans() && !opened.is_ordered() {
            let (design, workload) = (engine.name().to_owned(), workload.name.clone());
            return Err(BenchError::NoOrder { design, workload });
        }
        Run { session, workload, names: &names, last, requests: &requests, stored, opened: &opened }
            .all(roofline)
    };
    in_new_place(engine, workload.records, all)?.into_iter().for_each(sink);
    Ok(())
}

/// How records are named.
enum RecordNames {
    /// As YCSB does, or by numbers.
    Ycsb(Naming),
    /// By the keys of a set.
    OfSet(KeyShape),
}

impl Names for RecordNames {
    #[inline]
    fn fill(&self, number: u64, key: &mut Vec<u8>) {
        match self {
            RecordNames::Ycsb(naming) => naming.fill(number, key),
            RecordNames::OfSet(shape) => shape.fill(number, key),
        }
    }

    /// Names may be hashes; but values are those of the load as long as nothing is updated.
    fn number_of(&self, _key: &[u8], value: &[u8]) -> u64 {
        Values::number_of_first(value)
    }
}

struct Run<'a, E: Engine> {
    session: Session<'a, E>,
    workload: &'a Workload,
    names: &'a RecordNames,
    /// The last key of the load, for a workload that scans.
    last: Vec<u8>,
    requests: &'a Requests,
    stored: AcknowledgedCounter,
    opened: &'a E::Opened,
}

impl<E: Engine> Run<'_, E> {
    fn all(&self, roofline: Option<&mut Roofline>) -> Result<[Row; 2], BenchError> {
        let mut bounds = Bounds::begin(roofline)?;
        let load = self.load()?;
        bounds.between()?;
        let run = self.run()?;
        let roof = bounds.end()?;
        let (reads, writes) = self.accesses();
        let mixed = |limits: Limits| limits.mixed(reads, writes);
        Ok([load.against(roof, |limits| limits.write_mops), run.against(roof, mixed)])
    }

    /// Reads and writes of an average operation.
    fn accesses(&self) -> (f64, f64) {
        let mix = &self.workload.mix;
        let sum = mix.read + mix.update + mix.insert + mix.scan + mix.read_modify_write;
        let records = (self.workload.scan_length.0 + self.workload.scan_length.1) as f64 / 2.0;
        let reads = mix.read + mix.read_modify_write + mix.scan * records;
        let writes = mix.update + mix.insert + mix.read_modify_write;
        (reads / sum, writes / sum)
    }

    fn load(&self) -> Result<Row, BenchError> {
        let session = &self.session;
        let name = format!("load_{}", self.workload.name);
        let records = session.config.records;
        let phase = Phase { counts_disk: true, ..session.phase(&name, records) };
        let row = session.measure(
            self.opened,
            &phase,
            || records,
            |thread| {
                let (end, refused) = (phase.share(thread).end, session.refused(&name));
                let mut client = Batched::new(self.opened.client(), session.config.batch).whole();
                let mut pair = (Vec::new(), Vec::new());
                Ok(move |record| {
                    self.names.fill(record, &mut pair.0);
                    session.values.fill(record, 0, &mut pair.1);
                    client.put(&mut pair).map_err(&refused)?;
                    let answer = client.answer(Access::Put);
                    if record + 1 < end {
                        return Ok(answer);
                    }
                    client.finish(answer).map_err(&refused)
                })
            },
        )?;
        session.verify_count(&name, self.opened, records)?;
        Ok(session.batched(row))
    }

    fn run(&self) -> Result<Row, BenchError> {
        let session = &self.session;
        let name = format!("run_{}", self.workload.name);
        let seed = session.config.seed;
        let phase = session.phase(&name, session.config.operations);
        // Inserts cannot be undone, so warming up with them would grow the store before the clock starts.
        let phase = if self.workload.mix.insert > 0.0 { phase } else { session.warmed(phase) };
        let phase = Phase { counts_disk: true, ..phase }.lasting(session.config.seconds);
        let row = session.measure(
            self.opened,
            &phase,
            || self.stored.stored(),
            |thread| {
                let mut worker = self.worker(&name);
                let mut requests = self.requests.for_thread(seed, thread as u64);
                Ok(self.scan(&name).calls(move |scan, call| match requests.next(&self.stored) {
                    Operation::Read(record) => worker.read(record),
                    Operation::Update(record) => worker.put(record, call + 1),
                    Operation::ReadModifyWrite(record) => {
                        worker.read(record)?;
                        worker.put(record, call + 1)
                    }
                    Operation::Insert(record) => {
                        worker.put(record, 0)?;
                        self.stored.acknowledge(record);
                        Ok(())
                    }
                    Operation::Scan(record, count) => scan.run(&mut worker.client, record, count),
                }))
            },
        )?;
        session.verify_count(&name, self.opened, self.stored.stored())?;
        if self.workload.scans() {
            self.scan(&name).all(self.opened, self.stored.stored())?;
        }
        Ok(row)
    }

    fn scan<'s>(&'s self, phase: &'s str) -> Scan<'s, E, RecordNames> {
        Scan::new(&self.session, phase, self.names, &self.last)
    }

    fn worker<'w>(&'w self, phase: &'w str) -> Worker<'w, E> {
        Worker {
            session: &self.session,
            names: self.names,
            client: self.opened.client(),
            phase,
            key: Vec::new(),
            value: vec![0; self.session.values.length()],
            read: Vec::new(),
        }
    }
}

/// One thread's hands.
struct Worker<'a, E: Engine> {
    session: &'a Session<'a, E>,
    names: &'a RecordNames,
    client: <E::Opened as OpenEngine>::Client,
    phase: &'a str,
    key: Vec<u8>,
    value: Vec<u8>,
    read: Vec<u8>,
}

impl<E: Engine> Worker<'_, E> {
    fn put(&mut self, record: u64, version: u64) -> Result<(), BenchError> {
        self.names.fill(record, &mut self.key);
        self.session.values.fill(record, version, &mut self.value);
        self.client.put(&self.key, &self.value).map_err(self.session.refused(self.phase))
    }

    fn read(&mut self, record: u64) -> Result<(), BenchError> {
        self.names.fill(record, &mut self.key);
        let found =
            self.client.get_into(&self.key, &mut self.read).map_err(self.session.refused(self.phase))?;
        self.session.verify(self.phase, record, found.then_some(&self.read))
    }
}
