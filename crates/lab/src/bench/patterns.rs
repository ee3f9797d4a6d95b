//! Writes by themselves, without a store: what the medium makes of the order in which they come.
//!
//! Papers argue from such figures before they show a store (figure 1 of Viper, VLDB'21). Each write is made
//! durable before the next: ordinary stores, write-back of the lines, a fence. On a real medium every thread
//! is a writer, and the time of a write is what counts. The simulator has no time, but it knows DIMMs: there
//! a round of writes stands for writers at the same moment, and is asked how many of them were at one DIMM.

use quipu::MediumKind;
use quipu_bench::config::{Config, setting};
use quipu_bench::cost::{DimmMeter, Meter};
use quipu_bench::drive::{Phase, drive};
use quipu_bench::error::BenchError;
use quipu_bench::progress::Progress;
use quipu_bench::report::{Row, Sink};
use quipu_bench::target::bare;
use quipu_bench::workload::mix;
use quipu_medium::{LINE, Region};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::fmt;

/// Bytes of a page: the interleave of DIMMs.
const PAGE: u64 = 4096;

/// Writers of a round on the simulator, as many as the threads of the paper's figure.
const WRITERS_ON_SIM: usize = 32;

/// Bytes of the region for each record of the settings, so that more records are further from any cache.
const BYTES_PER_RECORD: u64 = 256;

/// Bytes of the region for a writer, at least.
const LEAST_PER_WRITER: u64 = 64 << 10;

/// A page is so many lines; so many fewer are written.
const PAGES_ARE_DEARER: u64 = PAGE / LINE / 4;

/// Where writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Lines, one behind the other, in so many logs. Writers that share a log write neighbouring lines.
    Logs(usize),
    /// A log for every writer.
    OwnLogs,
    /// Lines anywhere.
    Random,
    /// Records of so many bytes anywhere, each at the begin of a line.
    Records(u64),
    /// Four KiB, one behind the other and each durable as a whole, so many bytes behind the boundary of a
    /// page.
    Pages(u64),
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Logs(1) => f.write_str("64 B in one log"),
            Pattern::Logs(logs) => write!(f, "64 B in {logs} logs"),
            Pattern::OwnLogs => f.write_str("64 B in a log each"),
            Pattern::Random => f.write_str("64 B at random"),
            Pattern::Records(bytes) => write!(f, "{bytes} B at random"),
            Pattern::Pages(0) => f.write_str("4 KiB, aligned"),
            Pattern::Pages(shift) => write!(f, "4 KiB, {shift} B off"),
        }
    }
}

/// Makes as many writes in each pattern as the settings have operations (of pages a sixteenth), and hands
/// over a row for each.
pub fn patterns(
    config: &Config,
    patterns: &[Pattern],
    progress: &dyn Progress,
    sink: Sink<'_>,
) -> Result<(), BenchError> {
    config.check_run()?;
    if patterns.iter().any(|pattern| matches!(pattern, Pattern::Pages(shift) if *shift >= PAGE))
        || patterns.iter().any(|pattern| matches!(pattern, Pattern::Records(0) | Pattern::Records(PAGE..)))
        || patterns.contains(&Pattern::Logs(0))
    {
        return Err(setting("pattern", "must have a log, a record, or less than a page to be off"));
    }
    let is_simulated = config.medium == MediumKind::Sim;
    let writers = if is_simulated { WRITERS_ON_SIM } else { config.threads };
    let bytes = (config.records * BYTES_PER_RECORD).max(writers as u64 * LEAST_PER_WRITER);
    let region = bare(config, bytes)?;
    for pattern in patterns {
        sink(Run { config, region: &region, pattern: *pattern, writers }.measure(progress)?);
    }
    Ok(())
}

struct Run<'a> {
    config: &'a Config,
    region: &'a Region,
    pattern: Pattern,
    writers: usize,
}

