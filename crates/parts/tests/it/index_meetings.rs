//! Faults of indexes in PM that show only if steps meet in one order. A split meets a reader, a writer of the
//! other half, or another split; a reader meets a link that is not durable yet. A crash comes between the
//! steps of a change, or a process dies alone, so that the next one finds words in caches that the medium has
//! not.

mod buckets;
mod cceh;
mod fastfair;
use crate::shared::pool;

use quipu_medium::Region;
use quipu_medium::sim::{Image, Sim, SimArena, Snapshot};
use quipu_parts::space::Space;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A simulated pool of so many bytes with zones of 4 KiB.
fn format(len: u64, seed: u64) -> Arc<Space> {
    pool::format(len, 4 << 10, seed)
}

fn snapshot_of(region: &Region) -> Snapshot {
    region.simulator().expect("simulated").snapshot()
}

/// The pool that a crash leaves.
fn rebooted(arena: &mut SimArena, now: &Snapshot, image: &Image, seed: u64) -> Arc<Space> {
    opened(arena.boot(now, image, seed))
}

/// The pool of a region, as another process finds it.
fn opened(region: Region) -> Arc<Space> {
    Arc::new(Space::open(region).expect("a pool").0)
}

/// The moments before each operation on the medium of `act`, each with what `note` says then.
fn moments<T: 'static>(
    region: &Region,
    note: impl Fn() -> T + 'static,
    act: impl FnOnce(),
) -> Vec<(Snapshot, T)> {
    let moments = Rc::new(RefCell::new(Vec::new()));
    let noted = moments.clone();
    let sim = region.simulator().expect("simulated");
    sim.set_observer(Some(Box::new(move |sim: &Sim, _| noted.borrow_mut().push((sim.snapshot(), note())))));
    act();
    sim.set_observer(None);
    moments.take()
}
