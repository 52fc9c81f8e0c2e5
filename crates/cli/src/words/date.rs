//! Times of the calendar, in UTC.
//!
//! # Sources
//! Howard Hinnant, chrono-compatible low-level date algorithms (`civil_from_days`); RFC 3339.

use std::time::Duration;

/// The last second of year 9999.
const LAST: u64 = 253_402_300_799;

/// A day since 1970 as `2026-01-02`.
fn day(days: u64) -> String {
    // The calculation's year begins in March, so a leap day is its last day.
    let since = days + 719_468;
    let (era, day) = (since / 146_097, since.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + next)
}

/// A time in seconds since 1970 as `2026-01-02 03:04 UTC`; at most the end of year 9999.
pub(crate) fn minute(seconds: u64) -> String {
    let seconds = seconds.min(LAST);
    let minutes = seconds / 60;
    let (hour, minute) = ((minutes / 60).rem_euclid(24), minutes.rem_euclid(60));
    format!("{} {hour:02}:{minute:02} UTC", day(seconds / 86_400))
}

/// A time since 1970 as `2026-01-02T03:04:05.678Z`; at most the end of year 9999.
pub(crate) fn instant(since: Duration) -> String {
    let seconds = since.as_secs().min(LAST);
    let (hour, minute) = ((seconds / 3600).rem_euclid(24), (seconds / 60).rem_euclid(60));
    let (second, thousandth) = (seconds.rem_euclid(60), since.subsec_millis());
    format!("{}T{hour:02}:{minute:02}:{second:02}.{thousandth:03}Z", day(seconds / 86_400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, want) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_210_096, "2024-02-29 12:34 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
            (253_402_300_799, "9999-12-31 23:59 UTC"),
        ] {
            assert_eq!(minute(seconds), want);
        }
        assert!(minute(u64::MAX).starts_with("9999-12-31"));
        let at = Duration::from_millis(1_709_210_096_007);
        assert_eq!(instant(at), "2024-02-29T12:34:56.007Z");
    }
}
