//! Pools that were cut short, overwritten, flipped, lost in part, or written by someone else: opening one either refuses
//! with the right error and leaves the file as it is, byte for byte, or shows what survived and nothing wrong.

#[path = "hostile_pools/checkpoints.rs"]
mod checkpoints;
#[path = "hostile_pools/disk_full.rs"]
mod disk_full;
#[path = "hostile_pools/large.rs"]
mod large;
#[path = "hostile_pools/lost_pages.rs"]
mod lost_pages;
#[path = "hostile_pools/mutations.rs"]
mod mutations;
#[path = "hostile_pools/neighbours.rs"]
mod neighbours;
#[path = "hostile_pools/salvage.rs"]
mod salvage;
#[path = "hostile_pools/script.rs"]
mod script;
#[path = "hostile_pools/segments.rs"]
mod segments;
#[path = "hostile_pools/superblocks.rs"]
mod superblocks;
#[path = "hostile_pools/victim.rs"]
mod victim;
