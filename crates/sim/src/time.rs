//! Virtual time: picoseconds since the drives were switched on, enough for 213 days.

/// A point in time or a duration, in picoseconds.
pub type Ps = u64;

/// One nanosecond in picoseconds.
pub const NS: Ps = 1_000;
/// One microsecond in picoseconds.
pub const US: Ps = 1_000 * NS;
/// One millisecond in picoseconds.
pub const MS: Ps = 1_000 * US;
/// One second in picoseconds.
pub const S: Ps = 1_000 * MS;

/// A duration of `count` units, rounded down to a picosecond; 0 if negative or not a number.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a cast to an integer saturates, and parameters of drives are far below 2^53"
)]
pub fn span(count: f64, unit: Ps) -> Ps {
    (count * unit as f64) as Ps
}

/// A duration in seconds, for people.
#[allow(clippy::cast_precision_loss, reason = "for people")]
pub fn seconds(span: Ps) -> f64 {
    span as f64 / S as f64
}
