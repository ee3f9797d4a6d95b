//! What the errors of the parts are to a caller of the store.

use crate::types::error::Error;
use quipu_parts::heap::slots::SlotError;
use quipu_parts::index::cceh::CcehError;

impl From<CcehError> for Error {
    fn from(error: CcehError) -> Error {
        match error {
            CcehError::Full(shortage) => shortage.into(),
            CcehError::Absent => Error::damaged("the root of the index, which the superblock names,", 0, 0),
            CcehError::Space(error) => error.into(),
            other => Error::Option(other.to_string()),
        }
    }
}

impl From<SlotError> for Error {
    fn from(error: SlotError) -> Error {
        match error {
            SlotError::Full(shortage) => shortage.into(),
            SlotError::WrongSize { key, value } => Error::RecordSize { key, value },
            SlotError::Damaged { what, offset } => Error::damaged(what, offset, 0),
            SlotError::Space(error) => error.into(),
            SlotError::NotInPlace => Error::NotInPlace,
            other => Error::Option(other.to_string()),
        }
    }
}
