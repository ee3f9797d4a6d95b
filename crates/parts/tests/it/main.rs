//! Tests of the parts through their public faces, in one program.
//!
//! A program for each file would compile the parts once for each.

mod alex_model;
mod alex_threads;
mod buckets;
mod buckets_crash;
mod buckets_death;
mod buckets_pm;
mod cache;
mod cceh;
mod cceh_crash;
mod cceh_model;
mod cceh_pm;
mod cceh_threads;
mod chain;
mod chain_crash;
mod chain_usage;
mod commit;
mod crashes;
mod epoch;
mod fastfair;
mod fastfair_crash;
mod fastfair_damage;
mod fastfair_model;
mod fastfair_pm;
mod fastfair_threads;
mod hot_set;
mod index_image;
mod index_meetings;
mod index_model;
mod index_seam;
mod index_threads;
mod masstree;
mod masstree_hints;
mod masstree_image;
mod masstree_model;
mod masstree_threads;
mod record;
mod shared;
mod slots;
mod space_cost;
mod space_crash;
mod space_lists;
mod space_speed;
mod space_superblock;
mod versions;
