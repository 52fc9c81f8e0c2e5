//! Strings from disks and people, escaped where they are written.

use std::borrow::Cow;
use trueline_geom::base::escape::is_treacherous;
pub(crate) use trueline_geom::base::escape::plain;

/// Longest message, in characters.
const MESSAGE: usize = 4000;

/// A message without its middle, if it is too long to be read: the attempt comes first, the advice
/// last.
pub(crate) fn short(message: &str) -> Cow<'_, str> {
    let at = |left: usize| message.char_indices().nth(left).map(|(at, _)| at);
    let (Some(_), Some(front)) = (at(MESSAGE), at(MESSAGE / 2)) else { return message.into() };
    let back = message.char_indices().nth_back(MESSAGE / 2).map_or(front, |(at, _)| at);
    format!("{} ... {}", &message[..front], &message[back..]).into()
}

/// Text for XML and HTML, as content or between double quotes; characters that neither can hold are
/// spelt out.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            c if c.is_control() || is_treacherous(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.extend(c.escape_default())
            }
            c => out.push(c),
        }
    }
    out
}

/// Escaped text with every number of five digits or more in groups of three, each but the first
/// between `open` and `close`. That separates the groups for the eye, while a copied number stays
/// whole. Digits in a UUID or an escape stay as they are.
pub(crate) fn grouped(text: &str, open: &str, close: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let (before, word) = rest.split_at(at);
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        out.push_str(before);
        if word.len() < 5
            || !word.bytes().all(|b| b.is_ascii_digit())
            || before.ends_with(['#', '-', '.', '{'])
        {
            out.push_str(word);
        } else {
            let (first, groups) = word.split_at((word.len() - 1) % 3 + 1);
            out.push_str(first);
            for nth in 0..groups.len() / 3 {
                out.push_str(&format!("{open}{}{close}", &groups[3 * nth..3 * nth + 3]));
            }
        }
        rest = after;
    }
    out + rest
}

/// One word for a shell, whatever it holds.
pub(crate) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=/.,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Value of a label in the Prometheus text format: backslash, quote and newline are escaped.
pub(crate) fn label(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// A path or URI of a target as a valid URI reference (RFC 3986); other characters are
/// percent-encoded.
pub(crate) fn uri(text: &str) -> String {
    let mut out = String::new();
    // An absolute path is a file URI; a scheme of the command line (`nbd://`, `md:`) stays; the
    // rest is relative.
    let scheme =
        text.find(':').filter(|&at| text[..at].starts_with(|c: char| c.is_ascii_alphabetic()));
    let scheme = scheme
        .filter(|&at| text[..at].chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)));
    match scheme {
        _ if text.starts_with('/') => out.push_str("file://"),
        // A colon in the first segment of a relative path reads as a scheme, and is encoded below.
        Some(at) if !known_scheme(&text[..at]) => {}
        Some(at) => {
            out.push_str(&text[..=at]);
            return out + &encode(&text[at + 1..], b"/:@[]?=&,;+");
        }
        None => {}
    }
    out + &encode(text, b"/@,;+=&")
}

/// True if a target on the command line may have this scheme.
fn known_scheme(scheme: &str) -> bool {
    matches!(
        scheme,
        "md" | "zero"
            | "drive"
            | "nbd"
            | "nbd+unix"
            | "nbds"
            | "nbds+unix"
            | "s3"
            | "gs"
            | "az"
            | "http"
            | "https"
            | "file"
    )
}

fn encode(text: &str, keep: &[u8]) -> String {
    let mut out = String::new();
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) || keep.contains(&b) {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_front_and_its_end() {
        let long = |n: usize| format!("add: type '{}' is unknown", "\u{1f4be}".repeat(n));
        assert_eq!(short(&long(3900)), long(3900));
        let cut = short(&long(1_000_000)).into_owned();
        assert!(
            cut.starts_with("add: type '") && cut.ends_with("' is unknown") && cut.len() < 20_000,
            "{}",
            cut.len()
        );
    }

    #[test]
    fn hostile_strings() {
        assert_eq!(plain("a\x1b[31mb\u{202e}c\n"), r"a\u{1b}[31mb\u{202e}c\n");
        assert_eq!(xml("<a b=\"'&\0"), r"&lt;a b=&quot;&#39;&amp;\u{0}");
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }

    #[test]
    fn groups_of_digits() {
        let of = |text| grouped(text, "<", ">");
        assert_eq!(of("byte 1048576 (LBA 2048)"), "byte 1<048><576> (LBA 2048)");
        assert_eq!(of("12345, 123456 é 1234567"), "12<345>, 123<456> é 1<234><567>");
        assert_eq!(
            of("&#12345; p12345 a-12345 1.123456 \\u{12345}"),
            "&#12345; p12345 a-12345 1.123456 \\u{12345}"
        );
    }

    #[test]
    fn uris() {
        assert_eq!(uri("/dev/sda"), "file:///dev/sda");
        assert_eq!(uri("my disk#1%é.img"), "my%20disk%231%25%C3%A9.img");
        assert_eq!(uri("a:b.img"), "a%3Ab.img");
        assert_eq!(uri("nbd://host:10809/x y"), "nbd://host:10809/x%20y");
        assert_eq!(uri("md:1g"), "md:1g");
    }
}
