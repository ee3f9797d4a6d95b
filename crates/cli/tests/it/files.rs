//! `import` and `export`, as people and scripts run them.

use crate::support::*;
use std::fs;
use std::path::Path;

/// An index that machines with a Debian system have.
const STATUS: &str = "/var/lib/dpkg/status";

fn create(path: &Path, size: &str) {
    succeed(args(["create"], path, ["--size", size]));
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_pool_goes_through_a_file_and_a_pipe() {
    let (folder, pool) = pool();
    let all: Vec<u8> = (0..=255).collect();
    assert!(quipu_with_input(args(["put"], &pool, ["bytes", "-"]), &all).status.success());
    succeed(args(["put"], &pool, ["00ff0a09", "", "--hex"]));
    succeed(args(["put"], &pool, ["lines", "a\r\nb\n"]));
    succeed(args(["put"], &pool, ["羊", "毛"]));

    let file = folder.path().join("file");
    let exported = &objects(&succeed(args(["export"], &pool, [name(&file), "--json"])))[0];
    assert_eq!(
        names(exported),
        words("pool file form tables records bytes checksum without_expiry seconds complete damage")
    );
    let text = fs::read(&file).unwrap();
    assert_eq!(
        (exported["records"].as_u64(), exported["bytes"].as_u64()),
        (Some(4), Some(text.len() as u64))
    );
    let end = format!("{{\"end\":{{\"records\":4,\"xxh3\":{}}}}}\n", exported["checksum"]);
    assert!(text.ends_with(end.as_bytes()), "{end}");
    let lines = r#"{"key":"lines","value":"a\r\nb\n"}{"key":"羊","value":"毛"}"#.replace("}{", "}\n{");
    assert!(std::str::from_utf8(&text).unwrap().contains(&lines));
    assert_eq!(succeed(args(["export"], &pool, ["-"])), text, "a pipe gets the same, and nothing else");

    let other = folder.path().join("other");
    create(&other, "8M");
    let output = quipu_with_input(args(["import"], &other, ["-", "--json"]), &text);
    assert_eq!(stderr(&output), "");
    let imported = &objects(&output.stdout)[0];
    assert_eq!(
        names(imported),
        words("pool file form records replaced bytes seconds created passed_over proved")
    );
    assert_eq!((imported["records"].as_u64(), imported["replaced"].as_u64()), (Some(4), Some(0)));
    assert_eq!(succeed(args(["get"], &other, ["bytes"])), all);
    assert_eq!(succeed(args(["get"], &other, ["00ff0a09", "--hex"])), b"");
    assert_eq!(succeed(args(["export"], &other, ["-"])), text);
    let again = String::from_utf8(succeed(args(["import"], &other, [name(&file)]))).unwrap();
    assert!(again.starts_with("Imported 4 records, 4 of them in place of others, "), "{again}");
}

#[test]
fn a_package_index_goes_in_and_out() {
    let Ok(index) = fs::read(STATUS) else {
        println!("skipped: this machine has no {STATUS}");
        return;
    };
    let (folder, pool) = folder();
    // The file may change while other programs install packages.
    let copy = folder.path().join("status");
    fs::write(&copy, &index).unwrap();
    create(&pool, "64M");
    let imported = objects(&succeed(args(
        ["import"],
        &pool,
        [name(&copy), "--form", "debian", "--key", "Package,Architecture", "--json"],
    )));
    let text = std::str::from_utf8(&index).expect("a package index is UTF-8");
    let stanzas: Vec<String> = text
        .split("\n\n")
        .filter(|stanza| !stanza.trim().is_empty())
        .map(|stanza| format!("{}\n", stanza.trim_end_matches('\n')))
        .collect();
    assert_eq!(imported[0]["records"].as_u64(), Some(stanzas.len() as u64));

    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    succeed(args(["export"], &pool, [name(&first)]));
    let other = folder.path().join("other");
    create(&other, "64M");
    succeed(args(["import"], &other, [name(&first)]));
    succeed(args(["export"], &other, [name(&second)]));
    assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap());

    let store = quipu::Store::open(&other, &quipu::Options::default()).unwrap();
    let client = store.client();
    for stanza in &stanzas {
        let field = |name: &str| {
            let line = stanza.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        let key = format!("{}:{}", field("Package:"), field("Architecture:"));
        let value = client.get(key.as_bytes()).unwrap().unwrap_or_else(|| panic!("{key} is missing"));
        assert!(value == stanza.as_bytes(), "{key} differs");
    }
    assert_eq!(store.stats().records, stanzas.len() as u64);
}

#[test]
fn what_is_there_is_not_overwritten() {
    let (folder, pool) = pool();
    let before = fs::read(&pool).unwrap();
    assert!(fail(args(["export"], &pool, [name(&pool)]), 2).contains("exists already"));
    assert!(fs::read(&pool).unwrap() == before);
    let both = fail_in_json(args(["export"], &pool, ["-", "--json"]), 2);
    assert!(both["error"].as_str().unwrap().contains("standard output"), "{both}");
    fail(args(["export"], &pool, [name(&folder.path().join("no/such/folder"))]), 2);
    // A pool that cannot be opened leaves no file either.
    let file = folder.path().join("file");
    fail(args(["export"], &file, [name(&folder.path().join("out"))]), 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn mistakes_are_told_with_what_was_kept() {
    let (folder, pool) = pool();
    let file = folder.path().join("file");
    fail(args(["import"], &pool, [name(&file)]), 2);
    fs::write(&file, "llama: wool\n").unwrap();
    let text = fail(args(["import"], &pool, [name(&file)]), 2);
    assert!(text.contains("line 1 is no record: ") && text.contains("\nhint: "), "{text}");
    assert!(text.contains("--form") && text.contains("Nothing was put"), "{text}");
    fs::write(&file, "{\"quipu_export\":1}\n{\"key\":\"llama\",\"value\":\"wool\"}\n{\"key\":\"al").unwrap();
    let text = fail(args(["import"], &pool, [name(&file)]), 1);
    assert!(
        text.contains("ends after line 3") && text.contains("(1 record before it kept)\nhint: "),
        "{text}"
    );
    assert_eq!(succeed(args(["get"], &pool, ["llama"])), b"wool");
}
