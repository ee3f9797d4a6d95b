//! The rules that a single file can break.
//!
//! Every exception stands in a list with its reason, and an exception that nothing needs any more is itself a
//! fault: lists that only grow stop being read.

use std::ops::Range;

use crate::source::{self, Source};

/// Lines from which a file's length needs a reason, and lines that no file may pass.
pub const LONG: usize = 500;
/// No file may be longer.
pub const TOO_LONG: usize = 800;

/// Files of more than [`LONG`] lines, each with the reason why one purpose needs so many.
pub const LONG_FILES: &[(&str, &str)] = &[];

/// Where threads may be started.
pub const STARTS_THREADS: &[&str] =
    &["crates/store/src/background/", "crates/crashtest/src/watch.rs", "crates/bench/", "crates/lab/"];

/// Exceptions of the engine from the seams: file, path, reason.
pub const SEAM_EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/parts/src/sync.rs",
        "std::thread::yield_now",
        "a spinning thread lets the one it waits for run; the simulator is told before",
    ),
    (
        "crates/parts/src/sync.rs",
        "std::thread::panicking",
        "what a thread drops while it unwinds has not come to its end; a simulated run unwinds the same way",
    ),
    (
        "crates/store/src/points/near.rs",
        "std::sync::mpsc",
        "hands work to threads of the background, which a simulated run does not have",
    ),
    (
        "crates/store/src/options.rs",
        "std::thread::available_parallelism",
        "the default of a setting, read before there is a store; a simulated run sets it",
    ),
];

/// Files outside `medium` that may use instructions of one processor, with the reason.
pub const MACHINE_EXCEPTIONS: &[(&str, &str)] = &[
    (
        "crates/parts/src/index/hash/probe.rs",
        "compares the slots of a line in DRAM at once; nothing here concerns the medium, and a portable form is beside it",
    ),
    ("crates/parts/src/index/eight.rs", "loads and compares eight words in DRAM at once, as above"),
];

/// Paths that would let a clock, randomness, a thread or a lock unknown to the simulator into the engine.
const SEAMS: &[&str] = &[
    "std::time",
    "core::time",
    "time::Instant",
    "time::SystemTime",
    "std::thread",
    "thread",
    "rand",
    "getrandom",
    "fastrand",
    "parking_lot",
    "crossbeam",
    "std::sync::Mutex",
    "std::sync::RwLock",
    "std::sync::Condvar",
    "std::sync::Barrier",
    "std::sync::mpsc",
    "sync::Mutex",
    "sync::RwLock",
    "sync::Condvar",
    "sync::Barrier",
    "sync::mpsc",
];

/// A length of time reads no clock.
const HARMLESS: &[&str] = &["std::time::Duration", "core::time::Duration"];

