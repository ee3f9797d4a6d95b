//! The three forms of a database: without transactions, and with either kind of them.
//!
//! The C interface has functions of its own for each form, which take the same arguments after the handle.
//! So a handle has one type here, and the form names the functions that go with it.

use super::database::{Error, check};
use super::functions::{ColumnFamily, Db, DbOptions, Functions};
use crate::engines::Kind;
use std::ffi::CStr;
use std::ptr;

/// How a database was opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `DB`.
    Plain,
    /// `OptimisticTransactionDB`: a transaction is checked when it commits.
    Optimistic,
    /// `TransactionDB`: a transaction locks its keys, and so does every single write.
    Locking,
}

/// An open database, whatever its form.
pub struct Opened {
    pub form: Form,
    /// The handle for single operations.
    pub db: *mut Db,
    /// The handle that begins transactions, and that is closed: another one for [`Form::Optimistic`] alone.
    pub owner: *mut Db,
    pub family: *mut ColumnFamily,
}

impl From<Kind> for Form {
    fn from(kind: Kind) -> Form {
        match kind {
            Kind::RocksDbOptimistic => Form::Optimistic,
            Kind::RocksDbLocking => Form::Locking,
            _ => Form::Plain,
        }
    }
}

impl Form {
    /// The function for single operations on a handle of this form. An optimistic database lends a handle
    /// that takes the functions of [`Form::Plain`].
    pub fn of<F>(self, base: F, locking: F) -> F {
        if self == Form::Locking { locking } else { base }
    }

    /// Opens a database with its default column family, which is handed over too.
    pub fn open(
        self,
        functions: &Functions,
        path: &CStr,
        options: *const DbOptions,
    ) -> Result<Opened, Error> {
        let names = &c"default".as_ptr();
        let (mut family, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: one name, one set of options and room for one handle, as the count says; all outlive the
        // call. Settings of transactions are copied, and destroyed once.
        let owner = unsafe {
            match self {
                Form::Plain => (functions.open_column_families)(
                    options,
                    path.as_ptr(),
                    1,
                    names,
                    &options,
                    &mut family,
                    &mut error,
                ),
                Form::Optimistic => (functions.optimistictransactiondb_open_column_families)(
                    options,
                    path.as_ptr(),
                    1,
                    names,
                    &options,
                    &mut family,
                    &mut error,
                ),
                Form::Locking => {
                    let settings = (functions.transactiondb_options_create)();
                    let owner = (functions.transactiondb_open_column_families)(
                        options,
                        settings,
                        path.as_ptr(),
                        1,
                        names,
                        &options,
                        &mut family,
                        &mut error,
                    );
                    (functions.transactiondb_options_destroy)(settings);
                    owner
                }
            }
        };
        check(functions, error)?;
        let db = match self {
            // SAFETY: the database is open; the handle for single operations is good until it is closed.
            Form::Optimistic => unsafe { (functions.optimistictransactiondb_get_base_db)(owner) },
            Form::Plain | Form::Locking => owner,
        };
        Ok(Opened { form: self, db, owner, family })
    }
}

impl Opened {
    /// Closes the database.
    ///
    /// # Safety
    /// It happens once, nothing is done with the database after it, and whatever it has lent was given back.
    pub unsafe fn close(&self, functions: &Functions) {
        // SAFETY: as the caller promises; the family goes before its database, and the lent handle before the
        // one that it came from.
        unsafe {
            (functions.column_family_handle_destroy)(self.family);
            match self.form {
                Form::Plain => (functions.close)(self.owner),
                Form::Optimistic => {
                    (functions.optimistictransactiondb_close_base_db)(self.db);
                    (functions.optimistictransactiondb_close)(self.owner);
                }
                Form::Locking => (functions.transactiondb_close)(self.owner),
            }
        }
    }
}
