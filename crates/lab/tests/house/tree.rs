//! The contents of the repository: its text files, its crates, and the modules that each crate declares.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::{self, Source};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace has a root")
}

/// Every file that is or could be committed, from the root, without those that git ignores. Without git (a
/// source archive) the tree is walked.
pub fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut files: Vec<String> = match listed {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
        }
        _ => walk(&root(), ""),
    };
    files.retain(|path| root().join(path).is_file());
    files.sort();
    files.dedup();
    files
}

fn walk(root: &Path, folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(root.join(folder)).expect("a folder of the source archive can be read").flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.path().is_dir() {
            if name != "target" && name != ".git" {
                files.extend(walk(root, &path));
            }
        } else {
            files.push(path);
        }
    }
    files
}

/// The text of a file, or nothing if it is not text.
pub fn read(path: &str) -> Option<String> {
    let bytes = std::fs::read(root().join(path)).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The folders under `crates/` that hold a manifest.
pub fn crates() -> Vec<String> {
    let names: BTreeSet<String> = files()
        .iter()
        .filter_map(|path| path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").map(str::to_owned))
        .filter(|name| !name.contains('/'))
        .collect();
    names.into_iter().collect()
}

/// A module file that a crate declares.
pub struct Module {
    /// Path from the root of the repository.
    pub file: String,
    /// Its name within the crate: `["heap", "segment"]`; empty for the root.
    pub name: Vec<String>,
    /// Compiled for tests alone.
    pub test_only: bool,
}

/// Every module file reachable from the roots of the crate in `folder`, and the declarations that name no
/// file.
pub fn modules(folder: &str, files: &[String]) -> (Vec<Module>, Vec<String>) {
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    for file in files {
        let Some(rest) = file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else { continue };
        let parts: Vec<&str> = rest.split('/').collect();
        let (is_root, test_only) = match parts[..] {
            ["src", "lib.rs" | "main.rs"] | ["build.rs"] => (true, false),
            ["src", "bin", name] => (name.ends_with(".rs"), false),
            ["tests" | "benches" | "examples", name] => (name.ends_with(".rs"), true),
            ["tests" | "benches" | "examples", _, "main.rs"] => (true, true),
            _ => (false, false),
        };
        if is_root {
            let root = Module { file: file.clone(), name: Vec::new(), test_only };
            visit(root, true, files, &read, &mut found, &mut lost);
        }
    }
    (found, lost)
}

/// Follows the declarations of `module`; `read` gives the text of a file.
pub fn visit(
    module: Module,
    owns_folder: bool,
    files: &[String],
    read: &dyn Fn(&str) -> Option<String>,
    found: &mut Vec<Module>,
    lost: &mut Vec<String>,
) {
    let text = read(&module.file).unwrap_or_default();
    let (parent, stem) = match module.file.rsplit_once('/') {
        Some((parent, name)) => (parent.to_owned(), name.trim_end_matches(".rs").to_owned()),
        None => (String::new(), module.file.trim_end_matches(".rs").to_owned()),
    };
    let below = if owns_folder { parent.clone() } else { format!("{parent}/{stem}") };
    for declared in declarations(&text) {
        let candidates = match &declared.path {
            Some(path) => vec![(tidy(&format!("{parent}/{path}")), true)],
            None => vec![
                (format!("{below}/{}.rs", declared.name), false),
                (format!("{below}/{}/mod.rs", declared.name), true),
            ],
        };
        let Some((file, owns)) = candidates.into_iter().find(|(file, _)| files.contains(file)) else {
            lost.push(format!("{}: `mod {};` names no file", module.file, declared.name));
            continue;
        };
        let mut name = module.name.clone();
        name.push(declared.name);
        let child = Module { file, name, test_only: module.test_only || declared.test_only };
        visit(child, owns, files, read, found, lost);
    }
    found.push(module);
}

struct Declared {
    name: String,
    path: Option<String>,
    test_only: bool,
}

fn declarations(text: &str) -> Vec<Declared> {
    let code = source::blank(text);
    let mut declared = Vec::new();
    for at in source::words(&code, "mod") {
        let after = at + 3 + (code[at + 3..].len() - code[at + 3..].trim_start().len());
        let name = source::word_at(&code, after);
        if name.is_empty() || !code[after + name.len()..].trim_start().starts_with(';') {
            continue;
        }
        // Attributes and visibility stand between the end of the item before and the word `mod`.
        let from = code[..at].rfind([';', '}', '{']).map_or(0, |end| end + 1);
        let conditional = &code[from..at];
        let path = text[from..at].split("path = \"").nth(1).and_then(|rest| rest.split('"').next());
        declared.push(Declared {
            name: name.to_owned(),
            path: path.map(str::to_owned),
            test_only: conditional.contains("#[cfg(test)]") || conditional.contains("#[cfg(all(test,"),
        });
    }
    declared
}

/// Resolves `.` and `..` in a path with forward slashes.
fn tidy(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Every source file of every crate, dead ones included, with its module name where it has one.
pub fn sources() -> Vec<(Source, Option<Vec<String>>)> {
    let files = files();
    let mut sources = Vec::new();
    for name in crates() {
        let folder = format!("crates/{name}");
        let (modules, _) = modules(&folder, &files);
        for file in
            files.iter().filter(|file| file.starts_with(&format!("{folder}/")) && file.ends_with(".rs"))
        {
            let module = modules.iter().find(|module| &module.file == file);
            let text = read(file).unwrap_or_default();
            let test_only = module.is_some_and(|module| module.test_only);
            sources.push((Source::new(file, &text, test_only), module.map(|module| module.name.clone())));
        }
    }
    sources
}
