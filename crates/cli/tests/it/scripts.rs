//! The things that scripts rely on: codes, errors as objects, and sizes that add up.

use crate::support::*;
use std::fs;

#[test]
fn failures_are_objects_where_results_are() {
    let (folder, pool) = pool();
    let absent = fail_in_json(args(["get"], &pool, ["llama", "--json"]), 3);
    assert!(absent["error"].as_str().unwrap().contains("llama") && absent["hint"].is_null(), "{absent}");
    fail_in_json(args(["del"], &pool, ["llama", "--json"]), 3);
    let taken = fail_in_json(args(["create"], &pool, ["--size", "4M", "--json"]), 2);
    assert!(taken["hint"].as_str().unwrap().contains("choose another name"), "{taken}");
    let missing = fail_in_json(args(["info"], &folder.path().join("nowhere"), ["--json"]), 2);
    assert!(missing["error"].as_str().unwrap().contains("nowhere"), "{missing}");
    // Also where the command line cannot be read.
    let unread = fail_in_json(["get", "--json"], 2);
    assert!(unread["error"].as_str().unwrap().contains("<KEY>"), "{unread}");
    fail_in_json(["create", "p", "--size", "4GB", "--json"], 2);
    // Behind `--` it is a word like any other.
    assert!(fail(args(["get"], &pool, ["--", "--json"]), 3).contains("the key --json is absent"));
    let store = quipu::Store::open(&pool, &quipu::Options::default()).unwrap();
    let used = fail_in_json(args(["put"], &pool, ["k", "v", "--json"]), 1);
    assert!(used["error"].as_str().unwrap().contains("in use"), "{used}");
    drop(store);
}

#[test]
fn errors_name_the_file() {
    let (folder, path) = folder();
    fs::write(&path, vec![7; 100_000]).unwrap();
    for command in [args(["info"], &path, []), args(["check"], &path, []), args(["get"], &path, ["key"])] {
        let told = fail(command, 2);
        assert!(told.contains("p.pool: this is not a pool") && told.contains("\nhint: "), "{told}");
    }
    let into = folder.path().join("into");
    let told = fail(args(["check"], &path, ["--salvage", into.to_str().unwrap()]), 2);
    assert!(told.contains("p.pool: "), "{told}");
}

#[test]
fn slips_are_answered_with_what_was_meant() {
    let (_folder, path) = folder();
    let create = |more: [&str; 2]| {
        let mut command = args(["create"], &path, more);
        if more[0] != "--size" {
            command.extend(["--size", "4M"].map(str::to_owned));
        }
        fail(command, 2)
    };
    assert!(create(["--size", "5000000"]).contains("the nearest are 4997120 and 5001216"));
    assert!(create(["--design", "vyper"]).contains("did you mean viper?"));
    assert!(create(["--design", "flatstore"]).contains("did you mean flatstore-h?"));
    assert!(create(["--set", "elimnate=off"]).contains("did you mean eliminate?"));
    assert!(fail(["bench", "ops", "--design", "quipo"], 2).contains("did you mean quipu?"));
    assert!(!path.exists());
}

#[test]
fn text_for_people_is_wrapped() {
    let (_folder, pool) = pool();
    for told in [text(["designs"]), text(args(["info"], &pool, []))] {
        // A path has no place to be cut.
        let long = told.lines().find(|line| line.chars().count() > 100 && !line.contains("p.pool"));
        assert_eq!(long, None);
    }
}

/// An empty pool uses nothing; free and live bytes change by about as much as is put.
#[test]
fn the_bytes_of_a_pool_add_up() {
    for design in objects(&succeed(["designs", "--json"])) {
        let (_folder, pool) = folder();
        let design = design["name"].as_str().unwrap();
        let info = || objects(&succeed(args(["info"], &pool, ["--json"]))).pop().unwrap();
        succeed(args(["create"], &pool, ["--size", "8M", "--design", design]));
        let empty = info();
        let of =
            |info: &serde_json::Value, name: &str| info[name].as_u64().unwrap_or_else(|| panic!("{name}"));
        assert_eq!((of(&empty, "live_bytes"), empty["utilization"].as_f64()), (0, Some(0.0)), "{empty}");
        let (free, usable) = (of(&empty, "free_bytes"), of(&empty, "usable_bytes"));
        assert!(free <= usable && free * 10 > usable * 9, "{empty}");
        let reserved = of(&empty, "reserved_bytes");
        assert!(reserved > 0 && usable + reserved < of(&empty, "pool_bytes"), "{empty}");

        let lines: String = (0..2000).map(|n| format!("k{n:04}\t{}\n", "v".repeat(500))).collect();
        let import = args(["import"], &pool, ["-", "--form", "tsv"]);
        assert_eq!(quipu_with_input(import, lines.as_bytes()).status.code(), Some(0));
        let filled = info();
        let live = of(&filled, "live_bytes");
        assert!((1_010_000..1_400_000).contains(&live), "{design}: {live}");
        let taken = free - of(&filled, "free_bytes");
        assert!(taken >= 1_000_000, "{design}: {taken}");
        let utilization = filled["utilization"].as_f64().unwrap();
        assert!((utilization - live as f64 / of(&filled, "usable_bytes") as f64).abs() < 1e-9);

        succeed(args(["del"], &pool, ["k0000"]));
        let less = info();
        // Where the index is in the pool, records that an earlier run superseded are found out while the pool
        // is in use.
        let more = of(&less, "garbage_bytes") > of(&filled, "garbage_bytes");
        assert!(more && of(&less, "live_bytes") < live || less["garbage_is_known"] == false, "{less}");
        let in_pool =
            quipu::Design::ALL.iter().find(|known| known.name() == design).unwrap().can().index_in_pool;
        assert!(in_pool || less["garbage_is_known"] == true, "{less}");
        let told = text(args(["info"], &pool, []));
        assert!(told.contains(" free for puts, of ") && told.contains("compaction"), "{told}");
    }
}

#[test]
fn a_full_pool_says_how_much_is_wanted_and_how_much_is_free() {
    let (_folder, pool) = pool();
    let put = |key, len| quipu_with_input(args(["put"], &pool, [key, "-"]), &vec![b'x'; len]);
    assert!(put("first", 3 << 20).status.success());
    let told = stderr(&put("second", 2 << 20));
    assert!(told.contains("2.0 MiB are wanted and ") && told.contains(" free for puts"), "{told}");
    let free = objects(&succeed(args(["info"], &pool, ["--json"])))[0]["free_bytes"].as_u64().unwrap();
    assert!((100_000..1 << 20).contains(&free), "{free}");
    let lines = format!("second\t{}\n", "y".repeat(2 << 20));
    let output = quipu_with_input(args(["import"], &pool, ["-", "--form", "tsv"]), lines.as_bytes());
    assert!(
        stderr(&output).contains("2.0 MiB are wanted") && stderr(&output).contains("line 1"),
        "{output:?}"
    );
}
