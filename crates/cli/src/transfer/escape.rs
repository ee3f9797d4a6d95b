//! Any bytes as text on one line.
//!
//! Valid UTF-8 stands as it is, except control characters and the backslash: text stays text, of any script,
//! and no byte can end a line, part two fields or command a terminal. The writer has exactly one way to write
//! each byte, so that equal records give equal lines. The reader accepts `\xHH` for any byte, and any byte
//! from 0x20 except DEL as itself, so that other programs may escape more, or less.

use super::error::FormError;
use std::io::Write;

/// Appends `bytes` to `out`, escaped.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        escape_text(chunk.valid().as_bytes(), out);
        chunk.invalid().iter().for_each(|byte| hex(*byte, out));
    }
}

/// The same for valid UTF-8. Of the characters beyond ASCII only U+0080 to U+009F are control characters: the
/// byte 0xC2, and one below 0xA0.
fn escape_text(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(plain) = text.iter().position(|byte| matches!(byte, 0..=0x1f | b'\\' | 0x7f | 0xc2)) {
        let (before, rest) = text.split_at(plain);
        out.extend_from_slice(before);
        let taken = match rest {
            [b'\\', ..] => named(b'\\', out),
            [b'\t', ..] => named(b't', out),
            [b'\n', ..] => named(b'n', out),
            [b'\r', ..] => named(b'r', out),
            [0xc2, second @ 0x80..=0x9f, ..] => {
                hex(0xc2, out);
                hex(*second, out);
                2
            }
            [0xc2, ..] => {
                out.push(0xc2);
                1
            }
            [control, ..] => {
                hex(*control, out);
                1
            }
            [] => 0,
        };
        text = rest.get(taken..).unwrap_or_default();
    }
    out.extend_from_slice(text);
}

fn named(letter: u8, out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[b'\\', letter]);
    1
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    write!(out, "\\x{byte:02x}").expect("a vector takes all bytes");
}

/// A fault of escaped text, with its place counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A control character that is not escaped.
    Control(usize, u8),
    /// An escape that is not known.
    Escape(usize),
}

/// Appends to `out` the bytes that `text` stands for.
///
/// # Errors
/// The first [`Misfit`]; `out` has the bytes before it.
pub fn unescape(text: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
    let mut rest = text;
    while let Some(special) = rest.iter().position(|byte| matches!(byte, 0..=0x1f | b'\\' | 0x7f)) {
        let (before, from) = rest.split_at(special);
        out.extend_from_slice(before);
        let at = text.len() - from.len();
        let (byte, taken) = match from {
            [b'\\', b'\\', ..] => (b'\\', 2),
            [b'\\', b't', ..] => (b'\t', 2),
            [b'\\', b'n', ..] => (b'\n', 2),
            [b'\\', b'r', ..] => (b'\r', 2),
            [b'\\', b'x', high, low, ..] => {
                let (high, low) = digit(*high).zip(digit(*low)).ok_or(Misfit::Escape(at))?;
                (high << 4 | low, 4)
            }
            [b'\\', ..] => return Err(Misfit::Escape(at)),
            [control, ..] => return Err(Misfit::Control(at, *control)),
            [] => break,
        };
        out.push(byte);
        rest = from.get(taken..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// The same for a part of a line, which begins `before` bytes behind the line's start.
pub(super) fn unescape_at(text: &[u8], line: u64, before: usize, out: &mut Vec<u8>) -> Result<(), FormError> {
    unescape(text, out).map_err(|misfit| match misfit {
        Misfit::Control(at, found) => FormError::Control { line, column: before + at + 1, found },
        Misfit::Escape(at) => FormError::Escape { line, column: before + at + 1 },
    })
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        escape(bytes, &mut out);
        String::from_utf8(out).expect("escaped bytes are valid UTF-8")
    }

    fn unescaped(text: &str) -> Result<Vec<u8>, Misfit> {
        let mut out = Vec::new();
        unescape(text.as_bytes(), &mut out).map(|()| out)
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
        assert_eq!(unescape(b"\xff bare", &mut out), Ok(()));
        assert_eq!(out, b"\xff bare");
    }

    #[test]
    fn mistakes_are_placed() {
        let cases = [
            ("a\\", Misfit::Escape(1)),
            ("\\q", Misfit::Escape(0)),
            ("ok\\x4", Misfit::Escape(2)),
            ("\\\\\\xg0", Misfit::Escape(2)),
            ("tab\there", Misfit::Control(3, b'\t')),
            ("del\x7f", Misfit::Control(3, 0x7f)),
        ];
        for (text, misfit) in cases {
            assert_eq!(unescaped(text), Err(misfit), "{text}");
        }
    }
}
