//! Settings by name: what a design lets people choose, mostly for a new pool, for command lines and benchmarks.
//!
//! One table has every name with its values, its meaning and the field of [`Options`] behind it; parsing, the list of
//! `quipu designs` and what `quipu info` says of a pool all follow from it.

use crate::designs::Design;
use crate::options::Options;
use crate::settings::offset_map::NodePlace;
use crate::settings::techniques::{Shortcut, Techniques};
use crate::types::error::Error;
use quipu_parts::heap::slots::{LockKind, MAX_PAGES, PAGE_UNIT, RecordForm, TieBreak};
use quipu_parts::index::buckets::BUCKETS_MAX;
use quipu_parts::index::cceh::CcehSettings;

/// A setting of new pools, or of open ones where its help says so.
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The values that it takes.
    pub values: &'static str,
    /// What it does, and the section of the design's paper.
    pub help: &'static str,
    read: fn(&Options) -> String,
    /// `None` for a value that it does not take.
    write: fn(&mut Options, &str) -> Option<()>,
}

type Names<T> = &'static [(&'static str, T)];

const SWITCH: Names<bool> = &[("on", true), ("off", false)];
const SHIFTS: Names<u16> = &[("0", 0), ("2048", 2048)];
const TIE_BREAKS: Names<TieBreak> =
    &[("sequence", TieBreak::Sequence), ("block-order", TieBreak::BlockOrder)];
const LOCKS: Names<LockKind> = &[("dram", LockKind::Dram32), ("page-byte", LockKind::PageByte)];
const PLACES: Names<NodePlace> = &[("dram", NodePlace::Dram), ("pm", NodePlace::Pm)];
const SHORTCUTS: Names<Shortcut> = &[("on", Shortcut::On), ("off", Shortcut::Off), ("auto", Shortcut::Auto)];
const SHAPES: Names<fn() -> CcehSettings> = &[("paper", CcehSettings::paper), ("dense", CcehSettings::dense)];

pub(crate) const FORM: Setting = Setting {
    name: "form",
    values: "variable or fixed:KEY:VALUE, in bytes",
    help: "records of any size in logs, or of one size in slots (3.2.2, 3.2.3)",
    read: |options| match options.slots.form {
        RecordForm::Variable => "variable".into(),
        RecordForm::Fixed { key, value } => format!("fixed:{key}:{value}"),
    },
    write: |options, text| put(&mut options.slots.form, form(text)),
};

pub(crate) const PAGE_SIZE: Setting = Setting {
    name: "page-size",
    values: "bytes, a multiple of 4096",
    help: "bytes of a page; a block has at most 512 KiB (3.2.1)",
    read: |options| options.slots.page_size.to_string(),
    write: |options, text| {
        let size = number(text, 1..=u32::MAX);
        put(&mut options.slots.page_size, size.filter(|size| u64::from(*size).is_multiple_of(PAGE_UNIT)))
    },
};

pub(crate) const PAGES_PER_BLOCK: Setting = Setting {
    name: "pages-per-block",
    values: "1 to 32",
    help: "DIMMs that a block spans; fewer where zones are too small for it (3.2.1)",
    read: |options| options.slots.pages_per_block.to_string(),
    write: |options, text| put(&mut options.slots.pages_per_block, number(text, 1..=MAX_PAGES)),
};

pub(crate) const RANDOM_FIRST_PAGE: Setting = Setting {
    name: "random-first-page",
    values: "on or off",
    help: "clients begin blocks at random pages, and so at different DIMMs (4.1)",
    read: |options| name_of(SWITCH, options.slots.random_first_page),
    write: |options, text| put(&mut options.slots.random_first_page, named(SWITCH, text)),
};

pub(crate) const ALIGNMENT_SHIFT: Setting = Setting {
    name: "alignment-shift",
    values: "0 or 2048",
    help: "bytes by which pages are moved off the DIMMs' boundaries (figure 11)",
    read: |options| name_of(SHIFTS, options.slots.alignment_shift),
    write: |options, text| put(&mut options.slots.alignment_shift, named(SHIFTS, text)),
};

pub(crate) const RECLAIM_PERCENT: Setting = Setting {
    name: "reclaim-percent",
    values: "1 to 100",
    help: "per cent of a block that must be free before it is reclaimed ahead of need (4.6)",
    read: |options| options.slots.reclaim_percent.to_string(),
    write: |options, text| put(&mut options.slots.reclaim_percent, number(text, 1..=100)),
};

