//! The cleaners of a store, one or more for each node (section III-F, "Concurrency of garbage collection"),
//! and their choice of files.
//!
//! A cleaner cleans files of its own node, for its thread or for a writer that finds little room. Several
//! work beside each other. But their copies go to the same tails, and one that opens a file there loses the
//! room that another one counted on. So the last free zone is left to a cleaner that works alone: the live
//! records of any victim fit into that.

use super::clean::Demand;
use super::{NlogSpine, Writer};
use crate::background::{Bell, Job, Progress, Steps};
use crate::engine::common::Common;
use crate::types::error::Error;
use crate::walk::cleaner;
use crate::walk::room::{self, Room, Step};
use quipu_medium::{MediumError, Node};
use quipu_parts::epoch::Participant;
use quipu_parts::heap::nlog::Nlog;
use quipu_parts::heap::segments::{Candidate, LogHeap, Use};
use quipu_parts::index::{Imaged, Index};
use quipu_parts::reclaim::{Terms, choose};
use quipu_parts::space::ZoneId;
use quipu_parts::sync::{SpinGuard, SpinLock};
use quipu_parts::twin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Zones that wait for readers.
type Waiting = Arc<SpinLock<Vec<ZoneId>>>;

/// Share of the candidates, as a divisor, that is chosen at a time.
const CHOSEN_DIVISOR: usize = 64;

/// Zones of a node for each of its cleaners, at least.
const ZONES_OF_A_CLEANER: u32 = 64;

/// The state of garbage collection, one for a store.
pub(super) struct Cleaning {
    /// As many for each node, those of the first node first.
    cleaners: Box<[Cleaner]>,
    nodes: Box<[Victims]>,
    /// Retired files that no reader can reach any more.
    ripe: Waiting,
    /// Retired files that are not free yet.
    retired: AtomicU32,
    pub(super) room: Room,
    /// Files of which this share is dead, in per cent, are cleaned whatever room is left.
    threshold: u32,
    /// A writer has called the cleaners in this run: before that, they would change a pool that is only read.
    is_called: AtomicBool,
    busy: AtomicU32,
    pub(super) freed: AtomicU64,
    pub(super) moved: AtomicU64,
    pub(super) moved_records: AtomicU64,
}

struct Cleaner {
    bell: Arc<Bell>,
    work: SpinLock<Work>,
}

/// A cleaner's means, borrowed for each file.
pub(super) struct Work {
    pub(super) participant: Participant,
    pub(super) writer: Writer,
    /// The bytes of the victim: others mark entries of it meanwhile.
    pub(super) file: Vec<u8>,
}

/// Files of a node that are to be cleaned.
struct Victims {
    node: Node,
    /// Those whose readers of before have left.
    ready: Waiting,
    /// These, and those that wait for readers.
    chosen: AtomicU32,
}

/// The cleaners of each node, of so many that were asked for, in a pool of so many zones.
pub(super) fn fitted(asked: u32, zones: u32, nodes: u32) -> u32 {
    asked.min(zones / (ZONES_OF_A_CLEANER * nodes)).max(1)
}

impl Cleaning {
    /// So many cleaners for each node.
    pub(super) fn new(
        nlog: Nlog<'_>,
        heap: &LogHeap,
        common: &Common,
        (each, threshold): (u32, u32),
        wait: u32,
    ) -> Cleaning {
        let nodes = heap.space().nodes();
        let cleaner = |(number, node): (usize, &Node)| {
            let writer = Writer::new(heap, nlog.number_of(Some(*node)));
            let work = Work { participant: common.epochs.register(), writer, file: Vec::new() };
            let bell = if number == 0 { common.bell.clone() } else { Arc::default() };
            Cleaner { bell, work: SpinLock::new(work) }
        };
        let victims = |node| Victims { node, ready: Waiting::default(), chosen: AtomicU32::new(0) };
        Cleaning {
            cleaners: nodes
                .iter()
                .flat_map(|node| (0..each).map(move |_| node))
                .enumerate()
                .map(cleaner)
                .collect(),
            nodes: nodes.iter().copied().map(victims).collect(),
            ripe: Waiting::default(),
            retired: AtomicU32::new(0),
            room: Room::of_zones(heap.space().zone_count(), wait),
            threshold,
            is_called: AtomicBool::new(false),
            busy: AtomicU32::new(0),
            freed: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            moved_records: AtomicU64::new(0),
        }
    }

