//! Between a store and a form.

use super::Records;
use super::error::{ExportError, FormError, ImportCause, ImportError};
use super::write::{Form, Writer, Written};
use quipu::{Client, DamagedPlace};
use std::io::Write;

/// Records and bytes after which a batch is put, whichever is reached first.
const BATCH_RECORDS: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;

/// Values asked for at once, and bytes of text after which they are written.
const EXPORT_KEYS: usize = 256;
const EXPORT_BYTES: usize = 1 << 20;

/// The result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Records put.
    pub records: u64,
    /// Bytes read.
    pub bytes: u64,
}

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
    /// Damage of the pool, by which records are missing; the last line says so, if the form has one.
    pub damage: Vec<DamagedPlace>,
}

/// Puts all records of a file, in their order; of several with one key the last remains. `progress` hears the
/// bytes read so far.
///
/// # Errors
/// A fault of the file, or the store's refusal of a record. The records before it are put.
pub fn import(
    client: &mut Client,
    records: &mut dyn Records,
    progress: &dyn Fn(u64),
) -> Result<Imported, ImportError> {
    let mut imported = 0;
    let mut batch = Batch::default();
    loop {
        let next = batch.read(records);
        let ended = !matches!(next, Ok(true));
        if ended || batch.is_full() {
            batch.put(client, &mut imported)?;
            progress(records.bytes());
        }
        match next {
            Ok(true) => {}
            Ok(false) => return Ok(Imported { records: imported, bytes: records.bytes() }),
            Err(error) => return Err(ImportError { imported, cause: ImportCause::Form(error) }),
        }
    }
}

/// Records that are put together, one behind the other in one buffer: so a few long ones among many short
/// ones do not leave many long buffers behind.
#[derive(Default)]
struct Batch {
    key: Vec<u8>,
    value: Vec<u8>,
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// Where a record stands in a batch, and in its file.
struct Place {
    start: usize,
    value: usize,
    end: usize,
    expires: Option<u64>,
    line: u64,
}

impl Batch {
    /// Reads one more record, if there is one.
    fn read(&mut self, records: &mut dyn Records) -> Result<bool, FormError> {
        let Some(line) = records.next(&mut self.key, &mut self.value)? else { return Ok(false) };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&self.key);
        let value = self.bytes.len();
        self.bytes.extend_from_slice(&self.value);
        self.places.push(Place { start, value, end: self.bytes.len(), expires: records.expires(), line });
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.places.len() >= BATCH_RECORDS || self.bytes.len() >= BATCH_BYTES
    }

    /// Puts the records and forgets them.
    fn put(&mut self, client: &mut Client, imported: &mut u64) -> Result<(), ImportError> {
        let bytes = &self.bytes;
        let pair = |place: &Place| (&bytes[place.start..place.value], &bytes[place.value..place.end]);
        let pairs: Vec<(&[u8], &[u8])> = self.places.iter().map(pair).collect();
        let lasting = self.places.iter().all(|place| place.expires.is_none());
        if lasting && client.put_many(&pairs).is_ok() {
            *imported += pairs.len() as u64;
        } else {
            // Which of them failed only shows when they are put one by one. Some are put again; that does no
            // harm.
            for ((key, value), place) in pairs.iter().zip(&self.places) {
                let put = match place.expires {
                    None => client.put(key, value),
                    Some(time) => client.put_until(key, value, time),
                };
                put.map_err(|source| ImportError {
                    imported: *imported,
                    cause: ImportCause::Store {
                        line: place.line,
                        wanted: (key.len() + value.len()) as u64,
                        source,
                    },
                })?;
                *imported += 1;
            }
        }
        self.places.clear();
        self.bytes.clear();
        Ok(())
    }
}

/// Writes all records, in order of their keys. `progress` hears the records done and in all.
///
/// If the store proves what it reads ([`Options::verify_reads`](quipu::Options::verify_reads)), each record
/// in the file has proved itself. The others are left out and listed behind those in `missing`. The last
/// line, if the form has one, then says that some are missing.
///
/// # Errors
/// Those of the store except damage, and those of `out`, which then has an incomplete export.
pub fn export(
    client: &Client,
    missing: Vec<DamagedPlace>,
    form: Form,
    out: impl Write,
    progress: &dyn Fn(u64, u64),
) -> Result<Exported, ExportError> {
    let mut damage = missing;
    let keys = Keys::of(client, &mut damage)?;
    let total = keys.places.len() as u64;
    let mut writer = Writer::new(out, form);
    for (turn, places) in keys.places.chunks(EXPORT_KEYS).enumerate() {
        let mut wanted: Vec<&[u8]> = places.iter().map(|place| keys.at(*place)).collect();
        let mut expiries = Vec::with_capacity(wanted.len());
        for key in &wanted {
            expiries.push(proved(client.expiry(key), &mut damage)?);
        }
        let mut is_proved = expiries.iter().map(Option::is_some);
        wanted.retain(|_| is_proved.next() == Some(true));
        let expiries: Vec<_> =
            expiries.into_iter().flatten().map(|expiry| expiry.and_then(quipu::Expiry::time)).collect();
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
            if proved(read, &mut damage)?.is_none() {
                done += 1;
            }
        }
        written?;
        writer.drain()?;
        progress(((turn + 1) * EXPORT_KEYS) as u64, total);
    }
    let Written { records, bytes, checksum, without_expiry, .. } = writer.finish(damage.is_empty())?;
    Ok(Exported { records, bytes, checksum, without_expiry, damage })
}

/// The answer of a store; `None`, with the places noted, if it is that something is damaged.
pub fn proved<T>(
    answer: Result<T, quipu::Error>,
    damage: &mut Vec<DamagedPlace>,
) -> Result<Option<T>, quipu::Error> {
    match answer {
        Err(quipu::Error::Damaged(found)) => {
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
    fn of(client: &Client, damage: &mut Vec<DamagedPlace>) -> Result<Keys, quipu::Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_says_how_many_records_a_batch_has() {
        let page = include_str!("../../../../docs/EXPORT.md");
        let batch = format!("batches of up to {},{:03} records", BATCH_RECORDS / 1000, BATCH_RECORDS % 1000);
        assert!(page.contains(&batch), "{batch}");
        assert!(page.contains(&format!("or {} MiB", BATCH_BYTES >> 20)));
    }
}
