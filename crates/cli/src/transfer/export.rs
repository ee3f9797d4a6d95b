//! A store into a form.

use super::error::ExportError;
use super::tables::{DEFAULT, tables_of, told};
use super::write::{Form, Writer};
use quipu::{Client, DamagedPlace, Error, Expiry, Snapshot, Store, Table};
use std::io::Write;
use std::ops::Bound;

/// Records between two reports of progress.
const STEP: u64 = 256;

/// The result of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Records written.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
    /// The checksum in the last line, or of the whole file in the form `tsv`, which has no such line.
    pub checksum: u64,
    /// Records that expire and of which the file does not say so, since its form has no place for the time.
    pub without_expiry: u64,
    /// The tables that the file names.
    pub tables: Vec<String>,
    /// Damage of the pool, by which records are missing; the last line says so, if the form has one.
    pub damage: Vec<DamagedPlace>,
}

/// Writes all records, in order of their tables' names and of their keys. `progress` hears the records done
/// and in all. With `only`, it writes those of one table. A file of the default table alone names none.
///
/// Tables are written as they were when this began. A design without tables has no such state either: other
/// clients may write meanwhile, and each record is then one that the store had.
///
/// If the store proves what it reads ([`Options::verify_reads`](quipu::Options::verify_reads)), each record
/// in the file has proved itself. The others are left out and listed behind those in `missing`. The last
/// line, if the form has one, then says that some are missing.
///
/// # Errors
/// Those of the store except damage, and those of `out`, which then has an incomplete export.
/// [`ExportError::Tables`] for a form that has no place for the tables; nothing is written then.
pub fn export(
    store: &Store,
    only: Option<&str>,
    missing: Vec<DamagedPlace>,
    form: Form,
    out: impl Write,
    progress: &dyn Fn(u64, u64),
) -> Result<Exported, ExportError> {
    let mut damage = missing;
    // First, so that each table is listed that it shows.
    let snapshot = store.design().can().tables.then(|| store.snapshot()).transpose()?;
    let tables = match (tables_of(store)?, only) {
        (_, Some(only)) => Some(vec![store.table(only)?]),
        (tables, None) => tables,
    };
    let mut names: Vec<String> = tables.iter().flatten().map(|table| table.name().to_owned()).collect();
    names.sort_unstable();
    if names == [DEFAULT] {
        names.clear();
    }
    if form == Form::Tsv {
        if names.len() > 1 {
            return Err(ExportError::Tables(told(&names)));
        }
        names.clear();
    }
    let mut writer = Writer::new(out, form, &names);
    match (snapshot, tables) {
        (Some(snapshot), Some(tables)) => {
            of_tables(store, &snapshot, tables, &mut writer, &mut damage, progress)?;
        }
        _ => of_client(&store.client(), &mut writer, &mut damage, progress)?,
    }
    let checksum = writer.finish(damage.is_empty())?;
    let Writer { records, bytes, without_expiry, .. } = writer;
    Ok(Exported { records, bytes, checksum, without_expiry, tables: names, damage })
}

/// Writes tables as they were at a snapshot.
fn of_tables(
    store: &Store,
    snapshot: &Snapshot,
    mut tables: Vec<Table>,
    writer: &mut Writer<impl Write>,
    damage: &mut Vec<DamagedPlace>,
    progress: &dyn Fn(u64, u64),
) -> Result<(), ExportError> {
    tables.sort_unstable_by(|one, other| one.name().cmp(other.name()));
    let (mut done, mut total) = (0, 0);
    for table in &tables {
        total += store.table_stats(table)?.records;
    }
    for table in &tables {
        writer.begin(table.name());
        let client = store.client().on(table)?;
        let guard = client.pin_at(snapshot)?;
        for record in guard.range(Bound::Unbounded, Bound::Unbounded)? {
            let Some((key, value)) = proved(record, damage)? else { continue };
            // None if it has expired since the walk came to it.
            let Some(expiry) = proved(guard.expiry(&key), damage)?.flatten() else { continue };
            writer.record(&key, &value, expiry.time())?;
            done += 1;
            if done % STEP == 0 {
                progress(done, total);
            }
        }
    }
    progress(total, total);
    Ok(())
}

/// Writes all that a client sees, in order of the keys.
fn of_client(
    client: &Client,
    writer: &mut Writer<impl Write>,
    damage: &mut Vec<DamagedPlace>,
    progress: &dyn Fn(u64, u64),
) -> Result<(), ExportError> {
    let guard = client.pin();
    let mut all = guard.keys();
    let mut keys: Vec<Box<[u8]>> = all.by_ref().map(Into::into).collect();
    proved(all.ended(), damage)?;
    drop(guard);
    keys.sort_unstable();
    let (total, mut value) = (keys.len() as u64, Vec::new());
    for (done, key) in (1..).zip(&keys) {
        // First the time: a value that is there afterwards has this one.
        let expiry = client.expiry(key);
        let read = expiry.and_then(|expiry| Ok(client.get_into(key, &mut value)?.then_some(expiry)));
        // A key that is gone by now was deleted by another client, or has expired.
        if let Some(expiry) = proved(read, damage)?.flatten() {
            writer.record(key, &value, expiry.and_then(Expiry::time))?;
        }
        if done % STEP == 0 || done == total {
            progress(done, total);
        }
    }
    Ok(())
}

/// The answer of a store; `None`, with the places noted, if it is that something is damaged.
pub fn proved<T>(answer: Result<T, Error>, damage: &mut Vec<DamagedPlace>) -> Result<Option<T>, Error> {
    match answer {
        Err(Error::Damaged(found)) => {
            damage.extend(found.places);
            Ok(None)
        }
        answer => answer.map(Some),
    }
}
