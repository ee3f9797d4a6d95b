//! Questions of a simulated run to a store, beside the API for users.

use super::Store;
use crate::background::{Job, READER};
use crate::engine::heard::{Heard, Listener};
use crate::types::stats::Activity;
use std::sync::Arc;

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

    /// The same store, whose calls are heard from now on. It has no clients yet, and no threads.
    #[doc(hidden)]
    pub fn heard_by(mut self, listener: Arc<dyn Listener>) -> Store {
        self.engine = Arc::new(Heard { engine: self.engine.clone(), listener });
        self
    }

    /// The activity of the store at this moment.
    #[doc(hidden)]
    pub fn activity(&self) -> Activity {
        self.engine.activity()
    }
}