/// Rooms (a folder ends in a slash) that may hold `unsafe` code, each with the reason.
pub const UNSAFE_ROOMS: &[(&str, &str)] = &[
    ("crates/medium/", "the one door to mapped memory, processor instructions and system calls"),
    ("crates/parts/src/sync.rs", "locks hand out references to what they guard"),
    ("crates/parts/src/index/", "lock-free nodes are shared by raw pointers under an epoch"),
    (
        "crates/parts/src/record/view.rs",
        "a published record is borrowed from PM while its segment cannot be reused",
    ),
    ("crates/parts/src/cache/", "slots name blocks by tagged pointers under an epoch"),
    ("crates/parts/src/epoch/current.rs", "looks through a pointer under an epoch"),
    ("crates/parts/src/versions/", "words of an index lead to arrays that an epoch protects"),
    ("crates/parts/src/heap/", "the borrow of a record in PM is justified by the heap that protects it"),
    ("crates/store/src/tiered/mod.rs", "reads numbers in place under the guard that it was given"),
    ("crates/store/src/tiered/read.rs", "reads records in place under the guard that it was given"),
    ("crates/store/src/tiered/rewrite.rs", "reads records of a memtable in place that only it retires"),
    (
        "crates/store/src/tiered/dump.rs",
        "reads first keys of zones of a frozen layer, which only it releases",
    ),
    (
        "crates/store/src/tiered/source.rs",
        "reads records of a frozen layer in place while its dump is under way",
    ),
    ("crates/store/src/tiered/recovery.rs", "reads memtables in place before the store is handed out"),
    ("crates/store/src/tiered/salvage.rs", "reads memtables in place of a pool that nobody writes to"),
    ("crates/store/src/tiered/check.rs", "reads memtables in place of a store that nobody else uses"),
    ("crates/store/src/points/read.rs", "reads records in place under the guard that it was given"),
    ("crates/store/src/points/proved.rs", "reads records in place under that guard, and proves them"),
    ("crates/store/src/nlog/check.rs", "reads files in place while it has the store for itself"),
    ("crates/store/src/nlog/clean.rs", "reads the header of a file in place that only it frees"),
    ("crates/store/src/nlog/recovery.rs", "reads files in place before the store is handed out"),
    ("crates/store/src/log/publish.rs", "reads parked records, whose segments nobody reuses"),
    ("crates/store/src/log/large.rs", "reads large values in place under the guard that it was given"),
    ("crates/store/src/points/mod.rs", "reads keys in place under the guard that it was given"),
    ("crates/store/src/points/value.rs", "reads large values in place under that guard"),
    ("crates/store/src/log/durable.rs", "scans segments of earlier runs, to which nobody appends"),
    (
        "crates/store/src/log/compact/",
        "reads records of a victim in place, whose segment stays while it is one",
    ),
    ("crates/store/src/log/recovery/", "reads headers in place before the store is handed out"),
    ("crates/store/src/log/recovery.rs", "scans segments in place before the store is handed out"),
    (
        "crates/store/src/log/salvage.rs",
        "reads bytes in place that prove nothing, of a pool that is only read",
    ),
    ("crates/store/src/points/checkpoint/", "reads zones in place before the store is handed out"),
    ("crates/store/src/walk/checkpoint/", "reads free zones in place before the store is handed out"),
    ("crates/store/src/log/check.rs", "scans segments in place while it has the store for itself"),
    ("crates/store/src/log/check/", "scans them once more, for the keys that a damaged index has lost"),
    ("crates/bench/src/alloc.rs", "counts what the global allocator hands out, which is an unsafe trait"),
    ("crates/lab/src/bench/memtables.rs", "reads records of memtables in place that nobody releases"),
    ("crates/rivals/src/engines/library.rs", "finds the functions of C libraries by name"),
    ("crates/rivals/src/engines/rocksdb/", "calls RocksDB through its C interface"),
    ("crates/rivals/src/engines/pmemkv/", "calls pmemkv through its C interface"),
    ("crates/bench/src/roofline.rs", "measures the reads of records in place, without an engine around them"),
];

