//! Errors that are passed over.
//!
//! A tool that hides that it could not read says "sound" over what it has not seen. So each place of the
//! shipped code that drops an error is on a list with its reason. Bytes or text that are no such thing are an
//! answer and no error: a conversion that fails is not counted.

use crate::source::Source;

/// Forms that pass over an error. A form that begins a statement is sought at its beginning.
const FORMS: &[&str] = &[".ok()", "let _ =", "filter(Result::is_ok)", "filter_map(Result::ok)"];

/// Conversions of bytes and text, whose failure says what the bytes are not.
const CONVERSIONS: &[&str] =
    &["parse(", "parse::<", "try_from(", "try_into(", "from_prefix(", "from_bytes(", "from_utf8(", "from_str_radix(",
      "strip_prefix(", "write!(", "writeln!(", "compare_exchange("];

/// The lines of a file that pass over an error.
pub fn find(file: &Source) -> Vec<usize> {
    let lines = file.shipped.lines().enumerate();
    let passes = |line: &str| {
        FORMS.iter().any(|form| line.contains(form)) && !CONVERSIONS.iter().any(|name| line.contains(name))
    };
    lines.filter(|(_, line)| passes(line)).map(|(number, _)| number + 1).collect()
}

/// The faults of a file: more or fewer such lines than the list has for it.
pub fn check(file: &Source, allowed: &[(&str, usize, &str)]) -> Option<String> {
    let (found, path) = (find(file), &file.path);
    let expected = allowed.iter().find(|(allowed, ..)| allowed == path).map_or(0, |(_, count, _)| *count);
    (found.len() != expected).then(|| {
        format!("{path}: lines {found:?} pass over an error, and SWALLOWED has {expected}: return it, or say why not")
    })
}

#[test]
fn an_error_that_is_passed_over_is_found() {
    let file = |text: &str| Source::new("crates/store/src/a.rs", text, false);
    let text = "fn f() {\n  let _ = read();\n  let a = open().ok();\n  let b = c.parse::<u8>().ok();\n}\n#[cfg(test)]\nmod tests { fn g() { let _ = read(); } }\n";
    assert_eq!(find(&file(text)), [2, 3]);
    assert!(check(&file(text), &[]).is_some());
    assert!(check(&file(text), &[("crates/store/src/a.rs", 2, "a reason")]).is_none());
    assert!(check(&file("fn f() {}"), &[("crates/store/src/a.rs", 1, "a reason")]).is_some());
}
