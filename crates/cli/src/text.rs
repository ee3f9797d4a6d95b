//! Keys and values between the command line and bytes.

use crate::failure::Failure;
pub use hex::encode;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The bytes that an argument stands for: its own, or those that its hexadecimal digits name.
pub fn bytes_of(argument: &OsStr, what: &str, hex: bool) -> Result<Vec<u8>, Failure> {
    let bytes = argument.as_bytes();
    if hex { decode(bytes, what) } else { Ok(bytes.to_vec()) }
}

/// The bytes of a key, of which there is at least one.
pub fn key(argument: &OsStr, hex: bool) -> Result<Vec<u8>, Failure> {
    let key = bytes_of(argument, "key", hex)?;
    if key.is_empty() {
        return Err(Failure::Usage("the key is empty; a key has at least one byte".to_owned()));
    }
    Ok(key)
}

/// The bytes that hexadecimal digits name. White space around the digits does not count, so that a line can
/// be piped in.
pub fn decode(digits: &[u8], what: &str) -> Result<Vec<u8>, Failure> {
    let digits = digits.trim_ascii();
    hex::decode(digits).map_err(|_| {
        let digits = digits.escape_ascii();
        Failure::Usage(format!(
            "the {what} {digits} is not hexadecimal; with --hex, write two digits for each byte"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_goes_both_ways() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(encode(&bytes).as_bytes(), "key").unwrap(), bytes);
        assert_eq!(decode(b"00fFA0\n", "key").unwrap(), [0, 255, 160]);
        assert_eq!(decode(b"", "value").unwrap(), b"");
        for wrong in ["0", "0g", "123", "0x12", "12 34"] {
            assert!(decode(wrong.as_bytes(), "key").is_err(), "{wrong}");
        }
    }
}
