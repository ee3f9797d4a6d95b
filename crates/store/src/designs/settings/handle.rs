//! The settings of handles: each opening chooses them anew.

use super::{Named, SWITCH, Setting, Written};
use crate::options::{CacheSize, IndexChoice, Merging};
use crate::settings::files::{CLEANERS_MAX, CLUSTERS_MAX};
use quipu_parts::cache::{BUDGETS, Policy};

/// The most threads of a node that read for scans.
const READERS_MAX: u32 = 8;

/// The settings of handles.
pub(super) const HANDLE: &[Setting] = &[
    Setting {
        name: "eliminate",
        help: "if two threads put one key at the same time, only one value may be written (3.3)",
        field: &Named(|options| &mut options.eliminate, SWITCH),
        of_handle: Some(|can| can.eliminates),
    },
    Setting {
        name: "late",
        help: "on: a later write of the client enters a put into the index; off: this is done before the put returns",
        field: &Named(|options| &mut options.late, SWITCH),
        of_handle: Some(|can| can.publishes_late),
    },
    Setting {
        name: "merge",
        help: "direct: writes go into the Global Index; key: into an index of their memtable, which is merged when the memtable is full; off: which is merged for a dump or a close (3.3)",
        field: &Named(
            |options| &mut options.merging,
            &[("direct", Merging::Direct), ("key", Merging::Key), ("off", Merging::Off)],
        ),
        of_handle: Some(|can| can.levels),
    },
    Setting {
        name: "index",
        help: "hash: a hash index, keys without order; alex: c-ALEX, a learned index, keys in order",
        field: &Named(
            |options| &mut options.index,
            &[("hash", IndexChoice::Own), ("alex", IndexChoice::Alex)],
        ),
        of_handle: Some(|can| can.orders_on_request()),
    },
    Setting {
        name: "index",
        help: "masstree: stores whole keys; alex: c-ALEX, a learned index, stores their first bytes and is faster (NStore, IV)",
        field: &Named(
            |options| &mut options.index,
            &[("masstree", IndexChoice::Own), ("alex", IndexChoice::Alex)],
        ),
        of_handle: Some(|can| can.chooses_index && can.ordered),
    },
    Setting {
        name: "clusters",
        help: "clusters of keys, each with a file of its own on a node; fewer if the pool has few zones (NStore, III-C)",
        field: &Written(
            |options| &mut options.files.clusters,
            "a power of two, at most 4096",
            |clusters| clusters.is_power_of_two() && *clusters <= CLUSTERS_MAX,
        ),
        of_handle: Some(|can| can.common_files),
    },
    Setting {
        name: "gc-threshold",
        help: "per cent of a file that must be dead before it is cleaned ahead of need (NStore, III-F)",
        field: &Written(
            |options| &mut options.files.gc_threshold,
            "1 to 100",
            |percent| (1..=100).contains(percent),
        ),
        of_handle: Some(|can| can.common_files),
    },
    Setting {
        name: "cleaners",
        help: "cleaners at a time on each node, in a pool of some hundred zones (NStore, III-F)",
        field: &Written(
            |options| &mut options.files.cleaners,
            "1 to 8",
            |cleaners| (1..=CLEANERS_MAX).contains(cleaners),
        ),
        of_handle: Some(|can| can.common_files),
    },
    Setting {
        name: "readers",
        help: "threads of each node that read its records for scans from other nodes; none if the pool is on one node (NStore, III-E)",
        field: &Written(|options| &mut options.readers, "0 to 8", |readers| *readers <= READERS_MAX),
        of_handle: Some(|can| can.reads_near),
    },
    Setting {
        name: "cache",
        help: "size of a cache in DRAM in front of the index; auto: 64 MiB in quipu and nstore on persistent memory or several nodes, otherwise off (NStore, III-B)",
        field: &Written(
            |options| &mut options.cache,
            "auto, off, or bytes from 4096 on",
            |size| !matches!(size, CacheSize::Bytes(bytes) if !BUDGETS.contains(bytes)),
        ),
        of_handle: Some(|can| can.caches),
    },
    Setting {
        name: "cache-policy",
        help: "keeps pairs by raf: reads, weighed by the distance of their node; raf-net: reads, weighed by what a hit saves; lfu: reads; lru: the last read; lru-raf: the last read, weighed as in raf; nap: reads in the last period (NStore, III-B, V-D)",
        field: &Named(
            |options| &mut options.cache_policy,
            &[
                ("raf", Policy::Raf),
                ("raf-net", Policy::RafNet),
                ("lfu", Policy::Lfu),
                ("lru", Policy::Lru),
                ("lru-raf", Policy::LruRaf),
                ("nap", Policy::Nap),
            ],
        ),
        of_handle: Some(|can| can.caches),
    },
    Setting {
        name: "wait-for-room",
        help: "milliseconds that a write waits for room that cleaning, guards, scans, snapshots or transactions of others hold back",
        field: &Written(
            |options| &mut options.wait_for_room,
            "0 to 3600000",
            |milliseconds| *milliseconds <= 3_600_000,
        ),
        of_handle: Some(|_| true),
    },
];
