//! Things that command lines call by name, of which one, several or all are chosen.

use crate::arguments;
use crate::distinct::distinct;
use crate::suggest::with_nearest;
use quipu::Design;
use std::str::FromStr;

/// The name that stands for all.
const ALL: &str = "all";

/// One of a few things with names.
pub trait Named: Copy + PartialEq + 'static {
    /// The word for such a thing.
    const KIND: &'static str;
    /// All of them.
    const EVERY: &'static [Self];

    /// Its name.
    fn name(&self) -> &'static str;

    /// The one with this name.
    ///
    /// # Errors
    /// The names that there are, and the one that was probably meant.
    fn named(name: &str) -> Result<Self, String> {
        let names = || Self::EVERY.iter().map(Self::name);
        let found = Self::EVERY.iter().find(|one| one.name() == name);
        found.copied().ok_or_else(|| {
            let known: Vec<_> = names().collect();
            let refusal =
                format!("no {} is called {name:?}; choose from {}, {ALL}", Self::KIND, known.join(", "));
            with_nearest(refusal, name, names())
        })
    }
}

impl Named for Design {
    const KIND: &'static str = "design";
    const EVERY: &'static [Design] = Design::ALL;

    fn name(&self) -> &'static str {
        Design::name(*self)
    }

    fn named(name: &str) -> Result<Design, String> {
        arguments::design(name)
    }
}

/// The meaning of one name: a thing, or `all` of them.
#[derive(Clone, Debug)]
pub struct OneOrAll<T>(Vec<T>);

impl<T: Named> FromStr for OneOrAll<T> {
    type Err = String;

    fn from_str(name: &str) -> Result<OneOrAll<T>, String> {
        Ok(OneOrAll(if name == ALL { T::EVERY.to_vec() } else { vec![T::named(name)?] }))
    }
}

/// The things that the names mean, each once, in the order in which they were named.
pub fn chosen<T: Named>(names: &[OneOrAll<T>]) -> Vec<T> {
    distinct(names.iter().flat_map(|name| name.0.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_chosen_once_each() {
        let names = ["quipu", ALL].map(|name| name.parse::<OneOrAll<Design>>().unwrap());
        assert_eq!(chosen(&names), Design::ALL);
        assert!("knot".parse::<OneOrAll<Design>>().unwrap_err().contains("knot"));
    }
}
