//! Each check is shown a house that breaks its rule, and one that looks as if it did.

use std::collections::BTreeSet;

use crate::source::{self, Source};
use crate::{imports, prose, rules, tree};

fn shipped(path: &str, text: &str) -> Source {
    Source::new(path, text, false)
}

fn name(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

#[test]
fn blanking_keeps_code_and_offsets() {
    let text = concat!(
        "let a = \"gone1 // gone2\"; // gone3\n",
        "let b = 'x'; /* gone4 /* gone5 */ gone6 */ let c: &'static str = r#\"gone7\"gone8\"#;\n",
        "'d: loop {}",
    );
    let code = source::blank(text);
    assert_eq!((code.len(), code.lines().count()), (text.len(), text.lines().count()));
    assert!(!code.contains("gone") && !code.contains('x'), "comments and literals should be blank: {code}");
    for kept in ["let a", "let b", "let c: &'static str = r#", "'d: loop {}"] {
        assert_eq!(code.find(kept), text.find(kept), "`{kept}` should stay where it was: {code}");
    }
    assert_eq!(source::blank(r#"f('"', '\'', b'"', "\"", 'é') + unsafe"#).matches("unsafe").count(), 1);
}

#[test]
fn test_items_are_not_shipped() {
    let file = shipped(
        "a.rs",
        "#[cfg(test)]\nuse std::{thread, time};\n#[cfg(test)]\nmod tests { fn f() { rand::x() } }\nfn g() {}",
    );
    assert_eq!(file.shipped.trim(), "fn g() {}");
    assert!(shipped("a.rs", "#[cfg(not(test))]\nfn g() {}").shipped.contains("fn g"));
    assert!(shipped("a.rs", "#[cfg(any(test, miri))]\nfn g() {}").shipped.contains("fn g"));
    assert!(Source::new("a.rs", "fn g() {}", true).shipped.is_empty());
}

#[test]
fn use_trees_are_expanded() {
    let found =
        source::paths("use std::{sync::{Arc, Mutex as M}, thread::{self}};\nfn f() { a::b::<u8>(c) }");
    let found: Vec<&str> = found.iter().map(|(_, path)| path.as_str()).collect();
    for path in ["std::sync::Arc", "std::sync::Mutex", "std::thread", "a::b", "c"] {
        assert!(found.contains(&path), "{path} is missing from {found:?}");
    }
}

#[test]
fn an_upward_dependency_is_found() {
    let manifest = "[package]\nname = \"quipu-parts\"\n[dependencies]\nquipu-medium.workspace = true\nquipu = { path = \"../store\" }\n";
    assert_eq!(imports::check_manifest("parts", manifest).len(), 1);
    let manifest =
        "[package]\nname = \"quipu-parts\"\n[target.'cfg(unix)'.dependencies.quipu-lab]\nworkspace = true\n";
    assert_eq!(imports::check_manifest("parts", manifest).len(), 1);
    let manifest = "[package]\nname = \"quipu-parts\"\n[dependencies]\nquipu-medium.workspace = true\n";
    assert!(imports::check_manifest("parts", manifest).is_empty());
    assert_eq!(imports::check_manifest("cellar", "[package]\nname = \"quipu-cellar\"\n").len(), 1);
}

#[test]
fn an_upward_room_is_found() {
    let space = name(&["space", "pool"]);
    let check = |text: &str| imports::check_floors(&shipped("crates/parts/src/space/pool.rs", text), &space);
    assert_eq!(check("use crate::heap::Segment;").len(), 1);
    assert_eq!(check("fn f() { crate::epoch::pin() }").len(), 1, "a neighbour on the same floor");
    assert_eq!(check("use super::super::index::Hash;").len(), 1);
    assert!(check("use crate::{sync::SpinLock, space::Zone};\nuse super::zone;\n// crate::heap").is_empty());
    assert!(check("#[cfg(test)]\nmod tests { use crate::heap::Segment; }").is_empty());
    let cellar = imports::check_floors(&shipped("crates/parts/src/cellar.rs", ""), &name(&["cellar"]));
    assert_eq!(cellar.len(), 1, "a room without a floor");
}

#[test]
fn a_wrong_architecture_page_is_found() {
    let rooms: BTreeSet<String> = ["parts/sync", "parts/space"].map(str::to_owned).into();
    let block = imports::expected_block(&rooms).join("\n");
    assert!(block.contains("parts -> medium") && block.contains("parts floor 2: space"));
    assert!(imports::compare_block(&format!("# Page\n```imports\n{block}\n```\n"), &rooms).is_empty());
    assert!(
        !imports::compare_block(&format!("```imports\n{block}\nmedium -> store\n```"), &rooms).is_empty()
    );
    assert!(!imports::compare_block("```imports\nparts -> medium\n```", &rooms).is_empty());
    assert!(!imports::compare_block("no block", &rooms).is_empty());
}

#[test]
fn a_dead_file_is_found() {
    let texts = [
        (
            "c/src/lib.rs",
            "mod a;\n#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;\n// mod dead;\nmod lost;",
        ),
        ("c/src/a/mod.rs", "pub(crate) mod deep;"),
        ("c/src/a/deep.rs", "mod below;"),
        ("c/src/a/deep/below.rs", ""),
        ("c/src/b_tests.rs", ""),
        ("c/src/dead.rs", ""),
    ];
    let files: Vec<String> = texts.iter().map(|(file, _)| (*file).to_owned()).collect();
    let read = |file: &str| texts.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
    let root = tree::Module { file: "c/src/lib.rs".to_owned(), name: Vec::new(), test_only: false };
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    tree::visit(root, true, &files, &read, &mut found, &mut lost);
    let alive: Vec<&str> = found.iter().map(|module| module.file.as_str()).collect();
    assert_eq!(lost, ["c/src/lib.rs: `mod lost;` names no file"]);
    for (file, _) in texts {
        assert_eq!(alive.contains(&file), file != "c/src/dead.rs", "{file}");
    }
    for module in &found {
        assert_eq!(module.test_only, module.file == "c/src/b_tests.rs", "{}", module.file);
        assert_eq!(module.name.last().is_some_and(|last| last == "below"), module.file.ends_with("below.rs"));
    }
}

#[test]
fn a_long_file_is_found() {
    let lines = |count: usize| shipped("a.rs", &"fn f() {}\n".repeat(count));
    assert!(rules::check_length(&lines(rules::LONG), &[]).is_none());
    assert!(rules::check_length(&lines(rules::LONG + 1), &[]).is_some());
    assert!(rules::check_length(&lines(rules::LONG + 1), &[("a.rs", "a table")]).is_none());
    assert!(rules::check_length(&lines(rules::TOO_LONG + 1), &[("a.rs", "a table")]).is_some());
    assert!(rules::check_length(&lines(1), &[("a.rs", "a table")]).is_some(), "a needless exception");
}

#[test]
fn machine_access_is_found() {
    let text = "use std::arch::x86_64::_mm_sfence;\nfn f() { rustix::mm::munmap(a, b) }";
    assert_eq!(rules::check_machine(&shipped("crates/store/src/lib.rs", text), &[]).len(), 2);
    assert!(rules::check_machine(&shipped("crates/medium/src/lib.rs", text), &[]).is_empty());
    let excused = [("crates/store/src/lib.rs", "a reason")];
    assert!(rules::check_machine(&shipped("crates/store/src/lib.rs", text), &excused).is_empty());
    assert_eq!(rules::check_machine(&shipped("crates/store/src/lib.rs", ""), &excused).len(), 1, "needless");
    let words = shipped("crates/store/src/lib.rs", "// std::arch::asm!\nlet libc = 1;");
    assert!(rules::check_machine(&words, &[]).is_empty());
}

#[test]
fn a_started_thread_is_found() {
    let text =
        "use std::thread;\nfn f() { thread::spawn(g); std::thread::scope(|s| s); std::thread::yield_now() }";
    assert_eq!(rules::check_threads(&shipped("crates/store/src/lib.rs", text)).len(), 2);
    assert!(rules::check_threads(&shipped("crates/store/src/background/mod.rs", text)).is_empty());
    assert!(rules::check_threads(&shipped("crates/lab/src/lib.rs", text)).is_empty());
}

#[test]
fn a_bypassed_seam_is_found() {
    let check =
        |text: &str| rules::check_seams(&shipped("crates/parts/src/sync.rs", text), rules::SEAM_EXCEPTIONS);
    let waits = "fn wait() { std::thread::yield_now() }\nfn unwinds() -> bool { std::thread::panicking() }\n";
    assert!(check(waits).is_empty());
    assert_eq!(check("").len(), 2, "needless exceptions");
    for bad in [
        "use std::time::Instant;",
        "use std::sync::{Arc, Mutex};",
        "use std::sync;\nfn f(m: sync::RwLock<u8>) {}",
        "fn f() -> u8 { rand::random() }",
        "use std::sync::mpsc::channel;",
        "fn f() { std::thread::sleep(d) }",
    ] {
        assert_eq!(check(&format!("{waits}{bad}")).len(), 1, "{bad}");
    }
    for fine in [
        "use std::time::Duration;",
        "use std::sync::atomic::AtomicU64;",
        "#[cfg(test)]\nmod tests { use std::sync::Mutex; }",
        "/// As std::sync::Mutex.\nfn f(thread: u8, rand: u8) {}",
    ] {
        assert!(check(&format!("{waits}{fine}")).is_empty(), "{fine}");
    }
    assert!(rules::check_seams(&shipped("crates/lab/src/lib.rs", "use std::time::Instant;"), &[]).is_empty());
}

#[test]
fn groundless_unsafe_code_is_found() {
    let check = |path: &str, text: &str| rules::check_unsafe(&shipped(path, text), rules::UNSAFE_ROOMS).len();
    let (inside, outside) = ("crates/medium/src/lib.rs", "crates/store/src/lib.rs");
    assert_eq!(check(inside, "fn f() { unsafe { g() } }"), 1);
    assert_eq!(check(inside, "fn f() {\n    // SAFETY: g wants nothing.\n    unsafe { g() }\n}"), 0);
    assert_eq!(check(outside, "fn f() {\n    // SAFETY: g wants nothing.\n    unsafe { g() }\n}"), 1);
    assert_eq!(check(inside, "/// Does g.\npub unsafe fn g() {}"), 1);
    assert_eq!(
        check(inside, "/// Does g.\n///\n/// # Safety\n/// Never twice.\n#[inline]\npub unsafe fn g() {}"),
        0
    );
    let far = "// SAFETY: too far away.\n\n\n\n\n\n\n\nunsafe impl Send for A {}";
    assert_eq!(check(inside, far), 1);
    assert_eq!(check(outside, "// unsafe\n#[unsafe(no_mangle)]\nfn f(g: unsafe fn(u8)) { \"unsafe\"; }"), 0);
    let test = "#[cfg(test)]\nmod tests {\n    // SAFETY: g wants nothing.\n    fn f() { unsafe { g() } }\n}";
    assert_eq!(check(outside, test), 0, "tests may be unsafe anywhere, with grounds");
    let allocator = "// SAFETY: passed on.\nunsafe impl A for B {\n\n\n\n\n\n\n\n    unsafe fn f(&self) {}\n}\nunsafe fn g() {}";
    assert_eq!(check(inside, allocator), 1, "only the function outside the block");
    let sources =
        [shipped("crates/medium/src/lib.rs", "unsafe impl Send for A {}"), shipped("b.rs", "// unsafe")];
    assert_eq!(rules::needless_rooms(&sources, &[("crates/medium/", ""), ("b.rs", "")]).len(), 1);
}

#[test]
fn unfinished_work_is_found() {
    let marker = ["TO", "DO"].concat();
    let check = |text: &str| rules::check_unfinished(&shipped("a.rs", text)).len();
    assert_eq!(check(&format!("// {marker}: later")), 1);
    assert_eq!(check("fn f() { todo!() }\nfn g() { unimplemented!(\"x\") }\nfn h() { dbg!(1); }"), 3);
    assert_eq!(check(&format!("let todo = 1; // {marker}S and todo!() in words\n\"todo!()\"")), 0);
}

#[test]
fn a_local_path_is_found() {
    let [work, root] = [["/wo", "rk/"], ["/ro", "ot/"]].map(|halves| halves.concat());
    assert_eq!(rules::check_local_paths("a.md", &format!("see {work}main\nand `{root}.cargo`")).len(), 2);
    assert!(rules::check_local_paths("a.md", &format!("frame{work} ..{work} /tmp/demo.pool")).is_empty());
}

#[test]
fn a_silently_ignored_test_is_found() {
    let check = |text: &str| rules::check_ignored(&shipped("a.rs", text)).len();
    assert_eq!(check("#[test]\n#[ignore]\nfn f() {}"), 1);
    assert_eq!(check("#[ignore = \"\"]\nfn f() {}"), 1);
    assert_eq!(check("#[cfg_attr(miri, ignore)]\nfn f() {}"), 1);
    assert_eq!(check("#[ignore = \"takes an hour\"]\nfn f() {}"), 0);
    assert_eq!(check("#[cfg_attr(miri, ignore = \"maps files\")]\nfn f() { g(a, ignore); }"), 0);
}

#[test]
fn a_wide_comment_is_found() {
    let check = |text: &str| prose::check_width(&shipped("a.rs", text)).len();
    let words = |columns: usize| "x".repeat(columns);
    assert_eq!(check(&format!("    /// {}\n//! {}", words(103), words(107))), 2);
    assert_eq!(check(&format!("    /// {}\n//! {}", words(102), words(106))), 0);
    assert_eq!(check(&format!("// https://example.org/{}\nlet a = \"{}\";", words(100), words(120))), 0);
}

#[test]
fn a_long_head_is_found() {
    let head = |lines: usize| shipped("a.rs", &format!("{}\nfn f() {{}}", "//! x\n".repeat(lines)));
    assert_eq!(prose::check_heads(&head(prose::HEAD + 1)).len(), 1);
    assert!(prose::check_heads(&head(prose::HEAD)).is_empty());
    let apart = format!("{}\n{}", "//! x\n".repeat(30), "/// x\n".repeat(50));
    assert!(prose::check_heads(&shipped("a.rs", &apart)).is_empty());
}

#[test]
fn a_long_sentence_is_found() {
    let check = |text: &str| prose::check_docs(&shipped("a.rs", text)).len();
    let words = |count: usize| format!("A{}", " word".repeat(count - 1));
    let (short, long) = (words(35), words(36));
    assert_eq!(check(&format!("/// {long}.")), 1);
    assert_eq!(check(&format!("//! {}\n//! {}.", words(20), words(16))), 1, "over two lines");
    assert_eq!(check(&format!("/// {short}. {short}! {short}?\n///\n/// {short}\n/// - {short}")), 0);
    assert_eq!(check(&format!("// {long}.\n/// | {long} |\n/// ```text\n/// {long}\n/// ```")), 0);
    assert_eq!(check(&format!("/// {} see sec. of `{long}` too.", words(20))), 0, "code is one word");
    let fields = vec!["`a`, word"; 30].join(", ");
    assert_eq!(check(&format!("/// {fields}.")), 0, "a list of fields");
    assert_eq!(prose::check_page("a.md", &format!("# {long}\n\n1. {long}.\n")).len(), 1);
}

#[test]
fn a_free_relative_is_counted() {
    let count = |text: &str| prose::check_subjects(&shipped("a.rs", text)).len();
    assert_eq!(
        count("// What is parked waits. Who reads it\n// waits too.\n/// **Whoever writes** wins."),
        3
    );
    assert_eq!(
        count("// A reader that finds it waits. Who is it?\n// - Whatsoever\nlet a = \"// What is\";"),
        0
    );
    assert_eq!(count("/// Says what\n/// What"), 0, "in the middle of a sentence");
}
