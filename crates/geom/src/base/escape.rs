//! Text from disks and people, made harmless before it is part of a message.

/// Text for a line: control characters are spelt out, and so are those that [hide or
/// reorder](is_treacherous) what stands around them.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_treacherous(c) {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
    }
    out
}

/// A provider's name in a message; the only disk of a target, which has no name, is `disk`.
pub fn name(provider: &str) -> String {
    if provider.is_empty() { "disk".into() } else { plain(provider) }
}

/// True of characters without a width, and of those that turn the direction of a line.
pub fn is_treacherous(c: char) -> bool {
    let zero_width = matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}');
    zero_width || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_neither_clears_a_screen_nor_turns_a_line() {
        assert_eq!(plain("a\u{1b}[2J\n\u{202e}ü"), "a\\u{1b}[2J\\n\\u{202e}ü");
        assert_eq!([name(""), name("s1\n")], ["disk", "s1\\n"]);
    }
}
