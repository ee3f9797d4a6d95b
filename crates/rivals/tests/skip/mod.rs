//! Engines that are not here are left out aloud.

use quipu_rivals::engines::Kind;
use std::io::Write;

/// Whether the engine can be loaded. If not, standard error has the reason, past the harness, which would
/// swallow it.
pub fn is_here(kind: Kind) -> bool {
    let missing = kind.present().err();
    if let Some(missing) = &missing {
        let mut past_the_harness = std::io::stderr();
        writeln!(past_the_harness, "SKIPPED, not tested: {missing}").unwrap();
    }
    missing.is_none()
}
