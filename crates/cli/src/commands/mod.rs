//! The commands, one file each: its arguments, its help, and what it does.

pub mod bench;
pub mod check;
pub mod compact;
pub mod crash;
pub mod create;
pub mod del;
pub mod delete_range;
pub mod designs;
pub mod export;
pub mod get;
pub mod import;
pub mod info;
pub mod kill;
pub mod linear;
pub mod probe;
pub mod put;
pub mod scan;
pub mod soak;
pub mod sync;
pub mod table;
