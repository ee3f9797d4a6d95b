//! Axes: round steps, and numbers with the digits that are worth reading.

/// A step of 1, 2 or 5 times a power of ten that divides `most` into about five.
pub(super) fn step(most: f64) -> f64 {
    let rough = most.max(1e-9) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// A number with two or three digits that count.
pub(super) fn digits(value: f64) -> String {
    let decimals = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 0.1 || value == 0.0 => 2,
        value => (1.0 - value.log10().floor()).min(6.0) as usize,
    };
    format!("{value:.decimals$}")
}

/// A number of an axis with this step, with the digits that tell it from the next.
pub(super) fn mark(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$}")
}

/// A share in per cent, with a digit more where it is small.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// A power of ten of nanoseconds in the unit that people use for it.
pub(super) fn duration(exponent: i32) -> String {
    let (unit, base) = match exponent {
        ..3 => ("ns", 0),
        3..6 => ("µs", 3),
        6..9 => ("ms", 6),
        _ => ("s", 9),
    };
    format!("{} {unit}", 10f64.powi(exponent - base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!((step(5.0), step(5.1), step(23.0), step(51.0)), (1.0, 2.0, 5.0, 20.0));
        assert!((step(0.004) - 0.001).abs() < 1e-12);
    }

    #[test]
    fn numbers_have_the_digits_worth_reading() {
        let texts = [123.4, 12.34, 1.234, 0.1234, 0.01234, 0.000_123].map(digits);
        assert_eq!(texts, ["123", "12.3", "1.23", "0.12", "0.012", "0.00012"]);
    }

    #[test]
    fn marks_and_shares_have_as_few_as_will_do() {
        assert_eq!(
            (mark(6.0, 2.0), mark(0.4, 0.2), mark(0.015, 0.005)),
            ("6".into(), "0.4".into(), "0.015".into())
        );
        assert_eq!([0.5, 0.0996, 0.004].map(percent), ["50 %", "10 %", "0.4 %"]);
    }

    #[test]
    fn durations_have_units() {
        let texts = [1, 2, 3, 5, 6, 9].map(duration);
        assert_eq!(texts, ["10 ns", "100 ns", "1 µs", "100 µs", "1 ms", "1 s"]);
    }
}
