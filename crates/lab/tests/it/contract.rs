//! Every design keeps every promise on every medium that this machine has.

use quipu_lab::contract::{CHECKS, Medium, judge};

/// Names a folder on a file system that maps persistent memory directly.
const DAX_FOLDER: &str = "QUIPU_DAX_FOLDER";

fn keeps_the_contract(medium: &Medium, room: Option<&str>) {
    let filter = std::env::var("QUIPU_CONTRACT").unwrap_or_default();
    let failures = judge(medium, room, &filter);
    let listed: Vec<_> = failures
        .iter()
        .map(|f| format!("\n  {} {} breaks {}: {}", f.design, f.setting, f.check, f.what))
        .collect();
    assert!(failures.is_empty(), "on {medium:?}:{}", listed.concat());
}

fn on_files(room: &str) {
    let folder = tempfile::tempdir().unwrap();
    keeps_the_contract(&Medium::File(folder.path().to_owned()), Some(room));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "fixtures clean up");
}

/// The tests of a room: on files, those to which it matters that the pool is one run with every change, the
/// others at night.
macro_rules! rooms {
    ($($room:ident $(, $at_night:meta)?;)*) => {
        const ROOMS: &[&str] = &[$(stringify!($room)),*];
        $(mod $room {
            #[test]
            fn on_dram() {
                super::keeps_the_contract(&super::Medium::Dram, Some(stringify!($room)));
            }

            #[test]
            fn on_the_simulator() {
                super::keeps_the_contract(&super::Medium::Sim, Some(stringify!($room)));
            }

            #[test]
            $(#[$at_night])?
            fn on_files() {
                super::on_files(stringify!($room));
            }
        })*
    };
}

rooms! {
    closures;
    calls, ignore = "at night: cargo test -p quipu-lab --test it on_files -- --include-ignored --skip model::";
    batches, ignore = "at night: cargo test -p quipu-lab --test it on_files -- --include-ignored --skip model::";
    expiry, ignore = "at night: cargo test -p quipu-lab --test it on_files -- --include-ignored --skip model::";
    limits;
    large, ignore = "at night: cargo test -p quipu-lab --test it on_files -- --include-ignored --skip model::";
    concurrency, ignore = "at night: cargo test -p quipu-lab --test it on_files -- --include-ignored --skip model::";
    order, ignore = "at night: cargo test -p quipu-lab --test it on_files -- --include-ignored --skip model::";
    space;
    slots, ignore = "at night: cargo test -p quipu-lab --test it on_files -- --include-ignored --skip model::";
    durability;
}

#[test]
fn no_room_is_left_out() {
    for check in CHECKS {
        assert!(ROOMS.contains(&check.room), "{}", check.room);
    }
}

/// The longest value of all, on a file: `cargo test --release -p quipu-lab --test it gibibyte -- --ignored`.
#[test]
#[ignore = "writes two values of 1 GiB: cargo test --release -p quipu-lab --test it gibibyte -- --ignored"]
fn a_value_of_a_gibibyte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = quipu::Options::new().size(3 << 30);
    let store = quipu::Store::create(&path, &options).unwrap();
    assert_eq!(store.limits().1, 1 << 30);
    let value = |version: u8| -> Vec<u8> {
        (0..1u32 << 28).flat_map(|word| (word ^ u32::from(version) << 13).to_le_bytes()).collect()
    };
    let mut client = store.client();
    let begun = std::time::Instant::now();
    let seconds = |begun: std::time::Instant| begun.elapsed().as_secs_f64();
    for version in 0..3 {
        let value = value(version);
        let begun = std::time::Instant::now();
        client.put(b"large", &value).unwrap();
        println!("put {:.2} s", seconds(begun));
        let begun = std::time::Instant::now();
        let found = client.get(b"large").unwrap();
        println!("get {:.2} s", seconds(begun));
        assert!(found.as_deref() == Some(&value[..]));
        assert!(client.put(b"longer", &[&value[..], b"!"].concat()).is_err());
    }
    drop(client);
    drop(store);
    let begun_open = std::time::Instant::now();
    let store = quipu::Store::open(&path, &quipu::Options::default()).unwrap();
    println!("recovery {:.2} s, all {:.2} s", seconds(begun_open), seconds(begun));
    assert!(store.client().get(b"large").unwrap() == Some(value(2)));
}

#[test]
fn on_dax() {
    match std::env::var(DAX_FOLDER) {
        Ok(folder) => keeps_the_contract(&Medium::Dax(folder.into()), None),
        Err(_) => println!("skipped: {DAX_FOLDER} names no folder on a DAX file system"),
    }
}
