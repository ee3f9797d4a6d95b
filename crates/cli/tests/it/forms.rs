//! Records for people and programs, and from them: `export` and `import` as TSV and as JSON lines, through
//! pipes.

use crate::support::*;
use std::fs;
use std::process::{Command, Stdio};

/// A pool with keys and values that are awkward in a line of text, some of which expire.
fn filled() -> (tempfile::TempDir, std::path::PathBuf) {
    let (folder, pool) = pool();
    let all: Vec<u8> = (0..=255).collect();
    let store = quipu::Store::open(&pool, &quipu::Options::default()).unwrap();
    let mut client = store.client();
    client.put(b"bytes", &all).unwrap();
    client.put(&all, b"").unwrap();
    client.put(b"tab\there", b"line\r\nline\\n").unwrap();
    client.put("羊\u{85}\u{2028}".as_bytes(), "毛\"{}".as_bytes()).unwrap();
    client.put_until(b"session", b"open", 1 << 50).unwrap();
    drop(client);
    store.close().unwrap();
    // A process that another test has just forked holds the pool's lock until it runs its program.
    succeed_once_free(&args(["info"], &pool, []));
    (folder, pool)
}

/// Lines without the first and the last, which are no records.
fn records(exported: &[u8]) -> &[u8] {
    let ends = |byte: &u8| *byte == b'\n';
    let start = exported.iter().position(ends).unwrap() + 1;
    let end = exported[..exported.len() - 1].iter().rposition(ends).unwrap() + 1;
    &exported[start..end]
}

fn import(pool: &std::path::Path, form: &str, input: &[u8]) {
    let output = quipu_with_input(args(["import"], pool, ["-", "--form", form, "--json"]), input);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(objects(&output.stdout)[0]["form"], form);
}

#[test]
fn a_pool_goes_through_a_pipe_as_json_lines_and_comes_back_the_same() {
    let (folder, pool) = filled();
    let lines = succeed(args(["export"], &pool, ["-", "--form", "jsonl"]));
    assert_eq!(objects(&lines).len(), 7);
    let other = folder.path().join("other");
    succeed(args(["create"], &other, ["--size", "4M", "--design", "flatstore-m"]));
    import(&other, "jsonl", &lines);
    assert_eq!(succeed(args(["export"], &other, ["-", "--form", "jsonl"])), lines);
    assert_eq!(succeed(args(["export"], &other, ["-"])), succeed(args(["export"], &pool, ["-"])));
    let session = &objects(&succeed(args(["get"], &other, ["session", "--json"])))[0];
    assert_eq!(session["expires"], 1u64 << 50, "{session}");
    // The output of `get` is a line of the form.
    import(&pool, "jsonl", format!("{session}\n").as_bytes());
}

#[test]
fn a_pool_goes_through_a_pipe_as_tsv_and_comes_back_the_same_but_for_times() {
    let (folder, pool) = filled();
    let output = quipu(args(["export"], &pool, ["-", "--form", "tsv"]));
    assert_eq!(output.status.code(), Some(0));
    let told = stderr(&output);
    assert!(told.contains("expiry of 1 record ") && told.contains("--form jsonl"), "{told}");
    let other = folder.path().join("other");
    succeed(args(["create"], &other, ["--size", "4M"]));
    import(&other, "tsv", &output.stdout);
    assert_eq!(succeed(args(["export"], &other, ["-", "--form", "tsv"])), output.stdout);
    assert_eq!(succeed(args(["get"], &other, ["bytes"])), (0..=255).collect::<Vec<u8>>());
    let file = folder.path().join("file");
    let exported =
        &objects(&succeed(args(["export"], &pool, [file.to_str().unwrap(), "--form", "tsv", "--json"])))[0];
    assert_eq!((&exported["without_expiry"], &exported["form"]), (&1.into(), &"tsv".into()));
    assert_eq!(fs::read(&file).unwrap(), output.stdout);
}

/// From one process into the next, neither of which waits for the other to end.
#[test]
fn two_pools_are_joined_by_a_pipe() {
    let (folder, pool) = filled();
    let other = folder.path().join("other");
    succeed(args(["create"], &other, ["--size", "4M"]));
    for form in [&[][..], &["--form", "jsonl"]] {
        let program = env!("CARGO_BIN_EXE_quipu");
        let export = args(["export"], &pool, ["-"]);
        let mut from = Command::new(program).args(export).args(form).stdout(Stdio::piped()).spawn().unwrap();
        let import = args(["import"], &other, ["-"]);
        let mut to = Command::new(program);
        let to = to.args(import).args(form).stdin(from.stdout.take().unwrap()).output().unwrap();
        assert_eq!((to.status.code(), stderr(&to).as_str()), (Some(0), ""), "{form:?}");
        assert!(from.wait().unwrap().success());
        assert_eq!(
            succeed(args(["export"], &other, ["-"])),
            succeed(args(["export"], &pool, ["-"])),
            "{form:?}"
        );
    }
}

