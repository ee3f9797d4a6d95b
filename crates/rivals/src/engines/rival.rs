//! The common part of all rivals: a folder that the benchmark makes and removes, and a handle for each
//! thread.

use super::Setup;
use quipu_bench::{BenchError, Engine, EngineClient, OpenEngine};
use std::marker::PhantomData;
use std::path::Path;

/// One thread's handle of an open rival. The database is closed with its last handle.
pub trait Handle: EngineClient + Clone + Sync {
    /// Whether the engine keeps its keys in order, so that they can be scanned.
    const ORDERED: bool;

    /// Makes the database in a folder that is empty.
    ///
    /// # Errors
    /// The engine's own.
    fn create(folder: &Path, setup: &Setup) -> Result<Self, Self::Error>;

    /// Records present, where the engine can say it exactly.
    fn records(&self) -> Option<u64>;
}

/// An engine with its settings.
pub struct Rival<H> {
    setup: Setup,
    handle: PhantomData<fn() -> H>,
}

impl<H> Rival<H> {
    /// The engine as `setup` says.
    pub fn new(setup: Setup) -> Rival<H> {
        Rival { setup, handle: PhantomData }
    }
}

/// An engine at work.
pub struct Opened<H> {
    handle: H,
    setup: Setup,
}

impl<H: Handle> Engine for Rival<H> {
    type Opened = Opened<H>;

    fn name(&self) -> &str {
        &self.setup.name
    }

    fn create(&self, _records: u64) -> Result<Opened<H>, BenchError> {
        let refused = BenchError::refused(self.name(), "create");
        let handle = self.setup.place.make(|folder| H::create(folder, &self.setup).map_err(refused))?;
        Ok(Opened { handle, setup: self.setup.clone() })
    }

    fn remove(&self) -> Result<(), BenchError> {
        self.setup.place.remove()
    }
}

impl<H: Handle> OpenEngine for Opened<H> {
    type Client = H;

    fn client(&self) -> H {
        self.handle.clone()
    }

    fn records(&self) -> Option<u64> {
        self.handle.records()
    }

    fn pool_bytes(&self) -> u64 {
        self.setup.place.bytes()
    }

    fn is_ordered(&self) -> bool {
        H::ORDERED
    }

    fn has_transactions(&self) -> bool {
        self.setup.kind.has_transactions()
    }
}
