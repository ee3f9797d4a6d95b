//! Faults of a file of records, and of its transfer.

use std::io;

/// The fault of a file. Lines, and bytes within them, count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// Reading failed.
    #[error("it cannot be read on: {0}")]
    Read(#[from] io::Error),
    /// A line is not one that may stand there.
    #[error("line {line} {what}")]
    Line {
        /// The line.
        line: u64,
        /// Its fault and, behind a semicolon, the next step.
        what: String,
    },
    /// The file ends behind this line, without its last one.
    #[error(
        "it ends after line {0} without a last line that begins with {{\"end\"; it was cut, get it whole"
    )]
    Cut(u64),
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
}

impl FormError {
    pub(super) fn at(line: u64, what: impl Into<String>) -> FormError {
        FormError::Line { line, what: what.into() }
    }

    /// The fault of a line, or a stanza, that is longer than a record can be.
    pub(super) fn too_long(line: u64, limit: u64) -> FormError {
        let what = format!("ends no record within {limit} bytes, and the pool takes none that long");
        FormError::at(line, format!("{what}; create it with larger zones"))
    }

    /// Refuses a line that ends with a carriage return, before its line feed.
    pub(super) fn expect_no_return(line: u64, text: &[u8]) -> Result<(), FormError> {
        let what = "ends with a carriage return; get a copy of which the ends of lines were not converted";
        if text.ends_with(b"\r") { Err(FormError::at(line, what)) } else { Ok(()) }
    }

    /// Whether the file is wrong from its beginning, so that nothing of it was used.
    pub fn is_foreign(&self) -> bool {
        matches!(self, FormError::Cut(0) | FormError::Line { line: 1, .. })
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
            ImportCause::Tables(_) => true,
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
    /// The file has tables, and the pool cannot have any; or it has other ones than the one asked for.
    #[error("it has {0}")]
    Tables(String),
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
