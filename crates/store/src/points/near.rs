//! Local read threads (NStore, section III-E, "Scan"): a scan has records of other nodes read for it by
//! threads of those nodes, which copy them. So persistent memory is read by processors near it, and only
//! copies, in DRAM, go from node to node.
//!
//! A request owns its words, and its answer the copies. So a thread that ends, in any way, drops the requests
//! that it has, and the scan reads these records itself. The scan waits until all answers are there or have
//! been dropped. Its pin keeps the records from reuse meanwhile, and nothing in this wait may panic.
//!
//! A thread that panics fails the store, as a cleaner does: writes are refused from then on, and scans read
//! for themselves.
//!
//! Threads copy what needs no judgement. A record that is damaged or large, or whose word omits its length,
//! the scan reads itself, when its turn has come.

use super::{Core, Points};
use crate::background::{Bell, Job, Progress, READER, Steps};
use crate::engine::Engine;
use quipu_medium::{MediumKind, Node};
use quipu_parts::epoch::{Guard, Participant};
use quipu_parts::heap::SizedReference;
use quipu_parts::index::Index;
use quipu_parts::record::RecordView;
use quipu_parts::space::Space;
use quipu_parts::sync::SpinLock;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Words that a scan takes from the index at a time: few at first, since it may be short, and twice as many
/// each time up to so many that groups are worth a request.
const AT_FIRST: usize = 32;
const AT_MOST: usize = 128;

/// Bytes of a group of records at least: below that, the request costs more than the reads (figure 9b of the
/// paper, for values of 8 bytes).
const LEAST_GROUP: u64 = 8 << 10;

/// Bytes of records at most that a scan has before it at a time: it may end with the first of them.
const MOST_AHEAD: u64 = 256 << 10;

/// Requests that wait for a thread at most; beyond them, scans read for themselves.
const WAITING: usize = 16;

/// Looks of a thread for another request before it sleeps.
const LOOKS: u32 = 2000;

/// How long a scan waits before it calls a thread again, which may have fallen asleep at the first call.
const PATIENCE: Duration = Duration::from_millis(1);

/// A copy of a pair.
pub(super) struct Copied {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    /// As its record has it.
    pub(super) expires: u64,
}

/// Words of one node, with their positions among those of a scan.
type Group = Vec<(usize, u64)>;

/// The copies of a group, at their positions.
type Answer = Vec<(usize, Option<Copied>)>;

struct Request {
    group: Group,
    answer: mpsc::Sender<Answer>,
}

/// The local read threads of a store.
pub(crate) struct Readers {
    nodes: Vec<NodeReaders>,
    /// Pairs that they have copied.
    copied: AtomicU64,
}

struct NodeReaders {
    node: Node,
    threads: Vec<Thread>,
    /// The thread that had the last request.
    last: AtomicUsize,
}

#[derive(Default)]
struct Thread {
    bell: Arc<Bell>,
    /// Where it takes requests from, once it was started.
    queue: SpinLock<Option<mpsc::SyncSender<Request>>>,
}

impl Readers {
    /// So many threads for each node; none for a pool on one node.
    pub(crate) fn of(space: &Space, each: u32) -> Option<Readers> {
        if each == 0 || !space.is_spread() {
            return None;
        }
        let threads = || (0..each).map(|_| Thread::default()).collect();
        let of_node = |node| NodeReaders { node, threads: threads(), last: AtomicUsize::new(0) };
        Some(Readers { nodes: space.nodes().into_iter().map(of_node).collect(), copied: AtomicU64::new(0) })
    }

    /// Pairs that they have copied so far.
    pub(super) fn copied(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }
}

impl NodeReaders {
    /// Hands a group to the next thread, and returns its bell. `None` if that thread is gone or has enough to
    /// do: then the scan reads the group itself.
    fn hand_over(&self, group: Group, answer: &mpsc::Sender<Answer>) -> Option<&Bell> {
        let thread = &self.threads[self.last.fetch_add(1, Ordering::Relaxed) % self.threads.len()];
        let request = Request { group, answer: answer.clone() };
        thread.queue.lock().as_ref()?.try_send(request).ok()?;
        Some(&thread.bell)
    }
}

/// Words that a scan takes after so many.
pub(super) fn after(words: usize) -> usize {
    (words * 2).clamp(AT_FIRST, AT_MOST)
}

/// How many of these words a scan has before it at a time.
pub(super) fn ahead(words: &[u64]) -> usize {
    let mut bytes = 0;
    let is_within = |word: &&u64| {
        bytes += len_in(**word).unwrap_or(0);
        bytes <= MOST_AHEAD
    };
    words.iter().take_while(is_within).count()
}

/// Bytes of a word's record, if it tells them. That of a large value does not.
fn len_in(word: u64) -> Option<u64> {
    SizedReference::from_word(word).record_len()
}

impl<I: Index> Core<I> {
    /// Copies of the records of other nodes that a scan has before it, at the positions of their words.
    /// Nothing for those that the scan is to read itself.
    pub(super) fn copies_from_afar(&self, words: &[u64]) -> Vec<Option<Copied>> {
        let mut copies = Vec::new();
        let (Some(readers), Some(here)) = (&self.readers, self.region().current_node()) else {
            return copies;
        };
        copies.resize_with(words.len(), || None);
        let groups = readers.nodes.iter().filter(|readers| readers.node != here);
        let groups = groups.map(|readers| (readers, self.group_of(readers.node, words)));
        // All of them, before the first is handed over: after that nothing may panic.
        let groups: Vec<_> = groups.filter(|(_, group)| is_worth_it(group)).collect();
        let answers = match self.region().kind() {
            // There no job has a thread.
            MediumKind::Sim => self.read_in_their_place(here, groups),
            _ => read_by_threads(groups),
        };
        for (position, copied) in answers.into_iter().flatten() {
            readers.copied.fetch_add(u64::from(copied.is_some()), Ordering::Relaxed);
            copies[position] = copied;
        }
        copies
    }

