//! [`Fixture`]: a pool of one design on one medium, which a check can create, close or abandon, and open
//! again.

use quipu::{Design, Durability, Error, Levels, MediumKind, Options, Store};
use quipu_bench::threads::on_threads;
use quipu_medium::sim::{SimOptions, sched};
use quipu_medium::{Pages, Region};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The result of a check: an error only if a call failed that should not.
pub type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Where the pools of checks are made.
#[derive(Clone, Debug)]
pub enum Medium {
    /// Memory of this process.
    Dram,
    /// Files in this folder.
    File(PathBuf),
    /// Files in this folder of a file system that maps persistent memory directly.
    Dax(PathBuf),
    /// The simulator.
    Sim,
}

/// How a store ends before its pool is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is closed.
    Closed,
    /// It is dropped, as if the process had died.
    Dropped,
}

impl Ending {
    /// Both.
    pub const ALL: [Ending; 2] = [Ending::Closed, Ending::Dropped];
}

enum Place {
    Memory(Region),
    File(PathBuf),
}

/// See the module's documentation. A file goes with it.
pub struct Fixture {
    place: Place,
    simulated: bool,
    stays: bool,
    /// The settings that the pool is created and opened with.
    pub options: Options,
}

impl Fixture {
    /// A place for a pool of `size` bytes; nothing is created yet.
    ///
    /// # Panics
    /// Without memory for it.
    pub fn new(design: Design, medium: &Medium, size: u64, zone_size: u64) -> Fixture {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let file = |folder: &PathBuf| {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            Place::File(folder.join(format!("pool-{}-{number}", std::process::id())))
        };
        let (kind, place) = match medium {
            Medium::Dram => {
                let region = Region::dram(size, Pages::Ordinary).expect("memory for the pool of a check");
                (None, Place::Memory(region))
            }
            Medium::Sim => {
                (None, Place::Memory(Region::sim(SimOptions { len: size, ..SimOptions::default() })))
            }
            Medium::File(folder) => (Some(MediumKind::File), file(folder)),
            Medium::Dax(folder) => (Some(MediumKind::Dax), file(folder)),
        };
        let options = Options::new()
            .design(design)
            .size(size)
            .zone_size(zone_size)
            .medium(kind)
            .durability(Durability::Process)
            // Checks fill pools.
            .levels(Levels::Off)
            .recovery_threads(2);
        Fixture { place, simulated: matches!(medium, Medium::Sim), stays: false, options }
    }

    /// Creates the pool.
    pub fn create(&self) -> Result<Store, Error> {
        match &self.place {
            Place::Memory(region) => Store::create_on(region.clone(), &self.options),
            Place::File(path) => Store::create(path, &self.options),
        }
    }

    /// Opens the pool.
    pub fn open(&self) -> Result<Store, Error> {
        self.open_with(|options| options)
    }

    /// Opens the pool with further options.
    pub fn open_with(&self, with: impl FnOnce(Options) -> Options) -> Result<Store, Error> {
        let options = with(self.options.clone());
        match &self.place {
            Place::Memory(region) => Store::open_on(region.clone(), &options),
            Place::File(path) => Store::open(path, &options),
        }
    }

    /// Ends the store in this way and opens its pool again.
    pub fn reopen(&self, store: Store, ending: Ending) -> Result<Store, Error> {
        match ending {
            Ending::Closed => store.close()?,
            Ending::Dropped => drop(store),
        }
        self.open()
    }

    /// The bytes of the pool as they are now, which nobody may be changing.
    pub fn image(&self, store: &Store) -> Vec<u8> {
        let mut image = vec![0; store.region().len() as usize];
        store.region().read_racing(0, &mut image);
        image
    }

    /// Lets the pool, which must not be open, be a copy with these bytes.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn restore(&self, image: &[u8]) -> std::io::Result<()> {
        match &self.place {
            Place::Memory(region) => region.write(0, image),
            Place::File(path) => {
                let copy = path.with_extension("copy");
                std::fs::write(&copy, image)?;
                std::fs::rename(&copy, path)?;
            }
        }
        Ok(())
    }

    /// Lets the pool's file stay when this goes.
    pub fn keep(&mut self) {
        self.stays = true;
    }

    /// Lets so much time pass.
    pub fn pass(&self, time: Duration) {
        if let Place::Memory(region) = &self.place
            && let Some(sim) = region.simulator()
        {
            sim.set_now(sim.now() + time.as_millis() as u64);
        } else {
            std::thread::sleep(time);
        }
    }

    /// Sets the clock, in milliseconds since 1970, and returns what it was; `None` where it cannot be set.
    pub fn set_clock(&self, time: impl FnOnce(u64) -> u64) -> Option<u64> {
        let Place::Memory(region) = &self.place else { return None };
        let sim = region.simulator()?;
        let was = sim.now();
        sim.set_now(time(was));
        Some(was)
    }

    /// The pool's file, where it has one.
    pub fn path(&self) -> Option<&PathBuf> {
        match &self.place {
            Place::Memory(_) => None,
            Place::File(path) => Some(path),
        }
    }

    /// `fast` on real media, `simulated` on the simulator, where every operation is taken apart.
    pub fn scaled(&self, fast: usize, simulated: usize) -> usize {
        if self.simulated { simulated } else { fast }
    }

    /// Runs `work(0..threads)` at once, and returns when all have ended.
    ///
    /// # Errors
    /// The first that any of them returned, or that the simulator's scheduler found.
    ///
    /// # Panics
    /// If one of them does.
    pub fn in_parallel(&self, threads: usize, work: impl Fn(usize) -> Outcome + Sync) -> Outcome {
        let failure = Mutex::new(Ok(()));
        let run = |number: usize| {
            if let Err(error) = work(number) {
                *failure.lock().expect("no panic while it is held") = Err(error);
            }
        };
        if self.simulated {
            let run = &run;
            let tasks = (0..threads).map(|number| Box::new(move || run(number)) as Box<dyn FnOnce() + '_>);
            sched::run(threads as u64, tasks.collect()).map_err(|error| error.to_string())?;
        } else {
            on_threads(threads, run);
        }
        failure.into_inner().expect("no panic while it was held")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Place::File(path) = &self.place
            && !self.stays
        {
            // It may never have been created.
            let _ = std::fs::remove_file(path);
        }
    }
}
