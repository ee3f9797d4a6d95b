//! Settings at creating and at opening a pool: the pool keeps some of them, the handle has the others.

use quipu::{Design, Error, Options, Setting, Store};
use std::path::Path;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Options of a design with these settings.
fn options<'s>(design: Design, settings: impl IntoIterator<Item = (&'s str, &'s str)>) -> Options {
    let options = Options::new().design(design).size(4 << 20).cleaner(false);
    settings.into_iter().fold(options, |options, (name, value)| options.set(name, value).expect("it has it"))
}

fn create(path: &Path, options: &Options) -> Store {
    Store::create(path, options).expect("a new pool")
}

/// The words of a refusal.
fn refusal(result: Result<Store, Error>) -> String {
    match result {
        Err(error @ Error::Option(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_setting_of_another_design_is_refused_at_create_and_at_open() {
    let folder = folder();
    let path = folder.path().join("pool");
    // The design is named again behind the setting.
    let foreign = options(Design::VIPER, [("offset-map", "pm")]).design(Design::QUIPU);
    let says = |text: String| {
        assert!(
            text.contains("offset-map is a setting of design viper; quipu has eliminate, late"),
            "{text}"
        );
    };
    says(refusal(Store::create(&path, &foreign)));
    assert!(!path.exists());
    create(&path, &options(Design::QUIPU, [])).close().expect("closed");
    let before = std::fs::read(&path).unwrap();
    says(refusal(Store::open(&path, &foreign.clone().design(None))));
    says(refusal(Store::open_read_only(&path, &foreign.design(None))));
    assert_eq!(std::fs::read(&path).unwrap(), before, "the pool is not changed");
    // A setting of a handle, too: this one is quipu's, which is meant where no design is named.
    let late = Options::new().set("late", "off").expect("quipu has it");
    let other = folder.path().join("other");
    create(&other, &options(Design::MPKV, [])).close().expect("closed");
    let text = refusal(Store::open(&other, &late));
    assert!(
        text.contains("late is a setting of design quipu, viper; mpkv has buckets, grow, eliminate"),
        "{text}"
    );
    Store::open(&path, &late).expect("quipu has it");
}

#[test]
fn a_setting_that_the_pool_keeps_may_be_given_again_and_not_differ() {
    for design in Design::ALL {
        for setting in Setting::of(*design).filter(|setting| setting.is_kept()) {
            let folder = folder();
            let path = folder.path().join("pool");
            let plain = options(*design, []);
            let store = create(&path, &plain);
            let kept =
                store.settings().into_iter().find(|(name, _)| *name == setting.name).expect("its own").1;
            store.close().expect("closed");
            // The same value, and the default that led to it, which may have been fitted to the pool.
            let default = setting.value(&Options::new());
            for value in [&kept, &default] {
                if let Ok(again) = plain.clone().set(setting.name, value) {
                    Store::open_or_create(&path, &again).unwrap_or_else(|error| panic!("{design}: {error}"));
                }
            }
            let others = match setting.name {
                "form" => vec!["fixed:8:8"],
                "page-size" => vec!["8192"],
                "pages-per-block" => vec!["1"],
                "reclaim-percent" | "fill-percent" => vec!["50"],
                "buckets" => vec!["7"],
                "entry" => vec!["op-last"],
                _ => vec!["off", "2048", "pm", "dense"],
            };
            let mut refused = 0;
            for value in others {
                let Ok(other) = plain.clone().set(setting.name, value) else { continue };
                // The medium may have decided so.
                if kept == value {
                    continue;
                }
                let text = refusal(Store::open(&path, &other));
                let (name, has) =
                    (setting.name, format!("design {design} was created with {}={kept}", setting.name));
                assert!(text.contains(&format!("{name}={value}")) && text.contains(&has), "{text}");
                refused += 1;
            }
            assert!(refused == 1 || setting.name == "shortcut", "{design} {}", setting.name);
            Store::open(&path, &plain).expect("no setting is needed");
        }
    }
}

#[test]
fn the_last_word_counts_at_open_too() {
    let folder = folder();
    let path = folder.path().join("pool");
    let design = Design::FLATSTORE_M;
    create(&path, &options(design, [("pacman", "off"), ("reduce", "on")])).close().expect("closed");
    let opens =
        |settings: &[(&str, &str)]| Store::open(&path, &options(design, settings.iter().copied())).is_ok();
    assert!(opens(&[("pacman", "off"), ("reduce", "on")]) && opens(&[("reduce", "on")]));
    assert!(opens(&[("batch", "off"), ("shortcut", "auto")]), "auto leaves it to the pool");
    assert!(!opens(&[("reduce", "on"), ("pacman", "off")]) && !opens(&[("pacman", "on")]));
}

#[test]
fn a_setting_of_a_handle_holds_for_it_alone() {
    let folder = folder();
    for design in [Design::QUIPU, Design::VIPER, Design::MPKV, Design::FLATSTORE_M, Design::NSTORE] {
        let path = folder.path().join(design.name());
        for setting in Setting::of(design).filter(|setting| !setting.is_kept()) {
            let values = setting.values();
            let values: Vec<&str> = match setting.name {
                "cache" => vec!["auto", "off", "65536"],
                "clusters" => vec!["1", "4096"],
                "gc-threshold" => vec!["1", "100"],
                "readers" => vec!["0", "8"],
                "cleaners" => vec!["1", "8"],
                "wait-for-room" => vec!["0", "3600000"],
                _ => values.split(" or ").collect(),
            };
            for value in values.iter().rev().chain(&values).copied() {
                let store =
                    Store::open_or_create(&path, &options(design, [(setting.name, value)])).expect("opened");
                assert!(store.settings().contains(&(setting.name, value.into())), "{design}");
            }
            let store = Store::open(&path, &Options::new()).expect("opened");
            let default = setting.value(&Options::new());
            assert!(store.settings().contains(&(setting.name, default)), "{design}: the default again");
        }
        assert!(path.exists());
    }
}
