//! Proves that nothing has leaked: every object is committed, on its list, or held by someone who got it.

use super::error::SpaceError;
use super::free_list::{COMMITTED, FreeList, FreeListKind, State, Words};
use super::handle::Space;
use std::sync::atomic::Ordering;

/// Where the objects of one pool are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolAudit {
    /// Objects in the pool.
    pub count: u64,
    /// Committed ones.
    pub committed: u64,
    /// Ones on a free list.
    pub free: u64,
    /// Ones that were gotten and are not committed.
    pub gotten: u64,
}

/// Where everything in a pool is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceAudit {
    /// The zones.
    pub zones: PoolAudit,
    /// The object pools, by identifier.
    pub pools: Vec<(u32, PoolAudit)>,
}

impl Space {
    /// Compares lists, commit bits and what DRAM believes. No allocation may be in progress meanwhile.
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
        let state = state.load(Ordering::Acquire);
        let what = match (is_committed, is_listed[index]) {
            (true, false) if state == State::Committed as u8 => {
                audit.committed += 1;
                continue;
            }
            (false, true) if state == State::Free as u8 => {
                audit.free += 1;
                continue;
            }
            (false, false) if state == State::Gotten as u8 => {
                audit.gotten += 1;
                continue;
            }
            (true, true) => "a committed object on a free list",
            (true, false) => "a commit bit that nobody set",
            (false, true) => "a free list with an object that is in use",
            (false, false) => "an object neither in use nor free",
        };
        return Err(SpaceError::Damaged { what, offset });
    }
    Ok(audit)
}

/// The objects that the links reach. One more than there are objects is a circle, and ends the walk.
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
