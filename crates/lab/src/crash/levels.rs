//! The simulated levels of a run: durable beside the pool, and frozen with it.

use crate::sim_levels::{SimDisk, SimFaults, SimForest};
use quipu::internals::TestForest;
use quipu::{Error, Options};
use std::sync::Arc;

/// The disk below a pool, if the run has one.
#[derive(Clone)]
pub(super) struct Disk(Option<SimForest>);

/// All that is on a disk.
pub(super) type DiskImage = Option<Arc<SimDisk>>;

impl Disk {
    /// An empty disk, or none.
    pub(super) fn new(is_there: bool) -> Disk {
        Disk(is_there.then(SimForest::default))
    }

    /// A disk after a crash.
    pub(super) fn of(image: &DiskImage) -> Disk {
        Disk(image.clone().map(SimForest::from_image))
    }

    /// All that would survive a crash now.
    pub(super) fn image(&self) -> DiskImage {
        self.0.as_ref().map(SimForest::image)
    }

    /// Lets some of the next changes fail.
    pub(super) fn fail(&self, faults: SimFaults) {
        self.0.iter().for_each(|forest| forest.set_faults(faults));
    }

    /// These options, for a pool above this disk.
    pub(super) fn below(&self, options: &Options) -> Options {
        let forest = self.0.clone().map(|forest| TestForest(Arc::new(forest)));
        options.clone().with(|options| options.testing.forest = forest)
    }
}

/// Tells images of disks apart, as long as they are there.
pub(super) fn address_of(image: &DiskImage) -> usize {
    image.as_ref().map_or(0, |image| Arc::as_ptr(image).addr())
}

/// Whether a write found no room, in the pool or below it.
pub(super) fn is_room(error: &Error) -> bool {
    matches!(
        error,
        Error::PoolFull { .. } | Error::RoomHeld { .. } | Error::Levels(_) | Error::LevelsStopped { .. }
    )
}
