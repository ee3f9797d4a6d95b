//! Where records live. There are two heaps: [`segments`], zones used as logs, and [`slots`], pages of slots
//! in blocks. Values that are too long for segments live in [`values`], zones of their own.

pub mod segments;
pub mod slots;
pub mod values;

mod clock;
mod reference;

pub use clock::{Clock, ClockSettings, Numbers};
pub use reference::{Reference, SizedReference};