    /// Calls the cleaners, and tells whether one has a thread.
    pub(super) fn call(&self) -> bool {
        self.is_called.store(true, Ordering::Relaxed);
        self.cleaners.iter().filter(|cleaner| cleaner.bell.ring()).count() > 0
    }

    /// Whether a writer has called them.
    pub(super) fn is_called(&self) -> bool {
        self.is_called.load(Ordering::Relaxed)
    }

    /// Whether a file is being cleaned at this moment.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }

    /// Files that are being cleaned, or wait for readers, before that or after.
    pub(super) fn waiting(&self) -> u32 {
        let chosen: u32 = self.nodes.iter().map(|victims| victims.chosen.load(Ordering::Acquire)).sum();
        // In the order in which a file passes through them, so that none is missed.
        let busy = self.busy.load(Ordering::Acquire);
        chosen + busy + self.retired.load(Ordering::Acquire)
    }

    /// All cleaners: nobody cleans while they are held.
    fn all(&self) -> Vec<SpinGuard<'_, Work>> {
        self.cleaners.iter().map(|cleaner| cleaner.work.lock()).collect()
    }
}

impl<I: Index> NlogSpine<I> {
    /// Cleans a file that meets the demand, of this node rather than of another one.
    pub(super) fn clean_step(&self, demand: &Demand) -> Result<Step, Error> {
        let (here, nodes) = (self.heap.space().node_here(), self.cleaning.nodes.len());
        let first = self.nlog().number_of(here) as usize;
        let mut last = Ok(Step::Nothing);
        for number in (0..nodes).map(|step| (first + step) % nodes) {
            match self.clean_step_of(number, demand) {
                Ok(Step::Taken) => return Ok(Step::Taken),
                // A file of another node may give room in spite of an error.
                stepped => last = last.and(stepped),
            }
        }
        last
    }

    /// Cleans a file of the node of this number: beside others, as long as there is room for that.
    fn clean_step_of(&self, node: usize, demand: &Demand) -> Result<Step, Error> {
        let cleaners = &self.cleaning.cleaners;
        let each = cleaners.len() / self.cleaning.nodes.len();
        if cleaners.len() > 1 && self.heap.has_left(2) {
            let own = &cleaners[node * each..][..each];
            let one = own.iter().find_map(|cleaner| cleaner.work.try_lock());
            let mut one = one.unwrap_or_else(|| own[0].work.lock());
            match self.clean_next(&mut one, node, demand, Use::MoveBeside) {
                Err(Error::PoolFull { .. } | Error::Medium(MediumError::DiskFull { .. })) => {}
                stepped => return stepped,
            }
        }
        self.clean_next(&mut self.cleaning.all()[node * each], node, demand, Use::Move)
    }

    /// Cleans a file of a node with a cleaner of it, whose copies are of this use.
    fn clean_next(&self, work: &mut Work, node: usize, demand: &Demand, purpose: Use) -> Result<Step, Error> {
        let victims = &self.cleaning.nodes[node];
        self.free_ripe(&work.participant);
        let Some(zone) = self.next_victim(victims, &work.participant, demand) else {
            return Ok(Step::Nothing);
        };
        room::begins_step(self.region());
        let cleaned = self.clean(work, zone, purpose);
        // A file whose records cannot all be read stays taken, for ever.
        if cleaned.as_ref().is_err_and(|error| !matches!(error, Error::Damaged(_))) {
            self.heap.leave_victim(zone);
        }
        self.cleaning.busy.fetch_sub(1, Ordering::AcqRel);
        cleaned.map(|()| Step::Taken)
    }

    /// A victim that is ready, which counts as busy from here on; if there is none, chooses some.
    fn next_victim(&self, victims: &Victims, participant: &Participant, demand: &Demand) -> Option<ZoneId> {
        let ready = || {
            let zone = victims.ready.lock().pop()?;
            // In this order, so that it is never missing in a sum.
            self.cleaning.busy.fetch_add(1, Ordering::AcqRel);
            victims.chosen.fetch_sub(1, Ordering::AcqRel);
            Some(zone)
        };
        ready().or_else(|| {
            if victims.chosen.load(Ordering::Acquire) == 0 {
                self.choose(victims, participant, demand);
            }
            participant.collect();
            ready()
        })
    }

