//! [`Store`]: an open pool. `read_only` opens pools for reading only.

mod read_only;
mod simulated;

use crate::api::client::Client;
use crate::api::closures;
use crate::api::parts;
use crate::api::sizes::{check_len, is_zone_size, zone_size};
use crate::background::Workers;
use crate::designs::Design;
use crate::designs::settings::Setting;
use crate::engine::site::{Existing, Holes, How, NewPool, Opened, Site};
use crate::engine::{Engine, InForce};
use crate::options::{Merging, Options};
use crate::types::error::Error;
use crate::types::part::Part;
use crate::types::reports::{CheckReport, RecoveryReport};
use crate::types::stats::Stats;
use quipu_medium::sim::sched;
use quipu_medium::{Durability, MediumError, MediumKind, Node, Region, Span, Statement};
use quipu_parts::space::{FormatOptions, Space, SpaceError, Superblock};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// No pool counts this far. A superblock with such a number was not written by a store, and counting on would
/// overflow.
const NUMBERS_END: u64 = 1 << 61;

/// An open store. Share it by reference or `Arc` between threads, and give each thread a [`Client`] of its
/// own.
///
/// Dropping a store without [`close`](Store::close) loses nothing. The next open then recovers the pool as
/// after a crash.
pub struct Store {
    // Dropped first: its jobs share the engine.
    workers: Workers,
    pub(super) engine: Arc<dyn Engine>,
    design: Design,
    recovery: RecoveryReport,
    levels: Option<PathBuf>,
    /// The choices of this opening that no engine has to adapt.
    chosen: Options,
    /// Whether jobs have threads, where they can.
    works: bool,
}

