//! Opening and closing pools on behalf of the commands that use one.

use crate::args::PoolChoice;
use crate::commands::check::missed;
use crate::failure::Failure;
use crate::output::{self, Bar};
use quipu::{Error, Options, Stats, Store};
use quipu_bench::size;
use quipu_medium::MediumError;

/// Opens a pool, with a bar while it is recovered.
pub fn open_with(pool: &PoolChoice, options: &Options) -> Result<Store, Error> {
    Bar::during("recovering", |bar| {
        Store::open_with_progress(&pool.path, options, &|done, total| bar.of_store(done, total))
    })
}

/// Opens a pool of any design for reading only, which changes nothing of it, with a bar while it is recovered
/// in memory. That is told on standard error, since every command that reads has to do it again.
pub fn open_read_only(pool: &PoolChoice, options: &Options) -> Result<Store, Error> {
    let opened = Bar::during("recovering", |bar| {
        Store::open_read_only_with_progress(&pool.path, options, &|done, total| bar.of_store(done, total))
    });
    let store = match opened {
        // A device has no other way to be read.
        Err(Error::Medium(MediumError::NotPrivate { .. })) => return open_with(pool, options),
        opened => opened?,
    };
    if !store.recovery().was_clean {
        let pool = pool.path.display();
        output::aside(format!(
            "{pool} was not closed, and was recovered in memory only; `quipu sync {pool}` does it for good"
        ));
    }
    Ok(store)
}

/// Opens a pool for reading only, and hands it to `work`. Records that recovery did not find are told on
/// standard error. Every failure names the pool.
pub fn read<T>(pool: &PoolChoice, work: impl FnOnce(&mut Store) -> Result<T, Failure>) -> Result<T, Failure> {
    run(pool, work, |pool| open_read_only(pool, &pool.options().verify_reads(true)))
}

/// As [`read`], with the keys in order, where a design does that on request.
pub fn read_in_order<T>(
    pool: &PoolChoice,
    work: impl FnOnce(&mut Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    run(pool, work, |pool| {
        let (design, options) = (Store::design_of(&pool.path)?, pool.options().verify_reads(true));
        let options = if design.can().orders_on_request() {
            options.design(design).set("index", "alex")?
        } else {
            options
        };
        open_read_only(pool, &options)
    })
}

/// Opens a pool, hands it to `work` and closes it, so that the next command need not recover it. An error of
/// the work counts more than one of the close. Every record that is read is proved. Records that recovery did
/// not find are told on standard error: the next open knows nothing of it. Every failure names the pool.
pub fn with<T>(pool: &PoolChoice, work: impl FnOnce(&mut Store) -> Result<T, Failure>) -> Result<T, Failure> {
    with_options(pool, pool.options(), work)
}

/// As [`with`], with these options.
pub fn with_options<T>(
    pool: &PoolChoice,
    options: Options,
    work: impl FnOnce(&mut Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    run(pool, work, |pool| open_with(pool, &options.verify_reads(true)))
}

fn run<T>(
    pool: &PoolChoice,
    work: impl FnOnce(&mut Store) -> Result<T, Failure>,
    open: impl FnOnce(&PoolChoice) -> Result<Store, Error>,
) -> Result<T, Failure> {
    let run = || {
        let mut store = open(pool)?;
        missed(store.recovery()).iter().for_each(output::aside);
        let result = work(&mut store);
        let closed = store.close();
        let value = result?;
        closed?;
        Ok(value)
    };
    run().map_err(|failure: Failure| failure.naming(&pool.path))
}

/// The failure of a pool that has no room for so many bytes.
pub fn full(store: &Store, wanted: u64) -> String {
    let Stats { free_bytes, garbage_bytes, .. } = store.stats();
    format!(
        "the pool is full: {} are wanted and {} free for puts, {} are garbage; delete something, or export the pool \
         into a larger one",
        size::human(wanted),
        size::human(free_bytes),
        size::human(garbage_bytes),
    )
}