    fn group_of(&self, node: Node, words: &[u64]) -> Group {
        let space = self.heap.space();
        let zone = |word: &u64| super::reference_of(*word).zone(self.heap.zone_shift());
        let is_there = |(_, word): &(usize, u64)| {
            len_in(*word).is_some()
                && space.checked_zone_offset(zone(word)).is_some()
                && space.zone_node(zone(word)) == node
        };
        words.iter().copied().enumerate().filter(is_there).collect()
    }

    /// The work of the threads, done by the caller on each of their nodes.
    fn read_in_their_place(&self, here: Node, groups: Vec<(&NodeReaders, Group)>) -> Vec<Answer> {
        let participant = self.common.epochs.register();
        let answer = |(readers, group): (&NodeReaders, Group)| {
            let _ = self.region().pin(readers.node);
            self.copy_group(&participant, &group)
        };
        let answers = groups.into_iter().map(answer).collect();
        let _ = self.region().pin(here);
        answers
    }

    fn copy_group(&self, participant: &Participant, group: &Group) -> Answer {
        let guard = participant.pin();
        group.iter().map(|(position, word)| (*position, self.copy_pair(&guard, *word))).collect()
    }

    fn copy_pair(&self, guard: &Guard<'_>, word: u64) -> Option<Copied> {
        let RecordView { key, value, expires, .. } =
            self.record_for_pair(guard, word).ok().filter(|record| !record.is_large())?;
        Some(Copied { key: key.to_vec(), value: value.to_vec(), expires })
    }
}

fn is_worth_it(group: &Group) -> bool {
    group.iter().filter_map(|(_, word)| len_in(*word)).sum::<u64>() >= LEAST_GROUP
}

fn read_by_threads(groups: Vec<(&NodeReaders, Group)>) -> Vec<Answer> {
    let (answer, answers) = mpsc::channel();
    let called: Vec<&Bell> =
        groups.into_iter().filter_map(|(readers, group)| readers.hand_over(group, &answer)).collect();
    drop(answer);
    let call = || {
        for bell in &called {
            bell.ring();
        }
    };
    call();
    let mut all = Vec::with_capacity(called.len());
    loop {
        match answers.recv_timeout(PATIENCE) {
            Ok(answer) => all.push(answer),
            Err(mpsc::RecvTimeoutError::Timeout) => call(),
            Err(mpsc::RecvTimeoutError::Disconnected) => return all,
        }
    }
}

/// The local read threads of a walk, each on its node.
pub(crate) fn reader_jobs<W: Points + Engine + 'static>(walk: &Arc<W>) -> Vec<Job> {
    let nodes = walk.core().readers.iter().flat_map(|readers| readers.nodes.iter());
    let threads = nodes.flat_map(|readers| readers.threads.iter().map(|thread| (readers.node, thread)));
    let job = |(node, thread): (Node, &Thread)| {
        let (queue, requests) = mpsc::sync_channel(WAITING);
        *thread.queue.lock() = Some(queue);
        let (walk, participant, mut is_at_home) = (walk.clone(), walk.core().common.epochs.register(), false);
        let step = move || {
            if !std::mem::replace(&mut is_at_home, true) {
                // Where the node has no processors, it reads from another one.
                let _ = walk.core().region().pin(node);
            }
            serve(|group| walk.core().copy_group(&participant, group), &requests)
        };
        Job { name: READER, steps: Steps::Apart, bell: thread.bell.clone(), step: Box::new(step) }
    };
    threads.map(job).collect()
}

/// Answers a request.
fn serve(copy: impl FnOnce(&Group) -> Answer, requests: &mpsc::Receiver<Request>) -> Progress {
    for _ in 0..LOOKS {
        let Ok(Request { group, answer }) = requests.try_recv() else {
            hint::spin_loop();
            continue;
        };
        // The scan waits for the answer.
        let _ = answer.send(copy(&group));
        return Progress::More;
    }
    Progress::Enough
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::background::{Admission, Workers};

    /// Nobody waits for a thread that has panicked, or for what it had before it; and the store has failed.
    #[test]
    fn a_thread_that_panics_leaves_no_scan_waiting() {
        let (admission, thread) = (Arc::<Admission>::default(), Thread::default());
        let (queue, requests) = mpsc::sync_channel(WAITING);
        *thread.queue.lock() = Some(queue);
        let step = move || serve(|_| panic!("a read that fails"), &requests);
        let job = Job { name: READER, steps: Steps::Apart, bell: thread.bell.clone(), step: Box::new(step) };
        let node = &NodeReaders { node: Node(1), threads: vec![thread], last: AtomicUsize::new(0) };
        let groups = || (0..3).map(|position| (node, vec![(position, 8)])).collect();
        let workers = std::thread::scope(|scope| {
            let scan = scope.spawn(|| read_by_threads(groups()));
            let workers = Workers::start(vec![job], &admission, None);
            assert!(scan.join().unwrap().is_empty());
            workers
        });
        assert!(read_by_threads(groups()).is_empty());
        while !admission.has_failed() {
            std::thread::yield_now();
        }
        drop(workers);
    }
}
