//! [Settings](Setting) of designs by name, where several designs may be at hand: each goes to the designs
//! that have it.

use quipu::designs::Capabilities;
use quipu::internals::IndexChoice;
use quipu::{Design, Error, Options, Setting};

/// Holds settings against these designs.
///
/// # Errors
/// [`Error::Option`] if none of them has a setting of such a name, or one that has it does not take the
/// value.
pub fn check(settings: &[(String, String)], designs: &[Design]) -> Result<(), Error> {
    for (name, value) in settings {
        let owners = designs.iter().filter(|design| has(**design, name)).count();
        // Nobody's: any of the designs tells its fault.
        let asked = designs.iter().filter(|design| owners == 0 || has(**design, name));
        asked
            .take(owners.max(1))
            .try_for_each(|design| set(Options::new().design(*design), name, value).map(drop))?;
    }
    Ok(())
}

/// Options for a design, with those settings that it has.
///
/// # Errors
/// [`Error::Option`] for a value that a setting does not take.
pub fn apply(settings: &[(String, String)], design: Design, options: Options) -> Result<Options, Error> {
    let mut own = settings.iter().filter(|(name, _)| has(design, name));
    own.try_fold(options.design(design), |options, (name, value)| set(options, name, value))
}

/// Those settings that a design has.
pub fn of_design(settings: &[(String, String)], design: Design) -> Vec<(String, String)> {
    settings.iter().filter(|(name, _)| has(design, name)).cloned().collect()
}

/// The capabilities of a store that is opened like this.
pub fn capabilities(options: &Options, design: Design) -> Capabilities {
    match options.index {
        IndexChoice::Own => design.can().clone(),
        IndexChoice::Alex => design.can().when_ordered(),
    }
}

/// Whether a design has a setting of this name.
fn has(design: Design, name: &str) -> bool {
    Setting::of(design).any(|setting| setting.name == name)
}

fn set(options: Options, name: &str, value: &str) -> Result<Options, Error> {
    options.set(name, value).map_err(|error| Error::Option(format!("{name}={value}: {error}")))
}
