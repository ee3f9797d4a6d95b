//! Settings by name: the choices that a design leaves, for command lines and benchmarks.
//!
//! Each setting is an entry of data: its name, its meaning, and the field of [`Options`] behind it with the
//! values that this takes. The parser, `quipu designs` and `quipu info` follow from the entries. A recipe
//! lists the settings of its pools by the parts that have them. The settings of handles follow from the
//! capabilities of the design.

mod handle;

use crate::designs::{Capabilities, Design};
use crate::options::Options;
use crate::settings::files::EntryForm;
use crate::settings::offset_map::NodePlace;
use crate::settings::techniques::{Shortcut, Techniques};
use crate::types::error::Error;
use handle::HANDLE;
use quipu_parts::heap::slots::{MAX_PAGES, PAGE_UNIT};
use quipu_parts::index::buckets::BUCKETS_MAX;
use quipu_parts::index::cceh::CcehSettings;
use std::fmt::Display;
use std::str::FromStr;

/// A choice that a design leaves.
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, and the section of the design's paper.
    pub help: &'static str,
    pub(super) field: &'static dyn Field,
    /// Of a handle: whether a design has the capability that it switches off.
    of_handle: Option<fn(&Capabilities) -> bool>,
}

/// The field of the options behind a setting.
pub(super) trait Field: Sync {
    /// The values that it takes, in words.
    fn values(&self) -> String;

    fn print(&self, options: &mut Options) -> String;

    /// `None`, and nothing is changed, for a value that it does not take.
    fn parse(&self, options: &mut Options, text: &str) -> Option<()>;
}

type Of<T> = fn(&mut Options) -> &mut T;
type Names<T> = &'static [(&'static str, T)];

/// A field whose values have names. The shape of an index may have none, since it is fitted to the zones.
struct Named<T: 'static>(Of<T>, Names<T>);

impl<T: Copy + PartialEq + Sync> Field for Named<T> {
    fn values(&self) -> String {
        let names: Vec<_> = self.1.iter().map(|(name, _)| *name).collect();
        names.join(" or ")
    }

    fn print(&self, options: &mut Options) -> String {
        let value = *self.0(options);
        let found = self.1.iter().find(|(_, named)| *named == value);
        found.map_or("fitted to the zones", |(name, _)| name).into()
    }

    fn parse(&self, options: &mut Options, text: &str) -> Option<()> {
        *self.0(options) = self.1.iter().find(|(name, _)| *name == text)?.1;
        Some(())
    }
}

