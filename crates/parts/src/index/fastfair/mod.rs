//! FAST&FAIR.

mod arena;
mod audit;
mod blob;
mod count;
mod key;
mod kit;
mod node;
mod open;
mod remove;
mod scan;
mod settings;
mod shift;
mod split;
mod state;
mod sweep;
mod tree;
mod unflushed;
mod words;
mod write;

pub use audit::FastFairAudit;
pub use open::{FastFairRoot, format_tables};
pub use scan::ScanCursor;
pub use settings::{FastFairError, FastFairStats, HINT_BITS, Hint, KEY_MAX, Located, VALUE_BITS};
pub use tree::FastFairIndex;
pub use unflushed::Unflushed;
pub use words::{PmWords, Words};
pub use write::Upserted;
