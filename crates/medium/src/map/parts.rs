//! Regions of several files or devices, one behind the other, so that a pool can lie on several nodes.
//!
//! Each part is mapped, locked and examined by itself, and then moved into one address range. So offsets are
//! those of one region, and nothing above knows parts except the layout of a pool. The headers that tell
//! which parts go together belong to the pool (`quipu_parts::space`).

use super::kind::MediumKind;
use super::mapping::{HUGE, Mapping};
use crate::error::MediumError;
use crate::node::Node;
use crate::region::Region;
use crate::topology::Topology;
use std::path::{Path, PathBuf};

impl Region {
    /// Unit of the lengths of all parts but the last: each begins with a huge page.
    pub const PART_UNIT: u64 = HUGE as u64;

    /// Joins regions that were just created or opened, each of one file or device, in this order.
    ///
    /// # Errors
    /// [`MediumError::Part`] if they are not of one medium, or a length is no multiple of
    /// [`PART_UNIT`](Region::PART_UNIT); [`MediumError::Io`].
    pub fn join(parts: Vec<Region>, topology: &Topology) -> Result<Region, MediumError> {
        let first = &parts[0];
        let (kind, is_read_only) = (first.kind(), first.is_read_only());
        let is_of_kind = |region: &Region| region.kind() == kind && region.is_read_only() == is_read_only;
        let unfit =
            |region: &Region, reason: String| Err(MediumError::Part { path: path_of(region), reason });
        for (number, region) in parts.iter().enumerate() {
            if !is_of_kind(region) || region.kind() == MediumKind::Sim {
                let reason = format!("it is of medium {}, and the first part is of {kind}", region.kind());
                return unfit(region, format!("{reason}; put all parts on media of one kind"));
            }
            if parts.len() > 1 && region.mapping().align() > Region::PART_UNIT {
                let align = region.mapping().align();
                return unfit(
                    region,
                    format!("it is mapped in units of {align} bytes; make its namespace one of 2M"),
                );
            }
            if number + 1 < parts.len() && !region.len().is_multiple_of(Region::PART_UNIT) {
                let (len, unit) = (region.len(), Region::PART_UNIT);
                return unfit(
                    region,
                    format!(
                        "its {len} bytes are no multiple of {unit}; only the last part may have such a length"
                    ),
                );
            }
        }
        // One part that must write lines back decides for all.
        let needy = parts.iter().map(Region::flush_kind).find(|flush| *flush != crate::FlushKind::None);
        let (flush, joins) = (needy.unwrap_or(first.flush_kind()), parts.len() > 1);
        let statement = parts.iter().skip(1).fold(first.statement(), |all, part| all.and(&part.statement()));
        let mappings: Option<Vec<Mapping>> = parts.into_iter().map(Region::into_mapping).collect();
        let mut mappings = mappings.expect("nobody else has regions that were just made");
        let mapping = if joins { Mapping::joined(mappings, statement)? } else { mappings.swap_remove(0) };
        let nodes: Vec<Node> = mapping.spans().iter().map(|span| span.node.unwrap_or_default()).collect();
        let is_spread = nodes.windows(2).any(|pair| pair[0] != pair[1]);
        let region = Region::new(mapping, flush);
        Ok(if is_spread { region.spread(topology.clone()) } else { region })
    }

    /// This region of one file that was just opened, as far as its first `len` bytes.
    ///
    /// # Errors
    /// [`MediumError::Part`] if it is shorter.
    pub fn cut(self, len: u64) -> Result<Region, MediumError> {
        if self.len() < len {
            let reason = format!("it has {} bytes of {len}; restore the whole part", self.len());
            return Err(MediumError::Part { path: path_of(&self), reason });
        }
        Ok(self.with_mapping(|mapping| mapping.cut(len)))
    }

    /// This region of one file that was just created or opened, as one on this node, whatever the system
    /// says.
    #[must_use]
    pub fn placed_on(self, node: Node) -> Region {
        self.with_mapping(|mapping| mapping.set_node(node))
    }

    fn with_mapping(self, change: impl FnOnce(&mut Mapping)) -> Region {
        let flush = self.flush_kind();
        let mut mapping = self.into_mapping().expect("nobody else has a region that was just made");
        change(&mut mapping);
        Region::new(mapping, flush)
    }
}

fn path_of(region: &Region) -> PathBuf {
    region.mapping().path().unwrap_or(Path::new("anonymous memory")).to_owned()
}
