//! Escapes: one way to write any bytes on a line, and mistakes with their places.

use quipu_cli::transfer::{escape, unescape};

fn escaped(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    escape(bytes, &mut out);
    String::from_utf8(out).expect("escaped bytes are valid UTF-8")
}

fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    unescape(text.as_bytes(), (7, 1), &mut out).map(|()| out).map_err(|error| error.to_string())
}

#[test]
fn text_stays_text() {
    for text in ["", "wool", "two words", "Ñandú, 羊毛 and 🦙", "\u{a0}£", "'\"#%"] {
        assert_eq!(escaped(text.as_bytes()), text);
        assert_eq!(unescaped(text), Ok(text.as_bytes().to_vec()));
    }
}

#[test]
fn what_would_break_a_line_is_escaped() {
    let cases: [(&[u8], &str); 8] = [
        (b"a\tb\nc\rd\\e", "a\\tb\\nc\\rd\\\\e"),
        (b"\0\x07\x1b[0m\x7f", "\\x00\\x07\\x1b[0m\\x7f"),
        ("\u{85}\u{9f}".as_bytes(), "\\xc2\\x85\\xc2\\x9f"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"\xc2", "\\xc2"),
        (b"\xe7\xbe!", "\\xe7\\xbe!"),
        (b"ok\xed\xa0\x80", "ok\\xed\\xa0\\x80"),
        (b"\xc2\xa3\xc2\x80", "£\\xc2\\x80"),
    ];
    for (bytes, text) in cases {
        assert_eq!(escaped(bytes), text);
        assert_eq!(unescaped(text), Ok(bytes.to_vec()));
    }
}

#[test]
fn every_pair_of_bytes_comes_back() {
    for pair in 0..=u16::MAX {
        let bytes = pair.to_le_bytes();
        let text = escaped(&bytes);
        assert!(!text.contains(char::is_control), "{text:?}");
        assert_eq!(unescaped(&text), Ok(bytes.to_vec()));
    }
}

#[test]
fn more_may_be_escaped_than_need_be() {
    assert_eq!(unescaped("\\x6c\\x6C"), Ok(b"ll".to_vec()));
    let mut out = Vec::new();
    assert!(unescape(b"\xff bare", (7, 1), &mut out).is_ok());
    assert_eq!(out, b"\xff bare");
}

#[test]
fn mistakes_are_placed() {
    let cases = [
        ("a\\", "2 an unknown escape; "),
        ("\\q", "1 an unknown escape; "),
        ("ok\\x4", "3 an unknown escape; "),
        ("\\\\\\xg0", "3 an unknown escape; "),
        ("tab\there", "4 a bare control character; write it as \\x09"),
        ("del\x7f", "4 a bare control character; write it as \\x7f"),
    ];
    for (text, mistake) in cases {
        let told = unescaped(text).unwrap_err();
        assert!(told.starts_with(&format!("line 7 has at byte {mistake}")), "{text}: {told}");
    }
}
