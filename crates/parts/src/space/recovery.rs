//! Makes free lists out of what a crash, or a clean close, has left on the medium (section 3.4.1).
//!
//! The commit bits decide; head and links may name anything: an object committed since, one of another age, a
//! place outside, each other in a circle. The walk marks what it reaches, unlinks what does not belong, and pushes
//! every uncommitted object that it did not reach. It stores only where something is wrong, so a pool that was
//! closed cleanly is opened without one store; and never to a commit bit, so a crash during recovery loses nothing.

use super::free_list::{COMMITTED, END, FreeList, FreeListKind, State, Words, link_to};
use std::sync::atomic::AtomicU8;

/// What opening a pool has found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceRecovery {
    /// The pool had been closed cleanly.
    pub was_clean: bool,
    /// One superblock copy did not certify itself. A torn update does that; so does damage to the newest copy, in
    /// which case the superblock in use is one update old, and whoever keeps a ceiling in it should skip ahead.
    pub superblock_copy_lost: bool,
    /// Committed zones.
    pub committed_zones: u32,
    /// Committed objects of all object pools.
    pub committed_objects: u64,
    /// Zones and objects that were neither committed nor on a list, and are free again.
    pub leaked_reclaimed: u64,
    /// Links that led to something that is not free, and were set right.
    pub links_repaired: u64,
}

impl SpaceRecovery {
    pub(super) fn add(&mut self, list: &ListRecovery) {
        self.leaked_reclaimed += u64::from(list.leaked);
        self.links_repaired += u64::from(list.repaired);
    }
}

/// What repairing one list has done.
pub(super) struct ListRecovery {
    leaked: u32,
    repaired: u32,
}

/// The list that the commit bits tell of, made durable before they are believed. Nothing is changed: on the medium its
/// links may still be wrong until [`repair`].
pub(super) fn examine(words: Words, kind: FreeListKind) -> FreeList {
    words.flush();
    words.region.fence();
    let committed: Vec<bool> =
        (0..words.count).map(|index| words.region.load(words.at(index)) & COMMITTED != 0).collect();
    let state = |committed: &bool| if *committed { State::Committed } else { State::Free };
    let states = committed.iter().map(|committed| AtomicU8::new(state(committed) as u8)).collect();
    let stack = match kind {
        FreeListKind::Volatile => {
            (0..words.count).rev().filter(|&index| !committed[index as usize]).collect()
        }
        FreeListKind::Persistent => Vec::new(),
    };
    FreeList::new(words, kind, states, stack)
}

/// Makes the links on the medium lead to exactly the free objects.
pub(super) fn repair(list: &FreeList) -> ListRecovery {
    if list.kind == FreeListKind::Volatile {
        return ListRecovery { leaked: 0, repaired: 0 };
    }
    let _links = list.stack.lock();
    let committed: Vec<bool> = (0..list.count()).map(|index| list.check(index)).collect();
    let (reached, repaired) = repair_links(&list.words, &committed);
    ListRecovery { leaked: reclaim(&list.words, &committed, &reached), repaired }
}

/// Walks the links from the head and leaves a sound list of the free objects that they reach. Returns which these
/// are, and how many links had to change.
///
/// A committed object is passed over by its own link, which still leads to what stood behind it when it was taken:
/// the usual case after a crash is a stale head with the rest of the list beyond.
fn repair_links(words: &Words, committed: &[bool]) -> (Vec<bool>, u32) {
    let region = &words.region;
    let mut reached = vec![false; committed.len()];
    let mut passed = vec![false; committed.len()];
    let mut repaired = 0;
    let mut link_at = words.head;
    let mut stored = region.load(link_at);
    let mut link = stored;
    loop {
        let next = words.target(link).filter(|&index| !std::mem::replace(&mut passed[index as usize], true));
        let Some(index) = next else { break };
        let word = region.load(words.at(index));
        if !committed[index as usize] {
            reached[index as usize] = true;
            if stored != link {
                region.store(link_at, link);
                repaired += 1;
            }
            link_at = words.at(index);
            stored = word;
        }
        link = word & !COMMITTED;
    }
    if stored != END {
        region.store(link_at, END);
        repaired += 1;
    }
    (reached, repaired)
}

/// Pushes every object that is neither committed nor reached, lowest last so that it is taken first.
fn reclaim(words: &Words, committed: &[bool], reached: &[bool]) -> u32 {
    let region = &words.region;
    let mut leaked = 0;
    for index in (0..words.count).rev() {
        if !committed[index as usize] && !reached[index as usize] {
            region.store(words.at(index), region.load(words.head));
            region.store(words.head, link_to(index));
            leaked += 1;
        }
    }
    leaked
}