pub(crate) const FILL_PERCENT: Setting = Setting {
    name: "fill-percent",
    values: "0 to 100",
    help: "per cent of all blocks that must be used before more are allocated (3.2.1)",
    read: |options| options.slots.fill_percent.to_string(),
    write: |options, text| put(&mut options.slots.fill_percent, number(text, 0..=100)),
};

pub(crate) const TIE_BREAK: Setting = Setting {
    name: "tie-break",
    values: "sequence or block-order",
    help: "which of two records of a key counts after a crash; block-order is the paper's and not sound (4.2)",
    read: |options| name_of(TIE_BREAKS, options.slots.tie_break),
    write: |options, text| put(&mut options.slots.tie_break, named(TIE_BREAKS, text)),
};

pub(crate) const LOCK: Setting = Setting {
    name: "lock",
    values: "dram or page-byte",
    help: "where versions of pages are; page-byte is the paper's and not sound (3.2.2)",
    read: |options| name_of(LOCKS, options.slots.lock),
    write: |options, text| put(&mut options.slots.lock, named(LOCKS, text)),
};

pub(crate) const OFFSET_MAP: Setting = Setting {
    name: "offset-map",
    values: "dram or pm",
    help: "where the index is; pm is the all-PM variant (3.1, 5.3.6)",
    read: |options| name_of(PLACES, options.offset_map.nodes),
    write: |options, text| put(&mut options.offset_map.nodes, named(PLACES, text)),
};

pub(crate) const CCEH: Setting = Setting {
    name: "cceh",
    values: "paper or dense",
    help: "shape of the index: segments of 16 KiB and a probing distance of 4, or fewest bytes a record (3.1)",
    read: |options| {
        let shape = options.offset_map.shape;
        let name = SHAPES.iter().find(|(_, known)| known() == shape).map(|(name, _)| (*name).into());
        name.unwrap_or_else(|| format!("{} bits of buckets, probing {}", shape.bucket_bits, shape.probe))
    },
    write: |options, text| put(&mut options.offset_map.shape, named(SHAPES, text).map(|shape| shape())),
};

pub(crate) const PACMAN: Setting = Setting {
    name: "pacman",
    values: "on or off",
    help: "all of the next at once, shortcuts if they pay on the medium; off is the raw store of the paper (4)",
    read: |options| {
        let Techniques { reduce, separate, shortcut, batch } = options.techniques;
        match (reduce, separate, batch) {
            (true, true, true) => "on",
            (false, false, false) if shortcut == Shortcut::Off => "off",
            _ => "in part",
        }
        .into()
    },
    write: |options, text| {
        let all = named(SWITCH, text);
        let techniques = |all| if all { Techniques::default() } else { Techniques::RAW };
        put(&mut options.techniques, all.map(techniques))
    },
};

pub(crate) const REDUCE: Setting = Setting {
    name: "reduce",
    values: "on or off",
    help: "words of the index tell lengths, and bits in DRAM what is dead (3.2)",
    read: |options| name_of(SWITCH, options.techniques.reduce),
    write: |options, text| put(&mut options.techniques.reduce, named(SWITCH, text)),
};

pub(crate) const SEPARATE: Setting = Setting {
    name: "separate",
    values: "on or off",
    help: "hot records lie in segments or blocks of their own (3.4)",
    read: |options| name_of(SWITCH, options.techniques.separate),
    write: |options, text| put(&mut options.techniques.separate, named(SWITCH, text)),
};

pub(crate) const SHORTCUT: Setting = Setting {
    name: "shortcut",
    values: "on or off or auto",
    help: "records tell where the index has them, where it can say so (3.1); auto: on persistent memory",
    read: |options| name_of(SHORTCUTS, options.techniques.shortcut),
    write: |options, text| put(&mut options.techniques.shortcut, named(SHORTCUTS, text)),
};

pub(crate) const BATCH: Setting = Setting {
    name: "batch",
    values: "on or off",
    help: "records are copied under one fence, and their entries flushed together (3.3)",
    read: |options| name_of(SWITCH, options.techniques.batch),
    write: |options, text| put(&mut options.techniques.batch, named(SWITCH, text)),
};

pub(crate) const BUCKETS: Setting = Setting {
    name: "buckets",
    values: "1 to 2147483648",
    help: "buckets of the index at first, 64 bytes each, rounded up to 16 digits; if it grows, no more than a zone holds (2)",
    read: |options| options.table.buckets.to_string(),
    write: |options, text| put(&mut options.table.buckets, number(text, 1..=BUCKETS_MAX)),
};

