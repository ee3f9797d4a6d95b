//! The house keeps its own rules, because nobody else will.
//!
//! Rules that only a page states are broken by the third hurried change. So every rule that can be checked is
//! checked here:
//!
//! - who imports whom, dead files, lengths of files;
//! - the doors to the machine and to the world, the grounds of unsafe code;
//! - unfinished work, local paths, silently ignored tests, packages;
//! - the prose of comments and pages, and the links of pages.
//!
//! `house/` holds the checks as functions from text to faults, and beside them the proof that each can fail.

#[path = "house/imports.rs"]
mod imports;
#[path = "house/packages.rs"]
mod packages;
#[path = "house/pages.rs"]
mod pages;
#[path = "house/prose.rs"]
mod prose;
#[path = "house/rules.rs"]
mod rules;
#[path = "house/self_tests.rs"]
mod self_tests;
#[path = "house/source.rs"]
mod source;
#[path = "house/swallowed.rs"]
mod swallowed;
#[path = "house/tree.rs"]
mod tree;

use std::collections::BTreeSet;

use quipu::internals::Twin;
use source::Source;

/// Fails with every fault, one a line, under a sentence that states the broken rule.
#[track_caller]
fn expect_none(rule: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{rule}\n\n  {}\n", faults.join("\n  "));
}

fn all_sources() -> Vec<Source> {
    let sources: Vec<Source> = tree::sources().into_iter().map(|(source, _)| source).collect();
    assert!(
        sources.len() > 20,
        "only {} source files were found: the checks would check nothing",
        sources.len()
    );
    sources
}

/// The pages of the root and of `docs`.
fn pages() -> Vec<(String, String)> {
    let of_house =
        |path: &String| path.ends_with(".md") && (path.starts_with("docs/") || !path.contains('/'));
    // The changes of a release are said as they were then.
    let paths = tree::files().into_iter().filter(of_house).filter(|path| path != "CHANGELOG.md");
    paths.filter_map(|path| tree::read(&path).map(|text| (path, text))).collect()
}

/// The rooms that exist of crates with floors, such as `parts/heap`.
fn rooms() -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for path in tree::files() {
        for (owner, _) in imports::FLOORS {
            let inside = path.strip_prefix(&format!("crates/{owner}/src/"));
            if let Some(room) = inside.and_then(|path| path.split('/').next()) {
                rooms.insert(format!("{owner}/{}", room.trim_end_matches(".rs")));
            }
        }
    }
    rooms
}

fn table() -> String {
    format!("Imports only go down. The table:\n\n  {}", imports::expected_block(&rooms()).join("\n  "))
}

#[test]
fn packages_are_fit_for_a_registry_or_stay_here() {
    let mut faults = Vec::new();
    let crates = tree::crates();
    assert!(packages::PUBLISHED.iter().all(|name| crates.iter().any(|found| found == name)), "{crates:?}");
    for name in crates {
        let folder = tree::root().join("crates").join(&name);
        let manifest = tree::read(&format!("crates/{name}/Cargo.toml")).expect("a crate has a manifest");
        faults.extend(packages::check(&name, &manifest, |file| folder.join(file).is_file()));
    }
    expect_none("A package has a README, its licences and what a registry shows:", &faults);
}

#[test]
fn crates_import_only_downwards() {
    let mut faults = Vec::new();
    let crates = tree::crates();
    assert!(crates.len() >= imports::CRATES.len(), "crates are missing: only {crates:?} were found");
    for name in crates {
        let manifest = tree::read(&format!("crates/{name}/Cargo.toml")).expect("a crate has a manifest");
        faults.extend(imports::check_manifest(&name, &manifest));
    }
    expect_none(&table(), &faults);
}

/// Whoever stores data need not build the proofs.
#[test]
fn the_program_of_users_is_built_without_the_lab() {
    let lock = tree::read("Cargo.lock").expect("the workspace has a Cargo.lock");
    let lab = |package| imports::needs(&lock, package).contains("quipu-lab");
    assert!(!lab("quipu-cli"), "quipu-cli depends on quipu-lab");
    assert!(
        imports::needs(&lock, "quipu-cli").contains("quipu-medium") && lab("quipu-lab-cli"),
        "it would notice"
    );
    let manifest = tree::read("crates/cli/Cargo.toml").expect("a crate has a manifest");
    assert!(!manifest.contains("twins"), "quipu-cli can be built with stores that leave out rules");
}

