//! Tests of whole stores, of what explores and measures them, and of damage, in one program.
//!
//! A program for each file would compile the engine once for each.

mod batches;
mod believed;
mod bench;
mod checkpoint;
mod cleaner;
mod contract;
mod costs;
mod crash;
mod damage;
mod durability;
mod elimination;
mod fixtures;
mod format;
mod hostile_pools;
mod index_damage;
mod late_puts;
mod linear;
mod model;
mod mpkv;
mod offset_map;
mod pacman_costs;
mod pacman_segment;
mod paper;
mod parked;
mod read_only;
mod refilled;
mod regressions;
mod repointing;
mod shared;
mod small_pools;
mod soak;
mod sync;
mod told;
mod twins;
mod viper;
mod viper_costs;
mod viper_hostile;
mod viper_pacman;
mod viper_pacman_costs;
mod visible;
mod workload;
mod xp;
mod xp_costs;
mod xp_regressions;
