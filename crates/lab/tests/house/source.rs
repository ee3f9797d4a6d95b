//! Reading Rust source without a parser.
//!
//! A check that greps raw text trips over comments and strings that only talk about forbidden code. So every
//! check works on [`Source::code`]: the text with comments and literals blanked, byte for byte, so that
//! offsets and line numbers still agree with the original. [`Source::shipped`] blanks `#[cfg(test)]` items as
//! well.

/// One source file.
pub struct Source {
    /// Path from the root of the repository, with forward slashes.
    pub path: String,
    /// The file as it stands.
    pub text: String,
    /// The same bytes, comments and the inside of literals replaced by spaces.
    pub code: String,
    /// `code` with the items marked `#[cfg(test)]` replaced by spaces, or nothing at all in a test file.
    pub shipped: String,
}

impl Source {
    /// Reads `text`; `test_only` says that the whole file is compiled for tests alone.
    pub fn new(path: &str, text: &str, test_only: bool) -> Source {
        let code = blank(text);
        let shipped = if test_only { String::new() } else { without_test_items(&code) };
        Source { path: path.to_owned(), text: text.to_owned(), code, shipped }
    }

    /// The number, from 1, of the line that holds byte `at`.
    pub fn line(&self, at: usize) -> usize {
        line_of(&self.text, at)
    }
}

/// The number, from 1, of the line of `text` that holds byte `at`.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Whether `byte` can be part of an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where `word` stands in `text` as a word of its own.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = *at == 0 || !is_word(bytes[*at - 1]);
        before && bytes.get(*at + word.len()).is_none_or(|byte| !is_word(*byte))
    })
}

/// Replaces comments and the inside of literals by spaces and keeps every line break.
pub fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (from, to, next) = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = find(bytes, at, b"\n").unwrap_or(bytes.len());
                (at, end, end)
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = end_of_block_comment(bytes, at);
                (at, end, end)
            }
            b'"' => {
                let end = end_of_quoted(bytes, at, b'"');
                (at + 1, end, end + 1)
            }
            b'\'' if is_character(bytes, at) => {
                let end = end_of_quoted(bytes, at, b'\'');
                (at + 1, end, end + 1)
            }
            b'r' => match raw_string(bytes, at) {
                Some((from, to, next)) => (from, to, next),
                None => (at, at, at + 1),
            },
            _ => (at, at, at + 1),
        };
        let to = to.min(bytes.len());
        for byte in &mut out[from.min(to)..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = next;
    }
    String::from_utf8(out).expect("only whole comments and literals are blanked")
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    (from..bytes.len()).find(|at| bytes[*at..].starts_with(what))
}

fn end_of_block_comment(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The offset of the closing quote.
fn end_of_quoted(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// Tells a character literal from a lifetime: a literal closes behind one character.
fn is_character(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at + 1) {
        Some(b'\\') => true,
        Some(first) => {
            let width = match first {
                0..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            bytes.get(at + 1 + width) == Some(&b'\'')
        }
        None => false,
    }
}

/// Inside and end of a raw string that starts at the `r`, if one does.
fn raw_string(bytes: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    let prefixed = at > 0 && matches!(bytes[at - 1], b'b' | b'c') && (at < 2 || !is_word(bytes[at - 2]));
    if at > 0 && is_word(bytes[at - 1]) && !prefixed {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(at + 1 + hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let from = at + 2 + hashes;
    let to = find(bytes, from, &close).unwrap_or(bytes.len());
    Some((from, to, to + close.len()))
}

/// Blanks every item under an attribute such as `#[cfg(test)]` or `#[cfg(all(test, unix))]`.
fn without_test_items(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    for (start, _) in code.match_indices("#[cfg(") {
        let attribute = end_of_group(code.as_bytes(), start + 1);
        let condition = &code[start..attribute];
        // Under `any(test, ..)` or `not(test)` the item can be part of the program.
        if !(condition == "#[cfg(test)]" || condition.starts_with("#[cfg(all(test,")) {
            continue;
        }
        let end = end_of_item(code, attribute);
        for byte in &mut out[start..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(out).expect("whole items are blanked")
}

/// The offset behind the bracket that closes the one at `open`.
pub fn end_of_group(code: &[u8], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The offset behind the item that begins at `at`: its semicolon or the brace that closes its body.
fn end_of_item(code: &str, mut at: usize) -> usize {
    let bytes = code.as_bytes();
    let rest = code[at..].trim_start();
    let is_use =
        rest.starts_with("use ") || rest.starts_with("pub use ") || rest.starts_with("pub(crate) use ");
    while at < bytes.len() {
        match bytes[at] {
            b';' => return at + 1,
            b'{' if !is_use => return end_of_group(bytes, at),
            b'(' | b'[' | b'{' => at = end_of_group(bytes, at),
            _ => at += 1,
        }
    }
    at
}

/// Every path that `code` names, with its offset; `use` trees are expanded, so `use std::{time, thread as t}`
/// gives `std::time` and `std::thread`.
pub fn paths(code: &str) -> Vec<(usize, String)> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !(bytes[at].is_ascii_alphabetic() || bytes[at] == b'_') {
            at += if is_word(bytes[at]) {
                bytes[at..].iter().take_while(|byte| is_word(**byte)).count()
            } else {
                1
            };
            continue;
        }
        let start = at;
        let mut path = word_at(code, at).to_owned();
        at += path.len();
        if path == "use" && !code[at..].trim_start().starts_with('<') {
            let end = code[at..].find(';').map_or(code.len(), |offset| at + offset);
            for leaf in expand(&code[at..end]) {
                found.push((start, leaf));
            }
            at = end;
            continue;
        }
        while code[at..].starts_with("::") && !word_at(code, at + 2).is_empty() {
            let segment = word_at(code, at + 2);
            path.push_str("::");
            path.push_str(segment);
            at += 2 + segment.len();
        }
        found.push((start, path));
    }
    found
}

/// The identifier that begins at `at`; empty if none does.
pub fn word_at(code: &str, at: usize) -> &str {
    let len = code.as_bytes()[at..].iter().take_while(|byte| is_word(**byte)).count();
    &code[at..at + len]
}

fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim().trim_start_matches("::");
    let Some(open) = tree.find('{') else {
        let leaf = tree.split(" as ").next().unwrap_or(tree).trim();
        return vec![leaf.trim_end_matches("::self").to_owned()];
    };
    let stem = tree[..open].trim();
    let inside = &tree[open + 1..end_of_group(tree.as_bytes(), open).saturating_sub(1).max(open + 1)];
    let mut leaves = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, letter) in inside.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                leaves.push(&inside[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    leaves.push(&inside[from..]);
    let whole: Vec<&str> = leaves.into_iter().filter(|leaf| !leaf.trim().is_empty()).collect();
    whole.iter().flat_map(|leaf| expand(&format!("{stem}{}", leaf.trim()))).collect()
}
