//! The functions of RocksDB's C interface (`rocksdb/c.h`) that are used here, found in the system's library.
//!
//! Declared by hand because few are needed; the interface is kept stable by RocksDB.

use crate::engines::library::{functions, opaque};
use std::ffi::{c_char, c_int, c_uchar};

opaque! {
    /// An open database, of any form.
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
    /// Writes that take effect together.
    WriteBatch;
    /// A place among the keys.
    Cursor;
    /// Settings of a database with locking transactions.
    LockingOptions;
    /// How to begin a transaction, of either kind.
    TransactionOptions;
    /// A transaction, of either kind.
    Transaction;
}

functions! {
    // As `librocksdb-dev` installs it.
    library: "librocksdb.so", header: "rocksdb/c.h", prefix: "rocksdb_";
    options_create: fn() -> *mut DbOptions;
    options_destroy: fn(*mut DbOptions);
    options_set_create_if_missing: fn(*mut DbOptions, c_uchar);
    options_set_error_if_exists: fn(*mut DbOptions, c_uchar);
    options_set_compression: fn(*mut DbOptions, c_int);
    options_set_wal_dir: fn(*mut DbOptions, *const c_char);
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
    writebatch_create: fn() -> *mut WriteBatch;
    writebatch_put: fn(*mut WriteBatch, *const c_char, usize, *const c_char, usize);
    writebatch_destroy: fn(*mut WriteBatch);
    write: fn(*mut Db, *const WriteOptions, *mut WriteBatch, *mut *mut c_char);
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
    create_iterator: fn(*mut Db, *const ReadOptions) -> *mut Cursor;
    iter_seek: fn(*mut Cursor, *const c_char, usize);
    iter_valid: fn(*const Cursor) -> c_uchar;
    iter_next: fn(*mut Cursor);
    iter_key: fn(*const Cursor, *mut usize) -> *const c_char;
    iter_value: fn(*const Cursor, *mut usize) -> *const c_char;
    iter_get_error: fn(*const Cursor, *mut *mut c_char);
    iter_destroy: fn(*mut Cursor);
    pinnableslice_value: fn(*const PinnableSlice, *mut usize) -> *const c_char;
    pinnableslice_destroy: fn(*mut PinnableSlice);
    free: fn(*mut std::ffi::c_void);

    optimistictransactiondb_open_column_families: fn(
        *const DbOptions,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const DbOptions,
        *mut *mut ColumnFamily,
        *mut *mut c_char
    ) -> *mut Db;
    optimistictransactiondb_get_base_db: fn(*mut Db) -> *mut Db;
    optimistictransactiondb_close_base_db: fn(*mut Db);
    optimistictransactiondb_close: fn(*mut Db);
    optimistictransaction_options_create: fn() -> *mut TransactionOptions;
    optimistictransaction_options_destroy: fn(*mut TransactionOptions);
    optimistictransaction_options_set_set_snapshot: fn(*mut TransactionOptions, c_uchar);
    optimistictransaction_begin: fn(
        *mut Db,
        *const WriteOptions,
        *const TransactionOptions,
        *mut Transaction
    ) -> *mut Transaction;

    transactiondb_options_create: fn() -> *mut LockingOptions;
    transactiondb_options_destroy: fn(*mut LockingOptions);
    transactiondb_open_column_families: fn(
        *const DbOptions,
        *const LockingOptions,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const DbOptions,
        *mut *mut ColumnFamily,
        *mut *mut c_char
    ) -> *mut Db;
    transactiondb_close: fn(*mut Db);
    transactiondb_put: fn(
        *mut Db,
        *const WriteOptions,
        *const c_char,
        usize,
        *const c_char,
        usize,
        *mut *mut c_char
    );
    transactiondb_write: fn(*mut Db, *const WriteOptions, *mut WriteBatch, *mut *mut c_char);
    transactiondb_delete: fn(*mut Db, *const WriteOptions, *const c_char, usize, *mut *mut c_char);
    transactiondb_get_pinned: fn(
        *mut Db,
        *const ReadOptions,
        *const c_char,
        usize,
        *mut *mut c_char
    ) -> *mut PinnableSlice;
    transactiondb_create_iterator: fn(*mut Db, *const ReadOptions) -> *mut Cursor;
    transaction_options_create: fn() -> *mut TransactionOptions;
    transaction_options_destroy: fn(*mut TransactionOptions);
    transaction_options_set_set_snapshot: fn(*mut TransactionOptions, c_uchar);
    transaction_options_set_deadlock_detect: fn(*mut TransactionOptions, c_uchar);
    transaction_begin: fn(
        *mut Db,
        *const WriteOptions,
        *const TransactionOptions,
        *mut Transaction
    ) -> *mut Transaction;

    transaction_get_pinned_for_update: fn(
        *mut Transaction,
        *const ReadOptions,
        *const c_char,
        usize,
        c_uchar,
        *mut *mut c_char
    ) -> *mut PinnableSlice;
    transaction_put: fn(*mut Transaction, *const c_char, usize, *const c_char, usize, *mut *mut c_char);
    transaction_commit: fn(*mut Transaction, *mut *mut c_char);
    transaction_rollback: fn(*mut Transaction, *mut *mut c_char);
    transaction_destroy: fn(*mut Transaction);
}
