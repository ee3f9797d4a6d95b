//! The kinds of media, and the kinds of pages that ordinary memory comes in.

use crate::error::MediumError;
use std::fmt;
use std::str::FromStr;

/// A kind of medium. Where one is optional, `None` means: find out the kind of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediumKind {
    /// Memory, anonymous or as a file on tmpfs. The persistence instructions run, so that it can stand in for
    /// PM in measurements; nothing survives the system.
    Dram,
    /// A mapped file on any file system.
    File,
    /// Persistent memory mapped directly: a file on a DAX file system with `MAP_SYNC`, or a devdax device.
    Dax,
    /// The simulated medium.
    Sim,
}

impl MediumKind {
    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MediumKind::Dram => "dram",
            MediumKind::File => "file",
            MediumKind::Dax => "dax",
            MediumKind::Sim => "sim",
        }
    }
}

impl fmt::Display for MediumKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MediumKind {
    type Err = MediumError;

    fn from_str(text: &str) -> Result<MediumKind, MediumError> {
        [MediumKind::Dram, MediumKind::File, MediumKind::Dax, MediumKind::Sim]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| MediumError::UnknownWord {
                text: text.to_owned(),
                what: "medium",
                choices: "dram, file, dax, sim",
            })
    }
}

/// The pages behind anonymous memory. Huge ones save address translation, on which random reads spend much of
/// their time. A mapped file usually has ordinary ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pages {
    /// Pages of the base size (4 KiB), and no others even where the system would join them by itself.
    #[default]
    Ordinary,
    /// Aligned to 2 MiB and marked for huge pages, which the system gives as far as it has them.
    Huge,
}
