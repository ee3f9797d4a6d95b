//! The engines, one file or folder each, and the list of what can be chosen.

mod choice;
mod fjall;
mod library;
pub mod pmemkv;
mod redb;
mod rival;
mod rocksdb;
mod sqlite;

pub use choice::{Choice, Kind, Setup};
pub use fjall::{Fjall, FjallOptimistic};
pub use pmemkv::Pmemkv;
pub use redb::Redb;
pub use rival::{Handle, Rival};
pub use rocksdb::RocksDb;
pub use sqlite::Sqlite;
