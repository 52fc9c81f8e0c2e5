//! Measured values for people: three significant digits, in the unit that reads best.

/// A value in a row's unit: `104 MB/s`, `7.41 ms`, `133 req/s`.
pub(crate) fn value(value: f64, unit: &str) -> String {
    match unit {
        "s" => seconds(value),
        "ns" => seconds(value / 1e9),
        "bytes/s" => scaled(
            value,
            &[(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "bytes/s")],
        ),
        _ => format!("{} {unit}", digits(value)).trim_end().to_owned(),
    }
}

/// A time in seconds, in the unit that reads best.
pub(crate) fn seconds(value: f64) -> String {
    if value == 0.0 {
        return "0 s".into();
    }
    scaled(value, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])
}

/// A time in ns as a tick: `10 ms`.
pub(crate) fn tick(ns: f64) -> String {
    let (by, unit) = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]
        .into_iter()
        .find(|(by, _)| ns >= *by * 0.999)
        .unwrap_or((1.0, "ns"));
    format!("{} {unit}", plain(ns / by))
}

/// A factor as text: `×2.61`.
pub(crate) fn times(ratio: f64) -> String {
    format!("×{}", digits(ratio))
}

/// A relative error with its sign: `+2 %`, `−28 %`, `±0 %`; small ones to a tenth.
pub(crate) fn percent(error: f64) -> String {
    let hundredths = error * 100.0;
    if !hundredths.is_finite() {
        return "?".into();
    }
    let text = if hundredths.abs() < 9.95 {
        format!("{:.1}", hundredths.abs())
    } else {
        digits(hundredths.abs().round())
    };
    let sign = if text == "0.0" {
        "±"
    } else if error < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{} %", text.trim_end_matches(".0"))
}

/// A number with three significant digits; more if it is greater.
pub(crate) fn digits(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "?".into()
    } else if size >= 1e15 || (size > 0.0 && size < 1e-4) {
        format!("{value:.2e}")
    } else if size >= 99.95 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.1 || size == 0.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

/// A tick's number, without trailing zeros.
pub(crate) fn plain(value: f64) -> String {
    let text = digits(value);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let size = value.abs();
    let (by, unit) = units
        .iter()
        .find(|(by, _)| size >= *by * 0.9995)
        .or(units.last())
        .copied()
        .unwrap_or((1.0, ""));
    format!("{} {unit}", digits(value / by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_well() {
        let all = [
            (97_433_116.0, "bytes/s", "97.4 MB/s"),
            (104_434_701.0, "bytes/s", "104 MB/s"),
            (3563.81, "ns", "3.56 µs"),
            (1193.609, "s", "1194 s"),
            (0.00741, "s", "7.41 ms"),
            (133.0, "req/s", "133 req/s"),
            (0.9999, "s", "1.00 s"),
            (0.0, "s", "0 s"),
            (12.0, "", "12.0"),
        ];
        for (number, unit, want) in all {
            assert_eq!(value(number, unit), want);
        }
    }

    #[test]
    fn ratios_and_errors() {
        assert_eq!([1.0, 2.608, 12.34, 215.0].map(times), ["×1.00", "×2.61", "×12.3", "×215"]);
        assert_eq!(
            [0.0193, -0.281, 0.0, -0.0001, 1.5, f64::NAN].map(percent),
            ["+1.9 %", "−28 %", "±0 %", "±0 %", "+150 %", "?"]
        );
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([1e3, 5e5, 1e7, 1e9, 2.0].map(tick), ["1 µs", "500 µs", "10 ms", "1 s", "2 ns"]);
        assert_eq!([1.0, 0.5, 1.25, 100.0, 0.0].map(plain), ["1", "0.5", "1.25", "100", "0"]);
    }

    #[test]
    fn odd_numbers_are_short_too() {
        for odd in [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN, 1e-300, 5e-324] {
            for text in [
                value(odd, "s"),
                value(odd, "bytes/s"),
                times(odd),
                percent(odd),
                tick(odd),
                plain(odd),
            ] {
                assert!(text.chars().count() <= 20, "{text}");
            }
        }
    }
}
