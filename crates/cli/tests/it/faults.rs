//! Calls of the system on files of levels that fail, and a process that ends at each of them. A library that
//! is loaded before the C library counts these calls and lets one of them fail.

use super::support::{args, folder, quipu, quipu_with_input, stderr, succeed};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// EMFILE, EIO and ENOSPC; 0 ends the process.
const NO_DESCRIPTOR: i32 = 24;
const NO_ANSWER: i32 = 5;
const NO_ROOM: i32 = 28;
const END: i32 = 0;

/// Calls that are let fail of each command, about. `QUIPU_FAULTS` asks for another number; 1000 are all.
const SAMPLE: usize = 8;

/// The library, if there is a C compiler.
fn library(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("faults.c"), folder.join("faults.so"));
    fs::write(&source, include_str!("faults.c")).unwrap();
    let paths = [library.as_os_str(), source.as_os_str(), "-ldl".as_ref()];
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).args(paths).output();
    built.is_ok_and(|output| output.status.success()).then_some(library)
}

/// A pool with levels, which is closed: in several files, with keys that are in the pool, too.
struct Filled {
    _folder: tempfile::TempDir,
    pool: PathBuf,
    library: PathBuf,
}

const KEYS: usize = 6000;

fn lines(range: std::ops::Range<usize>, mark: &str) -> String {
    range.map(|number| format!("key {number:05}\t{mark}{}\n", "x".repeat(400))).collect()
}

