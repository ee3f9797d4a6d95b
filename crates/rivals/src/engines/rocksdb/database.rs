//! A safe skin around the C interface: one open database with the options it is used with.
//!
//! The database may be used by many threads at once (RocksDB promises that of it, and options are only read
//! once it is open). Every error string and every value that the library hands out is freed here, on all
//! paths.

use super::form::{Form, Opened};
use super::functions::{
    Cursor, Db, DbOptions, Functions, PinnableSlice, ReadOptions, WriteBatch, WriteOptions, load,
};
use crate::engines::Setup;
use crate::level::Level;
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{ptr, slice};

/// `rocksdb_no_compression`.
const NO_COMPRESSION: c_int = 0;

/// Keys of one batched read, at most; more are read in several.
const BATCH: usize = 32;

/// Why RocksDB did not do something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library is not there.
    #[error("RocksDB cannot be loaded ({0}); install it, on Debian as librocksdb-dev, or leave rocksdb out")]
    Missing(String),
    /// It answered with an error.
    #[error("RocksDB: {0}")]
    Refused(String),
}

/// Whether the library can be loaded.
pub fn present() -> Result<(), Error> {
    load().map(drop).map_err(Error::Missing)
}

/// An open database.
pub struct Database {
    functions: &'static Functions,
    opened: Opened,
    write: *mut WriteOptions,
    read: *mut ReadOptions,
}

// SAFETY: RocksDB's database and column family may be used and closed by any thread; the options belong to
// this value and are not changed after `open`.
unsafe impl Send for Database {}
// SAFETY: as above: reads and writes may run at the same time on one database, and options are only read.
unsafe impl Sync for Database {}

/// Settings that end with their scope.
struct Options(&'static Functions, *mut DbOptions);

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: made by `options_create` and destroyed once; an open database keeps copies.
        unsafe { (self.0.options_destroy)(self.1) }
    }
}

impl Options {
    fn new(functions: &'static Functions, setup: &Setup) -> Options {
        let mebibytes = setup.cache.div_ceil(1 << 20);
        let threads = c_int::try_from(setup.threads.max(2)).unwrap_or(c_int::MAX);
        // SAFETY: the options have just been made, and no one else knows them.
        unsafe {
            let options = (functions.options_create)();
            (functions.options_set_create_if_missing)(options, 1);
            (functions.options_set_error_if_exists)(options, 1);
            (functions.options_set_compression)(options, NO_COMPRESSION);
            (functions.options_increase_parallelism)(options, threads);
            (functions.options_optimize_for_point_lookup)(options, mebibytes);
            Options(functions, options)
        }
    }

    /// Lets the write-ahead log stand in a folder of its own.
    fn log_in(&self, folder: &Path) -> Result<(), Error> {
        let folder = c_path(folder)?;
        // SAFETY: the options are not in use yet, and the name is copied during the call.
        unsafe { (self.0.options_set_wal_dir)(self.1, folder.as_ptr()) }
        Ok(())
    }
}

fn c_path(path: &Path) -> Result<CString, Error> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| Error::Refused(error.to_string()))
}

impl Database {
    /// Makes a database in a folder that has none.
    pub fn create(path: &Path, setup: &Setup) -> Result<Database, Error> {
        let functions = load().map_err(Error::Missing)?;
        let path = c_path(path)?;
        let options = Options::new(functions, setup);
        setup.place.log().map_or(Ok(()), |folder| options.log_in(folder))?;
        let opened = Form::from(setup.kind).open(functions, &path, options.1)?;
        // SAFETY: the options have just been made, and no one else knows them.
        let (write, read) = unsafe {
            let write = (functions.writeoptions_create)();
            (functions.writeoptions_disable_WAL)(write, c_int::from(setup.level == Level::Memory));
            (functions.writeoptions_set_sync)(write, u8::from(setup.level == Level::Power));
            (write, (functions.readoptions_create)())
        };
        Ok(Database { functions, opened, write, read })
    }

    /// The form in which it was opened.
    pub fn form(&self) -> Form {
        self.opened.form
    }

