//! The process that is killed.

use super::config::WriterConfig;
use super::frame::Acknowledgement;
use super::mover;
use super::plan::{Extent, Plan};
use crate::linear::{Broken, Clock, Subject, Timing, perform};
use quipu::internals::twin::leave_out;
use quipu::{Error, ErrorKind, Options, Store};
use quipu_bench::threads::on_threads;
use std::fs::File;
use std::io::{self, Write};

/// Opens the pool and works on it, acknowledging every call on `out` after it has returned, until the process
/// is killed or nobody reads any more. A call that the full pool refuses is acknowledged as such: it had no
/// effect. One that fails otherwise is told on standard error and ends the process with code 1, which the
/// parent takes for a violation.
///
/// # Panics
/// If the store does.
pub fn write(config: &WriterConfig, out: &File) -> Result<(), Error> {
    let _left_out = leave_out(config.twin.and_then(Broken::rule));
    let store = Store::open(&config.pool, &Options::default())?;
    let (store, clock) = (&store, &Clock::default());
    if config.transfers {
        mover::deposit(store, Extent::of_transfers(store.design()))?;
        on_threads(config.threads, |thread| moves_amounts(config, store, thread as u64, out));
    } else {
        on_threads(config.threads, |thread| one_thread(config, store, clock, thread as u64, out));
    }
    Ok(())
}

fn moves_amounts(config: &WriterConfig, store: &Store, thread: u64, mut out: &File) {
    // Rules are left out thread by thread.
    let _left_out = leave_out(config.twin.and_then(Broken::rule));
    let acknowledge = |moved: Acknowledgement| out.write_all(&moved.to_line()).is_ok();
    mover::move_amounts(config, store, thread, acknowledge).unwrap_or_else(|error| end(&error));
}

fn one_thread(config: &WriterConfig, store: &Store, clock: &Clock, thread: u64, mut out: &File) {
    let extent = Extent::of(store.design());
    let clients = extent.clients(store).unwrap_or_else(|error| end(&error));
    let subject = |client| Subject::new(client, config.twin, config.seed ^ config.round ^ thread);
    let mut subjects: Vec<Subject> = clients.into_iter().map(subject).collect();
    for (number, (key, action)) in Plan::new(extent, config.seed, config.round, thread).enumerate() {
        let subject = &mut subjects[extent.table_of(key)];
        let acknowledgement = match perform(subject, clock, key, action, &Timing::FREE) {
            Ok((invoked, returned, outcome)) => {
                Acknowledgement { thread, number: number as u64, invoked, returned, outcome: Some(outcome) }
            }
            Err(error) if error.kind() == ErrorKind::Room => {
                let (invoked, returned) = (clock.stamp(), clock.stamp());
                Acknowledgement { thread, number: number as u64, invoked, returned, outcome: None }
            }
            Err(error) => end(&error),
        };
        if out.write_all(&acknowledgement.to_line()).is_err() {
            return;
        }
    }
}

/// Ends the process, by which the parent hears of an error: the other threads must not go on.
fn end(error: &Error) -> ! {
    let _ = writeln!(io::stderr(), "{error}");
    std::process::exit(1)
}
