//! The line of a page on its own making: time, version and command line.
//!
//! # Sources
//! reproducible-builds.org, SOURCE_DATE_EPOCH: seconds since 1970 in place of the clock; Howard
//! Hinnant, chrono-compatible low-level date algorithms (`civil_from_days`).

use crate::words::escape;
use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest command line that a page shows, in characters: a directory of images makes a long one.
const LONGEST: usize = 300;

/// Time and command line that made a page.
pub(crate) struct Made {
    /// Time in seconds since 1970.
    at: u64,
    command: String,
}

impl Made {
    /// The making of a page by this run: the present time, or `SOURCE_DATE_EPOCH`.
    pub(crate) fn now() -> Made {
        let set = env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
        let clock =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let words = env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
        let command =
            std::iter::once("trueline".to_owned()).chain(words).collect::<Vec<_>>().join(" ");
        Made { at: set.unwrap_or_else(clock), command }
    }

    /// A line of HTML for the head of a page.
    pub(crate) fn html(&self) -> String {
        let mut command: String = self.command.chars().take(LONGEST).collect();
        if command.len() < self.command.len() {
            command.push('…');
        }
        let (at, command) = (date(self.at), escape::xml(&escape::plain(&command)));
        format!(
            "<p class=\"made\">{at} · trueline {} · <code>{command}</code></p>",
            env!("CARGO_PKG_VERSION")
        )
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A time in seconds since 1970 as `2026-01-02 03:04 UTC`; at most the end of year 9999.
fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds.min(253_402_300_799) / 86_400, seconds / 60);
    // The calculation's year begins in March, so a leap day is its last day.
    let since = days + 719_468;
    let (era, day) = (since / 146_097, since.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute) = ((minutes / 60).rem_euclid(24), minutes.rem_euclid(60));
    format!("{:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC", year + era * 400 + next)
}

#[cfg(test)]
impl Made {
    /// The making of a page at the end of February of a leap year.
    pub(crate) fn sample() -> Made {
        Made { at: 1_709_210_096, command: "trueline check 'a b.img' <x>".into() }
    }
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
            assert_eq!(date(seconds), want);
        }
        assert!(date(u64::MAX).starts_with("9999-12-31"));
    }

    #[test]
    fn a_command_line_is_text_and_no_longer_than_a_page_bears() {
        assert_eq!(
            [quoted("a.img"), quoted("a b"), quoted("it's"), quoted("")],
            ["a.img", "'a b'", r"'it'\''s'", "''"]
        );
        let line = Made::sample().html();
        assert!(
            line.contains("2024-02-29 12:34 UTC · trueline ")
                && line.contains("&#39;a b.img&#39; &lt;x&gt;</code>"),
            "{line}"
        );
        let long = Made { at: 0, command: "x".repeat(10_000) }.html();
        assert!(long.len() < 500 && long.contains("x…</code>"), "{long}");
    }
}