    /// The functions of the library.
    pub fn functions(&self) -> &'static Functions {
        self.functions
    }

    /// The handle that begins transactions, good as long as `self` lives.
    pub fn owner(&self) -> *mut Db {
        self.opened.owner
    }

    /// How all is written, good as long as `self` lives.
    pub fn write_options(&self) -> *const WriteOptions {
        self.write
    }

    /// How all is read, good as long as `self` lives.
    pub fn read_options(&self) -> *const ReadOptions {
        self.read
    }

    /// Puts a value.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut error = ptr::null_mut();
        let (key_bytes, value_bytes) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the database is open as long as `self` lives, and the slices are copied during the call.
        unsafe {
            let put = self.form().of(self.functions.put, self.functions.transactiondb_put);
            put(self.opened.db, self.write, key_bytes, key.len(), value_bytes, value.len(), &mut error);
        }
        check(self.functions, error)
    }

    /// Puts many pairs as one write.
    pub fn put_many(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        let batch = Batch::new(self.functions);
        for (key, value) in pairs {
            let (key_bytes, value_bytes) = (key.as_ptr().cast(), value.as_ptr().cast());
            // SAFETY: the batch lives until the end of this function, and the slices are copied during the
            // call.
            unsafe {
                let put = self.functions.writebatch_put;
                put(batch.1, key_bytes, key.len(), value_bytes, value.len());
            }
        }
        let mut error = ptr::null_mut();
        let write = self.form().of(self.functions.write, self.functions.transactiondb_write);
        // SAFETY: as in `put`.
        unsafe { write(self.opened.db, self.write, batch.1, &mut error) }
        check(self.functions, error)
    }

    /// Calls `each` with up to so many pairs in the order of keys, from a key on, and tells with how many.
    pub fn scan(
        &self,
        from: &[u8],
        count: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Error> {
        let mut place = Scan::from(self, from);
        let mut found = 0;
        while found < count
            && let Some((key, value)) = place.pair()
        {
            each(key, value);
            found += 1;
            place.go_on();
        }
        place.check().map(|()| found)
    }

    /// Deletes a key, whether it is there or not.
    pub fn delete(&self, key: &[u8]) -> Result<(), Error> {
        let mut error = ptr::null_mut();
        let delete = self.form().of(self.functions.delete, self.functions.transactiondb_delete);
        // SAFETY: as in `put`.
        unsafe { delete(self.opened.db, self.write, key.as_ptr().cast(), key.len(), &mut error) }
        check(self.functions, error)
    }

    /// Reads a value in place, and gives what `read` makes of it.
    pub fn get<T>(&self, key: &[u8], read: impl FnOnce(Option<&[u8]>) -> T) -> Result<T, Error> {
        let mut error = ptr::null_mut();
        let get = self.form().of(self.functions.get_pinned, self.functions.transactiondb_get_pinned);
        // SAFETY: as in `put`.
        let found = unsafe { get(self.opened.db, self.read, key.as_ptr().cast(), key.len(), &mut error) };
        let found = Pinned::new(self.functions, found);
        check(self.functions, error)?;
        Ok(read(found.bytes()))
    }

    /// Reads many keys in batches, and calls `each` with the position and value of every one. Of a locking
    /// database one after another, since the C interface has no batch that lends values.
    pub fn get_many(
        &self,
        keys: &[Vec<u8>],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        if self.form() == Form::Locking {
            let mut keys = keys.iter().enumerate();
            return keys.try_for_each(|(position, key)| self.get(key, |value| each(position, value)));
        }
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            let mut names = [ptr::null::<c_char>(); BATCH];
            let mut lengths = [0; BATCH];
            for ((name, length), key) in names.iter_mut().zip(&mut lengths).zip(keys) {
                (*name, *length) = (key.as_ptr().cast(), key.len());
            }
            let mut slices = [ptr::null_mut(); BATCH];
            let mut errors = [ptr::null_mut(); BATCH];
            // SAFETY: as in `put`; every array has room for the count, which is at most `BATCH`.
            unsafe {
                (self.functions.batched_multi_get_cf)(
                    self.opened.db,
                    self.read,
                    self.opened.family,
                    keys.len(),
                    names.as_ptr(),
                    lengths.as_ptr(),
                    slices.as_mut_ptr(),
                    errors.as_mut_ptr(),
                    false,
                );
            }
            let found = slices.map(|slice| Pinned::new(self.functions, slice));
            // All are looked at before the first is returned, since each is to be freed.
            errors.map(|error| check(self.functions, error)).into_iter().collect::<Result<(), Error>>()?;
            for (position, value) in found.iter().take(keys.len()).enumerate() {
                each(batch * BATCH + position, value.bytes());
            }
        }
        Ok(())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: all were made by `create` and are destroyed once.
        unsafe {
            self.opened.close(self.functions);
            (self.functions.writeoptions_destroy)(self.write);
            (self.functions.readoptions_destroy)(self.read);
        }
    }
}

