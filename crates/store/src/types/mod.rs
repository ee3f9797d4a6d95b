//! Values that callers pass and receive: no behaviour of a store.

pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod conditions;
pub(crate) mod design;
pub(crate) mod error;
pub(crate) mod holder;
pub(crate) mod isolation;
pub(crate) mod iter;
pub(crate) mod part;
pub(crate) mod reports;
pub(crate) mod stats;
pub(crate) mod table;
