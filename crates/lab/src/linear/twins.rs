//! Stores broken on purpose, to see that the checker notices.

use crate::breaks::{Named, one_of};
use clap::builder::TypedValueParser;
use quipu::internals::Twin;
use std::fmt;

/// In which way a store is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A client lies.
    Client(Lie),
    /// A rule of the store is left out.
    Store(Twin),
}

/// A false answer that a client gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// A read sometimes answers from what this client read or wrote earlier.
    StaleRead,
    /// A put sometimes returns before it takes effect, which it does with the next call.
    LatePut,
    /// An update reads and writes with something in between.
    SplitUpdate,
    /// A remove sometimes claims that it removed what was not there.
    PhantomRemove,
}

/// The lies by name, with their helps.
const LIES: [(Lie, &str, &str); 4] = [
    (Lie::StaleRead, "stale-read", "A read sometimes answers from what this client read or wrote earlier."),
    (Lie::LatePut, "late-put", "A put sometimes returns before it takes effect, with the next call."),
    (Lie::SplitUpdate, "split-update", "An update reads and writes with something in between."),
    (Lie::PhantomRemove, "phantom-remove", "A remove sometimes claims that it removed what was not there."),
];

impl Broken {
    /// The rule of the store that is left out.
    pub fn rule(self) -> Option<Twin> {
        if let Broken::Store(twin) = self { Some(twin) } else { None }
    }

    /// The false answer of its clients.
    pub(crate) fn lie(self) -> Option<Lie> {
        if let Broken::Client(lie) = self { Some(lie) } else { None }
    }

    /// Whether it needs a cache.
    pub(super) fn is_of_cache(self) -> bool {
        let needs_it = |twin| {
            matches!(
                twin,
                Twin::CacheNotToldOfWrites
                    | Twin::CacheFilledUnlocked
                    | Twin::CacheNotEmptied
                    | Twin::CacheToldLate
                    | Twin::BlockFreedEarly
                    | Twin::SweptWhilePinned
                    | Twin::CachedForEver
            )
        };
        self.rule().is_some_and(needs_it)
    }

    /// Whether it needs a cache that turns off and on.
    pub(super) fn is_of_turns(self) -> bool {
        matches!(self.rule(), Some(Twin::CacheNotEmptied | Twin::SweptWhilePinned))
    }
}

/// Reads the name of a break.
pub(crate) fn broken() -> impl TypedValueParser<Value = Broken> {
    let named = |(lie, name, help)| Named { broken: Broken::Client(lie), name, help, is_rule: false };
    one_of(LIES.into_iter().map(named).chain(Named::rules(Broken::Store)).collect())
}

/// The word for it on command lines.
impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Store(twin) => f.write_str(twin.name()),
            Broken::Client(lie) => {
                let name = LIES.iter().find(|(known, ..)| known == lie).map(|(_, name, _)| *name);
                f.write_str(name.expect("all have a name"))
            }
        }
    }
}
