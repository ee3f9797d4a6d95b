//! Where records live. One heap so far: [`segments`], zones used as logs.

pub mod segments;

mod clock;
mod reference;

pub use clock::{Clock, ClockSettings, Numbers};
pub use reference::Reference;
