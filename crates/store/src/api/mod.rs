//! The interface for programs: a store, its clients and their guards.

pub(crate) mod client;
mod closures;
pub(crate) mod guard;
mod parts;
mod sizes;
pub(crate) mod store;
pub(crate) mod tables;
pub(crate) mod transaction;
