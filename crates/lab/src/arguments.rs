//! Arguments that several command lines take, and the settings of runs as the command line reads them.
//!
//! The settings of a run are declared once: its `Config` is read from a command line, and its defaults are those of a
//! command line that says nothing.

use crate::crash::Broken::{self, Medium, PaperTies, Store};
use crate::suggest::{nearest, with_nearest};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Command};
use quipu::internals::Twin;
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

/// Reads a setting of a design and its value, `NAME=VALUE`. Whether there is such a setting depends on the design.
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

/// Stores and media broken on purpose, as command lines call them.
const BROKEN: [(&str, Broken, &str); 16] = [
    (
        "publish-before-persist",
        Store(Twin::PublishBeforePersist),
        "Readers see a record before it is durable",
    ),
    ("life-left-out", Store(Twin::LifeLeftOut), "The check of a record ignores the life of its segment"),
    (
        "append-after-recovery",
        Store(Twin::AppendAfterRecovery),
        "Recovery appends to an earlier run's segment",
    ),
    (
        "tombstone-dropped-early",
        Store(Twin::TombstoneDroppedEarly),
        "Tombstones go while older segments remain",
    ),
    (
        "freed-in-dram-only",
        Store(Twin::FreedInDramOnly),
        "A segment counts as gone before its zone is durably free",
    ),
    ("batch-in-pieces", Store(Twin::BatchInPieces), "The records of an atomic batch are written one by one"),
    (
        "stale-checkpoint",
        Store(Twin::StaleCheckpoint),
        "Open believes a checkpoint after the pool has changed",
    ),
    (
        "value-committed-late",
        Store(Twin::ValueCommittedLate),
        "A large value's zones are committed after its head",
    ),
    (
        "block-order",
        PaperTies(Twin::PageFreeBeforeRelease),
        "A page is free too early, and block order breaks ties",
    ),
    (
        "released-before-persist",
        Store(Twin::ReleasedBeforePersist),
        "A record is deleted before its successor is durable",
    ),
    ("old-not-released", Store(Twin::OldNotReleased), "The record that another has replaced stays marked"),
    (
        "key-free-before-release",
        Store(Twin::KeyFreeBeforeRelease),
        "A deferred put frees its key before the old record is gone",
    ),
    ("losing-copy-kept", Store(Twin::LosingCopyKept), "Reclamation's copy of a superseded record counts"),
    (
        "victim-freed-early",
        Store(Twin::VictimFreedEarly),
        "A block is free while copies of its records are on their way",
    ),
    (
        "last-repointed-unflushed",
        Store(Twin::LastRepointedUnflushed),
        "The cleaner's last change of an index is not flushed",
    ),
    // Enough fences remain for the store to get anywhere.
    ("fence-left-out", Medium(Fault::FenceOmitted { every: 3 }), "Some fences do nothing"),
];

/// Reads the names of what can be broken, those of `choice` alone unless that is empty.
pub(crate) fn broken(choice: &[&str]) -> impl TypedValueParser<Value = Broken> + use<> {
    let is_chosen = |(name, ..): &&(&str, Broken, &str)| choice.is_empty() || choice.contains(name);
    let value =
        |(name, _, help): &(&'static str, Broken, &'static str)| PossibleValue::new(*name).help(*help);
    PossibleValuesParser::new(BROKEN.iter().filter(is_chosen).map(value)).try_map(|name| {
        BROKEN
            .iter()
            .find(|(known, ..)| *known == name)
            .map(|(_, broken, _)| *broken)
            .ok_or("clap has read it")
    })
}

/// The argument that breaks a store in this way, with a space before it; nothing for one that is not broken.
pub(crate) fn twin_argument(broken: Option<Broken>) -> String {
    let named = BROKEN.iter().find(|(_, known, _)| Some(*known) == broken);
    named.map_or(String::new(), |(name, ..)| format!(" --twin {name}"))
}
