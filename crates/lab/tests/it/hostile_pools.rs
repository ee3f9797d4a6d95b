//! Pools that were cut short, overwritten, flipped, lost in part, or written by someone else. An open either
//! refuses with the right error and leaves the file as it is, byte for byte, or shows the surviving records
//! and nothing wrong.

mod checkpoints;
mod disk_full;
mod large;
mod lost_pages;
mod mutations;
mod neighbours;
mod salvage;
mod script;
mod segments;
mod superblocks;
mod tables;
mod unproved;
mod victim;
