//! Proves that nothing has leaked: every object is committed, on its list, or held by the caller that got it.

use super::error::SpaceError;
use super::free_list::{COMMITTED, FreeList, FreeListKind, State, Words};
use super::handle::Space;
use std::sync::atomic::Ordering;

/// The objects of one pool, by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolAudit {
    /// Objects in the pool.
    pub count: u64,
    /// Committed objects.
    pub committed: u64,
    /// Objects on a free list.
    pub free: u64,
    /// Objects that were gotten and are not committed.
    pub gotten: u64,
}

/// All objects and zones of a pool, by their state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceAudit {
    /// The zones.
    pub zones: PoolAudit,
    /// The object pools, by identifier.
    pub pools: Vec<(u32, PoolAudit)>,
}

impl Space {
    /// Compares lists, commit bits and the states in DRAM. No allocation may be in progress meanwhile.
    ///
    /// # Errors
    /// [`SpaceError::Damaged`] with the first word that contradicts the rest.
    pub fn audit(&self) -> Result<SpaceAudit, SpaceError> {
        let mut audit = SpaceAudit::default();
        for extent in &self.zones.extents {
            let part = audit_list(&extent.list)?;
            audit.zones.count += part.count;
            audit.zones.committed += part.committed;
            audit.zones.free += part.free;
            audit.zones.gotten += part.gotten;
        }
        for pool in &self.pools {
            audit.pools.push((pool.id(), audit_list(&pool.list)?));
        }
        Ok(audit)
    }
}

fn audit_list(list: &FreeList) -> Result<PoolAudit, SpaceError> {
    let Words { region, head, .. } = &list.words;
    let stack = list.stack.lock();
    let listed = match list.kind {
        FreeListKind::Volatile => stack.clone(),
        FreeListKind::Persistent => linked(&list.words)?,
    };
    let mut is_listed = vec![false; list.count() as usize];
    for &index in &listed {
        if std::mem::replace(&mut is_listed[index as usize], true) {
            return Err(SpaceError::Damaged {
                what: "a free list that names an object twice",
                offset: *head,
            });
        }
    }
    let mut audit = PoolAudit { count: u64::from(list.count()), ..PoolAudit::default() };
    for (index, state) in list.states.iter().enumerate() {
        let offset = list.words.at(index as u32);
        let is_committed = region.load(offset) & COMMITTED != 0;
        let (expected, counter, what) = match (is_committed, is_listed[index]) {
            (true, true) => {
                return Err(SpaceError::Damaged { what: "a committed object on a free list", offset });
            }
            (true, false) => (State::Committed, &mut audit.committed, "a commit bit without an owner"),
            (false, true) => (State::Free, &mut audit.free, "a free list with an object that is in use"),
            (false, false) => (State::Gotten, &mut audit.gotten, "an object neither in use nor free"),
        };
        if state.load(Ordering::Acquire) != expected as u8 {
            return Err(SpaceError::Damaged { what, offset });
        }
        *counter += 1;
    }
    Ok(audit)
}

/// The objects that the links reach. A walk of more steps than there are objects runs in a circle, and ends.
fn linked(words: &Words) -> Result<Vec<u32>, SpaceError> {
    let mut listed = Vec::new();
    let mut link = words.region.load(words.head);
    while let Some(index) = words.target(link) {
        if listed.len() as u64 >= u64::from(words.count) {
            return Err(SpaceError::Damaged {
                what: "a free list that runs in a circle",
                offset: words.head,
            });
        }
        listed.push(index);
        link = words.region.load(words.at(index)) & !COMMITTED;
    }
    if link == super::free_list::END {
        Ok(listed)
    } else {
        Err(SpaceError::Damaged { what: "a free list that leads outside its pool", offset: words.head })
    }
}
