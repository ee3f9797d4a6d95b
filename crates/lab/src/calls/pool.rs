//! The make of a pool: its settings vary with a seed, so that everything meets everything.

use super::codec::FIXED;
use quipu::internals::{CacheSize, IndexChoice, NodePlace, Shortcut, Techniques};
use quipu::{Design, Options};

/// Varies the settings of a pool, also those that each opening chooses anew.
pub fn vary(options: &mut Options, design: Design, seed: u64) {
    let can = design.can();
    options.testing.tiny_index = seed.is_multiple_of(2);
    options.offset_map.nodes = if (seed / 6).is_multiple_of(2) { NodePlace::Dram } else { NodePlace::Pm };
    options.techniques = techniques(design, seed / 2);
    options.testing.clock_block = seed.is_multiple_of(3).then_some(16);
    options.testing.stripes = seed.is_multiple_of(2).then_some(2);
    options.testing.handful = seed.is_multiple_of(2).then_some(3);
    if can.caches && seed % 3 == 1 {
        options.cache = CacheSize::Bytes(64 << 10);
        options.testing.cache_sample = Some(1 + seed as u32 % 2);
        // It turns off and on again and again.
        options.testing.cache_turns = (seed % 4 == 1).then_some(8);
    }
    if can.updates_in_place && seed % 5 < 2 {
        options.slots.form = FIXED;
    }
    if can.chooses_index && seed % 5 < 2 {
        options.index = IndexChoice::Alex;
    }
}

/// Half of the time all of PACMAN, else none of it, or all but one. Slots are not copied together where marks
/// in the pool count.
fn techniques(design: Design, number: u64) -> Techniques {
    match number % 10 {
        0 => Techniques::RAW,
        1 => Techniques { reduce: false, batch: design != Design::VIPER_PACMAN, ..Techniques::ALL },
        2 => Techniques { separate: false, ..Techniques::ALL },
        3 => Techniques { shortcut: Shortcut::Off, ..Techniques::ALL },
        4 => Techniques { batch: false, ..Techniques::ALL },
        _ => Techniques::ALL,
    }
}
