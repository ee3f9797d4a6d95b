//! Sizes and counts as people write them.
//!
//! Sizes are binary, `4G` is 4 times 2 to the power of 30; counts are decimal, `5M` is five million. `GB`
//! means the one to some and the other to others, so it is refused.

/// Reads a number of bytes: `4096`, `64K`, `512MiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 10] = [
        ("", 0),
        ("B", 0),
        ("K", 10),
        ("KiB", 10),
        ("M", 20),
        ("MiB", 20),
        ("G", 30),
        ("GiB", 30),
        ("T", 40),
        ("TiB", 40),
    ];
    let (number, unit) = split(text);
    let unit = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    number.zip(unit).and_then(|(number, (_, shift))| number.checked_mul(1 << shift)).ok_or_else(|| {
        "write bytes as a whole number with an optional unit, like 4096, 64K, 512MiB or 4G".to_owned()
    })
}

/// The same for lengths in memory.
pub fn length(text: &str) -> Result<usize, String> {
    usize::try_from(bytes(text)?).map_err(|_| "it is more than this machine can address".to_owned())
}

/// Reads a count of at least one: `1000`, `200k`, `5M`, `1G`.
pub fn count(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
    let (number, unit) = split(text);
    let unit = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    number
        .zip(unit)
        .and_then(|(number, (_, factor))| number.checked_mul(*factor))
        .filter(|count| *count > 0)
        .ok_or_else(|| "write a count from 1, like 1000, 200k or 5M".to_owned())
}

/// A number of bytes in the largest unit that divides it well enough to be read.
pub fn human(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) if bytes.trailing_zeros() >= *shift => format!("{} {unit}", bytes >> shift),
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} bytes"),
    }
}

/// The digits before the unit, without the underscores that may group them, and the unit.
fn split(text: &str) -> (Option<u64>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    (digits.replace('_', "").parse().ok(), unit.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_binary() {
        let cases = [
            ("4096", 4096),
            ("0", 0),
            ("17B", 17),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("512MiB", 512 << 20),
            ("512 MiB", 512 << 20),
            ("4G", 4 << 30),
            ("2tib", 2 << 40),
            ("1_048_576", 1 << 20),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "G", "-1", "4GB", "1.5G", "4 X", "0x10", "16777216T", "18446744073709551616"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_decimal_and_positive() {
        let cases =
            [("1", 1), ("200k", 200_000), ("200K", 200_000), ("5M", 5_000_000), ("2g", 2_000_000_000)];
        for (text, expected) in cases {
            assert_eq!(count(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "0k", "M", "5MiB", "1e6", "-3", "99999999999999999999", "18446744073709551615k"]
        {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_as_they_are_written() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (64 << 10, "64 KiB"),
            ((4 << 30) + (1 << 29), "4.5 GiB"),
            (1 << 40, "1 TiB"),
        ];
        for (size, expected) in cases {
            assert_eq!(human(size), expected);
        }
    }
}
