//! The environment of libpmem and libpmemobj.
//!
//! They offer no other way, and read it when they are loaded. A process that was begun without it cannot set
//! it safely once other threads run, so it is begun again with it (`quipu-rivals` does that), or refused.

use crate::level::Level;
use quipu_medium::MediumKind;
use std::env;

/// Whether every file counts as persistent memory. Otherwise libpmem asks the file, and syncs if it is none.
const FORCE: (&str, &str) = ("PMEM_IS_PMEM_FORCE", "1");

/// No flushes. On a file a crash of the process alone is survived, for which the page cache is enough: then
/// ours flushes nothing either. On memory that stands in for persistent memory both flush.
const NO_FLUSH: (&str, &str) = ("PMEM_NO_FLUSH", "1");

/// The pool is touched when it is made, before the clock starts, as ours is.
const PREFAULT: (&str, &str) = ("PMEMOBJ_CONF", "prefault.at_create=1");

/// The variables that `level` needs on `medium`; those without a value must not be set.
pub fn wanted(level: Level, medium: MediumKind) -> [(&'static str, Option<&'static str>); 3] {
    let forced = level != Level::Power;
    [
        (FORCE.0, forced.then_some(FORCE.1)),
        (NO_FLUSH.0, (forced && medium == MediumKind::File).then_some(NO_FLUSH.1)),
        (PREFAULT.0, Some(PREFAULT.1)),
    ]
}

/// Whether this process has them.
pub fn fits(level: Level, medium: MediumKind) -> bool {
    wanted(level, medium).iter().all(|(name, value)| env::var(name).ok().as_deref() == *value)
}

/// The same as words for a shell's `env`.
pub fn as_words(level: Level, medium: MediumKind) -> String {
    let words = wanted(level, medium).map(|(name, value)| match value {
        Some(value) => format!("{name}={value}"),
        None => format!("--unset={name}"),
    });
    words.join(" ")
}
