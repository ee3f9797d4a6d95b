//! A YCSB workload on a store: loaded, then run, every value checked.
//!
//! Each replacement writes a version of its own, so a read can tell a value that was written from one that
//! never was. Records that inserts add are chosen only after they are stored, so a missing record is the
//! store's fault.

use super::config::Config;
use super::error::BenchError;
use super::memory::Memory;
use super::progress::Progress;
use super::report::{Row, Sink};
use super::roofline::{Limits, Roofline};
use super::session::{Bounds, Session, WARM_UP};
use super::target::{Opened, Target, room};
use crate::workload::{AcknowledgedCounter, Naming, Operation, Requests, Workload};
use quipu::Client;

/// Bytes of YCSB's longest key: `user` and nineteen digits.
const LONGEST_KEY: usize = 23;

/// Loads and runs `workload` on each design, and hands over two rows for each, `load_` and `run_` with the
/// workload's name. Records, operations and value size are the workload's and replace those of the settings.
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
    let config = &Config {
        records: workload.records,
        operations: workload.operations,
        value_size: workload.value_size,
        key_size: LONGEST_KEY.max("user".len() + workload.zero_padding),
        ..config.clone()
    };
    config.check()?;
    let values = config.values()?;
    if let Some(&design) =
        config.designs.iter().find(|design| workload.scans() && !design.description().ordered)
    {
        return Err(BenchError::NoOrder { design, workload: workload.name.clone() });
    }
    let requests = Requests::new(workload, config.seed);
    let mut roofline = if config.roofline { Some(Roofline::new(config)?) } else { None };
    for &design in &config.designs {
        let writes = config.records + config.operations + WARM_UP * config.threads as u64;
        let target = Target::new(config, design, room(config, writes, 0))?;
        let stored = AcknowledgedCounter::new(config.records);
        let before = Memory::baseline(config.medium);
        let opened = target.create(workload.records)?;
        // Versions are the calls' numbers from 1.
        let newest = config.operations;
        let session = Session { config, progress, design, target: &target, values, newest, before };
        let run = Run {
            session,
            workload,
            naming: workload.naming(),
            requests: &requests,
            stored,
            opened: &opened,
        };
        let rows = run.all(roofline.as_mut());
        drop(run);
        drop(opened);
        target.remove()?;
        rows?.into_iter().for_each(&mut *sink);
    }
    Ok(())
}

struct Run<'a> {
    session: Session<'a>,
    workload: &'a Workload,
    naming: Naming,
    requests: &'a Requests,
    stored: AcknowledgedCounter,
    opened: &'a Opened,
}

impl Run<'_> {
    fn all(&self, roofline: Option<&mut Roofline>) -> Result<[Row; 2], BenchError> {
        let mut bounds = Bounds::begin(roofline)?;
        let load = self.load()?;
        bounds.between()?;
        let run = self.run()?;
        let limits = bounds.end()?;
        let (reads, writes) = self.accesses();
        let mixed = |limits: Limits| limits.mixed(reads, writes);
        Ok([load.against(limits.map(|limits| limits.write_mops)), run.against(limits.map(mixed))])
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
        let row = session.measure(
            self.opened,
            &session.phase(&name, records),
            || records,
            |_| {
                let mut worker = self.worker(&name);
                Ok(move |record| worker.put(record, 0))
            },
        )?;
        session.verify_count(&name, self.opened, records)?;
        Ok(row)
    }

    fn run(&self) -> Result<Row, BenchError> {
        let session = &self.session;
        let name = format!("run_{}", self.workload.name);
        let seed = session.config.seed;
        let phase = session.phase(&name, session.config.operations);
        // Inserts cannot be undone, so warming up with them would grow the store before the clock starts.
        let phase = if self.workload.mix.insert > 0.0 { phase } else { session.warmed(phase) };
        let row = session.measure(
            self.opened,
            &phase,
            || self.stored.stored(),
            |thread| {
                let mut worker = self.worker(&name);
                let mut requests = self.requests.for_thread(seed, thread as u64);
                Ok(move |call: u64| match requests.next(&self.stored) {
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
                    Operation::Scan(..) => {
                        let (design, workload) = (session.design, self.workload.name.clone());
                        Err(BenchError::NoOrder { design, workload })
                    }
                })
            },
        )?;
        session.verify_count(&name, self.opened, self.stored.stored())?;
        Ok(row)
    }

    fn worker<'w>(&'w self, phase: &'w str) -> Worker<'w> {
        Worker {
            session: &self.session,
            naming: self.naming,
            client: self.opened.client(),
            phase,
            key: Vec::new(),
            value: vec![0; self.session.values.length()],
            read: Vec::new(),
        }
    }
}

/// One thread's hands.
struct Worker<'a> {
    session: &'a Session<'a>,
    naming: Naming,
    client: Client,
    phase: &'a str,
    key: Vec<u8>,
    value: Vec<u8>,
    read: Vec<u8>,
}

impl Worker<'_> {
    fn put(&mut self, record: u64, version: u64) -> Result<(), BenchError> {
        self.naming.fill(record, &mut self.key);
        self.session.values.fill(record, version, &mut self.value);
        self.client.put(&self.key, &self.value).map_err(self.session.refused(self.phase))
    }

    fn read(&mut self, record: u64) -> Result<(), BenchError> {
        self.naming.fill(record, &mut self.key);
        let found =
            self.client.get_into(&self.key, &mut self.read).map_err(self.session.refused(self.phase))?;
        self.session.verify(self.phase, record, found.then_some(&self.read))
    }
}
