//! Pages whose tables are made from the code.

use std::path::{Path, PathBuf};

/// The command that writes the tables.
pub const RENEW: &str = "QUIPU_BLESS=1 cargo test -p quipu-lab --test it made_from_the_code";

/// The text of a page, by its path from the root of the repository.
pub fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).expect("the page is part of the repository")
}

/// Holds a page against the text that it should have. With `QUIPU_BLESS` set, the page gets that text.
#[track_caller]
pub fn hold(path: &str, should: &str) {
    let is = text(path);
    if is == should {
        return;
    }
    if std::env::var_os("QUIPU_BLESS").is_some() {
        std::fs::write(file(path), should).expect("the page can be written");
        return;
    }
    let differs = is.lines().zip(should.lines()).position(|(is, should)| is != should);
    let at = differs.unwrap_or_else(|| is.lines().count().min(should.lines().count()));
    let [is, should] = [&is, should].map(|text| text.lines().nth(at).unwrap_or("(the end)"));
    panic!(
        "{path}:{} is not as the code has it:\n  {is}\nshould be\n  {should}\nThis writes it: {RENEW}",
        at + 1
    );
}

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
