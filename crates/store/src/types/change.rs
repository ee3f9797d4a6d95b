//! [`Entry`], [`Change`] and [`Expiry`]: what an update sees of a key, and how it changes the key.

use std::borrow::Cow;

/// When a value expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Expiry {
    /// Never.
    #[default]
    Never,
    /// At this time, in milliseconds since 1970 by the system's clock.
    At(u64),
}

impl Expiry {
    /// From the form in a record, in which zero means "never".
    pub(crate) fn of_field(field: u64) -> Expiry {
        if field == 0 { Expiry::Never } else { Expiry::At(field) }
    }

    pub(crate) fn field(self) -> u64 {
        match self {
            Expiry::Never => 0,
            Expiry::At(time) => time.max(1),
        }
    }

    /// The time, if there is one.
    ///
    /// ```
    /// use quipu::Expiry;
    /// assert_eq!(Expiry::At(1_000).time(), Some(1_000));
    /// assert_eq!(Expiry::Never.time(), None);
    /// ```
    pub fn time(self) -> Option<u64> {
        match self {
            Expiry::Never => None,
            Expiry::At(time) => Some(time),
        }
    }
}

/// The value of a key and its metadata; see [`Client::update_with`](crate::Client::update_with).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<'v> {
    /// The value.
    pub value: &'v [u8],
    /// When it expires.
    pub expiry: Expiry,
    /// Its [version](crate::Client::version), where the design has versions.
    pub version: Option<u64>,
}

/// A change of a key; see [`Client::update_with`](crate::Client::update_with).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'v> {
    /// It stays as it is.
    Keep,
    /// It gets this value, until it expires. The value is a part of the old one, or a vector.
    Put(Cow<'v, [u8]>, Expiry),
    /// It is deleted.
    Delete,
}

impl<'v> Change<'v> {
    /// A value that never expires: a part of the old one, or a vector.
    pub fn put(value: impl Into<Cow<'v, [u8]>>) -> Change<'v> {
        Change::Put(value.into(), Expiry::Never)
    }

    /// A value that expires at a time, in milliseconds since 1970.
    pub fn put_until(value: impl Into<Cow<'v, [u8]>>, time: u64) -> Change<'v> {
        Change::Put(value.into(), Expiry::At(time))
    }
}
