//! Runs the program that is tested, and reads what it prints.

use crate::{NAME, PROGRAM};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs the program with these arguments.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    run_with_input(args, b"")
}

/// The same, with something on standard input.
pub fn run_with_input<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Output {
    let mut child = Command::new(PROGRAM)
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
    let output = run(args);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{output:?}");
    output.stdout
}

/// The output of a successful run, as text.
pub fn text<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    String::from_utf8(succeed(args)).unwrap()
}

/// The words of a run that must end with `code`, all of them on standard error.
pub fn fail<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, code: i32) -> String {
    let output = run(args);
    assert_eq!((output.status.code(), &*output.stdout), (Some(code), &b""[..]), "{output:?}");
    let text = stderr(&output);
    assert!(text.starts_with(&format!("{NAME}: ")), "{text}");
    text
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

/// Arguments with a path among them.
pub fn args<const A: usize, const B: usize>(before: [&str; A], path: &Path, after: [&str; B]) -> Vec<String> {
    let path = path.to_str().unwrap().to_owned();
    let (before, after) = (before.map(str::to_owned), after.map(str::to_owned));
    before.into_iter().chain([path]).chain(after).collect()
}
