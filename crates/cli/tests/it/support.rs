//! Runs `quipu`, and makes pools for it.

pub use crate::program::{run as quipu, run_with_input as quipu_with_input, *};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

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

/// The object that a run with `--json` prints on standard error, if it must end with `code`.
pub fn fail_in_json<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, code: i32) -> Value {
    let output = quipu(args);
    assert_eq!((output.status.code(), &*output.stdout), (Some(code), &b""[..]), "{output:?}");
    let told = objects(&output.stderr).pop().unwrap();
    assert_eq!((names(&told), &told["exit"]), (words("error hint exit"), &code.into()));
    told
}

/// A new pool of 4 MiB.
pub fn pool() -> (tempfile::TempDir, PathBuf) {
    let (folder, pool) = folder();
    text(args(["create"], &pool, ["--size", "4M"]));
    (folder, pool)
}