/// Whether `path` is `stem` or lies below it.
fn below(path: &str, stem: &str) -> bool {
    path.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether the file belongs to the engine, which reaches the world only through seams.
fn is_engine(file: &str) -> bool {
    file.starts_with("crates/parts/src/") || file.starts_with("crates/store/src/")
}

/// The fault of a file that is too long, or that is long without a reason.
pub fn check_length(file: &Source, allowed: &[(&str, &str)]) -> Option<String> {
    let lines = file.text.lines().count();
    if lines > TOO_LONG {
        return Some(format!("{}: {lines} lines; no file has more than {TOO_LONG}: split it", file.path));
    }
    let excused = allowed.iter().any(|(path, _)| *path == file.path);
    if lines > LONG && !excused {
        return Some(format!(
            "{}: {lines} lines; split it, or list it in LONG_FILES with the reason",
            file.path
        ));
    }
    (lines <= LONG && excused).then(|| format!("{}: {lines} lines; take it off LONG_FILES", file.path))
}

/// Uses of processor instructions, mappings and libc outside `medium`.
pub fn check_machine(file: &Source, exceptions: &[(&str, &str)]) -> Vec<String> {
    if file.path.starts_with("crates/medium/") {
        return Vec::new();
    }
    let machine = ["std::arch", "core::arch", "libc", "rustix", "memmap2", "nix"];
    let mut faults = Vec::new();
    for (at, path) in source::paths(&file.code) {
        if machine.iter().any(|stem| below(&path, stem)) && path.contains("::") {
            faults.push(format!("{}:{}: `{path}` belongs into crates/medium", file.path, file.line(at)));
        }
    }
    if !exceptions.iter().any(|(path, _)| *path == file.path) {
        faults
    } else if faults.is_empty() {
        vec![format!("{}: take it off MACHINE_EXCEPTIONS", file.path)]
    } else {
        Vec::new()
    }
}

/// Threads started where only the background room and the crates around the engine may start them.
pub fn check_threads(file: &Source) -> Vec<String> {
    if STARTS_THREADS.iter().any(|allowed| file.path.starts_with(allowed)) {
        return Vec::new();
    }
    let starts = ["spawn", "scope", "Builder"];
    let mut faults = Vec::new();
    for (at, path) in source::paths(&file.shipped) {
        let Some((_, rest)) = path.rsplit_once("thread::") else { continue };
        if starts.iter().any(|start| below(rest, start)) {
            faults.push(format!(
                "{}:{}: `{path}`: only store/src/background starts threads",
                file.path,
                file.line(at)
            ));
        }
    }
    faults
}

/// Clocks, randomness, threads and foreign locks in the engine.
pub fn check_seams(file: &Source, exceptions: &[(&str, &str, &str)]) -> Vec<String> {
    if !is_engine(&file.path) || file.path.starts_with(STARTS_THREADS[0]) {
        return Vec::new();
    }
    let own: Vec<_> = exceptions.iter().filter(|(path, _, _)| *path == file.path).collect();
    let mut used = vec![false; own.len()];
    let mut faults = Vec::new();
    for (at, path) in source::paths(&file.shipped) {
        let harmless = HARMLESS.iter().any(|stem| below(&path, stem));
        if harmless || !SEAMS.iter().any(|stem| below(&path, stem)) || !path.contains("::") {
            continue;
        }
        match own.iter().position(|(_, allowed, _)| *allowed == path) {
            Some(index) => used[index] = true,
            None => faults.push(format!(
                "{}:{}: `{path}` must come through a seam (quipu_parts::sync, or a value given from outside)",
                file.path,
                file.line(at)
            )),
        }
    }
    for (exception, _) in own.iter().zip(used).filter(|(_, used)| !used) {
        faults.push(format!("{}: no longer uses `{}`; take it off SEAM_EXCEPTIONS", file.path, exception.1));
    }
    faults
}

/// `unsafe` outside its rooms, or without the fact that makes it sound.
pub fn check_unsafe(file: &Source, rooms: &[(&str, &str)]) -> Vec<String> {
    let mut faults = Vec::new();
    let lines: Vec<&str> = file.text.lines().collect();
    let traits = unsafe_impls(&file.code);
    for at in source::words(&file.code, "unsafe") {
        let line = file.line(at);
        // `#[unsafe(no_mangle)]` is an attribute and `unsafe fn(..)` a type; neither does anything by itself.
        let next = file.code[at + 6..].trim_start();
        if next.starts_with('(') || next.starts_with("fn(") {
            continue;
        }
        let shipped = file.shipped.get(at..at + 6) == Some("unsafe");
        if shipped && !rooms.iter().any(|(room, _)| file.path.starts_with(room)) {
            faults.push(format!("{}:{line}: `unsafe` outside the rooms of UNSAFE_ROOMS", file.path));
        }
        let declares = ["fn ", "trait ", "extern "].iter().any(|form| next.starts_with(form));
        if declares && traits.iter().any(|inside| inside.contains(&at)) {
            continue;
        }
        if !states_a_fact(&lines, line) {
            let form = match declares {
                true => "a `# Safety` section",
                false => "a `// SAFETY:` comment in the six lines above",
            };
            faults.push(format!("{}:{line}: `unsafe` without {form}", file.path));
        }
    }
    faults
}

/// The bodies of `unsafe impl` blocks: the trait says which promises their functions ask of callers.
fn unsafe_impls(code: &str) -> Vec<Range<usize>> {
    let starts = source::words(code, "unsafe").filter(|at| code[at + 6..].trim_start().starts_with("impl"));
    let bodies = starts.filter_map(|at| code[at..].find('{').map(|open| at + open));
    bodies.map(|open| open..source::end_of_group(code.as_bytes(), open)).collect()
}

/// Rooms in which no file of `sources` needs to be unsafe any more.
pub fn needless_rooms(sources: &[Source], rooms: &[(&str, &str)]) -> Vec<String> {
    let is_used = |room: &str| {
        let mut inside = sources.iter().filter(|source| source.path.starts_with(room));
        inside.any(|source| source::words(&source.shipped, "unsafe").next().is_some())
    };
    let needless = rooms.iter().filter(|(room, _)| !is_used(room));
    needless.map(|(room, _)| format!("{room}: nothing here is unsafe; take it off UNSAFE_ROOMS")).collect()
}

/// Whether line `number` (from 1) or the comment right above it says why the unsafe code is sound.
fn states_a_fact(lines: &[&str], number: usize) -> bool {
    let says = |line: &str| line.contains("SAFETY:") || line.contains("# Safety");
    let nearest = number.saturating_sub(7);
    if lines[nearest..number].iter().any(|line| says(line)) {
        return true;
    }
    // A long comment may begin further up: follow comments and attributes as far as they go.
    let above = lines[..number - 1].iter().rev().map(|line| line.trim());
    above.take_while(|line| line.starts_with("//") || line.starts_with("#[")).any(says)
}

/// Work left over: markers in comments and macros that stand for code that is missing.
pub fn check_unfinished(file: &Source) -> Vec<String> {
    // Put together here so that this file does not contain the markers.
    let markers = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|halves| halves.concat());
    let mut faults = Vec::new();
    for marker in &markers {
        for at in source::words(&file.text, marker) {
            faults.push(format!("{}:{}: {marker}: do it now or write an issue", file.path, file.line(at)));
        }
    }
    for name in ["todo", "unimplemented", "dbg"] {
        for at in source::words(&file.code, name) {
            if file.code[at + name.len()..].starts_with('!') {
                faults.push(format!("{}:{}: `{name}!` is not finished code", file.path, file.line(at)));
            }
        }
    }
    faults
}

