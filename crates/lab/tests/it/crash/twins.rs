//! The broken stores that the explorer has to convict, each by three pinned seeds, or, where none are pinned,
//! by a search with a limit.
//!
//! A seed is that of a run which convicts its twin by itself, by one of the twin's charges: the words for
//! this very fault. A change of the engine or of the explorer may turn a run into another one, so that a
//! pinned seed convicts no longer. Then look whether the twin is still convicted at all, and pin what is
//! found:
//!
//! ```sh
//! QUIPU_TWIN=name cargo test -p quipu-lab --test it -- --ignored --nocapture crash::search
//! ```
//!
//! The search runs seeds from 1 (or `QUIPU_SEED`) on, tells how many states each conviction took, and prints
//! the seeds as they are to stand here. Without `QUIPU_TWIN` it searches for all.

use quipu::Design;
use quipu::internals::Twin;
use quipu_lab::crash::{Broken, CrashConfig, CrashReport, explore};
use quipu_medium::sim::Fault;

/// A key has a value and should, or at least may, have none.
const CAME_BACK: &str = "possible are {None";

/// The head of a large value came back, whose zones are someone else's by now.
const HEAD_CAME_BACK: &str = "a large value";

/// A write that had returned, or was read, is not there after the crash.
const LOST: &str = "an acknowledged write is lost";
const READ_TOO_EARLY: &str = "a read before the crash returned what the crash took away";

/// The words of the judge of prefixes: an item that had to be there is not, or not all of it is.
const NOT_FROM_THERE: &str = "which were acknowledged or seen";
const IN_PART: &str = "is there in part";
const HOLE: &str = "a hole at number";
/// A write that was superseded or cut off is there.
const NOT_HAD: &str = "which it has not had";

/// Recovery finds that numbers are missing, or that there are too many.
const NUMBERS: &str = "are accounted for";

/// A record would not outrank the one that it replaces.
const NUMBER_TOO_LOW: &str = "numbers of a key follow its writes";

/// Remains of a record that an index in the pool names too early.
const NAMED_TOO_EARLY: &[&str] =
    &["is lost", "took away", "never written", "no record of its key where the index names one"];

/// Remains where an index in the pool names a record that has moved away.
const NAMED_TOO_LATE: &[&str] = &["is lost", "took away", "not sound"];

/// States after which a twin without pinned seeds has got away.
const MOST: u64 = 60_000;

/// States that are judged in the time of a history.
const HISTORY: u64 = 10;

const FENCE_LEFT_OUT: Broken = Broken::Medium(Fault::FenceOmitted { every: 3 });

/// A broken store and the run that convicts it.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    design: Design,
    broken: Broken,
    charges: &'static [&'static str],
    /// Runs of pools whose records have one size.
    fixed: bool,
    seeds: &'static [u64],
    /// Tasks that write; with more than two of them, others clean and dump beside them.
    threads: usize,
    /// Its runs are histories, of which the answers are judged.
    has_histories: bool,
}

/// The result of a run of a broken store.
pub struct Trial {
    /// Whether the run convicts the store of its own fault.
    pub convicts: bool,
    /// The run.
    pub report: CrashReport,
}

impl Row {
    /// The store, and the run of this seed.
    pub fn config(&self, seed: u64) -> CrashConfig {
        let Row { design, broken, threads, has_histories, .. } = *self;
        let (one, twin) = (Some(1), Some(broken));
        let (runs, histories) = if has_histories { (None, one) } else { (one, None) };
        CrashConfig { design, seed, threads, runs, histories, workers: 1, twin, ..CrashConfig::default() }
    }

    /// Runs one seed.
    pub fn trial(&self, seed: u64) -> Trial {
        let report = explore(&self.config(seed), &mut |_, _| {}).expect("settings that there are");
        let is_charged = |what: &str| self.charges.iter().any(|charge| what.contains(charge));
        let convicts = report.details.iter().any(|violation| is_charged(&violation.what));
        Trial { convicts: convicts && (report.count("fixed") > 0 || !self.fixed), report }
    }

