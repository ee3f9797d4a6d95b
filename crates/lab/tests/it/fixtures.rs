//! Pools that earlier releases left. `tests/fixtures/` has one of each format, closed and not closed, which
//! every later release must open. For designs whose bytes have changed, a later release must refuse the old
//! pools and name the old part. Each was made once, by the release of its format, and is never made again:
//!
//! `cargo test -p quipu-lab --test it -- --ignored fixtures::`
//!
//! Those of earlier forms were made by the command line, with `put` of
//! "llama", "alpaca", "gone" and "vicuna" and `del` of "gone".

use quipu::internals::Testing;
use quipu::{Design, Error, ErrorKind, MediumKind, Options, Store, WriteBatch};
use quipu_lab::contract::{Contents, value_of, verify, verify_beside};
use quipu_medium::{Durability, Region};
use quipu_parts::space::{Space, SpaceError};
use std::path::{Path, PathBuf};

/// A time far from now, in milliseconds since 1970.
const FAR: u64 = 1 << 50;

/// Keys whose values had expired when they were written.
const EXPIRED: usize = 3;

fn options() -> Options {
    // A checkpoint is written only if it is shorter than the records.
    let testing = Testing { tiny_index: true, ..Testing::default() };
    Options::new()
        .with(|options| options.testing = testing)
        .medium(MediumKind::File)
        .zone_size(16 << 10)
        .size(256 << 10)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Every kind of record: values, tombstones, what expires, batches, a large value, all of them moved by
/// compaction and not.
fn fill(store: &Store) -> Contents {
    let mut contents = Contents::new();
    for round in 0..3u64 {
        let mut client = store.client();
        for number in 0..60u64 {
            let key = format!("key {number}").into_bytes();
            if (number + round).is_multiple_of(4) {
                client.delete(&key).unwrap();
                contents.remove(&key);
            } else {
                let value = value_of(&key, round, (number * 7) as usize);
                client.put(&key, &value).unwrap();
                contents.insert(key, value);
            }
        }
        let mut batch = WriteBatch::new();
        for number in 0..5u64 {
            let key = format!("batch {number}").into_bytes();
            let value = value_of(&key, round, 40);
            batch.put(&key, &value);
            contents.insert(key, value);
        }
        batch.delete(b"key 1").put_until(format!("expired {round}").as_bytes(), b"gone", 1);
        client.write(&batch).unwrap();
        contents.remove(&b"key 1"[..]);
        client.put_until(b"expires", b"some day", FAR).unwrap();
        contents.insert(b"expires".to_vec(), b"some day".to_vec());
        let large = value_of(b"large", round, 20_000);
        client.put(b"large", &large).unwrap();
        contents.insert(b"large".to_vec(), large);
        drop(client);
        if round == 1 {
            store.compact().unwrap();
        }
    }
    contents
}

#[test]
fn pools_of_every_format_open() {
    for version in ["v1"] {
        for ending in ["closed", "dropped"] {
            let fresh = tempfile::tempdir().unwrap();
            let reference = Store::create(fresh.path().join("reference"), &options()).unwrap();
            let mut contents = fill(&reference);
            let path = fresh.path().join("pool");
            std::fs::copy(folder().join(format!("{version}-{ending}.bin")), &path).unwrap();
            for verify in [true, false] {
                let mut store = Store::open(&path, &options().verify(verify)).unwrap();
                // The checkpoints of these pools have an index of another hash.
                assert!(!store.recovery().from_checkpoint, "{version} {ending}");
                assert!(store.recovery().lost.is_empty());
                verify_beside(&mut store, &contents, EXPIRED);
                assert_eq!(store.client().expiry(b"expires").unwrap(), Some(quipu::Expiry::At(FAR)));
                if !verify {
                    store.client().put(b"new", b"value").unwrap();
                    contents.insert(b"new".to_vec(), b"value".to_vec());
                    verify_beside(&mut store, &contents, EXPIRED);
                }
            }
        }
    }
}

/// Pools of earlier forms of a design, and what the refusal names.
const FIRST_FORMS: [(&str, &str); 4] = [
    ("viper", "chunk headers without a check of their count of used blocks"),
    ("flatstore-ff", "nodes of FAST&FAIR in which an end is a zero"),
    ("flatstore-ff-2", "separators of FAST&FAIR without a check"),
    ("mpkv", "buckets in which a free slot is a zero"),
];

#[test]
fn a_pool_of_an_earlier_form_is_refused_by_name_and_not_changed() {
    for (design, old) in FIRST_FORMS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        let bytes = std::fs::read(self::folder().join(format!("v1-{design}.bin"))).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let opened = Store::open(&path, &options());
        let salvaged = Store::salvage(&path, folder.path().join("new"), &options(), &|_, _| {});
        for error in [opened.expect_err(design), salvaged.expect_err(design)] {
            assert!(matches!(error, Error::Space(SpaceError::OlderFormat { .. })), "{design}: {error:?}");
            assert_eq!(error.kind(), ErrorKind::NotAPool);
            let text = error.to_string();
            assert!(
                text.contains(old) && text.contains("export it with the release that wrote it"),
                "{text}"
            );
        }
        assert!(std::fs::read(&path).unwrap() == bytes, "{design}: a refused pool was changed");
    }
}

