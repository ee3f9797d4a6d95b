//! The functions of pmemkv's C interface (`libpmemkv.h`, version 1.4) that are used here.

use crate::engines::library::{functions, opaque};
use std::ffi::{c_char, c_int, c_void};

/// `PMEMKV_STATUS_OK`.
pub const OK: c_int = 0;

/// `PMEMKV_STATUS_NOT_FOUND`.
pub const NOT_FOUND: c_int = 2;

/// Called with a value that is found, while nobody can change it.
///
/// # Safety
/// Its arguments are the value's bytes, their number, and what was given to `get` to be passed on.
pub type Found = unsafe extern "C" fn(*const c_char, usize, *mut c_void);

opaque! {
    /// An open database.
    Db;
    /// Settings of a database.
    DbConfig;
}

functions! {
    library: "libpmemkv.so.1", header: "libpmemkv.h", prefix: "pmemkv_";
    config_new: fn() -> *mut DbConfig;
    config_delete: fn(*mut DbConfig);
    config_put_path: fn(*mut DbConfig, *const c_char) -> c_int;
    config_put_size: fn(*mut DbConfig, u64) -> c_int;
    config_put_force_create: fn(*mut DbConfig, bool) -> c_int;
    open: fn(*const c_char, *mut DbConfig, *mut *mut Db) -> c_int;
    close: fn(*mut Db);
    count_all: fn(*mut Db, *mut usize) -> c_int;
    get: fn(*mut Db, *const c_char, usize, Found, *mut c_void) -> c_int;
    put: fn(*mut Db, *const c_char, usize, *const c_char, usize) -> c_int;
    remove: fn(*mut Db, *const c_char, usize) -> c_int;
    errormsg: fn() -> *const c_char;
}
