//! A small disk of a test's own.

use std::path::Path;
use std::process::{Command, Output};

/// Tells this program that it runs with a small disk.
const SMALL_DISK: &str = "QUIPU_TEST_SMALL_DISK";

/// Runs `work` with a folder on a disk of this size, which only a process of its own sees: it runs the test
/// of this name. Tells that it is skipped where the system refuses.
pub fn on_small_disk(test: &str, size: &str, work: impl FnOnce(&Path)) {
    if let Some(disk) = std::env::var_os(SMALL_DISK) {
        return work(Path::new(&disk));
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size={size} tmpfs \"$1\" || exit 77\nexec \"$2\" --exact \"$3\" --nocapture"
    );
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &script, "sh"])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(SMALL_DISK, folder.path())
        .output();
    let is_refused = |output: &Output| {
        output.status.code() == Some(77) || String::from_utf8_lossy(&output.stderr).contains("unshare")
    };
    match output.ok().filter(|output| !is_refused(output)) {
        Some(output) => {
            assert!(output.status.success(), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
        }
        None => println!("skipped: {test} (no file system of one's own)"),
    }
}
