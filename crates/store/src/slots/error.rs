//! Errors of a heap of slots as errors of the store.

use crate::types::error::Error;
use quipu_parts::heap::slots::SlotError;

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
