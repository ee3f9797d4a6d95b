//! Makes free lists out of the words that a crash, or a clean close, has left on the medium (section 3.4.1).
//!
//! The commit bits decide. Head and links may name anything: a committed object, a stale one, a place
//! outside, each other in a circle. The walk marks the objects that it reaches, unlinks committed ones, and
//! pushes every uncommitted object that it did not reach. It stores only to repair, so it opens a cleanly
//! closed pool without a store. It never stores to a commit bit, so a crash during recovery loses nothing.

use super::free_list::{COMMITTED, END, FreeList, FreeListKind, State, Words, link_to};
use std::sync::atomic::AtomicU8;

/// The findings and repairs of opening a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceRecovery {
    /// The pool had been closed cleanly.
    pub was_clean: bool,
    /// One superblock copy did not certify itself: an update was torn, or the newest copy is damaged. In the
    /// second case the superblock in use is one update old, and an owner that keeps a ceiling in it should
    /// skip ahead.
    pub superblock_copy_lost: bool,
    /// Committed zones.
    pub committed_zones: u32,
    /// Committed objects of all object pools.
    pub committed_objects: u64,
    /// Zones and objects that were neither committed nor on a list, and are free again.
    pub leaked_reclaimed: u64,
    /// Links that led to an object that is not free, and were repaired.
    pub links_repaired: u64,
}

/// The list according to the commit bits, which are made durable before they are believed. It changes
/// nothing: the links on the medium may be wrong until [`repair`].
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

/// Makes the links on the medium lead to exactly the free objects, and counts the repairs.
pub(super) fn repair(list: &FreeList, recovery: &mut SpaceRecovery) {
    if list.kind == FreeListKind::Volatile {
        return;
    }
    let _links = list.stack.lock();
    let committed: Vec<bool> = (0..list.count()).map(|index| list.check(index)).collect();
    let (reached, repaired) = repair_links(&list.words, &committed);
    recovery.leaked_reclaimed += reclaim(&list.words, &committed, &reached);
    recovery.links_repaired += repaired;
}

/// Walks the links from the head and leaves a sound list of the free objects that they reach. Returns these
/// objects, and how many links it changed.
///
/// The walk skips a committed object by its own link, which still leads to the next object of the time when
/// it was taken. The usual state after a crash is a stale head in front of a sound rest of the list.
fn repair_links(words: &Words, committed: &[bool]) -> (Vec<bool>, u64) {
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

/// Pushes every object that is neither committed nor reached, the lowest last, so that Get takes it first.
fn reclaim(words: &Words, committed: &[bool], reached: &[bool]) -> u64 {
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
