//! [`Options`]: how a pool is created and opened.

use crate::settings::offset_map::OffsetMap;
use crate::settings::techniques::Techniques;
use crate::types::design::Design;
use quipu_medium::{Durability, MediumKind};
use quipu_parts::heap::slots::SlotSettings;
use quipu_parts::index::buckets::BucketSettings;
use quipu_parts::reclaim::hot::HotSetSettings;

/// How a pool is created and opened: each choice has a default, and a method that changes it.
///
/// Design, size, zone size and most [settings](Options::set) are those of a new pool, which remembers them. All others hold for the
/// handle that they are given to.
///
/// ```
/// use quipu::{Design, Options};
/// let options = Options::new().size(256 << 20).design(Design::FLATSTORE_M).set("pacman", "off")?;
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) design: Option<Design>,
    pub(crate) size: u64,
    #[doc(hidden)]
    pub zone_size: Option<u64>,
    pub(crate) medium: Option<MediumKind>,
    pub(crate) durability: Durability,
    #[doc(hidden)]
    pub cleaner: bool,
    pub(crate) recovery_threads: usize,
    pub(crate) verify: bool,
    pub(crate) accept_damage: bool,
    pub(crate) verify_reads: bool,
    /// Of a new pool of design `viper` or `viper-pacman`. Where zones are so small that more than a quarter of them would
    /// be lost, blocks have fewer pages.
    #[doc(hidden)]
    pub slots: SlotSettings,
    /// Where a new pool of design `viper` keeps its index, and in which shape; in the pool, where zones are small, its
    /// segments are smaller. That of `viper-pacman` is in DRAM.
    #[doc(hidden)]
    pub offset_map: OffsetMap,
    /// Of a new pool of a design `flatstore`, or of `viper-pacman`.
    #[doc(hidden)]
    pub techniques: Techniques,
    /// Of a new pool of a design `mpkv`. A table that grows begins with no more buckets than a zone has room for.
    #[doc(hidden)]
    pub table: BucketSettings,
    /// How free zones of a new pool are remembered.
    #[doc(hidden)]
    pub free_list: FreeList,
    /// Whether, of two puts that meet at a key, one may return as if the other had overwritten it, in designs that do so (MPKV
    /// section 3.3). It leaves no trace in the pool.
    #[doc(hidden)]
    pub eliminate: bool,
    /// Whether a put may return when it is durable, and the index learn of it, and the record before it go, with later writes of
    /// its client; a reader that looks for the key meanwhile sees to it first.
    #[doc(hidden)]
    pub late: bool,
    /// For what proves the store.
    #[doc(hidden)]
    pub testing: Testing,
    /// The settings that were set by name, with their values.
    pub(crate) given: Vec<(&'static str, String)>,
}

impl Options {
    /// A pool of 1 GiB of the design `quipu`, on whatever medium its path is; and what opens any pool.
    pub fn new() -> Options {
        Options::default()
    }

    /// The design of a new pool. When opening, a pool of another one is refused. Default: `quipu`, and whatever the
    /// pool is.
    pub fn design(self, design: impl Into<Option<Design>>) -> Options {
        Options { design: design.into(), ..self }
    }

    /// Bytes of a new pool, a multiple of 4096. Default 1 GiB. A file takes disk space only as it fills.
    pub fn size(self, bytes: u64) -> Options {
        Options { size: bytes, ..self }
    }

    /// Bytes of a zone of a new pool, a power of two from 16 KiB to 4 MiB; a segment is a zone, and a value of more than a
    /// quarter of it takes zones of its own. Default: a 256th of the pool, between 64 KiB (`viper`, `viper-pacman`:
    /// 256 KiB) and 4 MiB.
    pub fn zone_size(self, bytes: u64) -> Options {
        Options { zone_size: Some(bytes), ..self }
    }

    /// What kind of medium the path is. Default: that is found out.
    pub fn medium(self, kind: impl Into<Option<MediumKind>>) -> Options {
        Options { medium: kind.into(), ..self }
    }

    /// What an acknowledged write survives, on media that leave the choice. Default: [`Durability::Process`].
    pub fn durability(self, durability: Durability) -> Options {
        Options { durability, ..self }
    }

    /// Whether a thread compacts ahead of the writers, who otherwise do it all themselves. Default: if the machine has more
    /// than one processor.
    pub fn cleaner(self, runs: bool) -> Options {
        Options { cleaner: runs, ..self }
    }

    /// Threads that scan segments at open. Default: the processors.
    pub fn recovery_threads(self, threads: usize) -> Options {
        Options { recovery_threads: threads, ..self }
    }

    /// Whether every record is proved at open, also where the checkpoint of a clean close says what there is. Default: no;
    /// damage to records of a pool that was closed then shows when a check or compaction comes to it.
    pub fn verify(self, proves: bool) -> Options {
        Options { verify: proves, ..self }
    }

    /// Whether to open a damaged pool whose design [salvages](crate::designs::Capabilities::salvages), in place of refusing
    /// it: every record is proved, what does not prove itself is given up for good, and
    /// [`RecoveryReport::lost`](crate::RecoveryReport::lost) names the places and the keys. That includes whole segments: one
    /// without a header, and one that the zone table takes for free, even if each of its records proves itself; to get these
    /// back, [salvage](crate::Store::salvage) the pool instead. Default: no. A pool of which too little is left to tell where
    /// anything is, and one of another design, are refused as ever.
    pub fn accept_damage(self, accepts: bool) -> Options {
        Options { accept_damage: accepts, ..self }
    }

