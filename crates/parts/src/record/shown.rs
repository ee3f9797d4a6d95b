//! Keys in messages for people.

/// Bytes of a key that a message shows.
const SHOWN: usize = 60;

/// A key for people, in printable characters. One that is long, or that damage has made long, would fill the
/// screen, and show others' values.
pub fn shown_key(key: &[u8]) -> String {
    match key.get(..SHOWN) {
        Some(begin) if key.len() > SHOWN => format!("{}... ({} bytes)", begin.escape_ascii(), key.len()),
        _ => key.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_cut() {
        assert_eq!(shown_key(b"a\0b"), "a\\x00b");
        assert_eq!(shown_key(&[b'x'; 60]).len(), 60);
        assert!(shown_key(&[b'x'; 61]).ends_with("x... (61 bytes)"));
    }
}
