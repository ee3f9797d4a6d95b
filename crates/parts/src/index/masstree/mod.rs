//! Masstree (Mao et al., EuroSys'12) in DRAM.
//!
//! (docs to come)

mod arena;
mod border;
mod descend;
mod hint;
mod inner;
mod key;
mod layer;
mod nodes;
mod permutation;
mod remove;
mod scan;
mod split;
mod suffix;
mod tree;
mod version;
mod write;

pub use descend::inner_nodes_visited;
pub use hint::Hint;
pub use scan::Cursor;
pub use tree::{Masstree, MasstreeError, MasstreeStats};
pub use write::Upserted;