    /// Each of its seeds must convict it, or, if none are pinned, one of those that a search comes to.
    pub fn convict(&self) {
        if self.seeds.is_empty() {
            let (mut states, mut seeds) = (0, 1..);
            while states < MOST {
                let Trial { convicts, report } = self.trial(seeds.next().expect("there are more"));
                if convicts {
                    return;
                }
                states += self.effort(&report);
            }
            panic!("{} got away with {states} states", self.name);
        }
        for seed in self.seeds {
            let Trial { convicts, report } = self.trial(*seed);
            assert!(
                convicts,
                "{} is not convicted by seed {seed} ({} states, {:#?}); to search for others: \
                 QUIPU_TWIN={} cargo test -p quipu-lab --test it -- --ignored --nocapture crash::search",
                self.name, report.states, report.details, self.name
            );
        }
    }

    /// The part of a search that a run of this many states is: a history has few.
    pub fn effort(&self, report: &CrashReport) -> u64 {
        if self.has_histories { HISTORY } else { report.states }
    }

    /// Its pinned seeds.
    pub fn seeds(&self) -> &[u64] {
        self.seeds
    }
}

/// The table, and a test for each of its rows.
macro_rules! twins {
    ($($(#[$doc:meta])* $name:ident: $design:ident, $broken:expr, $charges:expr, $fixed:expr, $seeds:expr
        $(, threads $threads:literal)? $(, histories $tasks:literal)?;)*) => {
        pub const TWINS: &[Row] = &[$(Row {
            name: stringify!($name),
            design: Design::$design,
            broken: $broken,
            charges: $charges,
            fixed: $fixed,
            seeds: $seeds,
            threads: [$($threads,)? $($tasks,)? 2][0],
            has_histories: [$($tasks,)? 0][0] > 0,
        }),*];
        $($(#[$doc])* #[test]
        fn $name() {
            super::convict(stringify!($name));
        })*
    };
}

const ANY: bool = false;
const FIXED: bool = true;

twins! {
    fence_left_out: QUIPU, FENCE_LEFT_OUT, &[LOST], ANY, &[1, 2, 3];
    publish_before_persist: QUIPU, Broken::Store(Twin::PublishBeforePersist), &[READ_TOO_EARLY], ANY, &[37, 44, 72];
    life_left_out: QUIPU, Broken::Store(Twin::LifeLeftOut), &["a write came back"], ANY, &[1, 4, 7];
    append_after_recovery: QUIPU, Broken::Store(Twin::AppendAfterRecovery), &["a write came back"], ANY, &[20, 46, 53];
    tombstone_dropped_early: QUIPU, Broken::Store(Twin::TombstoneDroppedEarly), &[CAME_BACK, HEAD_CAME_BACK], ANY,
        &[1, 4, 5];
    freed_in_dram_only: QUIPU, Broken::Store(Twin::FreedInDramOnly), &[CAME_BACK, HEAD_CAME_BACK], ANY, &[1, 3, 4];
    batch_in_pieces: QUIPU, Broken::Store(Twin::BatchInPieces), &["an atomic batch is there in part"], ANY, &[1, 2, 3];
    stale_checkpoint: QUIPU, Broken::Store(Twin::StaleCheckpoint), &[LOST], ANY, &[1, 2, 4];
    flatstore_m_stale_checkpoint: FLATSTORE_M, Broken::Store(Twin::StaleCheckpoint), &[LOST], ANY, &[1, 2, 4];
    value_committed_late: QUIPU, Broken::Store(Twin::ValueCommittedLate), &["a large value"], ANY, &[2, 3, 6];
    viper_fence_left_out: VIPER, FENCE_LEFT_OUT, &[LOST], ANY, &[1, 2, 7];
    /// In pools whose records have one size.
    viper_fixed_fence_left_out: VIPER, FENCE_LEFT_OUT, &["torn value"], FIXED, &[3, 4, 7];
    viper_released_before_persist: VIPER, Broken::Store(Twin::ReleasedBeforePersist), &["found None"], ANY, &[1, 4, 6];
    viper_old_not_released: VIPER, Broken::Store(Twin::OldNotReleased), &[CAME_BACK], ANY, &[1, 3, 6];
    /// A writer that deletes a key whose last put was published late must not do so durably before the record
    /// that this put has replaced is durably gone.
    viper_key_free_before_release: VIPER, Broken::Store(Twin::KeyFreeBeforeRelease), &[CAME_BACK], ANY, &[20, 79, 99];
    /// The tie break of the paper needs that nobody sees a record before the one that it replaces is durably
    /// gone; sequence numbers do not. Locks see to that (`heap::slots::locks`), so the paper's way is
    /// convicted where they let go too early.
    viper_ties_of_the_paper: VIPER, Broken::Store(Twin::TiesByBlock), &[READ_TOO_EARLY], ANY, &[7, 11, 16];
    viper_pacman_fence_left_out: VIPER_PACMAN, FENCE_LEFT_OUT, &[LOST, "torn value"], ANY, &[1, 2, 3];
    /// A deletion with bits in DRAM lasts by its tombstone, for as long as something older is marked.
    viper_pacman_tombstone_dropped_early: VIPER_PACMAN, Broken::Store(Twin::TombstoneDroppedEarly), &[CAME_BACK], ANY,
        &[1, 4, 5];
    /// The copies of a block are one fence, and that comes before the block is free.
    viper_pacman_victim_freed_early: VIPER_PACMAN, Broken::Store(Twin::VictimFreedEarly),
        &["is lost", "took away", "found None", "not sound"], ANY, &[1, 2, 3];
    /// A copy whose original was superseded meanwhile must not outlive the record that superseded it.
    viper_pacman_losing_copy_kept: VIPER_PACMAN, Broken::Store(Twin::LosingCopyKept), &[CAME_BACK, "not sound"], ANY,
        &[29, 122, 213];
    /// The index in the pool says what is where, and must not say so before it is there.
    flatstore_ph_publish_before_persist: FLATSTORE_PH, Broken::Store(Twin::PublishBeforePersist), NAMED_TOO_EARLY, ANY, &[1, 5, 7];
    flatstore_ff_publish_before_persist: FLATSTORE_FF, Broken::Store(Twin::PublishBeforePersist), NAMED_TOO_EARLY, ANY,
        &[1, 5, 6];
    mpkv_publish_before_persist: MPKV, Broken::Store(Twin::PublishBeforePersist), NAMED_TOO_EARLY, ANY, &[2, 6, 7];
    mpkv_baseline_publish_before_persist: MPKV_BASELINE, Broken::Store(Twin::PublishBeforePersist), NAMED_TOO_EARLY, ANY,
        &[6, 11, 12];
    /// The listing of PACMAN's paper (figure 4) flushes after every 32 entries and not the rest.
    flatstore_ph_last_repointed_unflushed: FLATSTORE_PH, Broken::Store(Twin::LastRepointedUnflushed), NAMED_TOO_LATE, ANY,
        &[1, 2, 3];
    flatstore_ff_last_repointed_unflushed: FLATSTORE_FF, Broken::Store(Twin::LastRepointedUnflushed), NAMED_TOO_LATE, ANY,
        &[1, 2, 3];
    mpkv_last_repointed_unflushed: MPKV, Broken::Store(Twin::LastRepointedUnflushed), NAMED_TOO_LATE, ANY, &[1, 2, 4];
    mpkv_baseline_last_repointed_unflushed: MPKV_BASELINE, Broken::Store(Twin::LastRepointedUnflushed), NAMED_TOO_LATE, ANY,
        &[1, 2, 3];
    /// A write is acknowledged when all before it are durable, not when it is.
    xp_acknowledged_early: XP, Broken::Store(Twin::AcknowledgedEarly), &[NOT_FROM_THERE], ANY, &[10, 12, 19];
    xp_batch_in_pieces: XP, Broken::Store(Twin::BatchInPieces), &[IN_PART], ANY, &[3, 4, 5];
    xp_pieces_not_counted: XP, Broken::Store(Twin::PiecesNotCounted), &[IN_PART], ANY, &[1, 4, 7];
    xp_order_not_followed: XP, Broken::Store(Twin::OrderNotFollowed), &[HOLE], ANY, &[15, 26, 28];
    /// A chunk above the cut must never count later, whatever is granted then.
    xp_not_ended: XP, Broken::Store(Twin::NotEnded), &[IN_PART, NOT_HAD, NUMBERS], ANY, &[4, 7, 18];
    /// An item of two tables lacks a piece when one of them is gone.
    xp_through_not_raised: XP, Broken::Store(Twin::ThroughNotRaised), &[NUMBERS], ANY, &[1, 2, 3];
    xp_lives_ignored: XP, Broken::Store(Twin::LivesIgnored), &["a write to another table"], ANY, &[1, 4, 5];
    xp_fence_left_out: XP, FENCE_LEFT_OUT, &[NOT_FROM_THERE], ANY, &[3, 5, 6];
    /// A tombstone may go if its memtable is the oldest of its table.
    xp_tombstone_dropped_early: XP, Broken::Store(Twin::TombstoneDroppedEarly), &[NOT_FROM_THERE, NOT_HAD], ANY,
        &[1, 6, 7];
    xp_needed_released: XP, Broken::Store(Twin::NeededReleased), &["Look: "], ANY, &[12, 14, 15];
    /// A range tombstone may go like any other: if its memtable is the oldest of its table.
    xp_range_dropped_early: XP, Broken::Store(Twin::RangeDroppedEarly), &[NOT_FROM_THERE, NOT_HAD], ANY, &[3, 7, 15];
    xp_range_swept_early: XP, Broken::Store(Twin::RangeSweptEarly), &["no prefix is the snapshot"], ANY, &[2, 3, 6];
    /// Its copy keeps its number.
    xp_range_copy_renewed: XP, Broken::Store(Twin::RangeCopyRenewed), &[NOT_FROM_THERE, NOT_HAD], ANY, &[7, 13, 14];
    /// On the levels there may be something older than the oldest memtable.
    xp_levels_forgotten: XP, Broken::Store(Twin::LevelsForgotten), &[NOT_FROM_THERE, NOT_HAD], ANY, &[7, 17, 30];
    xp_flushed_before_published: XP, Broken::Store(Twin::FlushedBeforePublished), &[NOT_FROM_THERE], ANY, &[1, 4, 5];
    xp_released_before_flushed: XP, Broken::Store(Twin::ReleasedBeforeFlushed), &[NOT_FROM_THERE], ANY, &[1, 4, 5];
    /// A deleted key returns.
    xp_flushed_not_noted: XP, Broken::Store(Twin::FlushedNotNoted), &[NOT_FROM_THERE, NOT_HAD], ANY, &[4, 13, 16];
    xp_later_merged_alone: XP, Broken::Store(Twin::LaterMergedAlone), &[NOT_FROM_THERE, NOT_HAD], ANY, &[80, 115, 140];
    xp_frozen_early: XP, Broken::Store(Twin::FrozenEarly), &[NOT_FROM_THERE, NOT_HAD], ANY, &[20, 24, 45];
    xp_deletions_not_dumped: XP, Broken::Store(Twin::DeletionsNotDumped), &[NOT_FROM_THERE, NOT_HAD], ANY, &[1, 4, 5];
    xp_ranges_not_dumped: XP, Broken::Store(Twin::RangesNotDumped), &[NOT_FROM_THERE, NOT_HAD], ANY, &[4, 5, 7];
    xp_flushed_by_object: XP, Broken::Store(Twin::FlushedByObject), &[NOT_FROM_THERE], ANY, &[4, 11, 20];
    xp_levels_not_raised: XP, Broken::Store(Twin::LevelsNotRaised), &["newer than the pool (state"], ANY, &[1, 4, 5];
    xp_recycled_early: XP, Broken::Store(Twin::RecycledEarly), &["Look: ", "Scan("], ANY, &[29, 30, 37];
    nstore_fence_left_out: NSTORE, FENCE_LEFT_OUT, &[LOST], ANY, &[1, 3, 4];
    nstore_publish_before_persist: NSTORE, Broken::Store(Twin::PublishBeforePersist), &[READ_TOO_EARLY], ANY, &[3, 33, 39];
    nstore_life_left_out: NSTORE, Broken::Store(Twin::LifeLeftOut), &["a write came back"], ANY, &[1, 4, 7];
    nstore_stale_checkpoint: NSTORE, Broken::Store(Twin::StaleCheckpoint), &[LOST], ANY, &[1, 2, 4];
    /// An acknowledged record may stand behind one that never arrived.
    nstore_hole_is_tail: NSTORE, Broken::Store(Twin::HoleIsTail), &[LOST, READ_TOO_EARLY], ANY, &[3, 4, 6];
    /// An end mark vouches for all before it.
    nstore_sealed_in_flight: NSTORE, Broken::Store(Twin::SealedInFlight), &["damage"], ANY, &[4, 15, 19];
    /// It may be the live record of another key.
    nstore_parent_by_place: NSTORE, Broken::Store(Twin::ParentByPlace), &[LOST, CAME_BACK], ANY, &[1, 2, 3];
    /// The op word says that all lines of the entry are there.
    nstore_op_beside_entry: NSTORE, Broken::Store(Twin::OpBesideEntry), &["never written", "torn value"], ANY, &[1, 2, 3];
    /// The next opening refuses a sealed file with holes.
    nstore_end_before_covers: NSTORE, Broken::Store(Twin::EndBeforeCovers), &["damage"], ANY, &[1, 4, 10];
    /// The paper's copies name no parent.
    nstore_copy_unchained: NSTORE, Broken::Store(Twin::CopyUnchained), &[CAME_BACK], ANY, &[26, 30, 59];
    /// A record goes only after its parent is durably gone.
    nstore_parents_left: NSTORE, Broken::Store(Twin::ParentsLeft), &[CAME_BACK], ANY, &[5, 18, 19];
    nstore_marked_forwards: NSTORE, Broken::Store(Twin::MarkedForwards), &[CAME_BACK], ANY, &[150, 540, 799];
    nstore_needless_freed: NSTORE, Broken::Store(Twin::NeedlessFreed), &[CAME_BACK], ANY, &[7, 11, 12];
    /// An index that has whole keys does not ask which word is meant.
    nstore_expired_unasked: NSTORE, Broken::Store(Twin::ExpiredUnasked), &[LOST, "found None"], ANY, &[35, 69, 105];
    nstore_marked_at_once: NSTORE, Broken::Store(Twin::MarkedAtOnce), &[CAME_BACK], ANY, &[116, 540, 892];
    /// A mark that was met may be in a cache alone.
    nstore_mark_not_helped: NSTORE, Broken::Store(Twin::MarkNotHelped), &[CAME_BACK], ANY, &[245, 540, 560];
    /// A snapshot that was taken while the copies were written shows the records that they are copies of.
    xp_copied_released: XP, Broken::Store(Twin::CopiedReleased), &["Look: "], ANY,
        &[60, 85, 139], histories 4;
    /// A reader that comes between the two finds the layer, and its memtables do not wait for that reader.
    xp_retired_in_view: XP, Broken::Store(Twin::RetiredInView), &["Scan(", "One(0, Get)", "returned Saw(None)"], ANY,
        &[828, 2556, 5477], histories 4;
    /// A reader has found a version, which is swept, and then looks at the list.
    xp_swept_unawaited: XP, Broken::Store(Twin::SweptUnawaited), &["Look: ", "no prefix"], ANY,
        &[28, 53, 237], histories 4;
    /// The dump under way began before the range delete, and brings its keys to the levels behind the base.
    xp_based_while_frozen: XP, Broken::Store(Twin::BasedWhileFrozen), &["no prefix", "at the end of all calls"], ANY,
        &[29, 1702, 2857], histories 4;
    /// The put that it saw waits for an earlier one, and the next get of the same client does not see it.
    xp_kept_unawaited: XP, Broken::Store(Twin::KeptUnawaited), &["no prefix"], ANY,
        &[91, 351, 817], histories 4;
    /// A freeze and a put behind it come between the two.
    xp_view_taken_early: XP, Broken::Store(Twin::ViewTakenEarly), &["no prefix"], ANY,
        &[125, 393, 2392], histories 4;
    /// A session is renewed before it ends, between a reader's find and its look at the clock.
    xp_expired_below_believed: XP, Broken::Store(Twin::ExpiredBelowBelieved), &["returned Saw(None)"], ANY,
        &[70, 190, 212], histories 4;
    /// A reader has found the word of a record that a cleaner moves meanwhile.
    nstore_file_freed_early: NSTORE, Broken::Store(Twin::FileFreedEarly), &["iteration shows", "torn value"], ANY,
        &[4, 5, 11], histories 4;
    /// The copy outlives the records that supersede its original.
    nstore_original_counts: NSTORE, Broken::Store(Twin::OriginalCounts), &["a write came back", "iteration shows", "not sound"], ANY,
        &[389, 723, 889], histories 4;
    /// An iteration shows the new value, and then a get the old one.
    nstore_cache_told_late: NSTORE, Broken::Store(Twin::CacheToldLate), &["returned Saw(Some"], ANY,
        &[101, 271, 570], histories 4;
    nstore_cached_for_ever: NSTORE, Broken::Store(Twin::CachedForEver), &["returned Saw(Some"], ANY,
        &[237, 579, 603], histories 4;
    nstore_high_water_unflushed: NSTORE, Broken::Store(Twin::HighWaterUnflushed), &[LOST, "a write came back"], ANY,
        &[4, 17, 38], histories 4;
    nstore_file_named_early: NSTORE, Broken::Store(Twin::FileNamedEarly), &["damage"], ANY,
        &[8, 67, 130], histories 4;
    /// Its parent is freed with its file, and the marked one is there again.
    nstore_mark_unflushed: NSTORE, Broken::Store(Twin::MarkUnflushed), &[LOST, "a write came back"], ANY, &[10, 14, 19];
    /// A number that no record of the file can have is not looked for behind a hole.
    nstore_life_undercut: NSTORE, Broken::Store(Twin::LifeUndercut), &[LOST], ANY, &[10, 11, 27];
    nstore_copy_named_early: NSTORE, Broken::Store(Twin::CopyNamedEarly), &[LOST, "damage"], ANY, &[1, 3, 4];
    quipu_copy_named_early: QUIPU, Broken::Store(Twin::CopyNamedEarly), &[LOST, "damage"], ANY, &[3, 5, 9];
    viper_copy_named_early: VIPER, Broken::Store(Twin::CopyNamedEarly), &[LOST], ANY, &[1, 7, 9];
    /// The locks of keys know their newest numbers, and notice it before any crash.
    nstore_newest_ignored: NSTORE, Broken::Store(Twin::NewestIgnored), &[NUMBER_TOO_LOW], ANY, &[1, 2, 3];
    quipu_newest_ignored: QUIPU, Broken::Store(Twin::NewestIgnored), &[NUMBER_TOO_LOW], ANY, &[1, 2, 3];
    viper_newest_ignored: VIPER, Broken::Store(Twin::NewestIgnored), &[NUMBER_TOO_LOW], ANY, &[1, 2, 3];
    quipu_loser_holds_nothing: QUIPU, Broken::Store(Twin::LoserHoldsNothing), &[CAME_BACK, HEAD_CAME_BACK], ANY,
        &[2, 21, 29];
    quipu_tombstones_unfenced: QUIPU, Broken::Store(Twin::TombstonesUnfenced), &[LOST, "damage"], ANY, &[3, 4, 5];
    quipu_last_line_forgotten: QUIPU, Broken::Store(Twin::LastLineForgotten), &[LOST, "a write came back"], ANY, &[1, 2, 3];
    quipu_segment_freed_early: QUIPU, Broken::Store(Twin::SegmentFreedEarly), &["torn value", "key 0 twice"], ANY,
        &[4, 5, 12], histories 4;
    quipu_revocation_unseen: QUIPU, Broken::Store(Twin::RevocationUnseen), &["not sound", "returned Did(true)", LOST], ANY,
        &[1, 5, 9], histories 4;
    viper_mark_unfenced: VIPER, Broken::Store(Twin::MarkUnfenced), &[LOST], ANY, &[1, 7, 8];
    viper_marked_unwritten: VIPER, Broken::Store(Twin::MarkedUnwritten), &["torn value"], ANY, &[1, 2, 3];
    viper_loser_left: VIPER, Broken::Store(Twin::LoserLeft), &["they leak"], ANY, &[1, 2, 3];
    viper_pages_unflushed: VIPER, Broken::Store(Twin::PagesUnflushed), &[LOST, "a write came back"], ANY, &[8, 13, 17];
}