impl Store {
    /// Creates a pool at `path`, which must not exist, and opens it.
    ///
    /// # Errors
    /// [`Error::Medium`] if the path exists or cannot be used, [`Error::Option`] or [`Error::Space`] for
    /// impossible options. No file is left behind.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("pool");
    /// use quipu::{Options, Store};
    /// let store = Store::create(&path, &Options::new().size(16 << 20))?;
    /// println!("{}", store.statement());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<Store, Error> {
        let path = path.as_ref();
        zone_size(options.size, options)?;
        let region = parts::create(path, options)?;
        let store = create(region, options.levels.folder(Some(path)), options)?;
        // Named last, so that a process that dies earlier leaves no file.
        store.region().give_name()?;
        Ok(store)
    }

    /// Opens the pool at `path`, recovering it first if it was not closed.
    ///
    /// # Errors
    /// [`Error::Space`] for a file that is no pool, is cut short or is of a newer version;
    /// [`Error::Damaged`]; [`Error::Medium`] if another handle has it open; [`Error::OtherDesign`].
    /// [`Error::Option`] for a setting that the design does not have or that differs from the pool's. The
    /// pool is not changed then.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Store, Error> {
        Store::open_with_progress(path, options, &|_, _| {})
    }

    /// Opens the pool at `path`; where there is no file, creates it first.
    ///
    /// # Errors
    /// As for [`open`](Store::open) and [`create`](Store::create).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("pool");
    /// use quipu::{Options, Store};
    /// for run in 1..=2u8 {
    ///     let store = Store::open_or_create(&path, &Options::new().size(16 << 20))?;
    ///     store.client().update(b"runs", |runs| Some([runs.map_or(1, |runs| runs[0] + 1)]))?;
    ///     assert_eq!(store.client().get(b"runs")?, Some(vec![run]));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_or_create(path: impl AsRef<Path>, options: &Options) -> Result<Store, Error> {
        let path = path.as_ref();
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            _ => return Store::open(path, options),
        }
        match Store::create(path, options) {
            // Another process was faster.
            Err(Error::Medium(MediumError::Exists { .. })) => Store::open(path, options),
            created => created,
        }
    }

    /// Opens the pool at `path`. `progress` receives the number of recovered segments, and that of all.
    ///
    /// # Errors
    /// As for [`open`](Store::open).
    pub fn open_with_progress(
        path: impl AsRef<Path>,
        options: &Options,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Store, Error> {
        let map = |path: &Path| Region::open(path, options.medium, options.durability);
        let region = parts::open(path.as_ref(), options, map)?;
        open(region, options.levels.folder(Some(path.as_ref())), options, progress)
    }

    /// Creates a pool on a region that is mapped already: for anonymous memory and simulated media.
    ///
    /// # Errors
    /// As for [`create`](Store::create).
    pub fn create_on(region: Region, options: &Options) -> Result<Store, Error> {
        create(region, options.levels.folder(None), options)
    }

    /// Opens the pool on a region that is mapped already.
    ///
    /// # Errors
    /// As for [`open`](Store::open).
    pub fn open_on(region: Region, options: &Options) -> Result<Store, Error> {
        open(region, options.levels.folder(None), options, &|_, _| {})
    }

    fn of(opened: Opened, design: Design, folder: Option<PathBuf>, options: &Options) -> Store {
        let Opened { engine, recovery } = opened;
        if engine.region().kind() == MediumKind::File {
            // There, raising the ceiling waits for the device.
            let bell = engine.common().bell.clone();
            engine.clock().ask_ahead(move || bell.ring_now());
        }
        if engine.region().is_read_only() {
            engine.common().admission.shut();
        }
        let levels = folder.filter(|_| design.can().levels && cfg!(feature = "levels"));
        let (workers, works) = (Workers::default(), options.cleaner);
        // Without levels nothing is merged later.
        let merging = if levels.is_some() { options.merging } else { Merging::Direct };
        let Options { index, files, readers, cache, cache_policy, workers: threads, wait_for_room, .. } =
            *options;
        let kept = Options { index, files, readers, cache, cache_policy, ..Options::new() };
        let chosen = Options { merging, wait_for_room, ..kept }.workers(threads);
        let mut store = Store { workers, engine, design, recovery, levels, chosen, works };
        store.start();
        store
    }

    /// Starts the jobs of the engine on threads, where they have them.
    fn start(&mut self) {
        let region = self.engine.region();
        let is_simulated = region.kind() == MediumKind::Sim || sched::simulated();
        if self.works && !is_simulated && !region.is_read_only() {
            let jobs = self.engine.clone().jobs();
            self.workers = Workers::start(jobs, &self.engine.common().admission, self.chosen.workers);
        }
    }

    /// A client, for one thread. In a pool of several parts it writes to the one nearest to where its thread
    /// runs; see [`pin`](Store::pin).
    pub fn client(&self) -> Client {
        Client::new(&self.engine, None)
    }

    /// A client that writes to the part nearest to this node, wherever its thread runs.
    ///
    /// # Errors
    /// [`Error::Option`] if no part is on this node.
    pub fn client_on(&self, node: u16) -> Result<Client, Error> {
        self.known(node).map(|node| Client::new(&self.engine, Some(node)))
    }

    /// Keeps this thread on the processors of a node, so that its clients find their records near. Nothing
    /// happens in a pool whose bytes are all on one node.
    ///
    /// # Errors
    /// [`Error::Option`] if no part is on this node, [`Error::Medium`] if this process may use none of its
    /// processors.
    pub fn pin(&self, node: u16) -> Result<(), Error> {
        Ok(self.engine.region().pin(self.known(node)?)?)
    }

    fn known(&self, node: u16) -> Result<Node, Error> {
        let nodes = self.nodes();
        match nodes.contains(&node) {
            true => Ok(Node(node)),
            false => {
                Err(Error::Option(format!("no part of the pool is on node {node}; it is on nodes {nodes:?}")))
            }
        }
    }

    /// The nodes that the pool has bytes on, in the order of their numbers.
    pub fn nodes(&self) -> Vec<u16> {
        self.engine.space().nodes().into_iter().map(|node| node.0).collect()
    }

    /// The parts of the pool, the first one's first. Most pools have one.
    pub fn parts(&self) -> Vec<Part> {
        let (space, region) = (self.engine.space(), self.engine.region());
        let paths = region.mapping().paths().map(|path| Some(path.to_owned()));
        let mut paths = paths.collect::<Vec<_>>().into_iter();
        let parts = space.parts().zip(region.spans());
        let part = |((node, zones, free), span): ((Node, u32, u32), Span)| Part {
            path: paths.next().flatten(),
            node: node.0,
            bytes: span.len,
            zones: zones.into(),
            free_zones: free.into(),
        };
        parts.map(part).collect()
    }

    /// The design of the pool.
    pub fn design(&self) -> Design {
        self.design
    }

    /// The [settings](Setting) of the pool, and of this handle, by name.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let InForce { eliminate, late } = self.engine.in_force();
        let mut options = Options { eliminate, late, ..self.chosen.clone() };
        // The recipe has read these settings when the pool was opened.
        let _ = (self.design.recipe().recall)(&self.engine.space().superblock().settings, &mut options);
        Setting::of(self.design).map(|setting| (setting.name, setting.value(&options))).collect()
    }

    /// The folder for the data for which persistent memory has no room; it may not be there yet. `None`
    /// without [levels](crate::Levels).
    pub fn levels(&self) -> Option<&Path> {
        self.levels.as_deref()
    }

    /// A statement of what an acknowledged write survives here, and on what evidence.
    pub fn statement(&self) -> Statement {
        self.engine.region().statement()
    }

    /// The report of the recovery at open.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// Longest key and longest value of this pool, in bytes. A value above a quarter of a zone is stored in
    /// zones of its own, and is copied when it is read.
    pub fn limits(&self) -> (u64, u64) {
        self.engine.limits()
    }

    /// The region beneath, for tools that measure and prove the store. Writing to it breaks the store.
    #[doc(hidden)]
    pub fn region(&self) -> &Region {
        self.engine.region()
    }

    /// Sizes and counts.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// Cleans every segment with superseded or deleted records, so that its space can be used again. Returns
    /// how many segments were freed and how many bytes had to move. Writers do this by themselves when space
    /// is short; this method lets a program choose the time.
    ///
    /// # Errors
    /// [`Error::PoolFull`] if not even a zone to move records to is left; [`Error::Damaged`] if a segment
    /// cannot be read, which then stays as it is; [`Error::InsideUpdate`].
    pub fn compact(&self) -> Result<(u64, u64), Error> {
        self.admit()?;
        self.engine.compact()
    }

    /// Gives the storage of free zones back to the file system, except what deletions and compaction need on
    /// a full disk. Returns the bytes of these zones. On media other than files it does nothing.
    ///
    /// # Errors
    /// [`Error::ClientsOpen`] while clients are alive; a failure of the medium.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("pool");
    /// # use quipu::{Options, Store};
    /// let mut store = Store::create(&path, &Options::new().size(16 << 20))?;
    /// store.compact()?;
    /// store.trim()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&mut self) -> Result<u64, Error> {
        self.alone(|store| store.engine.trim())
    }

    /// Writes a file back to its device. When it returns, everything acknowledged before the call is on the
    /// device, and a crash of the system right then loses none of it. Later writes may reach the device in
    /// any order. So a later crash of the system can lose older records as well, until the next call or
    /// [`close`](Store::close). On media other than files it does nothing, since an acknowledged write needs
    /// no more; see [`statement`](Store::statement).
    ///
    /// It takes as long as the device needs for the writes since the last call. Clients continue meanwhile.
    ///
    /// # Errors
    /// A failure of the medium.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("pool");
    /// # use quipu::{Options, Store};
    /// let store = Store::create(&path, &Options::new().size(16 << 20))?;
    /// store.client().put(b"llama", b"wool")?;
    /// store.sync()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sync(&self) -> Result<(), Error> {
        self.admit()?;
        self.engine.sync()
    }

    /// Proves every structure and record. `progress` receives the number of segments that are done, and that
    /// of all.
    ///
    /// # Errors
    /// [`Error::ClientsOpen`] while clients are alive. Damage is in the report, and is no error.
    pub fn check(&mut self, progress: &dyn Fn(usize, usize)) -> Result<CheckReport, Error> {
        let unproved = self.design.can().unproved;
        let mut report = self.alone(|store| store.engine.prove(progress))?;
        if report.unproved.is_empty() {
            report.unproved = unproved;
        }
        Ok(report)
    }

    /// Does work that needs the store for itself: refused while clients are alive, and no job runs meanwhile.
    fn alone<T>(&mut self, work: impl FnOnce(&Store) -> Result<T, Error>) -> Result<T, Error> {
        self.admit()?;
        self.workers = Workers::default();
        let done = self.exclusive().and_then(|()| work(self));
        self.start();
        done
    }

    /// Closes the store, so that the next open has nothing to repair and little to read, and writes a file
    /// back to its device. If the store has not changed since a clean open, or is open for reading only, the
    /// pool stays as it is.
    ///
    /// # Errors
    /// [`Error::ClientsOpen`] while clients are alive; a failure of the medium; [`Error::NewerFormat`] for a
    /// record of a newer version that has crashed. The pool is then as after a drop.
    pub fn close(mut self) -> Result<(), Error> {
        self.admit()?;
        self.workers = Workers::default();
        self.exclusive()?;
        self.engine.close()
    }

    /// Refuses maintenance [inside of a closure](closures) of this store.
    pub(super) fn admit(&self) -> Result<(), Error> {
        closures::refuse(|| &*self.engine)
    }

    /// Refuses while clients are alive. No job runs at this time.
    fn exclusive(&self) -> Result<(), Error> {
        match Arc::strong_count(&self.engine) - 1 {
            0 => {
                // Everything that clients did on their threads is visible from here on.
                fence(Ordering::Acquire);
                Ok(())
            }
            clients => Err(Error::ClientsOpen { clients }),
        }
    }
}

