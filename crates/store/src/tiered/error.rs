//! Errors of the chain as those of the store.

use crate::types::error::Error;
use quipu_parts::commit::ring::Poisoned;
use quipu_parts::heap::chain::ChainError;

impl From<ChainError> for Error {
    fn from(error: ChainError) -> Error {
        let text = error.to_string();
        match error {
            ChainError::Full(shortage) => shortage.into(),
            ChainError::TooLong { len, limit } => Error::BatchTooLarge { len, limit },
            ChainError::Damaged { what, offset } => Error::damaged(what, offset, 0),
            ChainError::Missing(_) => Error::damaged(text, 0, 0),
            ChainError::Unknown { .. } => Error::NewerFormat { what: text },
            ChainError::Poisoned(poisoned) => poisoned.into(),
            ChainError::Dropped => Error::TableDropped,
            ChainError::Space(error) => error.into(),
            _ => Error::Option(text),
        }
    }
}

impl From<Poisoned> for Error {
    fn from(_: Poisoned) -> Error {
        Error::BackgroundFailed
    }
}
