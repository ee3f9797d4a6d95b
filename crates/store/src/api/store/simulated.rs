//! Questions of a simulated run to a store, beside the API for users.

use super::Store;
use crate::background::{Job, READER};
use crate::types::stats::Activity;

impl Store {
    /// The work that goes on beside the clients, a piece at a call, for a scheduler that has no threads for
    /// it. Scans have threads for themselves, which are not among them.
    #[doc(hidden)]
    pub fn work_beside(&self) -> Vec<Box<dyn FnMut()>> {
        let pieces = self.engine.clone().jobs().into_iter().filter(|job| job.name != READER);
        let piece = |Job { mut step, .. }: Job| {
            Box::new(move || {
                step();
            }) as Box<dyn FnMut()>
        };
        pieces.map(piece).collect()
    }

    /// The activity of the store at this moment.
    #[doc(hidden)]
    pub fn activity(&self) -> Activity {
        self.engine.activity()
    }
}
