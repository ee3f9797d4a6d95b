//! Records on their way out of a pool and in again, as text.
//!
//! A store that cannot be emptied into a plain file is a trap, and one that cannot be filled from one is hard
//! to try. The form `quipu` (`docs/EXPORT.md`) is for that: one record a line, readable where the data is,
//! and safe for any bytes. Its own proof at the end shows that a file was cut. Other programs have `tsv` and
//! `jsonl`. The form `debian` reads the package index of a Debian installation: a large text that many
//! machines have, and that nobody made up for a benchmark.
//!
//! - **Memory.** Files are streamed. An import holds one batch of records, and of the form `debian` a number
//!   for every key. An export holds a few values at a time, and the keys if it has to sort them.
//! - **Order.** An export is sorted by table and key: equal contents give equal files. A design that keeps no
//!   tables iterates in no order, so its keys are sorted in memory.
//! - **Failure.** An import keeps what it has put and says how far it came; doing it again does no harm.
//! - **Thread-safety.** Readers and writers belong to one thread. Other clients may write during an export.
//!   Tables are then written as they were at its beginning. Without tables, each record is one that the store
//!   had, but all of them together need not be a state of it.

mod debian;
mod error;
mod escape;
mod export;
mod import;
mod jsonl;
mod lines;
mod tables;
mod text;
mod tsv;
mod write;

pub use debian::DebianReader;
pub use error::{ExportError, FormError, ImportCause, ImportError};
pub use escape::{Misfit, escape, unescape};
pub use export::{Exported, export, proved};
pub use import::{Imported, import};
pub use jsonl::{JsonRecord, JsonlReader};
pub use tables::{DEFAULT, tables_of};
pub use text::{FIRST_LINE, TextReader};
pub use tsv::TsvReader;
pub use write::{Form, Writer, Written};

/// Records that come out of a file, one after the other.
pub trait Records {
    /// The tables that the file lists before its first record; none if it has no such list.
    fn tables(&mut self) -> Result<&[String], FormError> {
        Ok(&[])
    }

    /// Reads the next record in place of what `key` and `value` hold, and returns the number of its first
    /// line; `None` at the proven end of the file.
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>, FormError>;

    /// The table that the record names which was read last, if it does.
    fn table(&self) -> Option<&str> {
        None
    }

    /// When the record that was read last expires, in milliseconds since 1970, if it does.
    fn expires(&self) -> Option<u64> {
        None
    }

    /// Bytes read so far.
    fn bytes(&self) -> u64;
}
