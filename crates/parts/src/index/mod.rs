//! Indexes: from a key's hash, or from a key in order, to the reference of its newest record.
//!
//! An index publishes: a record is visible once its reference is here. It knows nothing of records. It stores
//! opaque nonzero references, of [`Index::WORD_BITS`] bits. The caller decides whether a candidate is the key
//! it looks for, unless the index has the keys themselves ([`Index::HAS_KEYS`]).

pub mod alex;
mod block;
pub mod buckets;
pub mod cceh;
mod chain;
mod count;
mod cursor;
mod directory;
mod eight;
pub mod fastfair;
pub mod hash;
mod hint;
mod image;
pub mod masstree;
mod seam;
mod words;

pub use chain::IndexRoot;
pub use cursor::Cursor;
pub use hint::Hint;
pub use image::{Image, ImageError, ImageSource, Imaged};
pub use seam::{
    BothWays, InOrder, InPool, Index, IndexError, IndexGrowth, IndexStats, Key, Records, Repointed,
};
pub use words::{PmWords, Words};
