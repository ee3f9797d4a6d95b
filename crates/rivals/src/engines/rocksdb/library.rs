//! The functions of RocksDB's C interface (`rocksdb/c.h`) that are used here, found in the system's library.
//!
//! Declared by hand because few are needed; the interface is kept stable by RocksDB. The library is loaded once
//! and never unloaded: its threads may outlive every database.

use libloading::Library;
use std::ffi::{c_char, c_int, c_uchar};
use std::sync::OnceLock;

/// The name under which `librocksdb-dev` installs the library.
const FILE: &str = "librocksdb.so";

/// Declares opaque types that exist behind pointers alone.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[repr(C)] pub struct $name([u8; 0]);)*
    };
}

opaque! {
    /// An open database.
    Db;
    /// Settings of a database.
    DbOptions;
    /// How to write.
    WriteOptions;
    /// How to read.
    ReadOptions;
    /// A column family of an open database.
    ColumnFamily;
    /// A value lent by the database.
    PinnableSlice;
}

/// Declares the table of functions, and how it is filled from a library.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, each called as in `rocksdb/c.h` without the prefix `rocksdb_`.
        ///
        /// # Safety
        /// What `rocksdb/c.h` asks of callers: handles that are open, and as many bytes as are said.
        #[allow(non_snake_case)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn find(library: &Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    $(
                        // SAFETY: the type is that of the declaration in `rocksdb/c.h`, and the library is never
                        // unloaded, so the copied pointer stays good.
                        $name: unsafe { *library.get(concat!("rocksdb_", stringify!($name)).as_bytes())? },
                    )*
                })
            }
        }
    };
}

functions! {
    options_create: fn() -> *mut DbOptions;
    options_destroy: fn(*mut DbOptions);
    options_set_create_if_missing: fn(*mut DbOptions, c_uchar);
    options_set_error_if_exists: fn(*mut DbOptions, c_uchar);
    options_set_compression: fn(*mut DbOptions, c_int);
    options_increase_parallelism: fn(*mut DbOptions, c_int);
    options_optimize_for_point_lookup: fn(*mut DbOptions, u64);
    writeoptions_create: fn() -> *mut WriteOptions;
    writeoptions_destroy: fn(*mut WriteOptions);
    writeoptions_disable_WAL: fn(*mut WriteOptions, c_int);
    writeoptions_set_sync: fn(*mut WriteOptions, c_uchar);
    readoptions_create: fn() -> *mut ReadOptions;
    readoptions_destroy: fn(*mut ReadOptions);
    open_column_families: fn(
        *const DbOptions,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const DbOptions,
        *mut *mut ColumnFamily,
        *mut *mut c_char
    ) -> *mut Db;
    column_family_handle_destroy: fn(*mut ColumnFamily);
    close: fn(*mut Db);
    put: fn(*mut Db, *const WriteOptions, *const c_char, usize, *const c_char, usize, *mut *mut c_char);
    delete: fn(*mut Db, *const WriteOptions, *const c_char, usize, *mut *mut c_char);
    get_pinned: fn(
        *mut Db,
        *const ReadOptions,
        *const c_char,
        usize,
        *mut *mut c_char
    ) -> *mut PinnableSlice;
    batched_multi_get_cf: fn(
        *mut Db,
        *const ReadOptions,
        *mut ColumnFamily,
        usize,
        *const *const c_char,
        *const usize,
        *mut *mut PinnableSlice,
        *mut *mut c_char,
        bool
    );
    pinnableslice_value: fn(*const PinnableSlice, *mut usize) -> *const c_char;
    pinnableslice_destroy: fn(*mut PinnableSlice);
    free: fn(*mut std::ffi::c_void);
}

/// The library, loaded at the first call.
///
/// # Errors
/// Why it cannot be loaded, if it is not installed or too old.
pub fn load() -> Result<&'static Functions, String> {
    static LOADED: OnceLock<Result<Functions, String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        // SAFETY: what runs at loading are the constructors of RocksDB and of the libraries that it names, as in
        // any program that is linked with it.
        let library = unsafe { Library::new(FILE) }.map_err(|error| error.to_string())?;
        let functions = Functions::find(&library).map_err(|error| error.to_string());
        std::mem::forget(library);
        functions
    });
    loaded.as_ref().map_err(Clone::clone)
}
