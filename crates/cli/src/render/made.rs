//! The line of a page on its own making: time, version and command line.
//!
//! # Sources
//! reproducible-builds.org, SOURCE_DATE_EPOCH: seconds since 1970 in place of the clock.

use crate::words::{date, escape};
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
        let (at, command) = (date::minute(self.at), escape::xml(&escape::plain(&command)));
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
