//! [`Options`]: how a pool is created and opened.

mod parts;

use crate::settings::files::FileSettings;
use crate::settings::offset_map::OffsetMap;
use crate::settings::techniques::Techniques;
use crate::types::design::Design;
use parts::Parts;
use quipu_medium::{Durability, MediumKind};
use quipu_parts::cache::Policy;
use quipu_parts::heap::slots::SlotSettings;
use quipu_parts::index::buckets::BucketSettings;
use quipu_parts::reclaim::hot::HotSetSettings;
use quipu_parts::runs::Forest;
use quipu_parts::space::FreeListKind;
use std::ffi::OsStr;
use std::fmt;
use std::num::ParseIntError;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How a pool is created and opened: each choice has a default, and a method that changes it.
///
/// - Design and [settings that are kept](crate::Setting::is_kept) belong to the *pool*: creating it chooses
///   them, and it keeps them. Opening it needs none of them, and refuses one that differs from the pool's.
/// - Size and zone size belong to the pool too. An opening ignores them, so one value of `Options` creates
///   and opens.
/// - All others belong to the *handle*: each opening chooses them anew.
///
/// [`set`](Options::set) gives settings by name.
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
    /// Milliseconds that a write waits for room that others hold back.
    #[doc(hidden)]
    pub wait_for_room: u32,
    pub(crate) transaction_age: Option<Duration>,
    pub(crate) workers: Option<usize>,
    pub(crate) recovery_threads: usize,
    pub(crate) verify: bool,
    pub(crate) accept_damage: bool,
    pub(crate) accept_copy: bool,
    pub(crate) reset_expiry: bool,
    pub(crate) verify_reads: bool,
    pub(crate) levels: Levels,
    pub(crate) levels_of_damaged: Levels,
    /// Of a new pool of design `viper` or `viper-pacman`. Where more than a quarter of a small zone would be
    /// lost, blocks have fewer pages.
    #[doc(hidden)]
    pub slots: SlotSettings,
    /// The index of a new pool of design `viper`. In a pool with small zones its segments are smaller. The
    /// index of `viper-pacman` is in DRAM.
    #[doc(hidden)]
    pub offset_map: OffsetMap,
    /// Of a new pool of a design `flatstore`, or of `viper-pacman`.
    #[doc(hidden)]
    pub techniques: Techniques,
    /// Of a new pool of a design `mpkv`. A growing table begins with no more buckets than a zone has room
    /// for.
    #[doc(hidden)]
    pub table: BucketSettings,
    /// How a new pool remembers its free zones.
    #[doc(hidden)]
    pub free_list: FreeListKind,
    /// If two threads put one key at the same time, one put may return as if the other had overwritten it
    /// (MPKV section 3.3).
    #[doc(hidden)]
    pub eliminate: bool,
    /// A later write of the client may publish a put and release the old record. A reader that looks for the
    /// key before that does it first.
    #[doc(hidden)]
    pub late: bool,
    /// When the indexes of memtables are merged, in the design `xp`.
    #[doc(hidden)]
    pub merging: Merging,
    /// The index in DRAM, where a design leaves the choice.
    #[doc(hidden)]
    pub index: IndexChoice,
    /// The files of Nlog.
    #[doc(hidden)]
    pub files: FileSettings,
    /// Threads of each node that read for scans, where the pool lies on several.
    #[doc(hidden)]
    pub readers: u32,
    /// The cache in DRAM in front of the index.
    #[doc(hidden)]
    pub cache: CacheSize,
    /// Which pairs it keeps.
    #[doc(hidden)]
    pub cache_policy: Policy,
    /// For proofs of the store.
    #[doc(hidden)]
    pub testing: Testing,
    pub(crate) parts: Parts,
    /// The settings that were set by name, with their values.
    pub(crate) given: Vec<(&'static str, String)>,
}

impl Options {
    /// Options that create a pool of 1 GiB of the design `quipu`, on the medium of its path, and open any
    /// pool.
    pub fn new() -> Options {
        Options::default()
    }

    /// The design of a new pool. An opening refuses a pool of another design. Default: `quipu`, and at an
    /// opening the design of the pool.
    pub fn design(self, design: impl Into<Option<Design>>) -> Options {
        Options { design: design.into(), ..self }
    }