/// A field whose values are written as their type has it, with these values in words and as a condition.
struct Written<T>(Of<T>, &'static str, fn(&T) -> bool);

impl<T: Display + FromStr> Field for Written<T> {
    fn values(&self) -> String {
        self.1.into()
    }

    fn print(&self, options: &mut Options) -> String {
        self.0(options).to_string()
    }

    fn parse(&self, options: &mut Options, text: &str) -> Option<()> {
        *self.0(options) = text.parse().ok().filter(self.2)?;
        Some(())
    }
}

/// All techniques of PACMAN at once.
struct Pacman;

impl Field for Pacman {
    fn values(&self) -> String {
        "on or off".into()
    }

    fn print(&self, options: &mut Options) -> String {
        let Techniques { reduce, separate, shortcut, batch } = options.techniques;
        match (reduce, separate, batch) {
            (true, true, true) => "on",
            (false, false, false) if shortcut == Shortcut::Off => "off",
            _ => "in part",
        }
        .into()
    }

    fn parse(&self, options: &mut Options, text: &str) -> Option<()> {
        let all = [("on", Techniques::default()), ("off", Techniques::RAW)];
        options.techniques = all.into_iter().find(|(name, _)| *name == text)?.1;
        Some(())
    }
}

const SWITCH: Names<bool> = &[("on", true), ("off", false)];

const fn pool(name: &'static str, help: &'static str, field: &'static dyn Field) -> Setting {
    Setting { name, help, field, of_handle: None }
}

/// Settings of a heap of slots.
pub(crate) const SLOTS: &[Setting] = &[
    pool(
        "page-size",
        "bytes of a page; a block has at most 512 KiB (3.2.1)",
        &Written(
            |options| &mut options.slots.page_size,
            "bytes, a multiple of 4096",
            |size| *size > 0 && u64::from(*size).is_multiple_of(PAGE_UNIT),
        ),
    ),
    pool(
        "pages-per-block",
        "DIMMs that a block spans; fewer where zones are too small for it (3.2.1)",
        &Written(
            |options| &mut options.slots.pages_per_block,
            "1 to 32",
            |pages| (1..=MAX_PAGES).contains(pages),
        ),
    ),
    pool(
        "random-first-page",
        "clients begin blocks at random pages, and so at different DIMMs (4.1)",
        &Named(|options| &mut options.slots.random_first_page, SWITCH),
    ),
    pool(
        "alignment-shift",
        "bytes by which pages are moved off the DIMMs' boundaries (figure 11)",
        &Named(|options| &mut options.slots.alignment_shift, &[("0", 0), ("2048", 2048)]),
    ),
    pool(
        "reclaim-percent",
        "per cent of a block that must be free before it is reclaimed ahead of need (4.6)",
        &Written(
            |options| &mut options.slots.reclaim_percent,
            "1 to 100",
            |percent| (1..=100).contains(percent),
        ),
    ),
    pool(
        "fill-percent",
        "per cent of all blocks that must be used before more are allocated (3.2.1)",
        &Written(|options| &mut options.slots.fill_percent, "0 to 100", |percent| *percent <= 100),
    ),
];

/// Further settings of Viper itself.
pub(crate) const VIPER: &[Setting] = &[
    pool(
        "form",
        "records of any size in logs, or of one size in slots (3.2.2, 3.2.3)",
        &Written(|options| &mut options.slots.form, "variable or fixed:KEY:VALUE, in bytes", |_| true),
    ),
    pool(
        "offset-map",
        "where the index is; pm is the all-PM variant (3.1, 5.3.6)",
        &Named(|options| &mut options.offset_map.nodes, &[("dram", NodePlace::Dram), ("pm", NodePlace::Pm)]),
    ),
];

const SHAPES: Names<CcehSettings> = &[("paper", CcehSettings::paper()), ("dense", CcehSettings::dense())];

/// Settings of a CCEH index.
pub(crate) const CCEH: &[Setting] = &[pool(
    "cceh",
    "shape of the index; paper: segments of 16 KiB and a probing distance of 4; dense: fewest bytes a record (3.1)",
    &Named(|options| &mut options.offset_map.shape, SHAPES),
)];

/// The techniques of PACMAN.
pub(crate) const PACMAN: &[Setting] = &[
    pool(
        "pacman",
        "all of the following techniques at once, shortcuts only where they pay on the medium; off: the raw store of the paper (4)",
        &Pacman,
    ),
    pool(
        "reduce",
        "the index stores the lengths of records, and bits in DRAM mark dead records (3.2)",
        &Named(|options| &mut options.techniques.reduce, SWITCH),
    ),
    pool(
        "separate",
        "hot records lie in segments or blocks of their own (3.4)",
        &Named(|options| &mut options.techniques.separate, SWITCH),
    ),
    pool(
        "batch",
        "records are copied under one fence, and their index entries flushed together (3.3)",
        &Named(|options| &mut options.techniques.batch, SWITCH),
    ),
];

/// PACMAN's technique for indexes that can tell where an entry stands.
pub(crate) const SHORTCUT: &[Setting] = &[pool(
    "shortcut",
    "records store the place of their index entry, if the index has such places (3.1); auto: on persistent memory",
    &Named(
        |options| &mut options.techniques.shortcut,
        &[("on", Shortcut::On), ("off", Shortcut::Off), ("auto", Shortcut::Auto)],
    ),
)];

/// Settings of a bucket index.
pub(crate) const TABLE: &[Setting] = &[
    pool(
        "buckets",
        "first number of buckets of the index, 64 bytes each, rounded up to 16 significant bits; if it grows, at most what a zone holds (2)",
        &Written(
            |options| &mut options.table.buckets,
            "1 to 2147483648",
            |count| (1..=BUCKETS_MAX).contains(count),
        ),
    ),
    pool(
        "grow",
        "whether the index grows, a bucket at a time; the paper's does not: its chains get longer (2)",
        &Named(|options| &mut options.table.grow, SWITCH),
    ),
];

/// Settings of NStore.
pub(crate) const NSTORE: &[Setting] = &[pool(
    "entry",
    "checked: a checksum over the whole record, one fence; op-last: the paper's form, whose first word is written last: one fence within a line, two beyond, and no checksum behind the header (III-E)",
    &Named(
        |options| &mut options.files.entry,
        &[("checked", EntryForm::Checked), ("op-last", EntryForm::OpLast)],
    ),
)];

impl Setting {
    /// The settings of a design: first those of its pools, then those of handles.
    pub fn of(design: Design) -> impl Iterator<Item = &'static Setting> {
        let has = move |setting: &&Setting| setting.of_handle.is_some_and(|needs| needs(design.can()));
        design.recipe().settings.iter().copied().flatten().chain(HANDLE.iter().filter(has))
    }

    /// The designs that have a setting of this name.
    pub fn designs(name: &str) -> impl Iterator<Item = Design> {
        Design::ALL.iter().copied().filter(move |design| Setting::of(*design).any(|own| own.name == name))
    }

    /// Whether it is a setting of the pool, which is chosen when that is created and kept in it. If not, it
    /// is a setting of the handle, which is chosen at each opening.
    pub fn is_kept(&self) -> bool {
        self.of_handle.is_none()
    }

    /// The values that it takes, in words.
    pub fn values(&self) -> String {
        self.field.values()
    }

    /// Its value in these options, as [`Options::set`] takes it.
    pub fn value(&self, options: &Options) -> String {
        self.field.print(&mut options.clone())
    }

    /// The setting of this name.
    ///
    /// # Errors
    /// [`Error::Option`], with the settings of the design, if it has no such setting.
    pub fn find(design: Design, name: &str) -> Result<&'static Setting, Error> {
        let found = Setting::of(design).find(|setting| setting.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Setting::of(design).map(|setting| setting.name).collect();
            let has = names.join(", ");
            let designs: Vec<_> = Setting::designs(name).map(Design::name).collect();
            Error::Option(if designs.is_empty() {
                format!("no setting is called {name:?}; {design} has {has}")
            } else {
                format!("{name} is a setting of design {}; {design} has {has}", designs.join(", "))
            })
        })
    }
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
        ("merge", "key", &["", "at once"]),
        ("index", "alex", &["ALEX", "cceh"]),
        ("entry", "op-last", &["op", "CHECKED", ""]),
        ("clusters", "16", &["0", "3", "8192", "many"]),
        ("gc-threshold", "10", &["0", "101", "half"]),
        ("cleaners", "2", &["0", "9"]),
        ("readers", "0", &["9", "-1"]),
        ("cache", "65536", &["4095", "64M", "on", "-1", "1099511627777"]),
        ("cache-policy", "lru-raf", &["RAF", "fifo"]),
        ("wait-for-room", "0", &["3600001", "1s", ""]),
    ];

    #[test]
    fn every_setting_is_read_as_it_was_written() {
        let all: BTreeSet<_> =
            Design::ALL.iter().flat_map(|design| Setting::of(*design)).map(|own| own.name).collect();
        assert_eq!(all, SAMPLES.iter().map(|(name, ..)| *name).collect(), "a sample for each");
        for (name, other, refused) in SAMPLES {
            let design = Setting::designs(name).next().unwrap();
            let setting = Setting::find(design, name).unwrap();
            let default = setting.value(&Options::new());
            assert_ne!(default, *other);
            let set = |value: &str| Options::new().design(design).set(name, value);
            for value in [*other, &default] {
                assert_eq!(setting.value(&set(value).expect("a value that it takes")), value);
            }
            for value in *refused {
                let error = set(value).expect_err("no value of it").to_string();
                assert!(error.contains(name) && error.contains(&setting.values()), "{error}");
                let mut options = set(other).unwrap();
                assert_eq!(setting.field.parse(&mut options, value), None);
                assert_eq!(setting.value(&options), *other, "a refusal changes nothing");
            }
            // It takes the values that it offers in words, and the ends of a range and no number beyond.
            for word in setting.values().split(" or ").filter(|word| !word.contains(' ')) {
                set(word).unwrap_or_else(|error| panic!("{error}"));
            }
            if let Some((first, last)) = setting.values().split_once(" to ") {
                let [first, last] = [first, last].map(|number| number.parse::<i64>().expect("a number"));
                let taken = [first - 1, first, last, last + 1].map(|number| set(&number.to_string()).is_ok());
                assert_eq!(taken, [false, true, true, false], "{name}");
            }
        }
    }

    #[test]
    fn one_word_is_four_and_the_last_word_counts() {
        let mut options = Options::new().design(Design::FLATSTORE_H);
        let mut set = |name, value| {
            options = options.clone().set(name, value).expect("it has it");
            (options.techniques, PACMAN[0].value(&options))
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
