//! Commands that only read a pool: they leave it as it is, go on beside each other, and need no leave to
//! write.

use crate::disk::in_small_file_system;
use crate::support::*;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A pool with an order, and two keys, that was not closed.
fn unclean() -> (tempfile::TempDir, std::path::PathBuf) {
    let (folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "4M", "--design", "flatstore-m"]));
    let store = quipu::Store::open(&pool, &quipu::Options::new()).unwrap();
    store.client().put(b"alpaca", b"finer wool").unwrap();
    store.client().put(b"llama", b"wool").unwrap();
    drop(store);
    // A process that another test has just forked holds the lock until it runs its program.
    while stderr(&quipu(args(["get"], &pool, ["llama"]))).contains("in use") {}
    (folder, pool)
}

/// Every command that reads, with a word of what it prints.
fn readers(pool: &Path) -> [(Vec<String>, &'static str); 5] {
    [
        (args(["get"], pool, ["llama"]), "wool"),
        (args(["scan"], pool, ["--from", "b"]), "llama\twool"),
        (args(["export"], pool, ["-"]), "\"alpaca\",\"value\":\"finer wool\""),
        (args(["check"], pool, []), "is sound: 2 keys"),
        (args(["info"], pool, []), "After a crash of this process, every acknowledged write is there"),
    ]
}

fn printed(output: &Output) -> String {
    // Text for people is wrapped.
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    if text.contains("Evidence") { text.replace('\n', " ") } else { text }
}

#[test]
fn a_pool_that_was_not_closed_is_recovered_in_memory_and_said_to_be() {
    let (_folder, pool) = unclean();
    let bytes = fs::read(&pool).unwrap();
    for (command, word) in readers(&pool) {
        let output = quipu(&command);
        let (told, said) = (stderr(&output), printed(&output));
        assert!(output.status.success() && said.contains(word), "{output:?}");
        assert!(told.lines().count() == 1 && told.contains("was recovered in memory only"), "{told}");
        assert!(told.contains(&format!("`quipu sync {}`", pool.display())), "{told}");
        assert!(fs::read(&pool).unwrap() == bytes, "{command:?} changed the pool");
    }
    let output = quipu(args(["info"], &pool, ["--json"]));
    let info = &objects(&output.stdout)[0];
    assert_eq!((info["closed_cleanly"].as_bool(), info["records"].as_u64()), (Some(false), Some(2)));
    assert_eq!(info["survives"]["process_crash"], "yes");
    assert!(objects(&output.stderr)[0]["note"].as_str().unwrap().contains("in memory only"));

    succeed(args(["sync"], &pool, []));
    for (command, word) in readers(&pool) {
        assert!(printed(&quipu(&command)).contains(word));
        succeed(&command);
    }
    let info = &objects(&succeed(args(["info"], &pool, ["--json"])))[0];
    assert_eq!(info["closed_cleanly"], true);
}

#[test]
fn readers_go_on_beside_each_other_and_keep_writers_out() {
    let (folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "16M", "--design", "flatstore-m"]));
    let value = vec![b'w'; 2 << 20];
    assert!(quipu_with_input(args(["put"], &pool, ["fleece", "-"]), &value).status.success());
    let mut export = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(args(["export"], &pool, ["-"]))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It has the pool open from its first byte on, and waits until more than a pipe holds is read.
    let mut exported = vec![0];
    export.stdout.as_mut().unwrap().read_exact(&mut exported).unwrap();

    assert!(succeed(args(["get"], &pool, ["fleece"])) == value);
    succeed(args(["info"], &pool, []));
    succeed(args(["check"], &pool, []));
    succeed(args(["check"], &pool, ["--salvage", folder.path().join("copy").to_str().unwrap()]));
    let told = fail(args(["put"], &pool, ["llama", "wool"]), 1);
    let holder = format!("is in use by process {}", export.id());
    // Not every system has a table of locks, and not every file system is found in it.
    assert!(told.contains(&holder) || told.contains("is in use by another handle"), "{told}");
    assert!(told.contains("\nhint: close it there first"), "{told}");

    export.stdout.as_mut().unwrap().read_to_end(&mut exported).unwrap();
    assert!(export.wait().unwrap().success() && exported.len() > value.len());
    succeed(args(["put"], &pool, ["llama", "wool"]));
}

/// A file system that refuses every writer, whoever it is.
#[test]
fn a_pool_on_a_file_system_for_reading_only_is_read() {
    let (_folder, pool) = folder();
    let script = r#"
        for pool in pool unclean; do
            "$2" create $pool --size 4M --design flatstore-m
            "$2" put $pool llama wool
        done
        while seq 1 20000 | sed 's/$/\tknot/'; do :; done 2> /dev/null | "$2" import unclean - --form tsv &
        timeout 60 sh -c 'until grep -q knot unclean; do sleep 0.1; done'
        kill -9 $!
        wait $! || true
        "$2" get unclean llama 2>&1 | grep -q 'was not closed'
        mount -o remount,ro tmpfs "$1"
        touch pool 2> /dev/null && exit 1
        for pool in pool unclean; do
            test "$("$2" get $pool llama)" = wool
            "$2" scan $pool | grep -q 'llama'
            "$2" info $pool
            "$2" check $pool
            "$2" export $pool -
            if "$2" put $pool llama fleece 2> /dev/stdout; then exit 1; fi
        done
    "#;
    let Some(output) = in_small_file_system("64m", script, &pool) else {
        println!("skipped: the system refuses a file system in a mount namespace of its own");
        return;
    };
    assert_eq!(output.matches("is sound").count(), 2, "{output}");
    assert_eq!(output.matches("Read-only file system").count(), 2, "{output}");
}

/// Opening a pipe to read it waits for somebody who writes.
#[test]
fn a_pipe_is_no_pool_and_nobody_waits_for_it() {
    let (_folder, pool) = folder();
    assert!(Command::new("mkfifo").arg(&pool).status().unwrap().success());
    for command in
        [args(["info"], &pool, []), args(["export"], &pool, ["-"]), args(["put"], &pool, ["a", "b"])]
    {
        let output = quipu(&command);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("neither a regular file nor"), "{output:?}");
    }
}
