//! An open store over logs, by its index: the walk is the same, and compiled for each.

use super::Spine;
use quipu_parts::index::PmWords;
use quipu_parts::index::buckets::{BucketIndex, BucketLocks, TableLocks};
use quipu_parts::index::cceh::{CcehIndex, DramNodes, PmNodes};
use quipu_parts::index::fastfair::FastFairIndex;
use quipu_parts::index::hash::HashIndex;
use quipu_parts::index::masstree::Masstree;
use std::sync::Arc;

/// An open store over logs.
#[derive(Clone)]
pub(crate) enum Logs {
    /// Design `quipu`.
    Quipu(Arc<Spine<HashIndex>>),
    /// Design `flatstore-h`.
    FlatstoreH(Arc<Spine<CcehIndex<DramNodes>>>),
    /// Design `flatstore-m`.
    FlatstoreM(Arc<Spine<Masstree>>),
    /// Design `flatstore-ph`.
    FlatstorePh(Arc<Spine<CcehIndex<PmNodes>>>),
    /// Design `flatstore-ff`.
    FlatstoreFf(Arc<Spine<FastFairIndex>>),
    /// Design `mpkv`.
    Mpkv(Arc<Spine<BucketIndex<PmWords, TableLocks>>>),
    /// Design `mpkv-baseline`.
    MpkvBaseline(Arc<Spine<BucketIndex<PmWords, BucketLocks>>>),
}

/// Does the same with each.
macro_rules! with_logs {
    ($logs:expr, $spine:ident => $act:expr) => {
        match $logs {
            $crate::spine::Logs::Quipu($spine) => $act,
            $crate::spine::Logs::FlatstoreH($spine) => $act,
            $crate::spine::Logs::FlatstoreM($spine) => $act,
            $crate::spine::Logs::FlatstorePh($spine) => $act,
            $crate::spine::Logs::FlatstoreFf($spine) => $act,
            $crate::spine::Logs::Mpkv($spine) => $act,
            $crate::spine::Logs::MpkvBaseline($spine) => $act,
        }
    };
}
pub(crate) use with_logs;

impl Logs {
    /// Who shares it, itself included.
    pub(crate) fn owners(&self) -> usize {
        with_logs!(self, spine => Arc::strong_count(spine))
    }
}
