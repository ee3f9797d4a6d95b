//! The commands of the README and of the guide, run as they are printed; and their links.
//!
//! Every line of every `sh` block runs in a shell, in order, in a folder of its document's own, with this
//! build's `quipu` first in the path. A line ends with exit code 0, or with what its comment says (`# exit
//! code 3: ...`). If a `text` block follows, it is what the block prints; `…` in it stands for anything. A
//! line that cannot run, or only with less to do, stands in a list below, and a list that names a line which
//! no document has is a fault too.

use std::path::{Path, PathBuf};
use std::process::Command;

const DOCUMENTS: &[(&str, &str)] = &[
    ("README.md", include_str!("../../../../README.md")),
    ("docs/GUIDE.md", include_str!("../../../../docs/GUIDE.md")),
];

/// Lines that are not run, without their comments, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo install --path crates/cli", "it builds the whole program for release"),
    ("cargo install --git https://github.com/quipu-db/quipu quipu-cli", "it needs the network"),
    ("cargo test", "this is one of its tests"),
    (
        "quipu create /mnt/pmem/animals.pool --size 64G --medium dax",
        "it needs a file system mounted with -o dax",
    ),
    ("quipu create /dev/dax0.0 --size 64G", "it needs a devdax device"),
];

/// Lines that would take too long, without their comments, and what runs in their place: the same words with
/// smaller counts, or with counts in the place of defaults.
const INSTEAD: &[(&str, &str)] =
    &[("scripts/tour", "cd \"$ROOT\" && scripts/tour --program \"$(command -v quipu)\" --records 2k")];

/// A block of a document.
struct Block {
    language: String,
    lines: Vec<String>,
    /// The line of the document that opens it.
    at: usize,
}

/// The fenced blocks of a document, each without the indentation that a list gives it.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(Block, usize)> = None;
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        open = match (line.trim_start().strip_prefix("```"), open) {
            (Some(language), None) => {
                Some((Block { language: language.to_owned(), lines: Vec::new(), at: number + 1 }, indent))
            }
            (Some(_), Some((block, _))) => {
                blocks.push(block);
                None
            }
            (None, Some((mut block, outer))) => {
                block.lines.push(line.get(outer..).unwrap_or_default().to_owned());
                Some((block, outer))
            }
            (None, None) => None,
        };
    }
    assert!(open.is_none(), "a block has no end");
    blocks
}

/// A line's command, and the exit code that its comment tells.
fn command(line: &str) -> (&str, i32) {
    let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
    let code = comment.trim().strip_prefix("exit code ").map_or(0, |rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse().expect("an exit code is a number")
    });
    (command.trim_end(), code)
}

/// The root of the repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a command in a shell, and returns its exit code and all that it printed.
fn run(command: &str, folder: &Path) -> (Option<i32>, String) {
    let program = Path::new(crate::PROGRAM).parent().unwrap();
    let mut path = program.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let script = format!("exec 2>&1\nset -e -o pipefail\n{command}");
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder)
        .env("PATH", path)
        .env("ROOT", root())
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a text is what a pattern shows, in which `…` stands for anything.
fn shows(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Runs the commands of a document, and notes which of the listed lines it has.
fn run_document(name: &str, text: &str, used: &mut Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let mut printed: Option<String> = None;
    for block in blocks(text) {
        let place = format!("{name}:{}", block.at);
        match block.language.as_str() {
            "sh" => {
                let mut all = String::new();
                for line in block.lines.iter().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                    let (line, code) = command(line);
                    let of_list =
                        |list: &'static [(&str, &str)]| list.iter().find(|(listed, _)| *listed == line);
                    if line.starts_with("cargo ") {
                        check_cargo(line, &place);
                    }
                    let line = match (of_list(NOT_RUN), of_list(INSTEAD)) {
                        (Some(_), _) => {
                            used.push(line.to_owned());
                            continue;
                        }
                        (None, Some((_, instead))) => {
                            used.push(line.to_owned());
                            instead
                        }
                        (None, None) => line,
                    };
                    let (ended, output) = run(line, folder.path());
                    assert_eq!(ended, Some(code), "{place}: {line}\n{output}");
                    all.push_str(&output);
                }
                printed = Some(all);
            }
            "text" => {
                let pattern = block.lines.join("\n") + "\n";
                let printed =
                    printed.take().unwrap_or_else(|| panic!("{place}: there is no output before it"));
                assert!(shows(&pattern, &printed), "{place} does not show what is printed:\n{printed}");
            }
            "rust" | "toml" => printed = None,
            other => panic!("{place}: nobody checks a block of {other:?}"),
        }
    }
}

