//! The commands, one file each: its arguments, its help, and what it does.

pub mod bench;
pub mod check;
pub mod compact;
pub mod create;
pub mod del;
pub mod delete_range;
pub mod designs;
pub mod export;
pub mod get;
pub mod import;
pub mod info;
pub mod probe;
pub mod put;
pub mod scan;
pub mod sync;
pub mod table;
