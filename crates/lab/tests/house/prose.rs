//! Rules of comments and pages: how wide a line is, how long a sentence and a head are, and how a sentence
//! begins.

use crate::source::Source;

/// Columns of a comment line, its indentation included; `rustfmt.toml` has the same width for code.
pub const COLUMNS: usize = 110;
/// Words of a sentence in documentation.
pub const WORDS: usize = 35;
/// Lines of a module's head, the `//!` block.
pub const HEAD: usize = 40;

/// A blank inside of a span of code, which is one word.
const BLANK: char = '\u{1}';

/// A part of a text between two ends of sentences, and the line (from 1) in which it begins.
#[derive(Debug, PartialEq)]
pub struct Sentence {
    pub line: usize,
    pub text: String,
}

/// Comment lines wider than [`COLUMNS`]. A line with an address, which cannot be broken, may be.
pub fn check_width(file: &Source) -> Vec<String> {
    let wide = |line: &str| {
        line.trim_start().starts_with("//") && line.chars().count() > COLUMNS && !line.contains("://")
    };
    let lines = file.text.lines().enumerate().filter(|(_, line)| wide(line));
    let fault = |(at, line): (usize, &str)| {
        format!("{}:{}: a comment of {} columns", file.path, at + 1, line.chars().count())
    };
    lines.map(fault).collect()
}

/// Heads longer than [`HEAD`] lines.
pub fn check_heads(file: &Source) -> Vec<String> {
    let blocks = blocks(&file.text, |line| line.starts_with("//!"));
    let long = blocks.into_iter().filter(|block| block.len() > HEAD);
    long.map(|block| format!("{}:{}: a head of {} lines", file.path, block[0].0, block.len())).collect()
}

/// Sentences of more than [`WORDS`] words in the documentation of a source file.
pub fn check_docs(file: &Source) -> Vec<String> {
    let is_doc =
        |line: &str| line.starts_with("//!") || (line.starts_with("///") && !line.starts_with("////"));
    let sentences = blocks(&file.text, is_doc).into_iter().flat_map(sentences);
    sentences.filter_map(|sentence| too_long(&file.path, &sentence)).collect()
}

/// Sentences of more than [`WORDS`] words in a page.
pub fn check_page(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line)).collect();
    sentences(lines).iter().filter_map(|sentence| too_long(path, sentence)).collect()
}

/// Sentences in any comment of a file that begin with a free relative: "What is parked ..." and "Who reads
/// ...".
pub fn check_subjects(file: &Source) -> Vec<String> {
    let begins = |sentence: &Sentence| {
        let text =
            sentence.text.trim_start_matches(|letter: char| !letter.is_alphanumeric() && letter != '`');
        let first = text.split_whitespace().next().unwrap_or_default();
        ["Who", "Whoever", "What", "Whatever"].contains(&first) && !text.ends_with('?')
    };
    let comments = blocks(&file.text, |line| line.starts_with("//"));
    let found = comments.into_iter().flat_map(sentences).filter(begins);
    found.map(|sentence| format!("{}:{}", file.path, sentence.line)).collect()
}

fn too_long(path: &str, sentence: &Sentence) -> Option<String> {
    let words: Vec<&str> = sentence.text.split_whitespace().filter(is_said).collect();
    let named = words.iter().filter(|word| word.contains('`')).count();
    // A sentence that is mostly names in code is a list of fields.
    (words.len() > WORDS && named * 4 < words.len()).then(|| {
        let opening = words[..6].join(" ").replace(BLANK, " ");
        format!("{path}:{}: a sentence of {} words: {opening} ...", sentence.line, words.len())
    })
}

fn is_said(word: &&str) -> bool {
    word.contains(|letter: char| letter.is_alphanumeric() || letter == '`')
}

/// Runs of neighbouring lines of one kind of comment, each line with its number and without its slashes.
fn blocks(text: &str, is_of: impl Fn(&str) -> bool) -> Vec<Vec<(usize, &str)>> {
    let mut blocks: Vec<Vec<(usize, &str)>> = Vec::new();
    let mut kind = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if !is_of(line) {
            kind = None;
            continue;
        }
        let bare = line.trim_start_matches('/').trim_start_matches('!');
        let own = &line[..line.len() - bare.len()];
        if kind != Some(own) {
            blocks.push(Vec::new());
            kind = Some(own);
        }
        blocks.last_mut().expect("one was pushed").push((at + 1, bare));
    }
    blocks
}

/// The sentences of Markdown. Code, tables and headings have none; items of a list and paragraphs end one.
fn sentences(lines: Vec<(usize, &str)>) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut open = Vec::new();
    let mut fenced = false;
    for (number, line) in lines {
        let bare = line.trim();
        let fence = bare.starts_with("```");
        fenced ^= fence;
        let apart = fence || fenced || bare.is_empty() || bare.starts_with(['|', '#', '<']);
        let item = bare.split_once(' ').filter(|(mark, _)| is_mark(mark));
        if apart || item.is_some() {
            close(&mut open, &mut found);
        }
        if !apart {
            open.push((number, item.map_or(bare, |(_, rest)| rest)));
        }
    }
    close(&mut open, &mut found);
    found
}

/// Whether `mark` begins an item of a list.
fn is_mark(mark: &str) -> bool {
    let number = mark.strip_suffix('.').unwrap_or_default();
    ["-", "*", ">"].contains(&mark)
        || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Cuts the open paragraph into its sentences.
fn close(open: &mut Vec<(usize, &str)>, found: &mut Vec<Sentence>) {
    let words: Vec<(usize, String)> = open
        .drain(..)
        .flat_map(|(number, line)| line.split(' ').map(move |word| (number, word.to_owned())))
        .filter(|(_, word)| !word.is_empty())
        .collect();
    let words = joined(words);
    let mut from = 0;
    for at in 0..words.len() {
        let next = words.get(at + 1).map(|(_, word)| word.as_str());
        if next.is_none_or(|next| ends(&words[at].1, next)) {
            let text: Vec<&str> = words[from..=at].iter().map(|(_, word)| word.as_str()).collect();
            found.push(Sentence { line: words[from].0, text: text.join(" ") });
            from = at + 1;
        }
    }
}

/// Makes one word of each span of code, whatever blanks it has.
fn joined(words: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mut whole: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (number, word) in words {
        let toggles = word.matches('`').count() % 2 == 1;
        match whole.last_mut() {
            Some((_, last)) if inside => {
                last.push(BLANK);
                last.push_str(&word);
            }
            _ => whole.push((number, word)),
        }
        inside ^= toggles;
    }
    whole
}

/// Whether a sentence ends between two words; behind an abbreviation goes on a small letter.
fn ends(word: &str, next: &str) -> bool {
    let bare = word.trim_end_matches([')', '"', '*', '_', '`']);
    bare.ends_with(['.', '!', '?']) && !next.starts_with(|letter: char| letter.is_lowercase())
}