    /// Whether each record is proved before a read or an iteration answers with it: a damaged one is
    /// [`Error::Damaged`](crate::Error::Damaged), which names the place, and never a wrong value or an absent key. Default: no;
    /// then only the bytes of the key are compared. Bytes for which the format of a design has no check are not proved
    /// here either: see [`CheckReport::unproved`](crate::CheckReport::unproved).
    pub fn verify_reads(self, proves: bool) -> Options {
        Options { verify_reads: proves, ..self }
    }

    /// The same with fields changed that only proofs and measurements need.
    #[doc(hidden)]
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Options {
        change(&mut self);
        self
    }
}

/// How an allocator remembers what is free.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FreeList {
    /// Halloc's log-free list in PM.
    #[default]
    Persistent,
    /// A list in DRAM, rebuilt from the commit bits at open.
    Volatile,
}

/// Settings that only proofs need.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Testing {
    /// Break the store on purpose, for the explorer to convict.
    pub twin: Option<Twin>,
    /// Start the index at its smallest, so that short runs grow it, and choose hot keys after few samples.
    pub tiny_index: bool,
    /// Bytes of each of its zones that an index in the pool uses: few, so that short runs link zones. Whoever
    /// opens the pool has to say the same.
    pub index_zone: Option<u64>,
    /// How hot keys are chosen.
    pub hot_set: Option<HotSetSettings>,
    /// Raise the clock's ceiling in blocks of this many numbers.
    pub clock_block: Option<u64>,
    /// Sequence numbers that a client takes at once.
    pub handful: Option<u64>,
    /// Stripes of key locks, a power of two: few, so that keys share them.
    pub stripes: Option<usize>,
    /// How many may compact at a time: several, although the pool is small.
    pub compactors: Option<u32>,
}

/// A deliberately broken store. Each breaks one rule of crash safety, and the explorer must notice.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    /// Readers see a record before it is durable.
    PublishBeforePersist,
    /// The check of a record ignores the life of its segment.
    LifeLeftOut,
    /// Recovery takes the first record that does not prove itself for the end of a segment, and goes on appending there.
    AppendAfterRecovery,
    /// Compaction drops tombstones while older segments remain.
    TombstoneDroppedEarly,
    /// Compaction takes a segment for gone before its zone is durably free.
    FreedInDramOnly,
    /// The records of a batch are written each under a check of its own.
    BatchInPieces,
    /// Open believes whatever checkpoint the superblock names: neither is it asked whether the pool has changed since, nor
    /// are the segments held against it.
    StaleCheckpoint,
    /// A superseded record of an earlier run declares as much dead as its header says, though nobody has proved that.
    LengthBelieved,
    /// The zones of a large value are committed after the head that names them.
    ValueCommittedLate,
    /// The page of a record is unlocked, so that it can be read, before the record that it has replaced is durably gone. No
    /// fault by itself, but with the tie break of the paper, which holds the lock for that reason.
    PageFreeBeforeRelease,
    /// The record that another is about to replace is deleted before that one is durable.
    ReleasedBeforePersist,
    /// The record that another has replaced stays marked.
    OldNotReleased,
    /// The key of a put that is published late is free while the record that it has replaced is still to be released.
    KeyFreeBeforeRelease,
    /// The page of a record that a late put has replaced is unlocked before the record is durably gone.
    OldPageFreeBeforeFence,
    /// The page of a record is unlocked before the record is parked.
    PageFreeBeforeParked,
    /// A reader that has found another key's record looks at the index again without the lock of its segment.
    SecondLookUnlocked,
    /// A block is marked free although records in it were not moved, since nobody had published them.
    KeptBlockFreed,
    /// A block that was reclaimed is used again while readers may still look into it.
    RecycledEarly,
    /// A copy that reclamation was making counts, although what it is a copy of was superseded.
    LosingCopyKept,
    /// A block is marked free while copies of what it held are on their way.
    VictimFreedEarly,
    /// The words that compaction replaced last in an index in the pool are not flushed, as in the listing of PACMAN's paper.
    LastRepointedUnflushed,
    /// Readers of an index in the pool act on words that are not durable.
    ReadersDoNotHelp,
    /// Compaction lets the index name a copy whatever the index names by then.
    RepointedBlindly,
    /// A put is eliminated for another one that readers may have seen before it began, as in the paper of MPKV.
    SeenWhileOnOffer,
    /// A cleaner gives a copy up without publishing first what is parked for its key.
    ParkedNotSettled,
    /// The zones of a large value that was superseded are free at once, whoever reads it.
    ValueFreedAtOnce,
    /// A checkpoint does not tell which segments hold tombstones back that are older than they are.
    HoldsForgotten,
    /// At recovery, the tombstone that compaction made of a record that had expired does not count more than that record.
    TombstoneNotFinal,
    /// A client takes whatever is parked in the place of its own write for that write.
    OwnByPlace,
    /// Whoever publishes a write that another client has parked panics; no twin for the explorer either.
    PublicationPanics,
    /// The cleaner panics when it is called; no twin for the explorer, but for who has to be told.
    CleanerPanics,
}

impl Default for Options {
    fn default() -> Options {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            design: None,
            slots: SlotSettings::default(),
            offset_map: OffsetMap::default(),
            techniques: Techniques::default(),
            table: BucketSettings::default(),
            size: 1 << 30,
            zone_size: None,
            medium: None,
            durability: Durability::Process,
            free_list: FreeList::default(),
            cleaner: processors > 1,
            eliminate: true,
            late: true,
            recovery_threads: processors,
            verify: false,
            accept_damage: false,
            verify_reads: false,
            testing: Testing::default(),
            given: Vec::new(),
        }
    }
}