pub(crate) const GROW: Setting = Setting {
    name: "grow",
    values: "on or off",
    help: "whether the index grows, a bucket at a time; the paper's does not, and its chains get longer (2)",
    read: |options| name_of(SWITCH, options.table.grow),
    write: |options, text| put(&mut options.table.grow, named(SWITCH, text)),
};

pub(crate) const ELIMINATE: Setting = Setting {
    name: "eliminate",
    values: "on or off",
    help: "of two puts that meet at a key one may return for the other; not remembered by the pool (3.3)",
    read: |options| name_of(SWITCH, options.eliminate),
    write: |options, text| put(&mut options.eliminate, named(SWITCH, text)),
};

pub(crate) const LATE: Setting = Setting {
    name: "late",
    values: "on or off",
    help: "the index learns of a put with later writes of its client; off: before it returns; not remembered by the pool",
    read: |options| name_of(SWITCH, options.late),
    write: |options, text| put(&mut options.late, named(SWITCH, text)),
};

impl Setting {
    /// The settings of a design.
    pub fn of(design: Design) -> impl Iterator<Item = &'static Setting> {
        design.recipe().settings.iter().copied()
    }

    /// The designs that have a setting of this name.
    pub fn designs(name: &str) -> impl Iterator<Item = Design> {
        Design::ALL.iter().copied().filter(move |design| Setting::of(*design).any(|own| own.name == name))
    }

    /// Its value in these options, as [`Options::set`] takes it.
    pub fn value(&self, options: &Options) -> String {
        (self.read)(options)
    }
}

impl Options {
    /// Gives a [setting](crate::Setting) of the design, which is named first, a value, as `--set` of the program does;
    /// [`Setting::of`](crate::Setting::of) lists what a design has.
    ///
    /// # Errors
    /// [`Error::Option`] that lists what there is, for a name that the design does not have and for a value that the setting
    /// does not take.
    ///
    /// ```
    /// use quipu::{Design, Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("pool");
    /// let options = Options::new().size(64 << 20).design(Design::VIPER).set("offset-map", "pm")?;
    /// let store = Store::create(&path, &options)?;
    /// assert!(store.settings().contains(&("offset-map", "pm".into())));
    /// assert!(Options::new().set("offset-map", "pm").is_err(), "no setting of quipu");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(mut self, name: &str, value: &str) -> Result<Options, Error> {
        set(&mut self, name, value)?;
        Ok(self)
    }
}

/// See [`Options::set`].
fn set(options: &mut Options, name: &str, value: &str) -> Result<(), Error> {
    let design = options.design.unwrap_or_default();
    let Some(setting) = Setting::of(design).find(|setting| setting.name == name) else {
        return Err(Error::Option(unknown(design, name)));
    };
    (setting.write)(options, value).ok_or_else(|| {
        let Setting { name, values, .. } = setting;
        Error::Option(format!("the setting {name} does not take {value:?}, but {values}"))
    })
}

/// The answer to a setting that a design does not have.
fn unknown(design: Design, name: &str) -> String {
    let names: Vec<_> = Setting::of(design).map(|setting| setting.name).collect();
    let has = if names.is_empty() { "has none".into() } else { format!("has {}", names.join(", ")) };
    let designs: Vec<_> = Setting::designs(name).map(Design::name).collect();
    if designs.is_empty() {
        return format!("no setting is called {name:?}; {design} {has}");
    }
    format!("{name} is a setting of design {}; {design} {has}", designs.join(", "))
}

/// Fills a field, if there is a value for it.
fn put<T>(field: &mut T, value: Option<T>) -> Option<()> {
    *field = value?;
    Some(())
}

