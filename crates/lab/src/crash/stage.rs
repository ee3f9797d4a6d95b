//! The store of a run, for the work on it and for the observer of its moments.

use quipu::Store;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The state of a run, for its observer.
#[derive(Default)]
pub(super) struct Stage {
    /// The store while it is being worked on.
    pub(super) store: RefCell<Option<Rc<Store>>>,
    /// There is a pool.
    pub(super) created: Cell<bool>,
    /// The store is being closed.
    pub(super) closing: Cell<bool>,
    /// The store was closed and has been opened again.
    pub(super) reopened: Cell<bool>,
}

impl Stage {
    pub(super) fn open(&self, store: Store) {
        self.created.set(true);
        *self.store.borrow_mut() = Some(Rc::new(store));
    }
}