    /// Takes victims, which are ready when all readers of this moment have left.
    fn choose(&self, victims: &Victims, participant: &Participant, demand: &Demand) {
        let (mut candidates, _) = self.heap.candidates();
        if demand.gives_storage {
            candidates.iter_mut().for_each(|candidate| candidate.unused = 0);
        }
        let capacity = self.heap.longest_record();
        let is_dead_enough = |candidate: &Candidate| {
            // Every reopening seals nearly empty files.
            let dead = candidate.garbage + candidate.expired + candidate.unused;
            dead * 100 >= capacity * u64::from(self.cleaning.threshold)
        };
        candidates.retain(|file| {
            file.life < demand.born_before
                && self.heap.space().zone_node(file.zone) == victims.node
                && (!demand.by_threshold || is_dead_enough(file))
        });
        let Demand { least, place, .. } = *demand;
        let terms = Terms { capacity, least, room: 0, oldest_other: u64::MAX, tombstones: u64::MAX, place };
        let most = (candidates.len() / CHOSEN_DIVISOR).max(1);
        let mut chosen = choose(&candidates, &terms, most);
        // Counted before they are candidates no more.
        let asked = chosen.len() as u32;
        victims.chosen.fetch_add(asked, Ordering::AcqRel);
        chosen.retain(|file| self.heap.take_victim(file.zone, file.life));
        victims.chosen.fetch_sub(asked - chosen.len() as u32, Ordering::AcqRel);
        if chosen.is_empty() {
            return;
        }
        let taken: Vec<ZoneId> = chosen.iter().map(|file| file.zone).rev().collect();
        let ready = victims.ready.clone();
        participant.pin().defer_to_anyone(Box::new(move || ready.lock().extend(taken)));
    }

    /// Gives a file that was emptied to the reader that is the last to reach it.
    pub(super) fn retire_file(&self, participant: &Participant, zone: ZoneId) {
        let ripe = self.cleaning.ripe.clone();
        self.cleaning.retired.fetch_add(1, Ordering::AcqRel);
        if twin!(FileFreedEarly) {
            return ripe.lock().push(zone);
        }
        participant.pin().defer_to_anyone(Box::new(move || ripe.lock().push(zone)));
    }

    /// Frees the retired files that no reader can reach any more.
    fn free_ripe(&self, participant: &Participant) {
        participant.collect();
        let ripe = std::mem::take(&mut *self.cleaning.ripe.lock());
        for zone in ripe {
            self.heap.free(zone);
            self.cleaning.freed.fetch_add(1, Ordering::Relaxed);
            self.cleaning.retired.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Ends all files that places are given away in, so that they can be cleaned; tells whether there was
    /// one. Not while a file is being cleaned: the last zone may be one that its copies go to. So that is
    /// waited for, and then it must be `needed` still.
    pub(super) fn close_files(&self, needed: impl FnOnce() -> bool) -> bool {
        let _nobody_cleans = self.cleaning.all();
        needed() && self.nlog().close_all()
    }

    /// Frees all files that can be freed, and gives back victims that nobody has begun to clean.
    pub(super) fn give_back(&self) {
        let cleaners = self.cleaning.all();
        self.free_ripe(&cleaners[0].participant);
        for victims in &self.cleaning.nodes {
            for zone in std::mem::take(&mut *victims.ready.lock()) {
                self.heap.leave_victim(zone);
                victims.chosen.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }
}

impl<I: Imaged> NlogSpine<I> {
    /// The jobs of the cleaners. Where the pool is on several nodes, each has a thread on its own.
    pub(super) fn cleaner_jobs(self: Arc<Self>) -> Vec<Job> {
        let each = self.cleaning.cleaners.len() / self.cleaning.nodes.len();
        let is_spread = self.heap.space().is_spread();
        let job = |(number, own): (usize, &Cleaner)| {
            let node = number / each;
            let mut is_at_home = !is_spread;
            let step = move |spine: &Self| {
                if !std::mem::replace(&mut is_at_home, true) {
                    // Where the node has no processors, it cleans from another one.
                    let _ = spine.region().pin(spine.cleaning.nodes[node].node);
                }
                spine.clean_ahead(node)
            };
            let job = cleaner(self.clone(), own.bell.clone(), step);
            if is_spread { Job { steps: Steps::Apart, ..job } } else { job }
        };
        self.cleaning.cleaners.iter().enumerate().map(job).collect()
    }

    /// A piece of the work of a cleaner of the node of this number.
    fn clean_ahead(&self, node: usize) -> Progress {
        self.ahead_of_writers(|demand| self.clean_step_of(node, demand))
    }
}
