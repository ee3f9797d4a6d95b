//! PACMAN's techniques, each a switch, and the settings of designs `flatstore`, which have them.
//!
//! All of them off is the *raw* store that the paper measures its gain against.

use crate::settings::image::Image;
use crate::settings::offset_map::{shape_bytes, shape_of};
use quipu_medium::MediumKind;
use quipu_parts::index::IndexRoot;
use quipu_parts::index::cceh::CcehSettings;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// Techniques that make compaction cheap (Wang et al., "Pacman", USENIX ATC 2022).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Techniques {
    /// The index's word tells the length of a record, and bits in DRAM tell dead records (3.2). Without it, a
    /// writer reads the length of an old record from that, and compaction asks the index about every record.
    pub reduce: bool,
    /// Hot records lie in segments of their own (3.4).
    pub separate: bool,
    /// A record tells where its entry in the index stands (3.1), where the index can say so.
    pub shortcut: Shortcut,
    /// Many records are copied under one fence, and their entries flushed together (3.3). Without it, each
    /// record moves under fences of its own.
    pub batch: bool,
}

/// Whether records tell the places of their entries in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortcut {
    /// They do not.
    Off,
    /// They do.
    On,
    /// They do on persistent memory, and on the simulator of it. In DRAM and on a page cache the inner nodes
    /// of a tree are found faster than eight bytes more a record cost, at every utilization.
    Auto,
}

impl Techniques {
    /// All techniques.
    pub const ALL: Techniques =
        Techniques { reduce: true, separate: true, shortcut: Shortcut::On, batch: true };
    /// None: the raw store.
    pub const RAW: Techniques =
        Techniques { reduce: false, separate: false, shortcut: Shortcut::Off, batch: false };

    /// These techniques for a pool on this medium: it decides where [`Shortcut::Auto`] leaves the choice.
    pub(crate) fn on(self, medium: MediumKind) -> Techniques {
        let shortcut = match (self.shortcut, medium) {
            (Shortcut::Auto, MediumKind::Dax | MediumKind::Sim) => Shortcut::On,
            (Shortcut::Auto, _) => Shortcut::Off,
            (chosen, _) => chosen,
        };
        Techniques { shortcut, ..self }
    }
}

/// The techniques that pay on the medium.
impl Default for Techniques {
    fn default() -> Techniques {
        Techniques { shortcut: Shortcut::Auto, ..Techniques::ALL }
    }
}

/// The settings that a pool of a design `flatstore` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlatSettings {
    pub(crate) techniques: Techniques,
    /// The shape of a CCEH index; the published one if there is another index.
    pub(crate) shape: CcehSettings,
    pub(crate) root: IndexRoot,
}

/// Their image.
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct FlatImage {
    magic: [u8; 4],
    techniques: u8,
    shape: [u8; 3],
    root: IndexRoot,
    reserved: [u8; 104],
}

impl Image for FlatSettings {
    type Layout = FlatImage;

    fn table() -> Table {
        table!(FlatImage as "FlatSettings"; magic, techniques, shape, root, reserved)
    }

    fn image(&self) -> FlatImage {
        let Techniques { reduce, separate, shortcut, batch } = self.techniques;
        debug_assert_ne!(shortcut, Shortcut::Auto, "the medium has decided");
        let bits = [reduce, separate, shortcut == Shortcut::On, batch];
        let techniques = bits.iter().rev().fold(0, |bits, on| bits << 1 | u8::from(*on));
        let (magic, shape) = (*b"FLAT", shape_bytes(self.shape));
        FlatImage { magic, techniques, shape, root: self.root, reserved: [0; _] }
    }

    fn of_image(image: FlatImage) -> FlatSettings {
        let [reduce, separate, shortcut, batch] = [1, 2, 4, 8].map(|bit| image.techniques & bit != 0);
        let shortcut = if shortcut { Shortcut::On } else { Shortcut::Off };
        let techniques = Techniques { reduce, separate, shortcut, batch };
        FlatSettings { techniques, shape: shape_of(image.shape), root: image.root }
    }

    fn root_mut(&mut self) -> &mut IndexRoot {
        &mut self.root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_medium_decides_on_shortcuts_where_nobody_has() {
        let on = |medium| Techniques::default().on(medium);
        assert_eq!((on(MediumKind::Dax), on(MediumKind::Sim)), (Techniques::ALL, Techniques::ALL));
        let without = Techniques { shortcut: Shortcut::Off, ..Techniques::ALL };
        assert_eq!((on(MediumKind::Dram), on(MediumKind::File)), (without, without));
        assert_eq!(Techniques::ALL.on(MediumKind::Dram), Techniques::ALL, "who asks for it gets it");
    }
}