    /// Bytes of a new pool, a multiple of 4096; an opening ignores them. Default 1 GiB. A file takes disk
    /// space only as it fills.
    pub fn size(self, bytes: u64) -> Options {
        Options { size: bytes, ..self }
    }

    /// Bytes of a zone of a new pool, a power of two from 16 KiB to 4 MiB; an opening ignores them. A segment
    /// is a zone, and a value of more than a quarter of it takes zones of its own. Default: a 256th of the
    /// pool, between 64 KiB (`viper`, `viper-pacman`: 256 KiB) and 4 MiB.
    pub fn zone_size(self, bytes: u64) -> Options {
        Options { zone_size: Some(bytes), ..self }
    }

    /// The kind of medium of the path. Default: the store finds out.
    pub fn medium(self, kind: impl Into<Option<MediumKind>>) -> Options {
        Options { medium: kind.into(), ..self }
    }

    /// How long a write that finds no room waits for a thread that cleans, and for the end of a guard, scan,
    /// snapshot or transaction that keeps overwritten records from being freed. Then it fails with
    /// [`Error::RoomHeld`](crate::Error::RoomHeld), which names the holder. If the pool is full, it fails at
    /// once with [`Error::PoolFull`](crate::Error::PoolFull). Default: 10 seconds.
    pub fn wait_for_room(self, time: Duration) -> Options {
        Options { wait_for_room: time.as_millis().try_into().unwrap_or(u32::MAX), ..self }
    }

    /// The age that a [transaction](crate::Client::begin) may reach. The calls of an older one fail with
    /// [`Error::TransactionTooOld`](crate::Error::TransactionTooOld), and it holds no room back. Default: any
    /// age.
    pub fn transaction_age(self, age: impl Into<Option<Duration>>) -> Options {
        Options { transaction_age: age.into(), ..self }
    }

    /// The failures that an acknowledged write survives, on media that leave the choice. Default:
    /// [`Durability::Process`].
    pub fn durability(self, durability: Durability) -> Options {
        Options { durability, ..self }
    }

    /// Whether a thread compacts ahead of the writers. Without it they do all of it themselves. Default: if
    /// the machine has more than one processor.
    pub fn cleaner(self, runs: bool) -> Options {
        Options { cleaner: runs, ..self }
    }

    /// Threads that work beside the clients: those that compact, dump, and merge levels. All stores of the
    /// process share them. The largest number that an open store names counts, until the last store is
    /// closed. At least one. Default, and that of `None`: the processors, but no fewer than 3 and no more
    /// than 8.
    ///
    /// They start when there is work for them, and run on the processors that the thread that opened the
    /// first store may use. A dump starts further threads, fewer than these in the whole process. A pool on
    /// several nodes has threads of its own, which stay on their nodes.
    pub fn workers(self, threads: impl Into<Option<usize>>) -> Options {
        Options { workers: threads.into(), ..self }
    }

    /// Threads that scan segments at open. Default: the processors.
    pub fn recovery_threads(self, threads: usize) -> Options {
        Options { recovery_threads: threads, ..self }
    }

    /// Whether an opening proves every record, also where a clean close has left a checkpoint. Default: no.
    /// Then damage to records of a pool that was closed shows when a check or compaction reaches it.
    pub fn verify(self, proves: bool) -> Options {
        Options { verify: proves, ..self }
    }

    /// Whether to open a damaged pool whose design [salvages](crate::designs::Capabilities::salvages), in
    /// place of refusing it. The opening proves every record and gives up for good all that do not prove
    /// themselves; [`RecoveryReport::lost`](crate::RecoveryReport::lost) names the places and the keys. It
    /// also gives up whole segments: those without a header, and those that the zone table takes for free,
    /// even if their records prove themselves. To get these back, [salvage](crate::Store::salvage) the pool
    /// instead. Default: no. A pool without a legible superblock and a pool of another design are still
    /// refused. So is a pool of `xp`: all its writes have one order, and none of them can be given up.
    pub fn accept_damage(self, accepts: bool) -> Options {
        Options { accept_damage: accepts, ..self }
    }

