//! Sizes and counts as people write them.
//!
//! Sizes are binary, `4G` is 4 times 2 to the power of 30; counts are decimal, `5M` is five million. `GB`
//! means the one to some and the other to others, so it is refused.

use std::time::Duration;

/// Reads a number of bytes: `4096`, `64K`, `512MiB`.
///
/// # Errors
/// Examples of one.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let shift = match &*unit.to_ascii_lowercase() {
        "" | "b" => Some(0),
        "k" | "kib" => Some(10),
        "m" | "mib" => Some(20),
        "g" | "gib" => Some(30),
        "t" | "tib" => Some(40),
        _ => None,
    };
    let bytes = number.zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.ok_or("write bytes as a whole number with an optional unit, like 4096, 64K, 512MiB or 4G".into())
}

/// Reads a number of bytes in memory.
pub fn length(text: &str) -> Result<usize, String> {
    usize::try_from(bytes(text)?).map_err(|_| "it is more than this machine can address".to_owned())
}

/// Reads a count of at least one: `1000`, `200k`, `5M`, `1G`.
///
/// # Errors
/// An example of one.
pub fn count<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    const UNITS: [(&str, u64); 4] = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
    let (number, unit) = split(text);
    let unit = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    number
        .zip(unit)
        .and_then(|(number, (_, factor))| number.checked_mul(*factor))
        .filter(|count| *count > 0)
        .and_then(|count| N::try_from(count).ok())
        .ok_or_else(|| "write a count from 1, like 1000, 200k or 5M".to_owned())
}

/// Reads a length of time: `90s`, `1h`, `1h30m`, `0.5`; without a unit it is seconds.
///
/// # Errors
/// Examples of one.
pub fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 6] =
        [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0), ("w", 604_800.0)];
    let wrong = || "write a time such as 90s, 30m, 1h, 7d, 1h30m or 0.5".to_owned();
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, next) = behind.split_at(end);
        let is_bare = unit.is_empty() && number == text;
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let factor = factor.or(is_bare.then_some(1.0)).ok_or_else(wrong)?;
        seconds += number.parse::<f64>().map_err(|_| wrong())? * factor;
        rest = next;
    }
    if text.is_empty() { Err(wrong()) } else { Duration::try_from_secs_f64(seconds).map_err(|_| wrong()) }
}

/// Reads the bytes of a pool: a multiple of 4096.
pub fn pool(text: &str) -> Result<u64, String> {
    const UNIT: u64 = 4096;
    let size = bytes(text)?;
    let below = size / UNIT * UNIT;
    match size.is_multiple_of(UNIT) {
        true => Ok(size),
        false => {
            Err(format!("it must be a multiple of {UNIT}; the nearest are {below} and {}", below + UNIT))
        }
    }
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
            assert_eq!(count(text), Ok::<u64, _>(expected), "{text}");
        }
        for text in ["", "0", "0k", "M", "5MiB", "1e6", "-3", "99999999999999999999", "18446744073709551615k"]
        {
            assert!(count::<u64>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        let cases = [
            ("3600", 3600.0),
            ("0", 0.0),
            ("0.5", 0.5),
            ("250ms", 0.25),
            ("90s", 90.0),
            ("1.5h", 5400.0),
            ("1h30m", 5400.0),
            ("7d", 604_800.0),
            ("2w", 1_209_600.0),
        ];
        for (text, seconds) in cases {
            assert_eq!(time(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in [
            "",
            "h",
            "-1",
            "1 h",
            "1y",
            "1h30",
            "30 1h",
            ".",
            "1..5s",
            "1H",
            "1e99w",
            "inf",
            "99999999999999999999w",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_that_no_pool_has_are_answered_with_those_beside_them() {
        assert_eq!(pool("4M"), Ok(4 << 20));
        let error = pool("5000000").unwrap_err();
        assert!(error.contains("4997120 and 5001216"), "{error}");
        assert!(pool("5G5").is_err());
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
