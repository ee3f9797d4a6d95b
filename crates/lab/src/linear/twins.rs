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
}

impl Twin {
    /// The break of the store itself.
    pub(super) fn of_store(self) -> Option<quipu::internals::Twin> {
        (self == Twin::SeenWhileOnOffer).then_some(quipu::internals::Twin::SeenWhileOnOffer)
    }
}

/// The word for it on command lines.
impl fmt::Display for Twin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("none is skipped").get_name())
    }
}