    /// Whether to open a copy of a pool that was not closed. Such a copy is refused
    /// ([`SpaceError::CopyOfOpen`](quipu_parts::space::SpaceError)), since a store that was open meanwhile
    /// changes what is copied already. Accept it only if no process had the pool open while it was copied, as
    /// after a kill: otherwise keys are lost without notice. This also accepts a file that is on another
    /// device since then, within one boot of the machine: a copy, or a disk that has got another number.
    /// Default: no.
    pub fn accept_copy(self, accepts: bool) -> Options {
        Options { accept_copy: accepts, ..self }
    }

    /// Whether to set the clock by which values expire back to the system's. That clock never goes back by
    /// itself, so that no expired value returns: after the system's clock was wrong by years, values put for
    /// an hour would last for years ([`RecoveryReport::expiry_ahead`](crate::RecoveryReport::expiry_ahead)).
    /// Values that expired meanwhile may be there again. Default: no.
    pub fn reset_expiry(self, resets: bool) -> Options {
        Options { reset_expiry: resets, ..self }
    }

    /// Whether a read or an iteration proves each record before it answers. A damaged record is then
    /// [`Error::Damaged`](crate::Error::Damaged), which names the place, and never a wrong value or an absent
    /// key. Default: no; a read then compares the bytes of the key alone. Bytes for which the format of a
    /// design has no check stay unproved: see [`CheckReport::unproved`](crate::CheckReport::unproved).
    pub fn verify_reads(self, proves: bool) -> Options {
        Options { verify_reads: proves, ..self }
    }

    /// Where a design with levels keeps the data for which persistent memory has no room. Default:
    /// [`Levels::Beside`].
    pub fn levels(self, levels: Levels) -> Options {
        Options { levels, ..self }
    }

    /// Where a [salvage](crate::Store::salvage) finds the levels of the damaged pool. Those of the new pool
    /// are where [`levels`](Options::levels) says. Default: [`Levels::Beside`].
    pub fn levels_of_damaged(self, levels: Levels) -> Options {
        Options { levels_of_damaged: levels, ..self }
    }

    /// Changes fields that only proofs and measurements need.
    #[doc(hidden)]
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Options {
        change(&mut self);
        self
    }
}

/// The place of the levels of a pool: files on a disk, below persistent memory. A pool that has data there
/// is opened with them only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Levels {
    /// A folder beside the pool's file, with its name and `.runs`. A pool on a device or in memory has none.
    /// A link to the file leads to its folder; of several names of one file (hard links), use one.
    #[default]
    Beside,
    /// This folder, which belongs to the pool alone. Where it is missing, the first dump creates it.
    Folder(PathBuf),
    /// None: all data stay in the pool.
    Off,
}

impl Levels {
    /// The folder of a pool that will have a file at `path`, by its name: that of [`Levels::Beside`].
    pub fn beside(path: impl AsRef<Path>) -> Levels {
        let path = path.as_ref();
        let Some(mut name) = path.file_name().map(OsStr::to_owned) else { return Levels::Off };
        name.push(".runs");
        Levels::Folder(path.with_file_name(name))
    }

    /// The folder for a pool at this path, if it may have levels. A device has no disk beside it.
    pub(crate) fn folder(&self, path: Option<&Path>) -> Option<PathBuf> {
        let is_device = |path: &&Path| path.metadata().is_ok_and(|about| !about.is_file());
        match self {
            Levels::Off => None,
            Levels::Beside => Levels::beside(real(path.filter(|path| !is_device(path))?)).folder(None),
            // The process may go to another folder later.
            Levels::Folder(folder) => Some(absolute(folder)),
        }
    }
}

/// The path of a file behind all links; of one that is not there yet, that which it will have.
fn real(path: &Path) -> PathBuf {
    let beside = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(folder.unwrap_or(Path::new(".")).canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| absolute(path))
}

/// A path that leads to the same place when the process has gone to another folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// When the index of a memtable is merged into the Global Index of its table; see the design `xp`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merging {
    /// It has none: writes go into the Global Index.
    #[default]
    Direct,
    /// When the memtable has ended.
    Key,
    /// When it is dumped, or the store is closed.
    Off,
}

