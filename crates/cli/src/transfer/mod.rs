//! Records on their way out of a pool and in again, as text.
//!
//! A store that cannot be emptied into a plain file is a trap, and one that cannot be filled from one is hard
//! to try. The form `jsonl` (`docs/EXPORT.md`) is for that: an object a line, for any program and any bytes,
//! and a last line that proves the file whole. People have `tsv`. The form `debian` reads the package index
//! of a Debian installation: a large text that many machines have, and that nobody made up for a benchmark.
//!
//! - **Memory.** Files are streamed. An import holds one batch of records and one line, and of the form
//!   `debian` a number for every key. An export holds about 1 MiB of text, and the keys if it sorts them.
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
mod tsv;
mod write;

pub use debian::DebianReader;
pub use error::{ExportError, FormError, ImportCause, ImportError};
pub use escape::{escape, unescape};
pub use export::{Exported, export, proved};
pub use import::{Imported, import};
pub use jsonl::{JsonRecord, JsonlReader};
pub use tables::{DEFAULT, tables_of};
pub use tsv::TsvReader;
pub use write::{Form, Writer};

/// Records that come out of a file, one after the other.
pub trait Records {
    /// Reads the next record in place of what `key` and `value` hold, and returns the number of its first
    /// line; `None` at the end of the file.
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>, FormError>;

    /// The tables that the file lists, once a record has been read, or the end; none if it has no list.
    fn tables(&self) -> &[String] {
        &[]
    }

    /// The table that the record names which was read last, if it does.
    fn table(&self) -> Option<&str> {
        None
    }

    /// When the record that was read last expires, in milliseconds since 1970, if it does.
    fn expires(&self) -> Option<u64> {
        None
    }

    /// Whether the end has been read, and has proved that nothing is missing or changed.
    fn is_proved(&self) -> bool {
        false
    }

    /// Bytes read so far.
    fn bytes(&self) -> u64;
}
