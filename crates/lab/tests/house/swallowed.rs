//! Errors that are passed over.
//!
//! A tool that hides that it could not read says "sound" over what it has not seen. So each place of the
//! shipped code that drops an error is on a list with its reason. Bytes or text that are no such thing are an
//! answer and no error: a conversion that fails is not counted.

use crate::source::Source;

/// Forms that pass over an error. A form that begins a statement is sought at its beginning.
const FORMS: &[&str] = &[".ok()", "let _ =", "filter(Result::is_ok)", "filter_map(Result::ok)"];

/// Conversions of bytes and text, whose failure says what the bytes are not.
const CONVERSIONS: &[&str] = &[
    "parse(",
    "parse::<",
    "try_from(",
    "try_into(",
    "from_prefix(",
    "from_bytes(",
    "from_utf8(",
    "from_str_radix(",
    "strip_prefix(",
    "write!(",
    "writeln!(",
    "compare_exchange(",
];

/// Files that pass over errors, how many, and why nobody has to know.
pub const SWALLOWED: &[(&str, usize, &str)] = &[
    (
        "crates/medium/src/map/create.rs",
        2,
        "a file system without unnamed files has its file named at once; a failed creation cleans up",
    ),
    (
        "crates/medium/src/map/device.rs",
        3,
        "a fact of the device that the system does not tell makes the weaker claim",
    ),
    ("crates/medium/src/map/filesystem.rs", 1, "where writes in place cannot be had, the statement says so"),
    ("crates/medium/src/map/huge.rs", 1, "advice changes speed alone"),
    ("crates/medium/src/map/identity.rs", 1, "a system that does not tell has no identities to compare"),
    (
        "crates/medium/src/map/lock.rs",
        2,
        "the name of the process that holds a lock is a courtesy of the error",
    ),
    ("crates/medium/src/map/holes.rs", 1, "a file system that does not tell its holes keeps them mapped"),
    (
        "crates/medium/src/map/mapping.rs",
        6,
        "address space is given back, advice changes speed alone, and a hole that is not covered stays a hole",
    ),
    (
        "crates/medium/src/map/piece.rs",
        2,
        "a file that got no name goes, and the lock ends with the descriptor",
    ),
    (
        "crates/medium/src/map/probe.rs",
        2,
        "a trial that cannot be made leaves the question open, which the probe says",
    ),
    (
        "crates/medium/src/map/system.rs",
        2,
        "without a boot's identity a random one makes the weaker claim; a thread that has ended has no name",
    ),
    ("crates/medium/src/sim/sched/run.rs", 1, "a simulated thread that is given up unwinds"),
    ("crates/medium/src/topology.rs", 1, "a system that does not tell its nodes has one"),
    (
        "crates/parts/src/heap/chain/log.rs",
        1,
        "a zone is prepared ahead of need, and the item that needs it meets the error",
    ),
    ("crates/parts/src/heap/chain/view.rs", 1, "a sample of keys divides work, and nothing depends on it"),
    (
        "crates/parts/src/heap/clock.rs",
        2,
        "one helper is enough; a write back that fails matters after a crash of the system",
    ),
    ("crates/parts/src/heap/slots/blocks.rs", 1, "another thread grows the list already"),
    (
        "crates/parts/src/heap/slots/change.rs",
        1,
        "a damaged old record cannot be counted out; a check reports it",
    ),
    (
        "crates/parts/src/heap/slots/locks.rs",
        1,
        "a record that cannot be read cannot be cleared either; its next reader is told",
    ),
    (
        "crates/parts/src/index/buckets/offer.rs",
        2,
        "a prefetch changes speed alone, and so does a table that grows ahead of need",
    ),
    (
        "crates/parts/src/index/fastfair/node.rs",
        3,
        "an entry that does not prove itself is looked for again by the way that reports damage",
    ),
    (
        "crates/parts/src/index/fastfair/offer.rs",
        2,
        "a guess without a lock; the search that follows reports damage",
    ),
    (
        "crates/parts/src/index/fastfair/tree.rs",
        1,
        "a guess without a lock; the search that follows reports damage",
    ),
    ("crates/parts/src/index/fastfair/write.rs", 1, "an empty leaf that stays costs its room alone"),
    ("crates/parts/src/record/view.rs", 2, "bytes that are no record are an answer"),
    ("crates/parts/src/runs/lsm/files.rs", 2, "files that no version names go, or stay until the next time"),
    ("crates/parts/src/runs/lsm/tree.rs", 1, "a version that cannot be read is not the known one"),
    ("crates/parts/src/space/handle.rs", 2, "a write back that fails matters after a crash of the system"),
    (
        "crates/parts/src/space/kept_storage.rs",
        3,
        "storage is kept ahead of need, or given back, and the use that needs it meets the error",
    ),
    ("crates/parts/src/sync.rs", 1, "a lock that another holds is an answer"),
    (
        "crates/store/src/api/store.rs",
        1,
        "the recipe has read these settings at the open, which failed otherwise",
    ),
    ("crates/store/src/api/store/read_only.rs", 3, "a salvage that failed cleans up, and its error counts"),
    ("crates/store/src/background/crew.rs", 1, "a thread that panicked has failed the store"),
    ("crates/store/src/log/eliminate.rs", 1, "the write itself meets the damage"),
    ("crates/store/src/log/engine.rs", 1, "a drop publishes what is parked; what it cannot, recovery does"),
    ("crates/store/src/log/recovery.rs", 1, "a segment without a header is counted as such, and reported"),
    ("crates/store/src/nlog/cleaners.rs", 1, "where a thread runs changes speed alone"),
    (
        "crates/store/src/options.rs",
        2,
        "a path that cannot be resolved is used as it was given, and the open reports it",
    ),
    (
        "crates/store/src/points/checkpoint/load.rs",
        2,
        "a checkpoint that does not prove itself is not believed, and the pool is scanned",
    ),
    (
        "crates/store/src/points/near.rs",
        6,
        "a scan reads for itself what no thread of the node has read, and reports its errors",
    ),
    ("crates/store/src/points/recovery.rs", 1, "where a thread runs changes speed alone"),
    ("crates/store/src/slots/engine.rs", 1, "a drop publishes what is parked; what it cannot, recovery does"),
    (
        "crates/store/src/slots/late.rs",
        3,
        "a damaged old record cannot be released; a check or the next recovery reports it",
    ),
    (
        "crates/store/src/slots/read.rs",
        1,
        "an illegible record is told from one that has moved by a second look",
    ),
    (
        "crates/store/src/slots/recovery.rs",
        2,
        "unreadable records are counted against the index, and the difference is reported",
    ),
    (
        "crates/store/src/slots/write.rs",
        1,
        "a damaged old record cannot be released; a check or the next recovery reports it",
    ),
    (
        "crates/store/src/tiered/check.rs",
        2,
        "a record that cannot be read is reported as one that does not match",
    ),
    (
        "crates/store/src/tiered/checkpoint/load.rs",
        3,
        "a checkpoint that does not prove itself is not believed, and the pool is scanned",
    ),
    (
        "crates/store/src/tiered/merge.rs",
        4,
        "errors at the front have been handed out before the fronts are compared",
    ),
    (
        "crates/store/src/tiered/room.rs",
        4,
        "a writer that helps is not failed by the work; the job that owns it reports",
    ),
    (
        "crates/store/src/walk/checkpoint/chain.rs",
        1,
        "without zones for it there is no checkpoint, and the next open scans",
    ),
    ("crates/cli/src/commands/bench/place.rs", 1, "a benchmark's own pool goes"),
    ("crates/cli/src/commands/check.rs", 1, "the name of the design is shown where it can be read"),
    ("crates/cli/src/leftover.rs", 2, "what a killed command left goes, or stays until the next time"),
    ("crates/cli/src/output.rs", 1, "nobody is left to tell that standard error is closed"),
];

