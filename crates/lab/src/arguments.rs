//! Arguments that several command lines take, and the settings of runs as the command line reads them.
//!
//! The settings of a run are declared once: its `Config` is read from a command line, and its defaults are
//! those of a command line that says nothing.

use crate::crash::Broken::{self, Medium, Store};
use crate::suggest::{nearest, with_nearest};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Command};
use quipu::internals::{Twin, twin};
use quipu::{Design, Setting};
use quipu_medium::sim::Fault;

/// Arguments as a command line of these words has them.
///
/// # Panics
/// If the words are no such command line.
pub fn of_words<A: Args>(words: &[&str]) -> A {
    let command = A::augment_args(Command::new("lab").no_binary_name(true));
    A::from_arg_matches(&command.get_matches_from(words)).expect("clap has read these arguments")
}

/// Reads the name of a design.
///
/// # Errors
/// The names that there are, and the one that was probably meant.
pub fn design(name: &str) -> Result<Design, String> {
    let names = Design::ALL.iter().map(|design| design.name());
    name.parse().map_err(|refusal| with_nearest(refusal, name, names))
}

/// Reads a setting of a design and its value, `NAME=VALUE`. Whether there is such a setting depends on the
/// design.
///
/// # Errors
/// Text of another form, and a name that is nearly that of a setting.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write a setting and its value as NAME=VALUE; `quipu designs` lists what each design has")?;
    let known = || Design::ALL.iter().flat_map(|design| Setting::of(*design)).map(|setting| setting.name);
    if !known().any(|setting| setting == name) && nearest(name, known()).is_some() {
        return Err(with_nearest(format!("no setting is called {name:?}"), name, known()));
    }
    Ok((name.to_owned(), value.to_owned()))
}

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