#[test]
fn a_mistake_is_told_with_its_line_and_what_was_put() {
    let (_folder, pool) = pool();
    let refused = |form, input: &[u8], code| {
        let output = quipu_with_input(args(["import"], &pool, ["-", "--form", form]), input);
        assert_eq!((output.status.code(), &*output.stdout), (Some(code), &b""[..]), "{output:?}");
        stderr(&output)
    };
    let told = refused("tsv", b"llama\twool\nalpaca wool\n", 1);
    assert!(told.contains("line 2 has no tab (1 record before it kept)\nhint: "), "{told}");
    assert_eq!(succeed(args(["get"], &pool, ["llama"])), b"wool");
    let told = refused("tsv", b"knot: 7\n", 2);
    assert!(told.contains("line 1") && told.contains("Nothing was put"), "{told}");
    let told = refused("jsonl", b"{\"key\":\"a\",\"value\":\"b\"}\n{\"key\":\"c\"}\n", 1);
    assert!(
        told.contains("line 2 is no record: there is no value") && told.contains("1 record before"),
        "{told}"
    );
    fail(args(["get"], &pool, ["c"]), 3);
    let output = quipu_with_input(args(["import"], &pool, ["-", "--form", "jsonl", "--json"]), b"[]\n");
    let told = &objects(&output.stderr)[0];
    assert_eq!((output.status.code(), &told["exit"]), (Some(2), &2.into()), "{told}");
}

/// Every command that prints a record as JSON prints it as `import --form jsonl` reads it.
#[test]
fn what_scan_prints_as_json_is_imported_as_it_was() {
    let (folder, from) = filled();
    let (pool, other) = (folder.path().join("ordered"), folder.path().join("other"));
    succeed(args(["create"], &pool, ["--size", "4M", "--design", "flatstore-m"]));
    import(&pool, "jsonl", &succeed(args(["export"], &from, ["-", "--form", "jsonl"])));
    let exported = succeed(args(["export"], &pool, ["-", "--form", "jsonl"]));
    assert_eq!(succeed(args(["scan"], &pool, ["--json"])), records(&exported), "the same lines");
    let in_hex = succeed(args(["scan"], &pool, ["--json", "--hex"]));
    assert!(
        objects(&in_hex).iter().all(|record| record["key_hex"].is_string() && record.get("key").is_none())
    );
    succeed(args(["create"], &other, ["--size", "4M"]));
    import(&other, "jsonl", &in_hex);
    assert_eq!(succeed(args(["export"], &other, ["-", "--form", "jsonl"])), exported);
}

/// Some programs begin every file of text with one.
#[test]
fn a_byte_order_mark_is_no_part_of_the_first_key_and_a_key_that_begins_so_comes_back() {
    let (_folder, pool) = pool();
    import(&pool, "tsv", "\u{feff}llama\twool\n".as_bytes());
    import(&pool, "jsonl", "\u{feff}{\"key\":\"alpaca\",\"value\":\"finer wool\"}\n".as_bytes());
    let both = b"alpaca\tfiner wool\nllama\twool\n";
    assert_eq!(succeed(args(["export"], &pool, ["-", "--form", "tsv"])), both);
    let marked = "\u{feff}\u{feff}key";
    succeed(args(["del"], &pool, ["alpaca"]));
    succeed(args(["del"], &pool, ["llama"]));
    succeed(args(["put"], &pool, [marked, "value"]));
    for form in ["tsv", "jsonl"] {
        let exported = succeed(args(["export"], &pool, ["-", "--form", form]));
        succeed(args(["del"], &pool, [marked]));
        import(&pool, form, &exported);
        assert_eq!(succeed(args(["get"], &pool, [marked])), b"value", "{form}");
    }
}

/// A message repeats what stands in a file, and a terminal obeys what it is shown.
#[test]
fn a_message_about_a_strange_object_has_no_control_characters() {
    let (_folder, pool) = pool();
    let input = "{\"key\":\"a\",\"\\u001b[2J\\u009b\":\"b\"}\n";
    let output = quipu_with_input(args(["import"], &pool, ["-", "--form", "jsonl"]), input.as_bytes());
    let told = stderr(&output);
    assert!(told.contains("\\x1b[2J") && told.contains("unknown field"), "{told}");
    assert!(!told.chars().any(|character| character.is_control() && character != '\n'), "{told}");
}

#[test]
fn a_file_that_proves_nothing_is_imported_and_that_is_told() {
    let (_folder, pool) = pool();
    let (first, record) = ("{\"quipu_export\":1}\n", "{\"key\":\"llama\",\"value\":\"wool\"}\n");
    let output = quipu_with_input(args(["import"], &pool, ["-"]), record.as_bytes());
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("- has no first and last line that prove it whole") && told.contains("; compare"));
    let proved = |input: &[u8], form| {
        let output = quipu_with_input(args(["import"], &pool, ["-", "--json", "--form", form]), input);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        objects(&output.stdout)[0]["proved"].clone()
    };
    assert_eq!(proved(record.as_bytes(), "jsonl"), false);
    assert_eq!(proved(b"llama\twool\n", "tsv"), false);
    assert_eq!(proved(&succeed(args(["export"], &pool, ["-"])), "jsonl"), true);
    // With a first line, it must be proved.
    let output = quipu_with_input(args(["import"], &pool, ["-"]), format!("{first}{record}").as_bytes());
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("it ends after line 2 without a last line") && told.contains("\nhint: "), "{told}");
    // A command that failed before it printed anything is no empty file.
    let output = quipu_with_input(args(["import"], &pool, ["-"]), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("it ends after line 0"), "{output:?}");
}
