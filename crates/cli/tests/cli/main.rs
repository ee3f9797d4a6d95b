//! The real program, run as people and scripts run it.

mod help;
mod measuring;
mod pools;
mod refusals;
mod support;
