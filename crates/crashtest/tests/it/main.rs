//! Tests of crash tests: programs with a fault that must be found, and without one that must hold.

mod counter;
mod ends;
mod order;
mod page;
mod refusals;
mod soak;
mod starts;
mod token;
mod transfer;
mod worlds;
