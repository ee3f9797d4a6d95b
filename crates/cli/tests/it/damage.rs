//! Damage as people meet it: every command says what it found, and none ends well over it.

use crate::support::*;
use std::fs;
use std::path::Path;

/// Changes a byte of the file, so far behind the first place where this text stands.
fn damage(pool: &Path, text: &[u8], behind: usize) {
    let mut bytes = fs::read(pool).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text).expect("it is there");
    bytes[at + behind] ^= 0x10;
    fs::write(pool, bytes).unwrap();
}

#[test]
fn a_damaged_record_is_told_by_every_command() {
    // A design that reads no records at open.
    let (folder, pool) = folder();
    text(args(["create"], &pool, ["--size", "4M", "--design", "flatstore-ph"]));
    for (key, value) in [("alpaca", "finer wool"), ("llama", "wool"), ("vicuna", "finest wool")] {
        succeed(args(["put"], &pool, [key, value]));
    }
    damage(&pool, b"llamawool", 6);
    let error = fail(args(["get"], &pool, ["llama"]), 1);
    assert!(error.contains("damaged") && error.contains("the key llama"), "{error}");
    assert_eq!(text(args(["get"], &pool, ["alpaca"])), "finer wool");

    let file = folder.path().join("file");
    let output = quipu(args(["export"], &pool, [file.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("the export is incomplete") && told.contains("the key llama"), "{told}");
    let exported = fs::read_to_string(&file).unwrap();
    let end = "\"finest wool\"}\n{\"incomplete\":{\"records\":2,";
    assert!(exported.contains(end) && exported.contains("\"finer wool\""), "{exported}");
    // Nor does one into a pipe end well, whatever the form says of it.
    for form in ["jsonl", "tsv"] {
        let output = quipu(args(["export"], &pool, ["-", "--form", form]));
        assert_eq!(output.status.code(), Some(1), "{form}");
        assert!(stderr(&output).contains("the export is incomplete"), "{form}: {}", stderr(&output));
        let piped = String::from_utf8(output.stdout).unwrap();
        assert!(piped.contains("finest wool") && !piped.contains("llama"), "{form}: {piped}");
    }
    let json = folder.path().join("json");
    let output = quipu(args(["export"], &pool, [json.to_str().unwrap(), "--json"]));
    let object = &objects(&output.stdout)[0];
    assert_eq!((output.status.code(), &object["complete"]), (Some(1), &false.into()));
    let copy = folder.path().join("copy");
    text(args(["create"], &copy, ["--size", "4M"]));
    let error = fail(args(["import"], &copy, [file.to_str().unwrap()]), 1);
    assert!(error.contains("2 records") && error.contains("missing"), "{error}");

    let output = quipu(args(["check"], &pool, ["--accept-damage"]));
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("is damaged in") && !told.contains("--salvage"), "{told}");
}

#[test]
fn a_pool_whose_damage_is_accepted_names_the_keys_and_goes_on() {
    let (_folder, pool) = pool();
    for (key, value) in [("alpaca", "finer wool"), ("llama", "wool"), ("vicuna", "finest wool")] {
        succeed(args(["put"], &pool, [key, value]));
    }
    damage(&pool, b"llamawool", 6);
    let output = quipu(args(["check"], &pool, []));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("--salvage NEWPOOL"));
    let output = quipu(args(["check"], &pool, ["--accept-damage", "--json"]));
    let object = &objects(&output.stdout)[0];
    assert_eq!((output.status.code(), &object["sound"]), (Some(1), &true.into()), "{object}");
    assert_eq!(object["lost_keys"][0]["key"], "llama", "{object}");
    // From then on it is a pool like any other.
    assert!(text(args(["check"], &pool, [])).contains("is sound: 2 keys, "));
    assert!(fail(args(["get"], &pool, ["llama"]), 3).contains("absent"));
}

#[test]
fn what_a_design_cannot_prove_is_not_called_proved() {
    let (_folder, pool) = folder();
    text(args(["create"], &pool, ["--size", "4M", "--design", "viper"]));
    succeed(args(["put"], &pool, ["llama", "wool"]));
    damage(&pool, b"llamawool", 6);
    let told = text(args(["check"], &pool, []));
    assert!(told.contains("shows no damage: 1 key, ") && told.contains("Not proved"), "{told}");
    assert!(told.contains("the bytes of keys and values") && !told.contains("sound"), "{told}");
    let object = &objects(&succeed(args(["check"], &pool, ["--json"])))[0];
    assert!(object["unproved"].as_array().unwrap().len() > 1, "{object}");
    // The design has no salvage, so none is recommended.
    let mut bytes = fs::read(&pool).unwrap();
    let page = bytes.windows(5).position(|window| window == b"llama").unwrap() / 4096 * 4096;
    bytes[page + 5] ^= 1;
    fs::write(&pool, bytes).unwrap();
    let output = quipu(args(["check"], &pool, []));
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("is damaged in") && !told.contains("--salvage"), "{told}");
}
