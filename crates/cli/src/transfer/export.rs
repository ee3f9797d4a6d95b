//! A store into a form.

use super::error::ExportError;
use super::tables::{DEFAULT, tables_of, told};
use super::write::{Form, Writer, Written};
use quipu::{Client, DamagedPlace, Error, Expiry, Snapshot, Store, Table};
use std::io::Write;
use std::ops::Bound;

/// Values asked for at once, or records between two reports of progress, and bytes of text after which they
/// are written.
const EXPORT_KEYS: usize = 256;
const EXPORT_BYTES: usize = 1 << 20;

/// The result of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Records written.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
    /// The checksum in the last line, or of the whole file where the form has no such line.
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
    let Written { records, bytes, checksum, without_expiry, .. } = writer.finish(damage.is_empty())?;
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
        of_snapshot(&client, snapshot, writer, damage, &mut || {
            done += 1;
            if done % EXPORT_KEYS as u64 == 0 {
                progress(done, total);
            }
        })?;
    }
    progress(total, total);
    Ok(())
}

/// Writes the table of a client as it was at a snapshot. `step` hears of each record.
fn of_snapshot(
    client: &Client,
    snapshot: &Snapshot,
    writer: &mut Writer<impl Write>,
    damage: &mut Vec<DamagedPlace>,
    step: &mut dyn FnMut(),
) -> Result<(), ExportError> {
    // The snapshot keeps all that it shows, so a pin takes nothing more while the text is written.
    let guard = client.pin_at(snapshot)?;
    for record in guard.range(Bound::Unbounded, Bound::Unbounded)? {
        let Some((key, value)) = proved(record, damage)? else { continue };
        // None if it has expired since the walk came to it.
        let Some(expiry) = proved(guard.expiry(&key), damage)?.flatten() else { continue };
        writer.record(&key, &value, expiry.time());
        if writer.pending() > EXPORT_BYTES {
            writer.drain()?;
        }
        step();
    }
    writer.drain()?;
    Ok(())
}

/// Writes all that a client sees, in order of the keys.
fn of_client(
    client: &Client,
    writer: &mut Writer<impl Write>,
    damage: &mut Vec<DamagedPlace>,
    progress: &dyn Fn(u64, u64),
) -> Result<(), ExportError> {
    let keys = Keys::of(client, damage)?;
    let total = keys.places.len() as u64;
    for (turn, places) in keys.places.chunks(EXPORT_KEYS).enumerate() {
        let mut wanted: Vec<&[u8]> = places.iter().map(|place| keys.at(*place)).collect();
        let mut expiries = Vec::with_capacity(wanted.len());
        for key in &wanted {
            expiries.push(proved(client.expiry(key), damage)?);
        }
        let mut is_proved = expiries.iter().map(Option::is_some);
        wanted.retain(|_| is_proved.next() == Some(true));
        let expiries: Vec<_> =
            expiries.into_iter().flatten().map(|expiry| expiry.and_then(Expiry::time)).collect();
        let (mut done, mut written) = (0, Ok(()));
        // Those before the damaged key of a call have been told.
        while done < wanted.len() {
            let begun = done;
            let read = client.get_many(&wanted[begun..], |i, value| {
                done = begun + i + 1;
                // A key that is gone by now was deleted by another client.
                if let (Ok(()), Some(value)) = (&written, value) {
                    writer.record(wanted[begun + i], value, expiries[begun + i]);
                    if writer.pending() > EXPORT_BYTES {
                        written = writer.drain();
                    }
                }
            });
            if proved(read, damage)?.is_none() {
                done += 1;
            }
        }
        written?;
        writer.drain()?;
        progress(((turn + 1) * EXPORT_KEYS) as u64, total);
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

/// All keys of a store, in order. They stand one behind the other in one buffer: 16 bytes a key beside its
/// own.
struct Keys {
    bytes: Vec<u8>,
    places: Vec<(usize, usize)>,
}

impl Keys {
    /// All of them but the damaged ones, which are noted, or why they cannot be told.
    fn of(client: &Client, damage: &mut Vec<DamagedPlace>) -> Result<Keys, Error> {
        let mut keys = Keys { bytes: Vec::new(), places: Vec::new() };
        let guard = client.pin();
        let mut pairs = guard.iter();
        for (key, _) in pairs.by_ref() {
            let start = keys.bytes.len();
            keys.bytes.extend_from_slice(&key);
            keys.places.push((start, keys.bytes.len()));
        }
        proved(pairs.ended(), damage)?;
        let bytes = &keys.bytes;
        keys.places.sort_unstable_by_key(|(start, end)| &bytes[*start..*end]);
        Ok(keys)
    }

    fn at(&self, (start, end): (usize, usize)) -> &[u8] {
        &self.bytes[start..end]
    }
}
