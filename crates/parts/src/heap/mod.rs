//! Where records live. Two heaps: [`segments`], zones used as logs, and [`slots`], pages of slots in blocks. What is too long for
//! segments lives in [`values`], zones of its own.

pub mod segments;
pub mod slots;
pub mod values;

mod clock;
mod reference;

pub use clock::{Clock, ClockSettings, Numbers};
pub use reference::{Reference, SizedReference};
