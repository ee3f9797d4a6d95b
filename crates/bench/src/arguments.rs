//! Arguments that several command lines take, and the settings of runs as the command line reads them.
//!
//! The settings of a run are declared once: its `Config` is read from a command line, and its defaults are
//! those of a command line that says nothing.

use crate::suggest::{nearest, with_nearest};
use clap::{Args, Command};
use quipu::{Design, Setting};

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