#[test]
fn rooms_import_only_lower_floors() {
    let mut faults = Vec::new();
    for (source, module) in tree::sources() {
        faults.extend(module.map(|module| imports::check_floors(&source, &module)).unwrap_or_default());
    }
    expect_none(&table(), &faults);
}

#[test]
fn architecture_page_shows_the_import_table() {
    let page = tree::read("ARCHITECTURE.md").unwrap_or_default();
    expect_none("ARCHITECTURE.md", &imports::compare_block(&page, &rooms()));
}

#[test]
fn every_file_is_part_of_a_crate() {
    let files = tree::files();
    let mut faults = Vec::new();
    for name in tree::crates() {
        let folder = format!("crates/{name}");
        let (modules, lost) = tree::modules(&folder, &files);
        faults.extend(lost);
        let alive: BTreeSet<&String> = modules.iter().map(|module| &module.file).collect();
        let own =
            files.iter().filter(|file| file.starts_with(&format!("{folder}/")) && file.ends_with(".rs"));
        faults.extend(
            own.filter(|file| !alive.contains(file)).map(|file| format!("{file}: no `mod` leads here")),
        );
    }
    expect_none("Dead files and declarations of files that do not exist:", &faults);
}

#[test]
fn files_are_short() {
    let faults: Vec<String> =
        all_sources().iter().filter_map(|source| rules::check_length(source, rules::LONG_FILES)).collect();
    expect_none("One concept a file; 100 to 300 lines, 500 with a reason, never above 800:", &faults);
}

#[test]
fn only_medium_touches_the_machine() {
    let faults: Vec<String> = {
        let check = |source| rules::check_machine(source, rules::MACHINE_EXCEPTIONS);
        all_sources().iter().flat_map(check).collect()
    };
    expect_none(
        "Instructions, mappings and system calls on pools are the business of crates/medium:",
        &faults,
    );
    for name in tree::crates().iter().filter(|name| *name != "medium") {
        let manifest = tree::read(&format!("crates/{name}/Cargo.toml")).unwrap_or_default();
        for machine in ["rustix", "libc", "memmap2", "nix"] {
            let depends = imports::dependencies(&manifest).contains(machine);
            assert!(!depends, "crates/{name} depends on {machine}, which belongs to crates/medium");
        }
    }
}

#[test]
fn only_the_background_room_starts_threads() {
    let faults: Vec<String> = all_sources().iter().flat_map(rules::check_threads).collect();
    expect_none("Threads are started by store/src/background, the lab and the program:", &faults);
}

#[test]
fn the_engine_reaches_the_world_through_seams() {
    let sources = all_sources();
    let mut faults: Vec<String> =
        sources.iter().flat_map(|source| rules::check_seams(source, rules::SEAM_EXCEPTIONS)).collect();
    for (file, _, reason) in rules::SEAM_EXCEPTIONS {
        assert!(!reason.is_empty(), "an exception needs a reason: {file}");
        if !sources.iter().any(|source| source.path == *file) {
            faults.push(format!("{file} does not exist; take it off SEAM_EXCEPTIONS"));
        }
    }
    expect_none(
        "A run can be replayed from its seed only if the engine takes nothing from outside:",
        &faults,
    );
}

#[test]
fn unsafe_code_stays_in_its_rooms_and_gives_its_grounds() {
    let sources = all_sources();
    let mut faults: Vec<String> =
        sources.iter().flat_map(|source| rules::check_unsafe(source, rules::UNSAFE_ROOMS)).collect();
    faults.extend(rules::needless_rooms(&sources, rules::UNSAFE_ROOMS));
    expect_none("Unsafe code lives in few rooms and says what makes it sound:", &faults);
}

