//! Fields of comma-separated values, as RFC 4180 has them.

/// A field, in quotation marks if it needs them. A control character becomes a space, so that a
/// record stays one line.
pub(crate) fn quoted(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_field_is_a_field() {
        assert_eq!(
            ["a", "a,b", "say \"a\"", "a\nb"].map(quoted),
            ["a", "\"a,b\"", "\"say \"\"a\"\"\"", "a b"]
        );
    }
}
