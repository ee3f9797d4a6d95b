//! The rules that are left out: what the harm is of each.

macro_rules! twins {
    ($($(#[doc = $text:literal])+ $name:ident,)+) => {
        /// A rule that is left out. The text says what happens then.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Twin {
            $($(#[doc = $text])+ $name,)+
        }

        impl Twin {
            /// All of them.
            pub const ALL: &[Twin] = &[$(Twin::$name),+];

            /// The harm that is done without the rule.
            pub fn text(self) -> &'static str {
                match self {
                    $(Twin::$name => concat!($($text),+).trim_ascii_start(),)+
                }
            }
        }
    };
}

twins! {
    /// Readers see a record before it is durable.
    PublishBeforePersist,
    /// The check of a record ignores the life of its segment.
    LifeLeftOut,
    /// Recovery takes the first unproved record for the end of a segment, and goes on appending there.
    AppendAfterRecovery,
    /// Compaction drops tombstones while older segments remain.
    TombstoneDroppedEarly,
    /// Compaction takes a segment for gone before its zone is durably free.
    FreedInDramOnly,
    /// The records of a batch are written each under a check of its own.
    BatchInPieces,
    /// Open believes the checkpoint that the superblock names, although the pool may have changed since.
    StaleCheckpoint,
    /// A superseded record of an earlier run declares as much dead as its unproved header says.
    LengthBelieved,
    /// The zones of a large value are committed after the head that names them.
    ValueCommittedLate,
    /// The page of a record is unlocked for readers before the old record is durably gone. This is a fault
    /// only with the tie break of the paper, which holds the lock for that reason.
    PageFreeBeforeRelease,
    /// The old record is deleted before the new one is durable.
    ReleasedBeforePersist,
    /// The old record stays marked.
    OldNotReleased,
    /// The key of a deferred put is free before its old record is released.
    KeyFreeBeforeRelease,
    /// The page of the old record of a deferred put is unlocked before the record is durably gone.
    OldPageFreeBeforeFence,
    /// The page of a record is unlocked before the record is parked.
    PageFreeBeforeParked,
    /// A reader that has found the record of another key looks again without the lock of the index's
    /// segment.
    SecondLookUnlocked,
    /// A block is marked free although it has records that were not published yet, and so not moved.
    KeptBlockFreed,
    /// The levels change before the pool knows that they will.
    LevelsNotRaised,
    /// A block that was reclaimed is used again while readers may still look into it.
    RecycledEarly,
    /// A copy that reclamation was making counts, although its original was superseded.
    LosingCopyKept,
    /// A block is marked free while copies of its records are on their way.
    VictimFreedEarly,
    /// The last words that compaction replaced in an index in the pool are not flushed, as in PACMAN's
    /// listing.
    LastRepointedUnflushed,
    /// Readers of an index in the pool act on words that are not durable.
    ReadersDoNotHelp,
    /// Compaction updates the index to a copy without a look at the index's present word.
    RepointedBlindly,
    /// A put is eliminated for another that readers may have seen before it began, as in MPKV's paper.
    SeenWhileOnOffer,
    /// A cleaner gives a copy up without publishing the parked write of its key first.
    ParkedNotSettled,
    /// The zones of a superseded large value are free at once, although readers may use them.
    ValueFreedAtOnce,
    /// Recovery frees the zones of values that nothing names before the segments that a crash has left
    /// given up.
    ValuesFreedBeforeGivenUp,
    /// A checkpoint does not tell which segments hold tombstones back that are older than they are.
    HoldsForgotten,
    /// At recovery, a tombstone that compaction made of an expired record does not outrank that record.
    TombstoneNotFinal,
    /// A client takes any write that is parked at the stripe of its own write for its own.
    OwnByPlace,
    /// A client does not wait for the thread that publishes its write before it writes another hash over
    /// that of the write.
    PublisherNotAwaited,
    /// A client panics when it publishes another client's parked write; no twin for the explorer.
    PublicationPanics,
    /// A write returns when it is durable, although one that was granted before may not be.
    AcknowledgedEarly,
    /// A memtable that was rewritten is released, although a snapshot needs a version in it.
    NeededReleased,
    /// A rewrite leaves range tombstones behind while older memtables of their table remain.
    RangeDroppedEarly,
    /// The keys of a range delete are swept although a snapshot before it shows them.
    RangeSweptEarly,
    /// At recovery, a copy of a range tombstone deletes what was written before the copy.
    RangeCopyRenewed,
    /// A rewrite leaves tombstones behind although the levels have the values that they hide.
    LevelsForgotten,
    /// A range tombstone leaves the list when its keys are swept from memory.
    RangeForgottenEarly,
    /// A word says that memtables are on the levels before they are.
    FlushedBeforePublished,
    /// Memtables that are on the levels are released before a word says that they are.
    ReleasedBeforeFlushed,
    /// No word ever says that they are.
    FlushedNotNoted,
    /// A dump merges the latest index of a memtable, and leaves those before it out.
    LaterMergedAlone,
    /// A layer is dumped although items that were granted before the freeze are not published.
    FrozenEarly,
    /// A dump leaves deletions out although the levels have the values that they delete.
    DeletionsNotDumped,
    /// A dump leaves range tombstones out.
    RangesNotDumped,
    /// Runs in the range of a range tombstone are dropped although they are newer.
    NewerRunsDropped,
    /// A scan goes over the layers of now and the levels of its beginning.
    LevelsOfAnotherView,
    /// The first step of cleaning of each thread stands still for three seconds; no twin for the explorer.
    StepStandsStill,
    /// A write that finds no room does not wait for the readers of what was cleaned.
    ReadersForgotten,
    /// A write that finds no room does not wait for others that clean, or that hold zones for a moment.
    OthersForgotten,
    /// A write that finds no room does not look whether others have taken what was freed.
    TakesForgotten,
    /// The cleaner panics when it is called; no twin for the explorer.
    CleanerPanics,
    /// Recovery takes the first hole of a file of Nlog for the end of its records.
    HoleIsTail,
    /// A copy names no parent, as in NStore's paper.
    CopyUnchained,
    /// A file is freed although the parents of its entries count.
    ParentsLeft,
    /// The parents of an entry are marked the nearest first.
    MarkedForwards,
    /// All parents of an entry are marked under one fence.
    MarkedAtOnce,
    /// A mark that another thread made is taken for durable.
    MarkNotHelped,
    /// A walk along parents ends at any entry of the victim, also behind one outside; no twin for the
    /// explorer.
    StoppedInside,
    /// Recovery frees files whose records are all superseded.
    NeedlessFreed,
    /// Writers do not take their keys out of the cache.
    CacheNotToldOfWrites,
    /// Readers put pairs into the cache without the stripes of their keys; no twin for the explorer.
    CacheFilledUnlocked,
    /// A full file of Nlog is sealed at once, whoever has a place in it.
    SealedInFlight,
    /// The record that stands where a parent is named is taken for the parent, whatever it is.
    ParentByPlace,
    /// The first line of a record, whose op word is written last, is written with the other lines under one
    /// fence.
    OpBesideEntry,
    /// Recovery marks the ends of files before it covers places whose records never arrived.
    EndBeforeCovers,
    /// The cache keeps its pairs while it is off; no twin for the explorer.
    CacheNotEmptied,
    /// A cleaner deletes the key of an expired record although the index may name a later one.
    ExpiredUnasked,
    /// A reader whose record has expired since it was found does not look its key up again.
    ExpiredBelieved,
    /// A dump samples keys of memtables that may be released meanwhile; no twin for the explorer.
    ReleasedSampled,
    /// An item counts though pieces of it are missing.
    PiecesNotCounted,
    /// An item counts though the one before does not.
    OrderNotFollowed,
    /// Recovery leaves memtables open, and chunks that were cut off come back.
    NotEnded,
    /// Recovery acts on words that may be only in the processor's cache.
    FoundNotFlushed,
    /// A subtable is dropped before the anchor says that its items were durable.
    ThroughNotRaised,
    /// The objects of memtables that are on the levels are remembered, not their numbers.
    FlushedByObject,
    /// Zones and chunks of an earlier life of a memtable count.
    LivesIgnored,
    /// The end of an item only looks at the head of the ring, and does not change it.
    HeadNotChanged,
    /// The end of an item does not release what its owner did.
    EndNotReleased,
    /// The last number of an item is read when the head has moved over it.
    LastReadLate,
    /// Two items under way may have one slot of the ring.
    SlotShared,
    /// An item is visible when it is granted, not when it is done.
    VisibleWhenGranted,
    /// A full memtable is ended though not all of it is visible.
    EndedUnseen,
    /// Recovery does not flush the chunks that count before it ends their memtables.
    ChunksNotFlushed,
    /// Recovery does not flush the anchor that it acts on.
    AnchorNotFlushed,
    /// A snapshot reads the visible number before it announces itself.
    ReadUnannounced,
    /// A read takes the visible number before it finds the versions of its key.
    NumberReadEarly,
    /// Memtables of a rewrite go although a snapshot needs an old record that was not copied.
    CopiedReleased,
    /// A freeze leaves the memtable that is being rewritten to the rewriter.
    FrozenWhileRewritten,
    /// The memtables of a dump are retired before its layer leaves the view.
    RetiredInView,
    /// A range tombstone that was swept leaves its list without waiting for readers.
    SweptUnawaited,
    /// A range tombstone gets its base while a layer is frozen.
    BasedWhileFrozen,
    /// An answer that writes nothing does not wait for the number that it saw.
    KeptUnawaited,
    /// A scan takes its view before its snapshot.
    ViewTakenEarly,
    /// A value that expired since it was found is not looked up again on the levels.
    ExpiredBelowBelieved,
    /// Behind a hole of a file, copies are not likely.
    CopiesUnlikely,
    /// A cleaner's marks of parents have no fence behind them.
    MarksUnfenced,
    /// Files that were emptied do not wait for readers.
    FileFreedEarly,
    /// Of an original and its sealed copy the original always counts.
    OriginalCounts,
    /// The cache is told of a write after its publication.
    CacheToldLate,
    /// A block of the cache is freed at once when it has left.
    BlockFreedEarly,
    /// A cache that turns off is swept at once, whoever is in it.
    SweptWhilePinned,
    /// A pair in the cache never expires.
    CachedForEver,
    /// A word of the index is copied from its place, not taken out of it.
    WordCopied,
    /// A word of the index is changed without comparing it with the one that was read.
    WordNotCompared,
    /// A scan does not look at a leaf's version again behind its copy.
    CopyNotProved,
    /// The slice of a slot is believed to be that of the word which was read before.
    PairNotProved,
    /// An inner node of the index that was replaced does not say so.
    ReplacedUntold,
    /// The gaps behind the highest key that there can be keep their old slices.
    GapsKeepSlice,
    /// A put of a key below the front of its table does not tell.
    PutNotTold,
    /// The front of a table is remembered though puts from before its announcement are under way.
    FrontBeforePuts,
    /// The removal of a key takes whatever word the key has by then.
    AnyWordRemoved,
    /// A leaf of the index that became one with its neighbour does not say so.
    MergedUntold,
    /// A leaf of the index becomes one with its neighbour whoever has the lock of that one.
    NeighbourNotLocked,
    /// A key is put into a layer of the index whose last key has gone.
    EmptiedLayerFilled,
    /// The high water of a file is not durable when places below it are given away.
    HighWaterUnflushed,
    /// The zone of a new file is committed before its header is durable.
    FileNamedEarly,
    /// A mark of a parent is not flushed.
    MarkUnflushed,
    /// A file whose proof is gone is taken for freed before it durably is.
    EndsUnawaited,
    /// The number of a record may be below that of its file's life.
    LifeUndercut,
    /// The index names a cleaner's copy before the copy is durable.
    CopyNamedEarly,
    /// The number of a record may be below that of the record which it replaces.
    NewestIgnored,
    /// A copy that lost does not hold the tombstone which beat it.
    LoserHoldsNothing,
    /// A record that a deletion has replaced does not hold the deletion's tombstone.
    ReplacedHoldsNothing,
    /// A cleaner's copies of tombstones have no fence behind them.
    TombstonesUnfenced,
    /// A client goes on in a segment that was taken away from it.
    RevocationUnseen,
    /// Recovery adds a record of a key that the index lacked before its segment was split, and unlocked.
    AbsentBeforeSplit,
    /// Versions of pages have eight bits, as in Viper's paper (3.2.2): 128 writes bring one back.
    VersionsWrap,
    /// Pages are unlocked too early, and of two records of a key the one of the higher block, page and
    /// position counts, as in Viper's paper (4.2).
    TiesByBlock,
    /// A segment that was emptied does not wait for readers.
    SegmentFreedEarly,
    /// The last line of a cleaner's copies is not written.
    LastLineForgotten,
    /// A put returns before the mark of its record is durable.
    MarkUnfenced,
    /// The mark of a record may be durable before the record is.
    MarkedUnwritten,
    /// A record that lost at recovery stays marked.
    LoserLeft,
    /// Recovery acts on pages of slots that may be only in the processor's cache.
    PagesUnflushed,
    /// The checks of a commit come before the locks of its keys.
    CheckedEarly,
    /// The checks of a commit take the copy of a record for a write.
    CheckedByNumber,
    /// A commit does not look again at the ranges that its transaction has read.
    ScanNotRepeated,
    /// A transaction does not see its own writes.
    OwnWritesNotMerged,
    /// A deletion that is younger than a snapshot is left behind.
    YoungTombstoneDropped,
    /// The snapshot of a transaction is not announced until its checks are over.
    SnapshotForgotten,
}
