//! The index of a store that keeps it in the pool, found or created.

use crate::engine::NO_SALVAGE;
use crate::engine::site::{How, Site};
use crate::settings::image::Image;
use crate::types::error::Error;
use quipu_parts::heap::Clock;
use quipu_parts::index::{InPool, IndexError, IndexRoot};

/// The index that these settings of the pool name, examined; a new one of this shape, which the superblock
/// then names, in a new pool. It leaves so many zones free.
pub(crate) fn index<I: InPool, S: Image>(
    site: &mut Site<'_>,
    clock: &Clock,
    settings: S,
    shape: I::Settings,
    leave: u32,
) -> Result<I, Error> {
    let space = &site.space;
    let create = || {
        // The run has durably begun before anything else changes.
        clock.begin(space);
        let keep = |root: IndexRoot| {
            let settings = settings.with_root(root).encode();
            space.update_superblock(|superblock| superblock.settings = settings);
        };
        I::create(space.clone(), shape, leave, keep)
    };
    Ok(match &mut site.how {
        How::New => create()?,
        How::Unrecovered => return Err(Error::Unsupported { what: NO_SALVAGE }),
        How::Existing(pool) => match I::examine(space.clone(), settings.root(), leave) {
            // No zone is in use before the index is created: the creation was cut off.
            Err(IndexError::Absent) if space.committed_zones().is_empty() => {
                space.repair(&mut pool.found);
                create()?
            }
            examined => examined?,
        },
    })
}
