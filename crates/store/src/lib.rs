//! A durable key-value store for persistent memory, and for plain files.
//!
//! A [`Store`] is a pool that is open; a [`Client`] is one thread's access to it. Keys and values are bytes. Every write
//! is durable when its method returns: what that means on the medium at hand, the store says itself
//! ([`Store::statement`]).
//!
//! ```
//! use quipu::{Options, Store};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("pool");
//! let store = Store::create(&path, &Options::new().size(64 << 20))?;
//! let mut client = store.client();
//! client.put(b"llama", b"wool")?;
//! client.update(b"count", |old| Some([old.map_or(1, |old| old[0] + 1)]))?;
//! assert!(client.put_if_absent(b"alpaca", b"finer wool")?);
//! assert!(client.remove(b"llama")?);
//!
//! // In place, without a copy, for as long as the guard lives.
//! let guard = client.pin();
//! assert_eq!(guard.get(b"count")?.as_deref(), Some(&[1][..]));
//! for (key, value) in &guard {
//!     println!("{} = {value:?}", key.escape_ascii());
//! }
//! drop(guard);
//!
//! // Closing is optional; it makes the next open cheap.
//! drop(client);
//! store.close()?;
//! let store = Store::open(&path, &Options::default())?;
//! assert_eq!(store.stats().records, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod background;
mod batch;
mod bucket_table;
mod change;
mod check;
mod checkpoint;
mod client;
pub mod designs;
mod engine;
mod error;
mod guard;
mod lag;
mod offset_map;
mod options;
mod patience;
mod recovery;
mod salvage;
mod settings;
mod settings_image;
mod site;
mod sizes;
mod slotted;
mod spine;
mod stats;
mod store;
mod techniques;
mod walks;

pub use batch::WriteBatch;
pub use change::{Change, Entry, Expiry};
pub use check::CheckReport;
pub use client::Client;
pub use designs::Design;
pub use error::{Damage, DamagedPlace, Error, ErrorKind};
pub use guard::Guard;
pub use options::Options;
pub use quipu_medium::{Answer, Durability, MediumKind, Statement, Survives};
pub use recovery::RecoveryReport;
pub use salvage::{Instead, LostKey, SalvageReport};
pub use settings::Setting;
pub use stats::Stats;
pub use store::Store;
pub use walks::{Iter, KeyValue, Keys, Range};

/// What proves and measures the store reaches into: no part of the interface, and free to change.
#[doc(hidden)]
pub mod internals {
    pub use crate::bucket_table::mpkv_table;
    pub use crate::checkpoint::checkpoint_tables;
    pub use crate::offset_map::{NodePlace, OffsetMap, offset_map_table};
    pub use crate::options::{FreeList, Testing, Twin};
    pub use crate::techniques::{Shortcut, Techniques, flat_table};
    pub use quipu_parts::heap::slots::{LockKind, RecordForm, SlotSettings, SlotTechniques, TieBreak};
    pub use quipu_parts::index::buckets::BucketSettings;
    pub use quipu_parts::index::cceh::CcehSettings;
}

/// The example of the README runs with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
