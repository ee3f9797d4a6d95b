//! Where records live. One heap so far: [`segments`], zones used as logs.

pub mod segments;

mod clock;
mod reference;

pub use clock::Clock;
pub use reference::Reference;