/// Proves that a line for cargo names what there is: a package of the workspace, the folder of one, the
/// repository.
fn check_cargo(line: &str, place: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[1..] {
        ["test"] => {}
        ["install", "--path", folder] => {
            assert_eq!(package_in(folder).as_deref(), Some("quipu-cli"), "{place}: {line}")
        }
        ["install", "--git", repository, package] => {
            assert_eq!(
                (repository, package),
                (env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_NAME")),
                "{place}: {line}"
            );
        }
        _ => panic!("{place}: this test does not know how to check: {line}"),
    }
}

/// The name of the package in a folder of the repository.
fn package_in(folder: &str) -> Option<String> {
    let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).ok()?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \""))?;
    Some(name.trim_end_matches('"').to_owned())
}

#[test]
fn commands_of_the_documents_do_what_they_say() {
    let mut used = Vec::new();
    for (name, text) in DOCUMENTS {
        run_document(name, text, &mut used);
    }
    for (listed, _) in NOT_RUN.iter().chain(INSTEAD) {
        assert!(used.iter().any(|line| line == listed), "no document has the line {listed:?}");
    }
}

#[test]
fn a_line_that_runs_instead_has_the_words_of_the_printed_one() {
    for (printed, instead) in INSTEAD {
        let words = printed.split_whitespace();
        let mut others = instead.split_whitespace();
        for word in words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())) {
            assert!(others.any(|other| other == word), "{instead:?} has no {word:?}");
        }
    }
}

/// The dependencies that documents show are where the packages are.
#[test]
fn dependencies_are_of_this_repository() {
    let toml: Vec<Block> = DOCUMENTS
        .iter()
        .flat_map(|(_, text)| blocks(text))
        .filter(|block| block.language == "toml")
        .collect();
    let git = |package| format!("{package} = {{ git = \"{}\" }}", env!("CARGO_PKG_REPOSITORY"));
    let known = [("[dependencies]", git("quipu")), ("[dev-dependencies]", git("quipu-crashtest"))];
    for (section, dependency) in &known {
        assert!(toml.iter().any(|block| block.lines == [section, dependency.as_str()]), "{dependency}");
    }
    assert_eq!(toml.len(), known.len(), "a document shows another dependency");
}

/// The name by which a link finds a heading, as the usual readers make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
}

#[test]
fn links_lead_to_files_and_headings() {
    for (name, text) in DOCUMENTS {
        let document = root().join(name);
        let links: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(links.len() > 5, "{name}: {links:?}");
        for link in links.into_iter().filter(|link| !link.starts_with("https://")) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { document.clone() } else { document.with_file_name("").join(path) };
            assert!(target.exists(), "{name}: {link} leads nowhere");
            let is_there = || {
                let page = std::fs::read_to_string(&target).unwrap();
                page.lines().any(|line| line.starts_with('#') && anchor(line) == heading)
            };
            assert!(heading.is_empty() || is_there(), "{name}: {link} has no such heading");
        }
    }
}

#[test]
fn a_text_is_compared_up_to_its_ellipses() {
    for (pattern, text, same) in [
        ("a\n", "a\n", true),
        ("a\n", "a\nb\n", false),
        ("a\n…\nc\n", "a\nb\nb\nc\n", true),
        ("a\n…\nc\n", "a\nb\nd\n", false),
        ("…b…", "abc", true),
        ("a…b…c", "acb", false),
    ] {
        assert_eq!(shows(pattern, text), same, "{pattern:?} {text:?}");
    }
    assert_eq!(command("quipu get p k   # exit code 3: absent"), ("quipu get p k", 3));
    assert_eq!(command("quipu get p k"), ("quipu get p k", 0));
}
