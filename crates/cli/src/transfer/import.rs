//! A form into a store.

use super::Records;
use super::error::{ImportCause, ImportError};
use super::tables::{Targets, not_there};
use quipu::{Client, Store};

/// Records and bytes after which a batch is put, whichever is reached first.
const BATCH_RECORDS: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Records put.
    pub records: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Tables that were created for the records.
    pub created: Vec<String>,
    /// Records of tables that were not asked for.
    pub passed_over: u64,
    /// Whether the file has proved that nothing of it is missing or changed.
    pub proved: bool,
}

/// Puts all records of a file, in their order; of several with one key the last remains. `progress` hears the
/// bytes read so far.
///
/// A record goes into the table that it names, which is created if it is missing; one that names none goes
/// into the default table. With `only`, records of other tables are passed over, and those that name none go
/// into that one. A pool without tables takes records that name one only if `only` chooses it.
///
/// # Errors
/// A fault of the file, or the store's refusal of a record. The records before it are put. A table that the
/// pool cannot have, or that the file does not have.
pub fn import(
    store: &Store,
    only: Option<&str>,
    records: &mut dyn Records,
    progress: &dyn Fn(u64),
) -> Result<Imported, ImportError> {
    let (mut imported, mut passed_over) = (0, 0);
    let failed = |imported, cause: ImportCause| ImportError { imported, cause };
    let mut into = Targets::of(store, only);
    let mut batch = Batch::default();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut next = records.next(&mut key, &mut value);
    if next.is_ok() {
        into.expect(records.tables()).map_err(|cause| failed(0, cause))?;
    }
    loop {
        let ended = !matches!(next, Ok(Some(_)));
        let turns = !ended && into.turns_at(records.table());
        if ended || turns || batch.is_full() {
            if let Some(client) = &mut into.client {
                batch.put(client, &mut imported)?;
            }
            progress(records.bytes());
        }
        let Some(line) = next.map_err(|error| failed(imported, ImportCause::Form(error)))? else { break };
        if turns {
            into.turn_to(records.table()).map_err(|cause| failed(imported, cause))?;
        }
        match into.client {
            Some(_) => batch.add((&key, &value), records.expires(), line),
            None => passed_over += 1,
        }
        next = records.next(&mut key, &mut value);
    }
    if let Some(only) = only
        && records.tables().is_empty()
        && (imported, passed_over > 0) == (0, true)
    {
        return Err(failed(0, not_there(only, &format!("{passed_over} records of other tables"))));
    }
    let (bytes, proved) = (records.bytes(), records.is_proved());
    Ok(Imported { records: imported, bytes, created: into.created, passed_over, proved })
}

/// Records that are put together, one behind the other in one buffer: so a few long ones among many short
/// ones do not leave many long buffers behind.
#[derive(Default)]
struct Batch {
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
    /// Adds a record.
    fn add(&mut self, (key, value): (&[u8], &[u8]), expires: Option<u64>, line: u64) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.places.push(Place { start, value: middle, end: self.bytes.len(), expires, line });
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
