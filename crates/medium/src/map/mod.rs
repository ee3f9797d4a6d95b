//! Mapping a path, a device or plain memory as a [`crate::Region`].
//!
//! All decisions that depend on the medium are made here, once, when a pool is mapped: the instruction that
//! makes a line durable, the promises, the node of the memory. Nothing above asks again.
//!
//! A mapped file is locked for as long as any clone of its region lives, for one writer or for any number of
//! readers. The lock is the system's, so it ends with the process however that ends. Mappings and their facts
//! never change; they are shared freely.

mod create;
mod device;
mod extents;
mod filesystem;
mod holes;
mod huge;
mod identity;
mod kind;
mod limit;
mod lock;
mod mapping;
mod open;
mod parts;
mod piece;
mod probe;
mod read_only;
mod storage;
mod system;

pub use device::PmDevice;
pub use huge::prefer_huge_pages;
pub use identity::FileIdentity;
pub use kind::{MediumKind, Pages};
pub use limit::ignore_file_limit_signal;
pub use mapping::{Claim, Mapping};
pub use probe::{Probe, probe};
pub(crate) use system::{boot_id, coarse_ticks, entropy, now, pause, thread_name, thread_number, ticks};
