//! The settings of a pool of slots: its heap, and its Offset Map.

use crate::settings::image::Image;
use crate::settings::offset_map::{NodePlace, OffsetMap, shape_bytes, shape_of};
use quipu_parts::heap::slots::{RecordForm, SlotSettings, SlotTechniques};
use quipu_parts::index::IndexRoot;
use quipu_parts::table;
use quipu_parts::table::Table;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, Unaligned};

/// The settings that a pool of design `viper` or `viper-pacman` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolSettings {
    pub(crate) slots: SlotSettings,
    pub(crate) map: OffsetMap,
    /// Zeros where the index is in DRAM.
    pub(crate) root: IndexRoot,
}

impl PoolSettings {
    /// The settings of a new pool with zones of this size.
    pub(crate) fn fitted(slots: SlotSettings, map: OffsetMap, zone_size: u64) -> PoolSettings {
        let (slots, map) = (slots.fitted(zone_size), map.fitted(zone_size));
        PoolSettings { slots, map, root: IndexRoot::new_zeroed() }
    }
}

/// Their image.
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct SlotImage {
    magic: [u8; 4],
    page_size: U32,
    value_size: U32,
    key_size: U16,
    alignment_shift: U16,
    pages_per_block: u8,
    form: u8,
    random_first_page: u8,
    reclaim_percent: u8,
    fill_percent: u8,
    techniques: u8,
    reserved_a: [u8; 42],
    nodes: u8,
    shape: [u8; 3],
    reserved_b: [u8; 4],
    root: IndexRoot,
    reserved_c: [u8; 40],
}

const FIXED: u8 = 1;
const VARIABLE: u8 = 2;

impl Image for PoolSettings {
    type Layout = SlotImage;

    fn table() -> Table {
        table!(SlotImage as "SlotSettings"; magic, page_size, value_size, key_size, alignment_shift, pages_per_block,
            form, random_first_page, reclaim_percent, fill_percent, techniques, reserved_a, nodes,
            shape, reserved_b, root, reserved_c)
    }

    fn image(&self) -> SlotImage {
        let PoolSettings { slots, map, root } = *self;
        let (form, key, value) = match slots.form {
            RecordForm::Fixed { key, value } => (FIXED, key, value),
            RecordForm::Variable => (VARIABLE, 0, 0),
        };
        let SlotTechniques { reduce, separate, batch } = slots.techniques;
        SlotImage {
            magic: *b"QVP3",
            page_size: slots.page_size.into(),
            value_size: value.into(),
            key_size: key.into(),
            alignment_shift: slots.alignment_shift.into(),
            pages_per_block: slots.pages_per_block,
            form,
            random_first_page: slots.random_first_page.into(),
            reclaim_percent: slots.reclaim_percent,
            fill_percent: slots.fill_percent,
            techniques: u8::from(reduce) | u8::from(separate) << 1 | u8::from(batch) << 2,
            reserved_a: [0; _],
            nodes: map.nodes as u8,
            shape: shape_bytes(map.shape),
            reserved_b: [0; _],
            root: if map.nodes == NodePlace::Pm { root } else { IndexRoot::new_zeroed() },
            reserved_c: [0; _],
        }
    }

    fn of_image(image: SlotImage) -> PoolSettings {
        let [reduce, separate, batch] = [1, 2, 4].map(|bit| image.techniques & bit != 0);
        let slots = SlotSettings {
            page_size: image.page_size.get(),
            pages_per_block: image.pages_per_block,
            form: match image.form {
                FIXED => RecordForm::Fixed { key: image.key_size.get(), value: image.value_size.get() },
                _ => RecordForm::Variable,
            },
            random_first_page: image.random_first_page == 1,
            alignment_shift: image.alignment_shift.get(),
            reclaim_percent: image.reclaim_percent,
            fill_percent: image.fill_percent,
            techniques: SlotTechniques { reduce, separate, batch },
        };
        let nodes = if image.nodes == NodePlace::Pm as u8 { NodePlace::Pm } else { NodePlace::Dram };
        PoolSettings { slots, map: OffsetMap { nodes, shape: shape_of(image.shape) }, root: image.root }
    }

    fn root_mut(&mut self) -> &mut IndexRoot {
        &mut self.root
    }
}
