//! Where records live. There are four heaps: [`segments`], zones used as logs, [`nlog`], logs that all
//! clients of a node append to, [`slots`], pages of slots in blocks, and [`chain`], zones of memtables whose
//! records have one order. Values that are too long for segments live in [`values`], zones of their own.

pub mod chain;
pub mod nlog;
pub mod segments;
pub mod slots;
pub mod values;

mod clock;
mod reference;

pub use clock::{Clock, ClockSettings, Numbers};
pub use reference::{Reference, SizedReference};