#[test]
fn errors_are_passed_over_for_a_reason() {
    let engine = |path: &str| {
        ["medium", "parts", "store", "cli", "lab-cli"]
            .iter()
            .any(|name| path.starts_with(&format!("crates/{name}/src/")))
    };
    let sources: Vec<Source> = all_sources().into_iter().filter(|source| engine(&source.path)).collect();
    let mut faults: Vec<String> =
        sources.iter().filter_map(|source| swallowed::check(source, swallowed::SWALLOWED)).collect();
    let is_there = |path: &str| sources.iter().any(|source| source.path == path);
    let gone = swallowed::SWALLOWED.iter().filter(|(path, ..)| !is_there(path));
    faults.extend(gone.map(|(path, ..)| format!("{path}: no such file; take it off SWALLOWED")));
    expect_none("An error that is passed over has a reason:", &faults);
}

#[test]
fn nothing_is_left_unfinished() {
    let faults: Vec<String> = all_sources().iter().flat_map(rules::check_unfinished).collect();
    expect_none("Unfinished work:", &faults);
}

#[test]
fn no_file_names_a_local_path() {
    let mut faults = Vec::new();
    for path in tree::files() {
        if let Some(text) = tree::read(&path) {
            faults.extend(rules::check_local_paths(&path, &text));
        }
    }
    expect_none("Paths that exist on one machine only:", &faults);
}

#[test]
fn ignored_tests_say_why() {
    let faults: Vec<String> = all_sources().iter().flat_map(rules::check_ignored).collect();
    expect_none("Tests that are switched off without a reason:", &faults);
}

#[test]
fn comment_lines_are_narrow() {
    let faults: Vec<String> = all_sources().iter().flat_map(prose::check_width).collect();
    expect_none("A comment line has at most 110 columns:", &faults);
}

#[test]
fn heads_are_short() {
    let faults: Vec<String> = all_sources().iter().flat_map(prose::check_heads).collect();
    expect_none("A head has at most 40 lines; a longer argument is a page of docs/decisions:", &faults);
}

#[test]
fn sentences_are_short() {
    let mut faults: Vec<String> = all_sources().iter().flat_map(prose::check_docs).collect();
    for (path, text) in pages() {
        faults.extend(prose::check_page(&path, &text));
    }
    expect_none("A sentence has at most 35 words:", &faults);
}

#[test]
fn sentences_name_their_subject() {
    let sources = all_sources();
    let in_src = sources.iter().filter(|source| source.path.split('/').nth(2) == Some("src"));
    let faults: Vec<String> = in_src.flat_map(prose::check_subjects).collect();
    expect_none(
        "A sentence of a comment begins with Who, Whoever, What or Whatever; name the subject:",
        &faults,
    );
}

#[test]
fn links_and_paths_of_pages_exist() {
    let read = |path: &str| match tree::root().join(path) {
        folder if folder.is_dir() => Some(String::new()),
        _ => tree::read(path),
    };
    let faults: Vec<String> =
        pages().iter().flat_map(|(path, text)| pages::check(path, text, read)).collect();
    expect_none("Dead links, and paths that have moved:", &faults);
}

/// A rule that can be left out, and that no test leaves out, proves nothing.
#[test]
fn every_twin_stands_before_some_judge() {
    let is_of_a_judge = |path: &String| {
        let names_all = path == "crates/parts/src/twin.rs" || path == "crates/lab/src/linear/twins.rs";
        path.starts_with("crates/") && path.ends_with(".rs") && !names_all
    };
    let texts: Vec<_> =
        tree::files().into_iter().filter(is_of_a_judge).filter_map(|path| tree::read(&path)).collect();
    let is_named = |name: &str| {
        let is_it =
            |rest: &str| rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
        texts.iter().any(|text| text.split("Twin::").skip(1).any(is_it))
    };
    let names = Twin::ALL.iter().map(|twin| format!("{twin:?}"));
    let faults: Vec<_> = names.filter(|name| !is_named(name)).collect();
    expect_none("Twins that no test convicts:", &faults);
    assert!(!is_named("OfNoRule") && !is_named("NewestIgnore"), "it would notice");
}
