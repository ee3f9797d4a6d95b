//! Allowed imports: the table of crates, and the floors of those whose rooms stand on each other.
//!
//! The table is the one place where an edge is allowed. It is printed when a check fails, and the fenced
//! block that opens with `imports` in ARCHITECTURE.md must say the same, so that the map cannot drift from
//! the house.

use std::collections::BTreeSet;

use crate::source::{self, Source};

/// A crate (its folder under `crates/`), its package, and the crates that it may import.
pub const CRATES: &[(&str, &str, &[&str])] = &[
    ("medium", "quipu-medium", &[]),
    ("parts", "quipu-parts", &["medium"]),
    ("store", "quipu", &["medium", "parts"]),
    ("crashtest", "quipu-crashtest", &["medium", "store"]),
    ("bench", "quipu-bench", &["medium", "parts", "store"]),
    ("lab", "quipu-lab", &["medium", "parts", "bench", "store"]),
    ("cli", "quipu-cli", &["medium", "bench", "store"]),
    ("lab-cli", "quipu-lab-cli", &["bench", "lab", "cli", "store"]),
    ("rivals", "quipu-rivals", &["medium", "bench", "lab", "store"]),
];

/// The rooms of a crate by floor. A room may import rooms of lower floors, and nothing else in its crate.
pub const FLOORS: &[(&str, &[&[&str]])] = &[
    (
        "parts",
        &[
            &["table", "twin"],
            &["record", "sync"],
            &["commit", "epoch", "locks", "space"],
            &["cache", "heap", "index"],
            &["reclaim", "versions"],
            &["runs"],
        ],
    ),
    (
        "store",
        &[
            &["types"],
            &["background", "settings"],
            &["options"],
            &["engine"],
            &["walk"],
            &["points"],
            &["log", "nlog", "slots", "tiered"],
            &["designs"],
            &["api"],
        ],
    ),
];

/// The lines that ARCHITECTURE.md must have between its fences. Of the rooms, which are named with their
/// crate, those are left out that do not exist yet.
pub fn expected_block(rooms: &BTreeSet<String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, _, allowed) in CRATES {
        lines.extend(allowed.iter().map(|other| format!("{name} -> {other}")));
    }
    for (owner, floors) in FLOORS {
        for (floor, names) in floors.iter().enumerate() {
            let exists = |name: &&str| rooms.contains(&format!("{owner}/{name}"));
            let present: Vec<&str> = names.iter().copied().filter(exists).collect();
            if !present.is_empty() {
                lines.push(format!("{owner} floor {floor}: {}", present.join(", ")));
            }
        }
    }
    lines
}

/// The lines inside the block fenced as `imports`; none if there is no such block.
pub fn block_of(document: &str) -> Option<Vec<String>> {
    let mut lines = document.lines().skip_while(|line| line.trim() != "```imports");
    lines.next()?;
    let inside = lines.take_while(|line| line.trim() != "```").map(|line| line.trim().to_owned());
    Some(inside.filter(|line| !line.is_empty()).collect())
}

/// The errors in the block of ARCHITECTURE.md.
pub fn compare_block(document: &str, rooms: &BTreeSet<String>) -> Vec<String> {
    let expected = expected_block(rooms);
    let whole = format!("```imports\n{}\n```", expected.join("\n"));
    let Some(written) = block_of(document) else {
        return vec![format!("has no block that opens with ```imports; it should be\n{whole}")];
    };
    let missing =
        expected.iter().filter(|line| !written.contains(line)).map(|line| format!("lacks `{line}`"));
    let extra =
        written.iter().filter(|line| !expected.contains(line)).map(|line| format!("has `{line}` in excess"));
    let mut faults: Vec<String> = missing.chain(extra).collect();
    if !faults.is_empty() {
        faults.push(format!("the whole block should be\n{whole}"));
    }
    faults
}

/// The names of all packages that a manifest depends on, for whatever purpose and target.
pub fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let plain = section.replace(['\'', '"'], "");
            inside = plain.ends_with("dependencies");
            if let Some((table, name)) = plain.rsplit_once('.')
                && table.ends_with("dependencies")
            {
                names.insert(name.to_owned());
            }
        } else if inside && let Some((key, _)) = line.split_once('=') {
            let name = key.split('.').next().unwrap_or(key).trim();
            names.insert(name.trim_matches('"').to_owned());
        }
    }
    names
}