impl Run<'_> {
    fn measure(&self, progress: &dyn Progress) -> Result<Row, BenchError> {
        let stage = self.pattern.to_string();
        let config = self.config;
        let each = if matches!(self.pattern, Pattern::Pages(_)) { PAGES_ARE_DEARER } else { 1 };
        let calls = (config.operations / each).max(self.writers as u64);
        let row = Row::of("medium", &stage, config);
        let meter = Meter::start(self.region.simulator());
        let phase = Phase::new(&stage, config.threads, calls, progress);
        let Some(sim) = self.region.simulator() else {
            let outcome = drive(&Phase { warm_up: calls / 100, ..phase }, |thread| {
                let mut writer = self.writer(thread);
                Ok(move |_| {
                    writer.write();
                    Ok(())
                })
            })?;
            return Ok(meter.stop(row, &outcome));
        };
        let rounds = calls.div_ceil(self.writers as u64);
        let (single, round) = (&DimmMeter::new(sim), &DimmMeter::new(sim));
        let phase = Phase { calls: rounds, operations_per_call: self.writers as u64, ..phase };
        let outcome = drive(&phase, |_| {
            let mut writers: Vec<_> = (0..self.writers).map(|writer| self.writer(writer)).collect();
            Ok(move |_| {
                round.watch(|| writers.iter_mut().for_each(|writer| single.watch(|| writer.write())));
                Ok(())
            })
        })?;
        let lines = match self.pattern {
            Pattern::Pages(_) => PAGE / LINE,
            Pattern::Records(bytes) => bytes.div_ceil(LINE),
            _ => 1,
        };
        Ok(Row {
            dimms_per_op: Some(single.dimms(outcome.operations)),
            writers_at_one_dimm: Some(round.most_lines(rounds) / lines as f64),
            ..meter.stop(row, &outcome)
        })
    }

    fn writer(&self, number: usize) -> Writer<'_> {
        let seed = self.config.seed;
        let random = SmallRng::seed_from_u64(mix(mix(seed).wrapping_add(number as u64)));
        let (logs, pattern) = match self.pattern {
            Pattern::Logs(logs) => (logs.min(self.writers), self.pattern),
            Pattern::OwnLogs => (self.writers, Pattern::Logs(self.writers)),
            other => (self.writers, other),
        };
        // The area of the log, or the writer's own.
        let area = self.region.len() / logs as u64 / PAGE * PAGE;
        let log = (number % logs) as u64;
        // Logs are not all at the same point of the interleave, as they would not be after a while.
        let start = mix(mix(seed).wrapping_add(log << 32)) % area / LINE * LINE;
        Writer {
            region: self.region,
            pattern,
            area: (log * area, area),
            next: start + (number / logs) as u64 * LINE,
            step: (self.writers - number % logs).div_ceil(logs) as u64 * LINE,
            random,
            bytes: vec![number as u8 + 1; PAGE as usize],
        }
    }
}

/// One writer, and where it is.
struct Writer<'a> {
    region: &'a Region,
    pattern: Pattern,
    /// Offset and length of what it writes in.
    area: (u64, u64),
    next: u64,
    step: u64,
    random: SmallRng,
    bytes: Vec<u8>,
}

impl Writer<'_> {
    #[inline]
    fn write(&mut self) {
        let (base, len) = self.area;
        let (offset, len) = match self.pattern {
            Pattern::Random => (self.anywhere(LINE), LINE),
            Pattern::Records(bytes) => (self.anywhere(bytes), bytes),
            Pattern::Pages(shift) => {
                // The page behind the last boundary would end outside.
                let pages = len / PAGE - 1;
                self.next += PAGE;
                (base + self.next / PAGE % pages * PAGE + shift, PAGE)
            }
            Pattern::Logs(_) | Pattern::OwnLogs => {
                let offset = base + self.next % len;
                self.next += self.step;
                (offset, LINE)
            }
        };
        self.region.write(offset, &self.bytes[..len as usize]);
        self.region.persist(offset, len);
    }

    /// The begin of any line from which there are so many bytes.
    #[inline]
    fn anywhere(&mut self, bytes: u64) -> u64 {
        self.random.random_range(0..=(self.region.len() - bytes) / LINE) * LINE
    }
}
