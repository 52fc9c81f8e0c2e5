//! Columns of a terminal that a text takes.

use unicode_width::UnicodeWidthStr;

/// Columns of `text`, which has no control characters: two for a wide character of Chinese,
/// Japanese or Korean, none for a combining one.
pub(crate) fn columns_of(text: &str) -> usize {
    // Most of what is printed is ASCII, and that is soon seen.
    if text.is_ascii() { text.len() } else { text.width() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_combining_ones_none() {
        for (text, columns) in [
            ("", 0),
            ("data", 4),
            ("データ", 6),
            ("e\u{301}", 1),
            ("é", 1),
            ("├─", 2),
            ("×", 1),
            ("…", 1),
        ] {
            assert_eq!(columns_of(text), columns, "{text}");
        }
    }
}
