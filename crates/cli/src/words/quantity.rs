//! Numbers and times with three digits, for people.

/// A number with three significant digits: `1234`, `56.7`, `0.089`.
pub(crate) fn three(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A time in ns, in the unit that reads best.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        n if n >= 1e9 => format!("{} s", three(n / 1e9)),
        n if n >= 1e6 => format!("{} ms", three(n / 1e6)),
        n if n >= 1e3 => format!("{} µs", three(n / 1e3)),
        n => format!("{n:.0} ns"),
    }
}