/// The index in DRAM of a design that leaves the choice.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexChoice {
    /// The design's own: a hash index in `quipu`, Masstree in `flatstore-m`.
    #[default]
    Own,
    /// c-ALEX, a learned index, which keeps keys in order and has their beginnings.
    Alex,
}

/// The size of the cache in front of the index.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheSize {
    /// The default of the design, if the medium is slower than DRAM or lies on several nodes; otherwise none.
    #[default]
    Auto,
    /// No cache.
    Off,
    /// A cache of this size.
    Bytes(u64),
}

impl fmt::Display for CacheSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheSize::Auto => f.write_str("auto"),
            CacheSize::Off => f.write_str("off"),
            CacheSize::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for CacheSize {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<CacheSize, ParseIntError> {
        Ok(match text {
            "auto" => CacheSize::Auto,
            "off" => CacheSize::Off,
            bytes => CacheSize::Bytes(bytes.parse()?),
        })
    }
}

/// Settings that only proofs need.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Testing {
    /// Start the index at its smallest, so that short runs grow it, and choose hot keys after few samples.
    pub tiny_index: bool,
    /// Bytes of each of its zones that an index in the pool uses: few, so that short runs link zones. Each
    /// opening must give the same.
    pub index_zone: Option<u64>,
    /// How hot keys are chosen.
    pub hot_set: Option<HotSetSettings>,
    /// Raise the clock's ceiling in blocks of this many numbers.
    pub clock_block: Option<u64>,
    /// Sequence numbers that a client takes at once.
    pub handful: Option<u64>,
    /// Stripes of key locks, a power of two: few, so that keys share them.
    pub stripes: Option<usize>,
    /// Reads of a client of which one counts for the cache, on average.
    pub cache_sample: Option<u32>,
    /// Operations after which the cache may turn off or on.
    pub cache_turns: Option<u64>,
    /// Compactors at a time: several, although the pool is small.
    pub compactors: Option<u32>,
    /// Called for every item that a call writes, in a design with one order over all writes.
    pub granted: Option<Granted>,
    /// Zones in use at which a layer is dumped: few, so that short runs dump.
    pub dump_at: Option<u32>,
    /// Levels in place of files.
    pub forest: Option<TestForest>,
}

/// Levels that are no files.
#[doc(hidden)]
#[derive(Clone)]
pub struct TestForest(pub Arc<dyn Forest>);

impl std::fmt::Debug for TestForest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestForest")
    }
}

/// A callback that receives the numbers of an item when they are granted, on the thread that writes it.
#[doc(hidden)]
#[derive(Clone)]
pub struct Granted(pub Arc<dyn Fn(RangeInclusive<u64>) + Send + Sync>);

impl std::fmt::Debug for Granted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Granted")
    }
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
            free_list: FreeListKind::Persistent,
            cleaner: processors > 1,
            workers: None,
            eliminate: true,
            late: true,
            merging: Merging::default(),
            index: IndexChoice::default(),
            files: FileSettings::default(),
            readers: 2,
            cache: CacheSize::default(),
            cache_policy: Policy::default(),
            wait_for_room: 10_000,
            transaction_age: None,
            recovery_threads: processors,
            verify: false,
            accept_damage: false,
            accept_copy: false,
            reset_expiry: false,
            verify_reads: false,
            levels: Levels::default(),
            levels_of_damaged: Levels::default(),
            testing: Testing::default(),
            parts: Parts::default(),
            given: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_beside_a_file_and_not_beside_a_device() {
        let folder = |levels: Levels, path: &str| levels.folder(Some(Path::new(path)));
        let here = std::env::current_dir().unwrap();
        assert_eq!(folder(Levels::Beside, "no such/p.pool"), Some(here.join("no such/p.pool.runs")));
        assert_eq!(folder(Levels::Beside, "p.pool"), Some(here.canonicalize().unwrap().join("p.pool.runs")));
        assert_eq!(folder(Levels::Beside, "/dev/null"), None);
        assert_eq!(folder(Levels::Folder("there".into()), "/dev/null"), Some(here.join("there")));
        assert_eq!((folder(Levels::Off, "p.pool"), Levels::Beside.folder(None)), (None, None));
    }
}