fn named<T: Copy>(names: Names<T>, text: &str) -> Option<T> {
    names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(names: Names<T>, value: T) -> String {
    let found = names.iter().find(|(_, named)| *named == value);
    found.map_or("unknown", |(name, _)| name).into()
}

fn number<T: std::str::FromStr + PartialOrd>(text: &str, range: std::ops::RangeInclusive<T>) -> Option<T> {
    text.parse().ok().filter(|number| range.contains(number))
}

fn form(text: &str) -> Option<RecordForm> {
    if text == "variable" {
        return Some(RecordForm::Variable);
    }
    let (key, value) = text.strip_prefix("fixed:")?.split_once(':')?;
    Some(RecordForm::Fixed { key: number(key, 1..=u16::MAX)?, value: number(value, 0..=u32::MAX)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn viper() -> Options {
        Options::new().design(Design::VIPER)
    }

    /// For each setting a value that is not its default, and some that it does not take.
    const SAMPLES: &[(&str, &str, &[&str])] = &[
        ("form", "fixed:16:200", &["", "fixed", "fixed:0:8", "fixed:8", "fixed:70000:8", "fixed:8:8:8"]),
        ("page-size", "8192", &["0", "5000", "-4096", "4K", "4294967296"]),
        ("pages-per-block", "4", &["0", "33", "six"]),
        ("random-first-page", "off", &["false", "ON"]),
        ("alignment-shift", "2048", &["1024", ""]),
        ("reclaim-percent", "40", &["0", "101"]),
        ("fill-percent", "0", &["101", "-1"]),
        ("tie-break", "block-order", &["random"]),
        ("lock", "page-byte", &["pm"]),
        ("offset-map", "pm", &["PM", "file"]),
        ("cceh", "dense", &["tiny", "5:6"]),
        ("pacman", "off", &["in part", "raw"]),
        ("reduce", "off", &["false"]),
        ("separate", "off", &["ON"]),
        ("shortcut", "off", &[""]),
        ("batch", "off", &["1"]),
        ("buckets", "4096", &["0", "2147483649", "1K"]),
        ("grow", "off", &["false"]),
        ("eliminate", "off", &["never"]),
        ("late", "off", &["on time"]),
    ];

    #[test]
    fn every_setting_is_read_as_it_was_written() {
        let all: BTreeSet<_> =
            Design::ALL.iter().flat_map(|design| Setting::of(*design)).map(|own| own.name).collect();
        assert_eq!(all, SAMPLES.iter().map(|(name, ..)| *name).collect(), "a sample for each");
        for (name, other, refused) in SAMPLES {
            let design = Setting::designs(name).next().unwrap();
            let setting = Setting::of(design).find(|own| own.name == *name).unwrap();
            let mut options = Options::new().design(design);
            let default = setting.value(&options);
            assert_ne!(default, *other);
            set(&mut options, name, other).expect("a value that it takes");
            assert_eq!(setting.value(&options), *other);
            for value in *refused {
                let error = set(&mut options, name, value).expect_err("no value of it").to_string();
                assert!(error.contains(name) && error.contains(setting.values), "{error}");
                assert_eq!(setting.value(&options), *other, "a refusal changes nothing");
            }
            set(&mut options, name, &default).expect("its default");
            assert_eq!(setting.value(&options), default);
            // What is offered in words is taken.
            for word in setting.values.split(" or ").filter(|word| !word.contains(' ')) {
                set(&mut options, name, word).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }

    #[test]
    fn what_a_design_can_leave_out_it_can_do() {
        for design in Design::ALL {
            let has = Setting::of(*design).any(|setting| setting.name == "eliminate");
            assert_eq!(has, design.can().eliminates, "{design}");
        }
    }

    #[test]
    fn one_word_is_four_and_the_last_word_counts() {
        let mut options = Options::new().design(Design::FLATSTORE_H);
        let mut set = |name, value| {
            super::set(&mut options, name, value).expect("it has it");
            (options.techniques, PACMAN.value(&options))
        };
        assert_eq!(set("pacman", "off"), (Techniques::RAW, "off".into()));
        assert_eq!(set("reduce", "on"), (Techniques { reduce: true, ..Techniques::RAW }, "in part".into()));
        set("separate", "on");
        let without = Techniques { shortcut: Shortcut::Off, ..Techniques::ALL };
        assert_eq!(set("batch", "on"), (without, "on".into()));
        assert_eq!(set("shortcut", "on"), (Techniques::ALL, "on".into()));
        assert_eq!(set("pacman", "on"), (Techniques::default(), "on".into()));
    }

    #[test]
    fn what_a_design_does_not_have_is_told_with_what_it_has() {
        let error = viper().set("zone", "1").expect_err("no such setting").to_string();
        assert!(Setting::of(Design::VIPER).all(|setting| error.contains(setting.name)), "{error}");
        let error = Options::default().set("offset-map", "pm").expect_err("not quipu's").to_string();
        assert!(error.contains("design viper") && error.contains("quipu has eliminate"), "{error}");
    }
}
