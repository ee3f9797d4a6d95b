//! Stores broken on purpose, to see that the checker notices.

use clap::ValueEnum;
use std::fmt;

/// In which way a store is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Twin {
    /// A read sometimes answers from what this client read or wrote earlier.
    StaleRead,
    /// A put sometimes returns before it takes effect, which it does with the next call.
    LatePut,
    /// An update reads and writes with something in between.
    SplitUpdate,
    /// A remove sometimes claims that it removed what was not there.
    PhantomRemove,
    /// A put may return for another one that readers had seen before it began, as in section 3.3 of MPKV's
    /// paper; for design mpkv, where puts are published before they return.
    SeenWhileOnOffer,
    /// Writers do not take their keys out of the cache.
    CacheNotToldOfWrites,
    /// Readers put pairs into the cache without the locks of their keys.
    CacheFilledUnlocked,
    /// The cache keeps its pairs while it is off.
    CacheNotEmptied,
}

impl Twin {
    /// The break of the store itself.
    pub(super) fn of_store(self) -> Option<quipu::internals::Twin> {
        Some(match self {
            Twin::SeenWhileOnOffer => quipu::internals::Twin::SeenWhileOnOffer,
            Twin::CacheNotToldOfWrites => quipu::internals::Twin::CacheNotToldOfWrites,
            Twin::CacheFilledUnlocked => quipu::internals::Twin::CacheFilledUnlocked,
            Twin::CacheNotEmptied => quipu::internals::Twin::CacheNotEmptied,
            _ => return None,
        })
    }

    /// Whether it needs a cache.
    pub(super) fn is_of_cache(self) -> bool {
        matches!(self, Twin::CacheNotToldOfWrites | Twin::CacheFilledUnlocked | Twin::CacheNotEmptied)
    }
}

/// The word for it on command lines.
impl fmt::Display for Twin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("none is skipped").get_name())
    }
}
