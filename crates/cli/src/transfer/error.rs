//! Faults of a file of records, and of its transfer.

use std::io;

/// The fault of a file. Lines and bytes within them count from 1; a number without a name is the line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// Reading failed.
    #[error("it cannot be read on: {0}")]
    Read(#[from] io::Error),
    /// The first line is another one.
    #[error(
        "it is no export; the first line of one is such as \"{}\", and other forms are named by --form",
        super::FIRST_LINE
    )]
    Foreign,
    /// The first line names a version that is not known.
    #[error("it is an export of version {version}; this program reads versions 1 and 2, so use a newer one")]
    Newer {
        /// The version named.
        version: String,
    },
    /// A line at the beginning, where the tables are listed, is another one.
    #[error("line {line} should be {what}; get an unchanged copy")]
    List {
        /// The line.
        line: u64,
        /// The line that belongs there.
        what: &'static str,
    },
    /// A line is of no table that the file lists, or of one whose turn is past.
    #[error(
        "line {0} is of no table that may come here by the list in the first lines; get an unchanged copy"
    )]
    Table(u64),
    /// The line, or the stanza, is longer than a record can be.
    #[error(
        "line {line} ends no record within {limit} bytes, and the pool takes none that long; create it with larger zones"
    )]
    TooLong {
        /// The line.
        line: u64,
        /// Bytes that were read.
        limit: usize,
    },
    /// A line is neither a record nor the last.
    #[error("line {0} has no tab; a record is a key, a tab and a value")]
    NoTab(u64),
    /// A line has more than a key and a value.
    #[error("line {0} has a second tab; write a tab within a key or a value as \\t")]
    SecondTab(u64),
    /// The last line has no end.
    #[error("line {0} has no line feed at its end; get the file whole, or add one if nothing is missing")]
    Unended(u64),
    /// A line is no object, or not one of a record.
    #[error(
        "line {line}: {what}; each line is an object with key or key_hex, value or value_hex, and perhaps expires and table"
    )]
    Object {
        /// The line.
        line: u64,
        /// The fault.
        what: String,
    },
    /// The text behind the value is no time.
    #[error("line {0} has something other than milliseconds since 1970 behind the second tab")]
    Expiry(u64),
    /// The line ends with a carriage return.
    #[error("line {0} ends with a carriage return; get a copy of which the ends of lines were not converted")]
    CarriageReturn(u64),
    /// A byte that must be escaped is not.
    #[error("line {line}, byte {column} is a bare control character; write it as \\x{found:02x}")]
    Control {
        /// The line.
        line: u64,
        /// The byte within it.
        column: usize,
        /// The byte there.
        found: u8,
    },
    /// A backslash begins nothing that is known.
    #[error(
        "line {line}, byte {column} begins an unknown escape; known are \\\\, \\t, \\n, \\r and \\x with two digits"
    )]
    Escape {
        /// The line.
        line: u64,
        /// The byte within it.
        column: usize,
    },
    /// The file ends without its last line.
    #[error("it ends after line {0} without a last line that begins with \"end\"; it was cut, get it whole")]
    Cut(u64),
    /// The last line cannot be read.
    #[error("line {0} should be the word end, a number of records and a checksum; get an unchanged copy")]
    End(u64),
    /// The last line says that the pool was damaged. All records that are there were read.
    #[error(
        "line {line} says that the pool was damaged when it was exported: {records} records proved themselves, and others are \
         missing; take those from an older export"
    )]
    Incomplete {
        /// The line.
        line: u64,
        /// Records there are.
        records: u64,
    },
    /// The last line counts other records.
    #[error("line {line} counts {said} records, and there are {found}; get an unchanged copy")]
    Count {
        /// The line.
        line: u64,
        /// Records according to the file.
        said: u64,
        /// Records that were read.
        found: u64,
    },
    /// The bytes are not those that were written.
    #[error(
        "line {line} has the checksum {said:016x}, and that of the file is {found:016x}; get an unchanged copy"
    )]
    Checksum {
        /// The line.
        line: u64,
        /// The checksum in the file.
        said: u64,
        /// The one it has.
        found: u64,
    },
    /// Something stands behind the last line.
    #[error("line {0} stands behind the last; give each export a file of its own")]
    Surplus(u64),
    /// A line of a stanza that is no field.
    #[error(
        "line {0} is neither a field with a colon nor indented; is this a Debian package index, uncompressed?"
    )]
    NoField(u64),
    /// A stanza without a field of its key.
    #[error("the stanza at line {line} has no field {field}; name others with --key")]
    FieldMissing {
        /// The stanza's first line.
        line: u64,
        /// The field.
        field: String,
    },
    /// Two stanzas would have one key, and one of them would be lost.
    #[error("the stanza at line {line} has the key {key}, as one before it; name more fields with --key")]
    KeyTwice {
        /// The stanza's first line.
        line: u64,
        /// The key.
        key: String,
    },
}

impl FormError {
    /// Whether the file is of another form altogether, so that nothing of it was used.
    pub fn is_foreign(&self) -> bool {
        use FormError::{Foreign, Newer, NoField, NoTab, Object};
        matches!(self, Foreign | Newer { .. } | NoField(1) | NoTab(1) | Object { line: 1, .. })
    }
}

/// Why an import ended early. Earlier records stay.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct ImportError {
    /// Records that are certainly in the pool: the first ones of the file.
    pub imported: u64,
    /// The cause.
    pub cause: ImportCause,
}

impl ImportError {
    /// Whether the file was refused as it is, so that nothing of it was used.
    pub fn is_refusal(&self) -> bool {
        let is_refused = match &self.cause {
            ImportCause::Form(error) => return error.is_foreign(),
            ImportCause::NoTables { .. } | ImportCause::NotThere { .. } => true,
            ImportCause::Table(error) => error.kind() == quipu::ErrorKind::Argument,
            ImportCause::Store { .. } => false,
        };
        is_refused && self.imported == 0
    }
}

/// The cause of an import's early end.
#[derive(Debug, thiserror::Error)]
pub enum ImportCause {
    /// The file.
    #[error(transparent)]
    Form(FormError),
    /// The file has tables, and the pool cannot have any.
    #[error(
        "it has the {found}, and the design {design} has no tables; choose one with --table, or import it into a pool of design {}",
        designs_with_tables()
    )]
    NoTables {
        /// The tables of the file, or the one of the record that is next, in words.
        found: String,
        /// The design of the pool.
        design: quipu::Design,
    },
    /// The file does not have the table that is asked for.
    #[error("it has no table {table:?}, only {found}; choose another with --table")]
    NotThere {
        /// The table.
        table: String,
        /// The contents of the file, in words.
        found: String,
    },
    /// The store does not let the table be created or used.
    #[error(transparent)]
    Table(#[from] quipu::Error),
    /// The store did not take the record of this line.
    #[error("line {line}: {source}")]
    Store {
        /// The record's first line.
        line: u64,
        /// Bytes of its key and value.
        wanted: u64,
        /// The store's answer.
        #[source]
        source: quipu::Error,
    },
}

/// The names of the designs that have tables.
fn designs_with_tables() -> String {
    let can = quipu::Design::ALL.iter().filter(|design| design.can().tables);
    let names: Vec<&str> = can.map(|design| design.name()).collect();
    names.join(" or ")
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The form has no place for tables, and there are several, here in words.
    #[error("the form tsv has no place for the names of the {0}; choose one with --table, or another form")]
    Tables(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] quipu::Error),
    /// Writing failed.
    #[error(transparent)]
    Write(#[from] io::Error),
}
