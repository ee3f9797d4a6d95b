//! The examples do what they say: run as programs, on real files, and the queue under `kill -9`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A program that cargo has built beside this test.
fn program(name: &str) -> Command {
    let test = std::env::current_exe().expect("this test");
    let target = test.parent().and_then(Path::parent).expect("a folder of builds");
    let path: PathBuf = target.join("examples").join(name);
    assert!(path.exists(), "{} is missing: run `cargo build --examples -p quipu`", path.display());
    Command::new(path)
}

/// What an example prints that ends well, given these lines.
fn output(name: &str, arguments: &[&str], input: &str) -> String {
    let mut child = start(name, arguments);
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ran");
    assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn start(name: &str, arguments: &[&str]) -> Child {
    let mut program = program(name);
    let piped = program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("it starts")
}

fn pool(folder: &Path) -> String {
    folder.join("pool").to_str().expect("text").to_owned()
}

#[test]
fn an_index_of_files_writes_what_has_changed_and_forgets_what_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (pool, tree) = (pool(folder.path()), folder.path().join("tree"));
    fs::create_dir_all(tree.join("a/deep")).expect("folders");
    for (name, size) in [("a/one", 1), ("a/deep/two", 20), ("b", 300)] {
        fs::write(tree.join(name), vec![7; size]).expect("a file");
    }
    // A neighbour whose name only begins like the tree's.
    fs::write(folder.path().join("tree-top"), "x").expect("a file");
    let root = tree.to_str().expect("text");
    let update = || output("file_index", &[&pool, "update", root], "");
    assert_eq!(update(), "3 files, 3 of them new or changed; 0 are gone\n");
    assert_eq!(update(), "3 files, 0 of them new or changed; 0 are gone\n");
    fs::write(tree.join("b"), vec![7; 4000]).expect("a file");
    fs::remove_file(tree.join("a/one")).expect("it was there");
    assert_eq!(update(), "2 files, 1 of them new or changed; 1 are gone\n");
    let list = |prefix: &str| output("file_index", &[&pool, "list", prefix], "");
    assert_eq!(
        list(root),
        format!("{:>12}  {root}/a/deep/two\n{:>12}  {root}/b\n{:>12}  in 2 files\n", 20, 4000, 4020)
    );
    assert!(list(&format!("{root}/a/")).ends_with("          20  in 1 files\n"));
}

#[test]
fn sessions_end_when_nobody_uses_them_and_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let pool = pool(folder.path());
    let run = |idle: &str, input: &str| output("session_cache", &[&pool, idle], input);
    assert_eq!(run("0.2", "login s1 alice\nlogin s1 mallory\nuse s1\n"), "ok\ntaken\nalice\n");
    std::thread::sleep(Duration::from_millis(250));
    assert_eq!(run("1800", "use s1\nlogin s1 bob\nlogin s2 carol\n"), "no session\nok\nok\n");
    assert_eq!(
        run("1800", "use s1\nlogout s1\nuse s1\nlogout s1\nuse s2\n"),
        "bob\nok\nno session\nno session\ncarol\n"
    );
    assert_eq!(run("1800", "steal s2\n"), "write login TOKEN USER, use TOKEN or logout TOKEN\n");
}

/// Reads what a child says, up to so many lines, then kills it. Returns all that it has said, the rest of the
/// pipe too.
fn killed_after(mut child: Child, lines: usize) -> Vec<String> {
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let mut all = Vec::new();
    for _ in 0..lines {
        let mut line = String::new();
        if said.read_line(&mut line).expect("it speaks") == 0 {
            break;
        }
        all.push(line);
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("it is dead");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("what is left in the pipe");
    all.extend(rest.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned));
    all.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn a_queue_under_sigkill_loses_no_job_and_records_none_as_done_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let pool = pool(folder.path());
    // Producers that die: each number that they have printed is in the queue.
    let mut added = BTreeSet::new();
    for round in 1..=4 {
        let mut child = start("job_queue", &[&pool, "add"]);
        let mut input = child.stdin.take().expect("piped");
        let feed = std::thread::spawn(move || {
            // The pipe breaks when its reader is killed.
            (0..2000).try_for_each(|job| writeln!(input, "job {round}-{job}"))
        });
        for line in killed_after(child, round * 20) {
            let number: u64 =
                line.strip_prefix("added ").and_then(|number| number.parse().ok()).expect("a number");
            assert!(added.insert(number), "number {number} was given twice");
        }
        let _ = feed.join().expect("the feeder does not panic");
    }
    assert!(added.len() >= 200, "{} jobs", added.len());

    // Workers that die, until one is left in peace.
    let mut done = BTreeSet::new();
    let mut note = |lines: Vec<String>| {
        for line in lines {
            let number: u64 =
                line.strip_prefix("done ").and_then(|number| number.parse().ok()).expect("a number");
            assert!(done.insert(number), "job {number} was done, and then done again");
        }
    };
    for round in 1..=6 {
        note(killed_after(start("job_queue", &[&pool, "work"]), round * 7));
    }
    note(output("job_queue", &[&pool, "work"], "").lines().map(str::to_owned).collect());

    let mut listed = BTreeSet::new();
    for line in output("job_queue", &[&pool, "list"], "").lines() {
        let (key, result) = line.split_once('\t').expect("a key and a value");
        let number = key.strip_prefix("done/").expect("nothing is left to do").parse().expect("a number");
        assert!(result.starts_with("JOB "), "{line}");
        assert!(listed.insert(number));
    }
    assert!(added.is_subset(&listed), "lost: {:?}", added.difference(&listed).collect::<Vec<_>>());
    assert!(done.is_subset(&listed), "said to be done: {:?}", done.difference(&listed).collect::<Vec<_>>());
}
