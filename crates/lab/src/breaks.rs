//! Breaks on purpose, as command lines name them.

use crate::crash::Broken::{self, Medium, Store};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use quipu::internals::{Twin, twin};
use quipu_medium::sim::Fault;

/// A break on purpose, as command lines have it.
#[derive(Clone)]
pub(crate) struct Named<B> {
    /// The break.
    pub(crate) broken: B,
    /// Its name.
    pub(crate) name: &'static str,
    /// Its harm.
    pub(crate) help: &'static str,
    /// It leaves out a rule of the store, which only some programs can.
    pub(crate) is_rule: bool,
}

impl<B> Named<B> {
    /// All rules of the store, as breaks of this kind.
    pub(crate) fn rules(broken: impl Fn(Twin) -> B) -> impl Iterator<Item = Named<B>> {
        let named = move |twin: Twin| {
            let (name, help) = (twin.name(), twin.text());
            Named { broken: broken(twin), name, help, is_rule: true }
        };
        Twin::ALL.iter().copied().map(named)
    }
}

/// Reads the names of breaks.
pub(crate) fn one_of<B: Clone + Send + Sync + 'static>(
    breaks: Vec<Named<B>>,
) -> impl TypedValueParser<Value = B> {
    let is_there = |named: &Named<B>| !named.is_rule || twin::ARE_THERE;
    let value = |named: &Named<B>| PossibleValue::new(named.name).help(named.help).hide(!is_there(named));
    let values: Vec<_> = breaks.iter().map(value).collect();
    PossibleValuesParser::new(values).try_map(move |name| {
        let named = breaks.iter().find(|named| named.name == name).ok_or("no break has this name")?;
        let refusal = "this program leaves out no rule of the store: build it with `--features twins`";
        if is_there(named) { Ok(named.broken.clone()) } else { Err(refusal) }
    })
}

/// All breaks that the explorer of crashes knows.
fn named() -> impl Iterator<Item = Named<Broken>> {
    // Enough fences remain for the store to get anywhere.
    let fences = Named {
        broken: Medium(Fault::FenceOmitted { every: 3 }),
        name: "fence-left-out",
        help: "Some fences do nothing.",
        is_rule: false,
    };
    Named::rules(Store).chain([fences])
}

/// Reads the names of breaks, those of `choice` alone unless that is empty.
pub(crate) fn broken(choice: &[&str]) -> impl TypedValueParser<Value = Broken> + use<> {
    one_of(named().filter(|named| choice.is_empty() || choice.contains(&named.name)).collect())
}

/// The argument that breaks a store in this way, with a space before it; nothing for one that is not broken.
pub(crate) fn twin_argument(broken: Option<Broken>) -> String {
    let known = named().find(|known| Some(known.broken) == broken);
    known.map_or(String::new(), |named| format!(" --twin {}", named.name))
}
