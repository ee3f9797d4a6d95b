//! What the walks share: no walk imports another.

pub(crate) mod hot;
pub(crate) mod lag;
pub(crate) mod patience;
pub(crate) mod proof;

/// Stripes of key locks: enough that writers of different keys seldom meet, few enough to stay in the L2 cache.
pub(crate) const STRIPES: usize = 4096;
