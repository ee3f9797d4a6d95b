//! A safe skin around the C interface: one open database.
//!
//! `cmap` may be used by many threads at once. The library keeps the last error of each thread, and it is
//! read here at once, on the thread that was told.

use super::environment;
use super::functions::{Db, DbConfig, Functions, NOT_FOUND, OK, load};
use crate::engines::Setup;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{ptr, slice};

/// The engine of pmemkv that is meant for use: a concurrent hash map.
const ENGINE: &CStr = c"cmap";

/// Why pmemkv did not do something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library is not there.
    #[error(
        "pmemkv cannot be loaded ({0}); run scripts/pmemkv-from-debian.sh and set LD_LIBRARY_PATH as it says, or \
         leave pmemkv out"
    )]
    Missing(String),
    /// The libraries would persist in another way than the level says.
    #[error("libpmem reads its environment when it is loaded; for this level, run: env {0} COMMAND")]
    Environment(String),
    /// It answered with an error.
    #[error("pmemkv: {0}")]
    Refused(String),
}

/// Whether the library can be loaded.
pub fn present() -> Result<(), Error> {
    load().map(drop).map_err(Error::Missing)
}

/// An open database.
pub struct Database {
    functions: &'static Functions,
    db: *mut Db,
}

// SAFETY: a database may be used and closed by any thread, as `cmap` promises.
unsafe impl Send for Database {}
// SAFETY: `put`, `get`, `remove` and `count_all` of `cmap` may run at the same time.
unsafe impl Sync for Database {}

/// Settings that have not been given away.
struct Settings(&'static Functions, *mut DbConfig);

impl Drop for Settings {
    fn drop(&mut self) {
        // SAFETY: made by `config_new` and destroyed once; nothing is done where they were given away.
        unsafe { (self.0.config_delete)(self.1) }
    }
}

impl Settings {
    fn new(functions: &'static Functions, path: &CStr, bytes: u64) -> Result<Settings, Error> {
        // SAFETY: takes nothing.
        let settings = Settings(functions, unsafe { (functions.config_new)() });
        if settings.1.is_null() {
            return Err(refusal(functions));
        }
        // SAFETY: the settings are ours alone, and the path is copied during the call.
        let put = unsafe {
            [
                (functions.config_put_path)(settings.1, path.as_ptr()),
                (functions.config_put_size)(settings.1, bytes),
                (functions.config_put_force_create)(settings.1, true),
            ]
        };
        put.into_iter().try_for_each(|status| check(functions, status))?;
        Ok(settings)
    }

    /// Opening takes the settings, also where it fails.
    fn give_away(mut self) -> *mut DbConfig {
        std::mem::replace(&mut self.1, ptr::null_mut())
    }
}

impl Database {
    /// Makes a database of `bytes` in a file that does not exist, persisting as `setup` says.
    pub fn create(path: &Path, bytes: u64, setup: &Setup) -> Result<Database, Error> {
        if !environment::fits(setup.level, setup.medium) {
            return Err(Error::Environment(environment::as_words(setup.level, setup.medium)));
        }
        let functions = load().map_err(Error::Missing)?;
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|e| Error::Refused(e.to_string()))?;
        let settings = Settings::new(functions, &path, bytes)?;
        let mut db = ptr::null_mut();
        // SAFETY: the name ends with a zero byte, the settings are good and now the library's, and there is
        // room for one handle.
        let status = unsafe { (functions.open)(ENGINE.as_ptr(), settings.give_away(), &mut db) };
        check(functions, status)?;
        Ok(Database { functions, db })
    }

    /// Puts a value.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let (key_bytes, value_bytes) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the database is open as long as `self` lives, and the slices are copied during the call.
        let status = unsafe { (self.functions.put)(self.db, key_bytes, key.len(), value_bytes, value.len()) };
        check(self.functions, status)
    }

    /// Replaces the content of `out` by the value of `key`, and tells whether there is one.
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        let sink = ptr::from_mut(out).cast::<c_void>();
        // SAFETY: as in `put`; `copy` takes its last argument for the vector that it is, and nobody else uses
        // that during the call.
        let status = unsafe { (self.functions.get)(self.db, key.as_ptr().cast(), key.len(), copy, sink) };
        found(self.functions, status)
    }

    /// Deletes a key, and tells whether it was there.
    pub fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        // SAFETY: as in `put`.
        let status = unsafe { (self.functions.remove)(self.db, key.as_ptr().cast(), key.len()) };
        found(self.functions, status)
    }

    /// Records present.
    pub fn count(&self) -> Result<u64, Error> {
        let mut count = 0;
        // SAFETY: as in `put`, with room for one number.
        check(self.functions, unsafe { (self.functions.count_all)(self.db, &mut count) })?;
        Ok(count as u64)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: opened by `create`, and closed once.
        unsafe { (self.functions.close)(self.db) }
    }
}

/// Appends a value that was found to the vector behind `sink`.
///
/// # Safety
/// `sink` is a `Vec<u8>` that nobody else uses, and `value` names `length` bytes.
unsafe extern "C" fn copy(value: *const c_char, length: usize, sink: *mut c_void) {
    if length > 0 {
        // SAFETY: both are what the caller promises. An empty value may have no address.
        let (out, value) =
            unsafe { (&mut *sink.cast::<Vec<u8>>(), slice::from_raw_parts(value.cast(), length)) };
        out.extend_from_slice(value);
    }
}

fn found(functions: &Functions, status: c_int) -> Result<bool, Error> {
    if status == NOT_FOUND { Ok(false) } else { check(functions, status).map(|()| true) }
}

fn check(functions: &Functions, status: c_int) -> Result<(), Error> {
    if status == OK { Ok(()) } else { Err(refusal(functions)) }
}

/// The library's text for this thread's last failure.
fn refusal(functions: &Functions) -> Error {
    // SAFETY: a string that ends with a zero byte and is good until this thread's next call.
    let text = unsafe { CStr::from_ptr((functions.errormsg)()) };
    Error::Refused(text.to_string_lossy().into_owned())
}