/// All packages that a package needs for whatever purpose, itself among them, by the text of Cargo.lock.
pub fn needs(lock: &str, package: &str) -> BTreeSet<String> {
    let quoted =
        |line: &str| line.split('"').nth(1).and_then(|text| text.split(' ').next()).map(str::to_owned);
    let needed_by = |name: &str| {
        let own = lock.split("[[package]]").find(|text| text.contains(&format!("\nname = \"{name}\"\n")));
        let list = own.and_then(|text| text.split_once("dependencies = [")).map_or("", |(_, list)| list);
        list.lines().take_while(|line| *line != "]").filter_map(quoted).collect::<Vec<_>>()
    };
    let (mut found, mut next) = (BTreeSet::new(), vec![package.to_owned()]);
    while let Some(name) = next.pop() {
        if found.insert(name.clone()) {
            next.extend(needed_by(&name));
        }
    }
    found
}

/// Edges of one crate that the table does not allow.
pub fn check_manifest(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, package, allowed)) = CRATES.iter().find(|(folder, _, _)| *folder == name) else {
        return vec![format!(
            "crates/{name} is not in the table of crates: add it there and to ARCHITECTURE.md"
        )];
    };
    let mut faults = Vec::new();
    if !manifest.contains(&format!("name = \"{package}\"")) {
        faults.push(format!("crates/{name}/Cargo.toml: the package should be called `{package}`"));
    }
    for dependency in dependencies(manifest) {
        match CRATES.iter().find(|(_, package, _)| *package == dependency) {
            // A package names itself for the features that its own tests need.
            Some((other, _, _)) if !allowed.contains(other) && *other != name => {
                faults.push(format!("crates/{name}/Cargo.toml: `{name} -> {other}` is not an allowed edge"));
            }
            None if dependency.starts_with("quipu") => {
                faults
                    .push(format!("crates/{name}/Cargo.toml: `{dependency}` is not in the table of crates"));
            }
            _ => {}
        }
    }
    faults
}

/// Edges between rooms of a crate with floors that do not lead to a lower one; `module` is the file's name in
/// the crate.
pub fn check_floors(file: &Source, module: &[String]) -> Vec<String> {
    let is_of = |(owner, _): &&(&str, _)| file.path.starts_with(&format!("crates/{owner}/src/"));
    let (Some((_, floors)), Some(room)) = (FLOORS.iter().find(is_of), module.first()) else {
        return Vec::new();
    };
    let floor = |room: &str| floors.iter().position(|names| names.contains(&room));
    let Some(own) = floor(room) else {
        return vec![format!("{}: the room `{room}` has no floor: give it one", file.path)];
    };
    let mut faults = Vec::new();
    for (at, path) in source::paths(&file.shipped) {
        let Some(other) = room_named(&path, module) else { continue };
        let allowed = &other == room || floor(&other).is_some_and(|floor| floor < own);
        if !allowed {
            faults.push(format!(
                "{}:{}: `{path}` leads from `{room}` (floor {own}) to `{other}` ({})",
                file.path,
                file.line(at),
                floor(&other).map_or("no floor".to_owned(), |floor| format!("floor {floor}")),
            ));
        }
    }
    faults
}

/// The room that a path written in `module` leads to, if it stays in the crate.
fn room_named(path: &str, module: &[String]) -> Option<String> {
    let mut segments = path.split("::").peekable();
    if segments.peek() == Some(&"crate") {
        segments.next();
        // Macros exported by the crate live at its root and have no room.
        return segments
            .next()
            .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
            .map(str::to_owned);
    }
    let mut depth = module.len();
    let mut climbed = false;
    while segments.peek() == Some(&"super") {
        segments.next();
        depth = depth.saturating_sub(1);
        climbed = true;
    }
    (climbed && depth == 0).then(|| segments.next().unwrap_or("").to_owned()).filter(|name| !name.is_empty())
}
