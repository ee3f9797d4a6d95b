//! The settings of a tree, in the library's terms.

use super::Shared;
use lsm_tree::config::{
    BlockSizePolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy, PinningPolicy,
};
use lsm_tree::table::filter::BloomConstructionPolicy;
use lsm_tree::{CompressionType, Config, SequenceNumberCounter};
use std::path::Path;

/// The settings of a tree. Filters stay in memory, with 1.3 bytes a key. Indexes do not: they are cut into
/// blocks in the cache, of which a get needs one. A whole index in memory has 4.4 bytes a key more, with
/// values of 508 bytes, and saves a get no time that could be measured. Without filters in the last level,
/// gets of absent keys would take 50 times as long.
pub(super) fn config(shared: &Shared, folder: &Path, changes: &SequenceNumberCounter) -> Config {
    let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
    Config::new(folder, changes.clone(), changes.clone())
        .use_cache(shared.cache.clone())
        .use_descriptor_table(Some(shared.descriptors.clone()))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_partitioning_policy(PinningPolicy::all(true))
        .filter_block_partitioning_policy(PinningPolicy::all(false))
        .filter_policy(FilterPolicy::all(filter))
        .data_block_size_policy(BlockSizePolicy::all(4 << 10))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33))
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::None,
            CompressionType::Lz4,
        ]))
}