/// Paths of one person's machine, which mean nothing to anyone else.
pub fn check_local_paths(path: &str, text: &str) -> Vec<String> {
    let stems =
        [["/wo", "rk/"], ["/ro", "ot/"], ["/tmp", "/h/"], ["/tmp", "/target-"]].map(|halves| halves.concat());
    let mut faults = Vec::new();
    for stem in &stems {
        for (at, _) in text.match_indices(stem.as_str()) {
            // Inside a longer path or an address the folder is somebody's own.
            let inside = at > 0
                && (source::is_word(text.as_bytes()[at - 1]) || b".-".contains(&text.as_bytes()[at - 1]));
            if !inside {
                faults
                    .push(format!("{path}:{}: `{stem}` is a path of one machine", source::line_of(text, at)));
            }
        }
    }
    faults
}

/// Tests that are switched off without a word why.
pub fn check_ignored(file: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    for at in source::words(&file.code, "ignore") {
        let before = file.code[..at].trim_end();
        if !(before.ends_with("#[") || before.ends_with(',')) {
            continue;
        }
        let after = file.text[at + "ignore".len()..].trim_start();
        let reason =
            after.strip_prefix('=').map(|rest| rest.trim_start().trim_start_matches('"').trim_start());
        let silent = match reason {
            Some(reason) => reason.is_empty() || reason.starts_with('"') || reason.starts_with(']'),
            // A bare word in a list of arguments is an attribute only inside `cfg_attr`.
            None => {
                before.ends_with("#[")
                    || before.rfind("cfg_attr(").is_some_and(|open| !before[open..].contains(']'))
            }
        };
        if silent {
            faults.push(format!(
                "{}:{}: an ignored test needs a reason: #[ignore = \"..\"]",
                file.path,
                file.line(at)
            ));
        }
    }
    faults
}
