//! Where records live. One heap so far: [`segments`], zones used as logs. What is too long for them lives in [`values`],
//! zones of its own.

pub mod segments;
pub mod values;

mod clock;
mod reference;

pub use clock::{Clock, ClockSettings, Numbers};
pub use reference::Reference;
