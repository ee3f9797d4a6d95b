//! How thoroughly a run is explored.

use super::moment::MANY_COMMITS;
use super::pool::Pool;
use super::report::CrashConfig;
use quipu::Design;
use quipu_medium::sim::sched;

/// Crashes of a crashed pool's successors that are followed.
pub(super) const DEPTH: u32 = 3;

/// States of a run after which it follows no further crash of a recovery or of work behind one. Each may
/// lead to more than one other, and a run of all images would go on for long.
pub(super) const MOST_FOLLOWED: usize = 8192;

/// States of a run of all images after which it judges only so many of each moment. So a run ends within
/// seconds.
const MOST_WHOLE: usize = 16_384;
const THEN: usize = 4;

/// Pieces of each kind of work that go on beside the clients, and points of the scheduler after each, since
/// there may have been nothing to do.
const PIECES_BESIDE: u32 = 48;
const POINTS_BETWEEN: u32 = 6;

/// How thoroughly a run is explored.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Steps of each thread.
    pub(super) steps: usize,
    /// Share of the operations on persistent memory that are crash points.
    pub(super) chance: f64,
    /// The same while compaction is at work.
    pub(super) compacting: f64,
    /// Images of each; 0 for all.
    pub(super) budget: usize,
    /// Crash points that are judged of the run itself, of a crashed recovery, and of the work that follows
    /// one. Where there are more, some are drawn: another history tells more than further moments of the same
    /// one.
    pub(super) points: [usize; 3],
    /// Times that a thread of its own compacts beside the others, and that it does so on a store opened
    /// again.
    pub(super) compactions: [usize; 2],
    /// Commits before which hardly anything is a crash point.
    pub(super) commits: u32,
}

impl Pace {
    /// One run in 64 is short and explored at every operation, in every image; the others go far and are
    /// sampled, so that many different histories are seen. A crowded one compacts so much that less of that
    /// is enough.
    pub(super) fn of(seed: u64, config: &CrashConfig, pool: &Pool) -> Pace {
        let (steps, chance, budget, compactions, points) = match seed.is_multiple_of(64) {
            true => (if config.transfers { 8 } else { 4 }, 1.0, 0, [1, 1], [usize::MAX; 3]),
            false => (config.ops, 0.06, 4, [8, 1], [100, 8, 12]),
        };
        let (compacting, compactions) = match (pool.is_crowded, config.design) {
            (false, _) => (0.4, [0, 0]),
            // A block has less to move than a segment.
            (true, Design::VIPER_PACMAN) => (0.5, compactions),
            (true, _) => (0.3, compactions),
        };
        let commits = if config.transfers { MANY_COMMITS } else { 0 };
        Pace { steps, chance, compacting, budget, compactions, points, commits }
    }
}

/// Zones that an index in the pool has before it takes further ones: FAST&FAIR keeps nodes and long keys
/// apart, MPKV's buckets those of the table and those that overflow.
pub(super) fn first_zones(design: Design) -> u32 {
    match design {
        Design::FLATSTORE_FF | Design::MPKV | Design::MPKV_BASELINE => 2,
        _ => 1,
    }
}

/// Images of a moment that are judged behind so many states of a run, of those that were to be; 0 stands for
/// all.
pub(super) fn within(budget: usize, states: usize) -> usize {
    if budget == 0 && states >= MOST_WHOLE { THEN } else { budget }
}

/// Cleans, dumps or compacts beside the clients, for as long as most runs take.
pub(super) fn work_beside(mut piece: Box<dyn FnMut()>) {
    for _ in 0..PIECES_BESIDE {
        piece();
        (0..POINTS_BETWEEN).for_each(|_| sched::point());
    }
}