fn import(pool: &Path, lines: &str) {
    let output = quipu_with_input(args(["import"], pool, ["-", "--form", "tsv"]), lines.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

impl Filled {
    fn new() -> Option<Filled> {
        let (folder, pool) = folder();
        let Some(library) = library(folder.path()) else {
            println!("skipped: there is no C compiler");
            return None;
        };
        succeed(args(["create"], &pool, ["--size", "2M", "--design", "xp", "--zone-size", "16K"]));
        // More than the pool holds, so that there are levels however late the dumper comes.
        import(&pool, &lines(0..KEYS, "A"));
        import(&pool, &lines(0..KEYS / 3, "B"));
        Some(Filled { _folder: folder, pool, library })
    }

    /// Runs a command, and lets the call `at` of this kind on files of levels fail. Returns the number of
    /// calls, too.
    fn run(&self, words: &[String], (kind, at, with): (&str, usize, i32), input: &str) -> (Output, usize) {
        let (count, given) = (self.library.with_extension("count"), self.library.with_extension("input"));
        let _ = fs::remove_file(&count);
        fs::write(&given, input).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_quipu"))
            .args(words)
            .stdin(fs::File::open(given).unwrap())
            .env("LD_PRELOAD", &self.library)
            .env("FAULTS_UNDER", ".runs")
            .envs([("FAULTS_KIND", kind), ("FAULTS_AT", &at.to_string()), ("FAULTS_WITH", &with.to_string())])
            .env("FAULTS_COUNT", &count)
            .output()
            .unwrap();
        let calls = fs::read_to_string(count).ok().and_then(|count| count.parse().ok());
        (output, calls.unwrap_or(0))
    }

    /// Another pool with the same contents.
    fn restore(&self, from: &Path) {
        let runs = |pool: &Path| PathBuf::from(format!("{}.runs", pool.display()));
        let _ = fs::remove_dir_all(runs(&self.pool));
        fs::copy(from, &self.pool).unwrap();
        copy_all(&runs(from), &runs(&self.pool));
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() { copy_all(&path, &to) } else { _ = fs::copy(path, to).unwrap() }
    }
}

/// Numbers from 1 to `count`, all or about [`SAMPLE`] of them.
fn sample(count: usize) -> impl Iterator<Item = usize> {
    let asked = std::env::var("QUIPU_FAULTS").ok().and_then(|asked| asked.parse().ok());
    (1..=count).step_by(count.div_ceil(asked.unwrap_or(SAMPLE)).max(1))
}

#[test]
fn a_reader_tells_that_it_could_not_read_levels() {
    let Some(filled) = Filled::new() else { return };
    let pool = &filled.pool;
    let commands = [
        args(["check"], pool, []),
        args(["get"], pool, ["key 05000"]),
        args(["get"], pool, ["key 00003"]),
        args(["scan"], pool, []),
        args(["export"], pool, ["-", "--form", "tsv"]),
        args(["info"], pool, []),
    ];
    for words in &commands {
        let (whole, calls) = filled.run(words, ("read", 0, END), "");
        assert!(whole.status.success() && calls > 10, "{calls} calls of {words:?}: {whole:?}");
        for at in sample(calls) {
            for with in [NO_DESCRIPTOR, NO_ANSWER] {
                let (output, _) = filled.run(words, ("read", at, with), "");
                let is_whole = output.status.success() && output.stdout == whole.stdout;
                let told =
                    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
                let is_told = output.status.code() == Some(1) && told.contains("the levels at");
                let told = (output.status, told.lines().last());
                let is_right =
                    is_whole || is_told && !String::from_utf8_lossy(&output.stdout).contains("sound");
                assert!(is_right, "{words:?}, call {at} of {calls} with {with}: {told:?}");
            }
        }
    }
}

/// All pairs of a pool, which must be sound.
fn pairs(pool: &Path, at: &str) -> BTreeMap<String, char> {
    // One that was not closed says so.
    let text = |words| String::from_utf8(quipu(words).stdout).unwrap();
    let told = text(args(["check"], pool, []));
    assert!(told.contains("is sound"), "{at}: {told}");
    let exported = text(args(["export"], pool, ["-", "--form", "tsv"]));
    let pair = |line: &str| {
        let (key, value) = line.split_once('\t').unwrap();
        (key.to_owned(), value.chars().next().unwrap())
    };
    exported.lines().map(pair).collect()
}

#[test]
fn a_process_that_ends_between_pool_and_levels_leaves_a_pair_that_opens() {
    let Some(filled) = Filled::new() else { return };
    let first = filled.pool.with_extension("first");
    fs::rename(&filled.pool, &first).unwrap();
    fs::rename(format!("{}.runs", filled.pool.display()), format!("{}.runs", first.display())).unwrap();
    filled.restore(&first);
    let before = pairs(&filled.pool, "at first");
    let more = lines(0..KEYS, "C") + &lines(0..KEYS, "D");
    let commands = [
        (args(["import"], &filled.pool, ["-", "--form", "tsv"]), &*more),
        (args(["compact"], &filled.pool, []), ""),
    ];
    for (words, input) in &commands {
        filled.restore(&first);
        let (whole, calls) = filled.run(words, ("change", 0, END), input);
        assert!(whole.status.success() && calls > 10, "{calls} calls of {words:?}: {whole:?}");
        for at in sample(calls) {
            for with in [END, NO_ROOM] {
                filled.restore(&first);
                let (output, _) = filled.run(words, ("change", at, with), input);
                let told = format!("{words:?}, call {at} of {calls} with {with}: {:?}", stderr(&output));
                assert!(output.status.code().map_or(with == END, |code| code < 2), "{told}");
                let after = pairs(&filled.pool, &told);
                // Every key is there, with its value or a written one: a prefix of all lines counts.
                assert_eq!(after.len(), before.len(), "{told}");
                let rank = |(key, mark): (&String, &char)| match mark {
                    'D' => 2,
                    'C' => 1,
                    old => i32::from(before[key] == *old) - 1,
                };
                let ranks: Vec<i32> = after.iter().map(rank).collect();
                assert!(ranks.is_sorted_by(|one, next| one >= next), "{told}");
                let (first, last) = (ranks[0], ranks[KEYS - 1]);
                assert!(last >= 0 && first - last < 2, "{told}");
                // What failed is made up for.
                if with == NO_ROOM && at % 7 == 0 {
                    let (again, _) = filled.run(words, ("change", 0, END), input);
                    assert!(again.status.success(), "{told}, and again: {}", stderr(&again));
                }
            }
        }
    }
}
