//! What the superblock remembers of a design's settings.

use crate::types::error::Error;
use quipu_parts::index::IndexRoot;
use quipu_parts::space::{SETTINGS_LEN, SpaceError};

/// What the superblock remembers of a design whose index may be in the pool.
pub(crate) trait Remembered: Copy {
    /// What these bytes say; `None` if that is nothing that this release knows.
    fn decode(bytes: &[u8; SETTINGS_LEN]) -> Option<Self>;

    /// The bytes for the superblock.
    fn encode(&self) -> [u8; SETTINGS_LEN];

    /// The same, or an error where no release knows these bytes.
    fn recalled(bytes: &[u8; SETTINGS_LEN]) -> Result<Self, Error> {
        let what = "the superblock holds settings that no release knows";
        Self::decode(bytes).ok_or_else(|| SpaceError::Geometry { what }.into())
    }

    /// The root of the index.
    fn root(&self) -> IndexRoot;

    /// The same with an index of this root.
    fn with_root(self, root: IndexRoot) -> Self;
}
