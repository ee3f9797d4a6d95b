//! Other engines measured beside Quipu: by the same runner, on the same medium, in the same run.
//!
//! A store that is compared only with itself is always the fastest. Here [`engines`] puts RocksDB, redb,
//! fjall, SQLite and pmemkv behind the runner's interface ([`quipu_bench::Engine`]), each at the durability
//! [levels](Level) that it has. [`compare`] runs them and Quipu's own designs one after another in the same
//! place. The failures that an acknowledged write survives differ, and decide most of the speed, so they are
//! part of every result. [`indexes`] puts other indexes in DRAM beside ours, without a store around them.
//!
//! # What the comparison can and cannot say
//!
//! - All engines are embedded and called from the same threads; every value read is copied out and checked.
//! - Each has a block cache that holds all records unless it is limited, and no compression (values do not
//!   compress). Where there is such a setting, it is told that reads are single keys, also where some scan.
//!   Nothing else is tuned.
//! - RocksDB, fjall, redb and SQLite keep keys in order, as Quipu's ordered designs do and pmemkv does not.
//!   It costs them something that only scans make use of.
//! - RocksDB, fjall, redb and SQLite reach the medium through the file system, and are built for disks.
//! - RocksDB and fjall have transactions only in forms of their own (`rocksdb-optimistic`, `rocksdb-locking`,
//!   `fjall-optimistic`), where a single write may cost more. In `transfers`, engines that lock let the
//!   second of two writers wait, and optimistic ones let it begin again.
//! - On memory (`dram`), a sync returns at once and makes nothing safer: figures of `power` mean something
//!   only on a disk.
//!
//! # What it needs
//!
//! redb, fjall and SQLite are built with this crate, the last by a C compiler. RocksDB and pmemkv are the
//! system's and are loaded when they are asked for: `librocksdb.so` (on Debian, from the package
//! `librocksdb-dev`) and `libpmemkv.so.1` (`scripts/pmemkv-from-debian.sh` fetches it). The crate builds
//! without them; its tests say on standard error which they had to leave out.
//!
//! ```text
//! cargo run --release -p quipu-rivals -- ops --engine quipu,rocksdb:process,redb:memory,fjall:process
//! cargo run --release -p quipu-rivals -- transfers --engine xp,rocksdb-locking,sqlite --threads 8
//! cargo run --release -p quipu-rivals -- index --index alex,masstree,btree,congee --keys all
//! cargo run --release -p quipu-rivals -- compare      # the tables of docs/BENCHMARKS.md
//! cargo test -p quipu-rivals
//! ```

pub mod compare;
pub mod engines;
pub mod indexes;
mod level;
mod place;

pub use level::{Level, Survival};
pub use place::Place;
