//! Parts that the walks share: no walk imports another.

pub(crate) mod checkpoint;
pub(crate) mod hot;
pub(crate) mod in_pool;
pub(crate) mod patience;
pub(crate) mod proof;
pub(crate) mod room;

use crate::background::{Bell, Job, Progress, Steps};
use crate::engine::Engine;
use quipu_parts::sync::Waiter;
use std::sync::Arc;

/// Lets other threads of a simulation reach the gap that a broken store leaves.
pub(crate) fn let_others_on() {
    let mut others = Waiter::default();
    (0..40).for_each(|_| others.wait());
}

/// The job that compacts ahead of the writers of a walk, a step of `clean` at a time, and raises its clock
/// ahead of them.
pub(crate) fn cleaner<W: Engine + 'static>(
    walk: Arc<W>,
    bell: Arc<Bell>,
    mut clean: impl FnMut(&W) -> Progress + Send + 'static,
) -> Job {
    let step = move || {
        walk.clock().raise_ahead(&walk.common().space);
        clean(&walk)
    };
    Job { name: "quipu-cleaner", steps: Steps::Brief, bell, step: Box::new(step) }
}
