//! The disk space of a pool, and its behaviour on a full disk.

use super::support::{args, folder, objects, quipu_with_input, stderr, succeed, text};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// Bytes of a file that the file system has set aside.
fn used(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn many_runs_that_write_little_take_little_of_the_disk() {
    let (_folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "1G"]));
    for number in 0..300 {
        succeed(args(["put"], &pool, [&format!("key {number}"), "v"]));
    }
    // The head of the pool and what is kept for deletions and compaction, in units, and a page for each run.
    assert!(used(&pool) < 10 << 20, "{} bytes", used(&pool));
    assert_eq!(objects(&succeed(args(["info"], &pool, ["--json"])))[0]["records"].as_u64(), Some(300));
}

#[test]
fn compaction_gives_the_space_of_free_zones_back_to_the_file_system() {
    let (_folder, pool) = folder();
    succeed(args(["create"], &pool, ["--size", "256M"]));
    succeed(args(["put"], &pool, ["llama", "wool"]));
    let value: Vec<u8> = (0..30 << 20).map(|number: u32| (number >> 5) as u8 | 1).collect();
    assert_eq!(quipu_with_input(args(["put"], &pool, ["picture", "-"]), &value).status.code(), Some(0));
    succeed(args(["del"], &pool, ["picture"]));
    assert!(used(&pool) > value.len() as u64);
    succeed(args(["compact"], &pool, []));
    // Units of the head, of what is kept, and of the segments that are left.
    assert!(used(&pool) < 9 << 20, "{} bytes", used(&pool));
    assert!(text(args(["check"], &pool, [])).contains("sound"));
    // Space that was given back is there again when it is needed.
    assert_eq!(quipu_with_input(args(["put"], &pool, ["picture", "-"]), &value).status.code(), Some(0));
    assert!(succeed(args(["get"], &pool, ["picture"])) == value);
}

/// Runs a script with a folder of its own, in which a file system of `size` is mounted that only it sees, the
/// program, and another path; `None` where the system refuses.
pub fn in_small_file_system(size: &str, script: &str, path: &Path) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let script =
        format!("mount -t tmpfs -o size={size} tmpfs \"$1\" || exit 77\ncd \"$1\"\nset -e\n{script}");
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &script, "sh"])
        .arg(folder.path())
        .arg(env!("CARGO_BIN_EXE_quipu"))
        .arg(path)
        .output();
    let refused = |output: &std::process::Output| {
        output.status.code() == Some(77) || stderr(output).contains("unshare")
    };
    let output = output.ok().filter(|output| !refused(output))?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_full_disk_is_no_worse_than_a_full_pool() {
    let script = r#"
        head -c 1000000 /dev/urandom > value
        "$2" create pool --size 1G
        number=0
        while "$2" put pool "key $number" - < value 2> refused; do number=$((number + 1)); done
        grep -q 'no space left' refused
        head -c 100M /dev/zero > filler 2> /dev/null || true
        # Nothing is left of the disk, and each command is a run of its own.
        for deleted in 0 1 2 3 4 5 6 7 8 9; do "$2" del pool "key $deleted"; done
        "$2" compact pool
        "$2" check pool
        "$2" put pool again - < value
        rm filler
        "$2" get pool again > out
        cmp value out
        "$2" get pool 'key 3' 2> absent && exit 1
        grep -q 'is absent' absent
        echo "$number"
    "#;
    let Some(output) = in_small_file_system("64m", script, Path::new("")) else {
        println!("skipped: the system refuses a file system in a mount namespace of its own");
        return;
    };
    let put: u32 = output.lines().last().unwrap().parse().unwrap();
    assert!(put > 30, "{put} values had room");
}

/// On a file system in memory, storage comes in pages: compaction needs a whole zone of them again and again.
#[test]
fn short_runs_go_on_deleting_on_a_full_file_system_in_memory() {
    let script = r#"
        seq 1000000 1009999 | sed "s,.*,key&\t&$(printf %0400d 0)," > old
        seq 2000000 2001999 | sed "s,.*,new&\t&$(printf %0400d 0)," > new
        "$2" create pool --size 64M > /dev/null
        "$2" import pool old --form tsv > /dev/null
        head -c 131072 /dev/zero > spare
        head -c 100M /dev/zero > filler 2> /dev/null || true
        rm spare
        key=1000000
        for turn in 1 2 3; do
            "$2" import pool new --form tsv > /dev/null 2>&1 && exit 1
            for deletion in 1 2 3 4 5 6; do
                key=$((key + 100))
                "$2" del pool "key$key"
            done
            "$2" compact pool > /dev/null
        done
        "$2" check pool
        "$2" get pool "key$key" 2>&1 && exit 1
        "$2" export pool - --form tsv | grep -c ^key
    "#;
    let Some(output) = in_small_file_system("24m", script, Path::new("")) else {
        println!("skipped: the system refuses a file system in a mount namespace of its own");
        return;
    };
    assert!(output.contains("pool is sound") && output.contains("is absent"), "{output}");
    assert_eq!(output.lines().last(), Some("9982"));
}
