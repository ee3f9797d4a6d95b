//! [`PartList`]: the parts of a pool, as its first part tells them before the others are mapped.

use super::error::SpaceError;
use super::part_header::{self, PartHeader};
use super::superblock;
use quipu_medium::{MediumError, Node, Region};
use std::path::{Path, PathBuf};

/// The parts that a pool of several has.
pub struct PartList {
    first: PartHeader,
    nodes: Vec<Node>,
}

impl PartList {
    /// The parts of the pool whose first part is mapped here; `None` if it has only one.
    ///
    /// # Errors
    /// [`SpaceError::NotAPool`] or another reason why nothing can be told; [`SpaceError::Medium`] names a
    /// damaged header.
    pub fn of(first: &Region) -> Result<Option<PartList>, SpaceError> {
        let superblock = match (superblock::described(first), PartHeader::read(first, 0)) {
            (Err(SpaceError::NotAPool), Some(header)) => return Err(not_the_first(first, &header)),
            (found, _) => found?.0.superblock,
        };
        let nodes = superblock.extents().iter().map(|extent| Node(extent.node.get())).collect();
        let Some((_, at)) = part_header::places(&superblock).next() else { return Ok(None) };
        match PartHeader::read(first, at) {
            Some(header)
                if header.number() == 0
                    && header.count() == superblock.extents().len()
                    && header.lens().iter().all(|len| len.is_multiple_of(Region::PART_UNIT))
                    && header.lens().iter().try_fold(0u64, |sum, len| sum.checked_add(*len))
                        == Some(superblock.pool_len()) =>
            {
                Ok(Some(PartList { first: header, nodes }))
            }
            _ => Err(SpaceError::Damaged { what: "the list of the pool's parts", offset: at }),
        }
    }

    /// Bytes of each part, the first one's first.
    pub fn lens(&self) -> Vec<u64> {
        self.first.lens()
    }

    /// The node of a part when the pool was made.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn node(&self, number: usize) -> Node {
        self.nodes[number]
    }

    /// The paths of the parts when the pool was made, for a pool whose first part is now at `path`.
    pub fn paths(&self, path: &Path) -> Vec<PathBuf> {
        let folder = path.parent().unwrap_or(Path::new(""));
        self.first.paths().iter().map(|part| folder.join(part)).collect()
    }

    /// Whether a file or device that is mapped by itself is part `number`.
    ///
    /// # Errors
    /// [`MediumError::Part`] tells what it is instead.
    pub fn check(&self, number: usize, part: &Region, path: &Path) -> Result<(), MediumError> {
        let header = PartHeader::read(part, 0).ok_or_else(|| "it is no part of a pool".to_owned());
        let checked = header.and_then(|header| header.is_part_of(&self.first, number));
        checked.map_err(|reason| part_header::unfit(path, &reason))
    }
}

/// The error for a part that was named in place of the pool.
fn not_the_first(region: &Region, header: &PartHeader) -> SpaceError {
    let path = region.mapping().path().unwrap_or(Path::new("this")).to_owned();
    let of = header.paths().first().map_or_else(String::new, |pool| format!(" of {}", pool.display()));
    let reason = format!("it is part {} of a pool, and part 0{of} is to be named", header.number());
    MediumError::Part { path, reason }.into()
}
