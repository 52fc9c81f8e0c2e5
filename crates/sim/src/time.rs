//! Virtual time: picoseconds since the drives were switched on, enough for 213 days.

/// A moment or a span, in picoseconds.
pub type Ps = u64;

/// A nanosecond.
pub const NS: Ps = 1_000;
/// A microsecond.
pub const US: Ps = 1_000 * NS;
/// A millisecond.
pub const MS: Ps = 1_000 * US;
/// A second.
pub const S: Ps = 1_000 * MS;

/// A span given as a count of `unit`, rounded down to a picosecond. Negative, or not a number: none.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a cast to an integer saturates, and parameters of drives are far below 2^53"
)]
pub fn span(count: f64, unit: Ps) -> Ps {
    (count * unit as f64) as Ps
}

/// Seconds, for people.
#[allow(clippy::cast_precision_loss, reason = "for people")]
pub fn seconds(span: Ps) -> f64 {
    span as f64 / S as f64
}
