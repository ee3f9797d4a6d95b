//! Results as a picture: an SVG of throughput and latencies.
//!
//! A table answers "how much", a picture "which, and by how far". Bars of a phase stand beside each other and begin
//! at zero; latencies span decades and so are drawn on a logarithmic scale, from the median to the rare ones.
//! Colours are told apart by people who see few of them (Okabe and Ito's), every bar also has its number, and the
//! text stays text, so that it can be searched and read out.
//!
//! - `picture`: the page: title, legend, panels, notes.
//! - `throughput`, `latency`: the panels.
//! - `data`: rows in the order of the picture.
//! - `pen`: shapes in the house's style. `scale`: axes and the numbers on them.

mod data;
mod latency;
mod pen;
mod picture;
mod scale;
mod throughput;

pub use picture::plot;
