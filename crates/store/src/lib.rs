//! A durable key-value store for persistent memory, and for plain files.
//!
//! A [`Store`] is an open pool; a [`Client`] is one thread's access to it. Keys and values are bytes. Every
//! write is durable when its method returns. [`Store::statement`] says what that means on the medium at hand.
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

mod api;
mod background;
pub mod designs;
mod engine;
mod log;
mod nlog;
mod options;
mod points;
mod settings;
mod slots;
mod tiered;
mod types;
mod walk;

pub use api::client::Client;
pub use api::guard::Guard;
pub use api::store::Store;
pub use api::tables::Snapshot;
pub use api::transaction::{Savepoint, Transaction, TransactionOn};
pub use designs::settings::Setting;
pub use options::{Levels, Options};
pub use quipu_medium::{Answer, Durability, MediumKind, Statement, Survives, Topology};
pub use types::batch::WriteBatch;
pub use types::change::{Change, Entry, Expiry};
pub use types::conditions::Conditions;
pub use types::design::Design;
pub use types::error::{Damage, DamagedPlace, Error, ErrorKind};
pub use types::holder::{Holder, Holding};
pub use types::isolation::Isolation;
pub use types::iter::{Iter, KeyValue, Keys, Range, Versioned};
pub use types::part::Part;
pub use types::reports::{CheckReport, Instead, LostKey, RecoveryReport, SalvageReport};
pub use types::stats::Stats;
pub use types::table::{Table, TableStats};

/// For the tools that prove and measure the store: not part of the interface, and free to change.
#[doc(hidden)]
pub mod internals {
    pub use crate::engine::heard::{Answer, Call, Listener};
    pub use crate::options::{CacheSize, Granted, IndexChoice, Merging, TestForest, Testing};
    pub use crate::points::checkpoint::checkpoint_tables;
    pub use crate::settings::files::{EntryForm, FileSettings};
    pub use crate::settings::offset_map::{NodePlace, OffsetMap};
    pub use crate::settings::settings_tables;
    pub use crate::settings::techniques::{Shortcut, Techniques};
    pub use crate::tiered::checkpoint_tables as memtables_checkpoint_tables;
    pub use quipu_parts::cache::Policy;
    pub use quipu_parts::heap::slots::{RecordForm, SlotSettings, SlotTechniques};
    pub use quipu_parts::index::buckets::BucketSettings;
    pub use quipu_parts::index::cceh::CcehSettings;
    pub use quipu_parts::record::shown_key;
    pub use quipu_parts::space::FreeListKind as FreeList;
    pub use quipu_parts::twin::{self, Twin};
}

/// The example of the README runs with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