/// Makes a pool of a region. The walk may keep files beside the pool's own in this folder.
fn create(region: Region, folder: Option<PathBuf>, options: &Options) -> Result<Store, Error> {
    let design = options.design.unwrap_or_default();
    options.given_to(design)?;
    let (zone_size, medium) = (zone_size(region.len(), options)?, region.kind());
    check_len(design, region.len())?;
    let mut secret = [0; 32];
    region.entropy(&mut secret);
    let pool = NewPool { len: region.len(), zone_size, medium };
    let format = FormatOptions {
        zone_size,
        design: design.id(),
        settings: (design.recipe().remember)(options, &pool),
        pools: (design.recipe().object_pools)(&pool),
        free_list: options.free_list,
        secret,
        boot_id: region.boot_id(),
    };
    let mut space = Space::format(region, &format)?;
    limit_index(&mut space, options);
    let site = Site { space: space.into(), folder: folder.clone(), options, how: How::New };
    let opened = (design.recipe().open)(site)?;
    Ok(Store::of(opened, design, folder, options))
}

fn open(
    region: Region,
    folder: Option<PathBuf>,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Store, Error> {
    let superblock = Space::probe(&region)?;
    let design = check_superblock(&superblock, options)?;
    let pool = NewPool { len: region.len(), zone_size: superblock.zone_size(), medium: region.kind() };
    options.agree_with(design, &superblock.settings, &pool)?;
    let covered = region.kind() == MediumKind::File && options.durability == Durability::Process;
    if !options.accept_copy && superblock.is_copy_of_open(&region) {
        return Err(SpaceError::CopyOfOpen.into());
    }
    let accepted = options.accept_damage && design.can().salvages;
    let torn = covered && superblock.has_lost_pages(&region, options.accept_copy) && !superblock.is_clean();
    let holes = match (accepted, torn) {
        (true, _) => Holes::AreAccepted,
        (false, true) => Holes::AreLost,
        (false, false) => Holes::AreDamage,
    };
    let (mut space, found) = Space::examine(region)?;
    limit_index(&mut space, options);
    if options.reset_expiry {
        space.forget_expiry();
    }
    let ahead = Duration::from_millis(space.expiry_ahead());
    let how = How::Existing(Existing { holes, found, progress });
    let site = Site { space: space.into(), folder: folder.clone(), options, how };
    let mut opened = (design.recipe().open)(site)?;
    opened.recovery.expiry_ahead = ahead;
    let space = opened.engine.space();
    if options.reset_expiry {
        space.reset_expiry();
    }
    if !opened.engine.region().is_read_only() {
        space.settle();
    }
    Ok(Store::of(opened, design, folder, options))
}

/// Makes zones of an index in the pool small, if a test asks for it.
fn limit_index(space: &mut Space, options: &Options) {
    if let Some(bytes) = options.testing.index_zone {
        space.limit_index_zones(bytes);
    }
}

/// The design of a pool, if its superblock has the present form.
fn check_superblock(superblock: &Superblock, options: &Options) -> Result<Design, Error> {
    let id = superblock.design.get();
    let design =
        Design::from_id(id).ok_or_else(|| Error::NewerFormat { what: format!("design number {id}") })?;
    if let Some(asked) = options.design
        && asked != design
    {
        return Err(Error::OtherDesign { found: design.to_string(), asked: asked.to_string() });
    }
    if !is_zone_size(superblock.zone_size()) {
        return Err(SpaceError::Geometry { what: "the zone size is none that a store creates" }.into());
    }
    if superblock.clock_ceiling.get().max(superblock.run.get()).max(superblock.generation()) >= NUMBERS_END {
        return Err(SpaceError::Geometry { what: "a number is larger than any run could count" }.into());
    }
    Ok(design)
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.admit().is_err() {
            // A job may wait for the key that the caller's closure has locked.
            self.workers.leave();
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("design", &self.design).finish_non_exhaustive()
    }
}
