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
        let (text, mut done) = (chunk.valid(), 0);
        for (at, found) in text.match_indices(|letter: char| letter == '\\' || letter.is_control()) {
            out.extend_from_slice(&text.as_bytes()[done..at]);
            match found {
                "\\" => out.extend_from_slice(b"\\\\"),
                "\t" => out.extend_from_slice(b"\\t"),
                "\n" => out.extend_from_slice(b"\\n"),
                "\r" => out.extend_from_slice(b"\\r"),
                control => digits(control.as_bytes(), out),
            }
            done = at + found.len();
        }
        out.extend_from_slice(&text.as_bytes()[done..]);
        digits(chunk.invalid(), out);
    }
}

fn digits(bytes: &[u8], out: &mut Vec<u8>) {
    bytes.iter().for_each(|byte| write!(out, "\\x{byte:02x}").expect("a vector takes all bytes"));
}

/// Appends to `out` the bytes that `text` stands for, which begins at this line of a file and this byte of
/// the line.
///
/// # Errors
/// The first mistake; `out` has the bytes before it.
pub fn unescape(text: &[u8], (line, start): (u64, usize), out: &mut Vec<u8>) -> Result<(), FormError> {
    let mut rest = text;
    while let Some(special) = rest.iter().position(|byte| matches!(byte, 0..=0x1f | b'\\' | 0x7f)) {
        let (before, from) = rest.split_at(special);
        out.extend_from_slice(before);
        let wrong = |what: String| {
            FormError::at(line, format!("has at byte {} {what}", start + text.len() - from.len()))
        };
        let known = "an unknown escape; known are \\\\, \\t, \\n, \\r and \\x with two digits";
        let unknown = || wrong(known.to_owned());
        let (byte, taken) = match from {
            [b'\\', b'\\', ..] => (b'\\', 2),
            [b'\\', b't', ..] => (b'\t', 2),
            [b'\\', b'n', ..] => (b'\n', 2),
            [b'\\', b'r', ..] => (b'\r', 2),
            [b'\\', b'x', high, low, ..] => {
                let (high, low) = digit(*high).zip(digit(*low)).ok_or_else(unknown)?;
                (high << 4 | low, 4)
            }
            [b'\\', ..] => return Err(unknown()),
            [control, ..] => {
                return Err(wrong(format!("a bare control character; write it as \\x{control:02x}")));
            }
            [] => break,
        };
        out.push(byte);
        rest = from.get(taken..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|value| value as u8)
}