/// Pools of a later form of a design, left by a store that was dropped. The form after it adds a line, and
/// moves this one to those that are refused.
const LATER_FORMS: [(&str, Design); 1] = [("v1-viper-2", Design::VIPER)];

fn options_of(design: Design) -> Options {
    options().design(design)
}

/// The contents that every design has: values that are put, put again, and deleted, some of them moved by
/// compaction.
fn fill_plain(store: &Store) -> Contents {
    let mut contents = Contents::new();
    for round in 0..3u64 {
        let mut client = store.client();
        for number in 0..40u64 {
            let key = format!("key {number}").into_bytes();
            if (number + round).is_multiple_of(4) {
                client.delete(&key).unwrap();
                contents.remove(&key);
            } else {
                let value = value_of(&key, round, (number * 7) as usize);
                client.put(&key, &value).unwrap();
                contents.insert(key, value);
            }
        }
        drop(client);
        if round == 1 {
            store.compact().unwrap();
        }
    }
    contents
}

/// A pool with a checkpoint of the present form, left by a store that was closed.
const CHECKPOINT: &str = "v1-checkpoint-2";

#[test]
fn a_checkpoint_of_an_earlier_run_is_loaded() {
    let fresh = tempfile::tempdir().unwrap();
    let reference = Store::create(fresh.path().join("reference"), &options()).unwrap();
    let contents = fill_plain(&reference);
    let path = fresh.path().join("pool");
    std::fs::copy(folder().join(format!("{CHECKPOINT}.bin")), &path).unwrap();
    let mut store = Store::open(&path, &options()).unwrap();
    assert!(store.recovery().from_checkpoint);
    verify(&mut store, &contents);
}

/// Makes a pool that was not closed one of this boot of the system. Some designs refuse what a crash of the
/// system has left.
fn dropped_since_the_system_started(path: &Path) {
    let region = Region::open(path, Some(MediumKind::File), Durability::Process).unwrap();
    let boot_id = region.boot_id();
    let (space, _) = Space::examine(region).unwrap();
    space.update_superblock(|superblock| superblock.boot_id = boot_id);
}

#[test]
fn pools_of_later_forms_open() {
    for (name, design) in LATER_FORMS {
        let fresh = tempfile::tempdir().unwrap();
        let reference = Store::create(fresh.path().join("reference"), &options_of(design)).unwrap();
        let contents = fill_plain(&reference);
        let path = fresh.path().join("pool");
        std::fs::copy(folder().join(format!("{name}.bin")), &path).unwrap();
        dropped_since_the_system_started(&path);
        for ending in ["dropped", "closed"] {
            let mut store = Store::open(&path, &options()).unwrap();
            assert_eq!(store.design(), design, "{name}");
            verify(&mut store, &contents);
            if ending == "dropped" {
                store.close().unwrap();
            }
        }
    }
}

#[test]
#[ignore = "once for each form: cargo test -p quipu-lab --test it -- --ignored fixtures::later"]
fn make_pools_of_later_forms() {
    for (name, design) in LATER_FORMS {
        let path = folder().join(format!("{name}.bin"));
        if !path.exists() {
            fill_plain(&Store::create(&path, &options_of(design)).unwrap());
        }
    }
    let path = folder().join(format!("{CHECKPOINT}.bin"));
    if !path.exists() {
        let store = Store::create(&path, &options()).unwrap();
        fill_plain(&store);
        store.close().unwrap();
    }
}

#[test]
#[ignore = "once for each format: cargo test -p quipu-lab --test it -- --ignored fixtures::"]
fn make_pools_of_this_format() {
    std::fs::create_dir_all(folder()).unwrap();
    for ending in ["closed", "dropped"] {
        let path = folder().join(format!("v{}-{ending}.bin", quipu_parts::space::FORMAT_VERSION));
        let store = Store::create(&path, &options()).unwrap();
        fill(&store);
        if ending == "closed" {
            store.close().unwrap();
        }
    }
}
