//! How a long run tells that it is alive.

/// Hears of the stages of a run. Called from all threads of the run, rarely.
pub trait Progress: Sync {
    /// A stage begins; it will take `total` steps: operations, or seconds if it ends by the clock.
    fn begin(&self, stage: &str, total: u64);
    /// So many more steps are done.
    fn advance(&self, steps: u64);
    /// The stage is over.
    fn end(&self);
}

/// Tells no one.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _steps: u64) {}
    fn end(&self) {}
}
