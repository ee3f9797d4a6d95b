//! Standard output, and progress on standard error.
//!
//! Nothing here panics when the reader of a pipe goes away: the command ends quietly instead.

use crate::failure::Failure;
use crate::program::wants_json;
use indicatif::{ProgressBar, ProgressStyle};
use quipu::Statement;
use quipu_bench::Progress;
use quipu_medium::{Answer, Survives};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use textwrap::WordSplitter;

/// Prints bytes as they are.
pub fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| Failure::output(&error))
}

/// Prints a line.
pub fn line(text: impl Display) -> Result<(), Failure> {
    raw(format!("{text}\n").as_bytes())
}

/// Prints a line on standard error, which a command does not fail over.
pub fn aside(text: impl Display) {
    let _ = match wants_json() {
        true => writeln!(io::stderr(), "{}", json!({ "note": text.to_string() })),
        false => writeln!(io::stderr(), "quipu: {text}"),
    };
}

/// Prints an object as one line of JSON.
pub fn json_line(object: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(object)
        .map_err(|error| Failure::Problem(format!("cannot write the result as JSON: {error}")))?;
    line(text)
}

/// Prints a result: as one line of JSON, or as text for people.
pub fn told(json: bool, object: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    if json { json_line(object) } else { line(text()) }
}

/// Prints a value: as it is into a file or pipe, with an end of line for a person at a terminal.
pub fn value(bytes: &[u8]) -> Result<(), Failure> {
    raw(bytes)?;
    if io::stdout().is_terminal() { raw(b"\n") } else { Ok(()) }
}

/// Columns that text for people has, at most.
const WIDTH: usize = 100;

/// Lines of text behind `before`, which further lines have as many spaces for. Words are not cut.
pub fn wrapped(before: &str, text: &str) -> String {
    if text.is_empty() {
        return before.to_owned();
    }
    let indent = " ".repeat(before.chars().count());
    let options = textwrap::Options::new(WIDTH).initial_indent(before).subsequent_indent(&indent);
    let options = options.break_words(false).word_splitter(WordSplitter::NoHyphenation);
    text.lines()
        .enumerate()
        .map(|(i, line)| {
            textwrap::fill(
                line,
                if i == 0 { options.clone() } else { options.clone().initial_indent(&indent) },
            )
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// The findings of a run: its counts, each violation, and `end` if there is any.
pub fn findings(counts: &str, violations: &[impl Display], end: &str) -> String {
    let told: String = violations.iter().map(|violation| format!("\n{violation}\n")).collect();
    let (before, end) = if violations.is_empty() { ("", "no violation") } else { ("\n", end) };
    format!("{counts}\n{told}{before}{end}")
}

/// A number of things, in words that fit the number.
pub fn counted(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// The word for an answer about a failure.
pub fn word(answer: &Answer) -> &'static str {
    match answer.survives {
        Survives::Yes => "yes",
        Survives::No => "no",
        Survives::Unknown => "unknown",
    }
}

/// A statement for programs.
pub fn statement_json(statement: &Statement) -> Value {
    json!({
        "process_crash": word(&statement.process_crash),
        "os_crash": word(&statement.os_crash),
        "power_loss": word(&statement.power_loss),
        "evidence": statement.evidence,
    })
}

/// A bar on standard error, drawn only if that is a terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar that is not drawn before it has something to show.
    pub fn new(stage: &str) -> Bar {
        Bar::styled(ProgressBar::new(0), stage, "{msg} [{bar:32}] {human_pos}/{human_len} ({eta} left)")
    }

    /// A bar for so many bytes of a file, or for a stream of which nobody knows how long it is.
    pub fn bytes(stage: &str, total: Option<u64>) -> Bar {
        let template = match total {
            Some(_) => "{msg} [{bar:32}] {binary_bytes}/{binary_total_bytes} ({eta} left)",
            None => "{msg} {spinner} {binary_bytes} ({binary_bytes_per_sec})",
        };
        Bar::styled(total.map_or_else(ProgressBar::new_spinner, ProgressBar::new), stage, template)
    }

    fn styled(bar: ProgressBar, stage: &str, template: &str) -> Bar {
        let style = ProgressStyle::with_template(template).expect("the templates are constant");
        Bar(bar.with_style(style.progress_chars("=> ")).with_message(stage.to_owned()))
    }

    /// A bar that is shown while `work` is done.
    pub fn during<T>(stage: &str, work: impl FnOnce(&Bar) -> T) -> T {
        let bar = Bar::new(stage);
        let done = work(&bar);
        bar.clear();
        done
    }

    /// Shows that `done` steps are done.
    pub fn reached(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Shows that `done` of `total` steps are done.
    pub fn at(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    /// The same of a store's own work.
    pub fn of_store(&self, done: usize, total: usize) {
        self.at(done as u64, total as u64);
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn begin(&self, stage: &str, total: u64) {
        self.0.reset();
        self.0.set_message(stage.to_owned());
        self.0.set_length(total);
    }

    fn advance(&self, steps: u64) {
        self.0.inc(steps);
    }

    fn end(&self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrapped("  name  ", "short"), "  name  short");
        let long = "word ".repeat(40);
        let lines = wrapped("  name  ", &long);
        assert_eq!(lines.lines().count(), 3);
        assert!(lines.lines().skip(1).all(|line| line.starts_with("        word")), "{lines}");
        assert!(lines.lines().all(|line| line.len() <= WIDTH), "{lines}");
        assert_eq!(lines.matches("word").count(), 40);
        assert_eq!(wrapped("> ", "one\ntwo"), "> one\n  two");
        let unbroken = "x".repeat(2 * WIDTH);
        assert_eq!(wrapped("", &unbroken), unbroken);
    }
}
