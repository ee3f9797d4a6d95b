//! Runs the program, and reads what it prints.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs `quipu` with these arguments.
pub fn quipu<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    quipu_with_input(args, b"")
}

/// The same, with something on standard input.
pub fn quipu_with_input<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may end before everything is written.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// The output of a successful run, which must be all that it says.
pub fn succeed<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Vec<u8> {
    let output = quipu(args);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{output:?}");
    output.stdout
}

/// The output of a successful run, as text.
pub fn text<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    String::from_utf8(succeed(args)).unwrap()
}

/// The output of a successful run on a pool that this process has just let go.
///
/// Other tests start processes meanwhile. One that has been forked and does not yet run its program has
/// copies of all open files, and the pool stays locked for the moment that it does.
pub fn succeed_once_free(args: &[String]) -> Vec<u8> {
    let begun = Instant::now();
    loop {
        let output = quipu(args);
        if !stderr(&output).contains("is in use") {
            assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{output:?}");
            return output.stdout;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "the pool stays locked");
    }
}

/// The words of a run that must end with `code`, all of them on standard error.
pub fn fail<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, code: i32) -> String {
    let output = quipu(args);
    assert_eq!((output.status.code(), &*output.stdout), (Some(code), &b""[..]), "{output:?}");
    let text = stderr(&output);
    assert!(text.starts_with("quipu: "), "{text}");
    text
}

/// The object that a run with `--json` prints on standard error, if it must end with `code`.
pub fn fail_in_json<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, code: i32) -> Value {
    let output = quipu(args);
    assert_eq!((output.status.code(), &*output.stdout), (Some(code), &b""[..]), "{output:?}");
    let told = objects(&output.stderr).pop().unwrap();
    assert_eq!((names(&told), &told["exit"]), (words("error hint exit"), &code.into()));
    told
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The objects on standard output, one a line, of which every line must be one.
pub fn objects(stdout: &[u8]) -> Vec<Value> {
    let lines = std::str::from_utf8(stdout).unwrap().lines();
    let objects: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!objects.is_empty() && objects.iter().all(Value::is_object));
    objects
}

/// The names of an object's fields, in alphabetical order.
pub fn names(object: &Value) -> Vec<&str> {
    let mut names: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// The words of a text, in alphabetical order, to compare names with.
pub fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<_> = text.split_whitespace().collect();
    words.sort_unstable();
    words
}

/// A folder that vanishes, with the name of a pool in it that is not there yet.
pub fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let pool = folder.path().join("p.pool");
    (folder, pool)
}

/// A new pool of 4 MiB.
pub fn pool() -> (tempfile::TempDir, PathBuf) {
    let (folder, pool) = folder();
    text(args(["create"], &pool, ["--size", "4M"]));
    (folder, pool)
}

/// Arguments with a path among them.
pub fn args<const A: usize, const B: usize>(before: [&str; A], path: &Path, after: [&str; B]) -> Vec<String> {
    let path = path.to_str().unwrap().to_owned();
    let (before, after) = (before.map(str::to_owned), after.map(str::to_owned));
    before.into_iter().chain([path]).chain(after).collect()
}