/// The lines of a file that pass over an error.
pub fn find(file: &Source) -> Vec<usize> {
    let lines = file.shipped.lines().enumerate();
    let passes = |line: &str| {
        FORMS.iter().any(|form| line.contains(form)) && !CONVERSIONS.iter().any(|name| line.contains(name))
    };
    lines.filter(|(_, line)| passes(line)).map(|(number, _)| number + 1).collect()
}

/// The faults of a file: more or fewer such lines than the list has for it.
pub fn check(file: &Source, allowed: &[(&str, usize, &str)]) -> Option<String> {
    let (found, path) = (find(file), &file.path);
    let expected = allowed.iter().find(|(allowed, ..)| allowed == path).map_or(0, |(_, count, _)| *count);
    (found.len() != expected).then(|| {
        format!("{path}: lines {found:?} pass over an error, and SWALLOWED has {expected}: return it, or say why not")
    })
}

#[test]
fn an_error_that_is_passed_over_is_found() {
    let file = |text: &str| Source::new("crates/store/src/a.rs", text, false);
    let text = "fn f() {\n  let _ = read();\n  let a = open().ok();\n  let b = c.parse::<u8>().ok();\n}\n#[cfg(test)]\nmod tests { fn g() { let _ = read(); } }\n";
    assert_eq!(find(&file(text)), [2, 3]);
    assert!(check(&file(text), &[]).is_some());
    assert!(check(&file(text), &[("crates/store/src/a.rs", 2, "a reason")]).is_none());
    assert!(check(&file("fn f() {}"), &[("crates/store/src/a.rs", 1, "a reason")]).is_some());
}
