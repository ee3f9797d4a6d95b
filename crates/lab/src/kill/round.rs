//! One writer: started, watched, killed.

use super::config::WriterConfig;
use super::frame::Acknowledgement;
use super::plan::{Extent, Plan};
use crate::linear::{Caller, Operation};
use quipu_bench::workload::mix;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A writer that acknowledges too little for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest time after its start at which a writer is killed, whatever it does then.
const START_MICROS: u64 = 12_000;

/// Most acknowledgements after which it is killed: 2 to the power of this.
const ACKNOWLEDGEMENTS_LOG2: f64 = 12.0;

/// The same of a writer that lives long, which is killed at any of these.
const MANY_ACKNOWLEDGEMENTS: usize = 40_000;

/// When a writer dies.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after it was started: it may not have opened the pool yet.
    Start(Duration),
    /// When it has acknowledged so many calls.
    Acknowledgements(usize),
}

impl Moment {
    fn draw(seed: u64, round: u64, extent: Extent) -> Moment {
        let mut random = SmallRng::seed_from_u64(mix(seed ^ mix(round)));
        if random.random_ratio(1, 4) {
            Moment::Start(Duration::from_micros(random.random_range(0..START_MICROS)))
        } else if extent.is_long {
            Moment::Acknowledgements(random.random_range(1..=MANY_ACKNOWLEDGEMENTS))
        } else {
            let log2 = random.random_range(0.0..ACKNOWLEDGEMENTS_LOG2);
            Moment::Acknowledgements(log2.exp2() as usize)
        }
    }
}

/// The parent's knowledge of a dead writer.
pub(super) struct Traces {
    pub acknowledged: Vec<Acknowledgement>,
    /// The fault of its death: it did not come from the parent.
    pub complaint: Option<String>,
}

/// Starts the writer and kills it at its moment.
pub(super) fn run(config: &WriterConfig, extent: Extent, mut command: Command) -> io::Result<Traces> {
    let moment = Moment::draw(config.seed, config.round, extent);
    let (enough, patience) = match moment {
        Moment::Start(after) => (usize::MAX, after),
        Moment::Acknowledgements(enough) => (enough, PATIENCE),
    };
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (bytes, said, in_time, status) = std::thread::scope(|scope| {
        let (told, hears) = mpsc::channel();
        let reader =
            scope.spawn(move || stdout.map_or(Ok(Vec::new()), |stdout| collect(stdout, enough, &told)));
        let said = scope.spawn(move || stderr.map(io::read_to_string).transpose());
        let in_time = hears.recv_timeout(patience).is_ok();
        // One that has ended by itself is dead already.
        child.kill()?;
        let status = child.wait()?;
        let bytes = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let said = said.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        io::Result::Ok((bytes, said.unwrap_or_default(), in_time, status))
    })?;
    // The part of an interrupted write that the pipe took acknowledges nothing.
    let whole = Acknowledgement::of_lines(&bytes);
    let (is_foreign, acknowledged) = (whole.is_none(), whole.unwrap_or_default());
    let complaint = if let Some(code) = status.code() {
        Some(format!("the writer ended by itself with code {code} and said: {}", said.trim()))
    } else if !said.trim().is_empty() {
        // A thread that panics leaves the others at work, so the writer lives on until it is killed.
        Some(format!("the writer complained: {}", said.trim()))
    } else if is_foreign {
        Some("the writer sent something else than acknowledgements".to_owned())
    } else if !in_time && matches!(moment, Moment::Acknowledgements(_)) {
        Some(format!("the writer hangs: {} calls in {PATIENCE:?}", acknowledged.len()))
    } else {
        None
    };
    Ok(Traces { acknowledged, complaint })
}

/// Reads to the end, and tells when there are `enough` lines, or no more to come.
fn collect(from: impl Read, enough: usize, told: &mpsc::Sender<()>) -> io::Result<Vec<u8>> {
    let (mut from, mut bytes, mut lines) = (BufReader::new(from), Vec::new(), 0);
    while from.read_until(b'\n', &mut bytes)? > 0 {
        lines += 1;
        if lines == enough {
            // Nobody listens any more once the writer has been killed.
            let _ = told.send(());
        }
    }
    let _ = told.send(());
    Ok(bytes)
}

/// The calls of the dead writer: those that returned, and for each thread the one that may have been in
/// flight.
pub(super) fn operations(
    config: &WriterConfig,
    extent: Extent,
    acknowledged: &[Acknowledgement],
) -> Result<Vec<Operation>, String> {
    let mut operations = Vec::new();
    for thread in 0..config.threads as u64 {
        let caller = Caller::Thread(thread as u32);
        let mut plan = Plan::new(extent, config.seed, config.round, thread);
        let mut last = 0;
        let own = acknowledged.iter().filter(|acknowledgement| acknowledgement.thread == thread);
        for (expected, acknowledgement) in own.enumerate() {
            if acknowledgement.number != expected as u64 {
                return Err(format!("thread {thread} acknowledged call {} early", acknowledgement.number));
            }
            let Some((key, action)) = plan.next() else { break };
            let Acknowledgement { invoked, returned, outcome, .. } = *acknowledgement;
            if let Some(outcome) = outcome {
                operations.push(Operation {
                    caller,
                    key,
                    action,
                    invoked,
                    returned: Some((returned, outcome)),
                });
            }
            last = returned;
        }
        // Its own first stamp is not known; that it came after the last acknowledgement is.
        let in_flight = plan.next();
        operations.extend(in_flight.map(|(key, action)| Operation {
            caller,
            key,
            action,
            invoked: last,
            returned: None,
        }));
    }
    Ok(operations)
}
