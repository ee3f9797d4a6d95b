//! Broken stores, for the tests of the tests.

/// A deliberately broken store. Each breaks one rule of crash safety, and the explorer must notice.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
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
    /// A reader that has found the record of another key looks again without the lock of the index's segment.
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
    /// Recovery frees the zones of values that nothing names before the segments that a crash has left given
    /// up.
    ValuesFreedBeforeGivenUp,
    /// A checkpoint does not tell which segments hold tombstones back that are older than they are.
    HoldsForgotten,
    /// At recovery, a tombstone that compaction made of an expired record does not outrank that record.
    TombstoneNotFinal,
    /// A client takes any write that is parked at the stripe of its own write for its own.
    OwnByPlace,
    /// A client does not wait for the thread that publishes its write before it writes another hash over that
    /// of the write.
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
}