/// Writes that are collected, until the end of its scope.
struct Batch(&'static Functions, *mut WriteBatch);

impl Batch {
    fn new(functions: &'static Functions) -> Batch {
        // SAFETY: it makes a batch that belongs to this value.
        Batch(functions, unsafe { (functions.writebatch_create)() })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: made by `writebatch_create` and destroyed once; a write that is over has copied it.
        unsafe { (self.0.writebatch_destroy)(self.1) }
    }
}

/// A place among the keys of an open database.
struct Scan<'a> {
    database: &'a Database,
    cursor: *mut Cursor,
}

impl<'a> Scan<'a> {
    fn from(database: &'a Database, from: &[u8]) -> Scan<'a> {
        let Functions { create_iterator, transactiondb_create_iterator, iter_seek, .. } = database.functions;
        let create = database.form().of(create_iterator, transactiondb_create_iterator);
        // SAFETY: the database is open as long as it is borrowed, and the slice is copied during the call.
        unsafe {
            let cursor = create(database.opened.db, database.read);
            iter_seek(cursor, from.as_ptr().cast(), from.len());
            Scan { database, cursor }
        }
    }

    /// The pair here, unless this is the end.
    fn pair(&self) -> Option<(&[u8], &[u8])> {
        let Functions { iter_valid, iter_key, iter_value, .. } = self.database.functions;
        // SAFETY: the cursor belongs to this value; its key and value are good until it moves.
        unsafe {
            let lent = |of: unsafe extern "C" fn(*const Cursor, *mut usize) -> *const c_char| {
                let mut length = 0;
                let bytes = of(self.cursor, &mut length);
                // Nothing may have no address.
                if length == 0 { &[] } else { slice::from_raw_parts(bytes.cast(), length) }
            };
            (iter_valid(self.cursor) != 0).then(|| (lent(*iter_key), lent(*iter_value)))
        }
    }

    fn go_on(&mut self) {
        // SAFETY: the cursor stands at a pair, as `pair` has said, and nobody holds that any more.
        unsafe { (self.database.functions.iter_next)(self.cursor) }
    }

    /// Whether it has ended for want of keys, and not by a failure.
    fn check(&self) -> Result<(), Error> {
        let mut error = ptr::null_mut();
        // SAFETY: the cursor belongs to this value.
        unsafe { (self.database.functions.iter_get_error)(self.cursor, &mut error) }
        check(self.database.functions, error)
    }
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `create_iterator` and destroyed once, before its database.
        unsafe { (self.database.functions.iter_destroy)(self.cursor) }
    }
}

/// A value lent by the database, or none.
pub struct Pinned {
    functions: &'static Functions,
    slice: *mut PinnableSlice,
}

impl Pinned {
    /// Takes care of what the library has given out.
    pub fn new(functions: &'static Functions, slice: *mut PinnableSlice) -> Pinned {
        Pinned { functions, slice }
    }

    /// The value.
    pub fn bytes(&self) -> Option<&[u8]> {
        if self.slice.is_null() {
            return None;
        }
        let mut length = 0;
        // SAFETY: the slice is good until it is destroyed, when `self` is dropped; it names `length` bytes.
        unsafe {
            let bytes = (self.functions.pinnableslice_value)(self.slice, &mut length);
            // An empty value may have no address.
            Some(if length == 0 { &[] } else { slice::from_raw_parts(bytes.cast(), length) })
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.slice.is_null() {
            // SAFETY: given out by the library, and destroyed once.
            unsafe { (self.functions.pinnableslice_destroy)(self.slice) }
        }
    }
}

/// The error that a call has left behind, if it has.
pub fn check(functions: &Functions, error: *mut c_char) -> Result<(), Error> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the library leaves a string that ends with a zero byte and is the caller's to free, once.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        (functions.free)(error.cast());
        Err(Error::Refused(text))
    }
}
