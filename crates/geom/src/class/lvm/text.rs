//! Grammar of LVM's text metadata: sections of keys, each with a value or a section.
//!
//! ```text
//! section = { key ( '=' value | '{' section '}' ) }
//! value   = number | string | '[' [ value { ',' value } ] ']'
//! ```
//!
//! Strings stand in double quotes, where a backslash takes the next character as it is, or in
//! single quotes; a comment runs from `#` to the end of its line. Nesting and the number of values
//! are bounded, so hostile text costs no more than its length.

use std::borrow::Cow;

/// Sections and lists inside each other: LVM writes five.
const DEEPEST: usize = 16;
/// Values of one text: fifty times those of a group of 200 volumes.
const MOST: usize = 1 << 20;

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Whole number, of either sign.
    Number(i64),
    /// String, or a number with a point.
    Text(Cow<'a, str>),
    /// Values that stand in brackets.
    List(Vec<Value<'a>>),
    /// Keys that stand in braces.
    Section(Section<'a>),
}

/// Keys and their values, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section<'a> {
    /// Each key with its value; of a key that is given twice the first counts.
    pub(super) entries: Vec<(Cow<'a, str>, Value<'a>)>,
}

/// Place in a text from which it cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Byte of the text, from 0.
    pub(super) at: usize,
    /// Reason of it in words.
    pub(super) why: &'static str,
}

impl<'a> Section<'a> {
    /// The value of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.entries.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// The section called `key`.
    pub(super) fn section(&self, key: &str) -> Option<&Section<'a>> {
        match self.get(key)? {
            Value::Section(section) => Some(section),
            _ => None,
        }
    }

    /// The sections in this one, each with its name.
    pub(super) fn sections(&self) -> impl Iterator<Item = (&str, &Section<'a>)> {
        self.entries.iter().filter_map(|(key, value)| match value {
            Value::Section(section) => Some((key.as_ref(), section)),
            _ => None,
        })
    }

    /// The string called `key`.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number called `key`, if it is not negative.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        match self.get(key)? {
            Value::Number(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The values of the list called `key`; none if there is no such list.
    pub(super) fn list(&self, key: &str) -> &[Value<'a>] {
        match self.get(key) {
            Some(Value::List(values)) => values,
            _ => &[],
        }
    }

    /// True if the list called `key` has `word`.
    pub(super) fn has(&self, key: &str, word: &str) -> bool {
        self.list(key).iter().any(|value| matches!(value, Value::Text(text) if text == word))
    }
}

/// The text as a section. With `until` it is read up to the first key of that name and no further:
/// the head of a long text.
pub(super) fn parse<'a>(text: &'a str, until: Option<&'a str>) -> Result<Section<'a>, Malformed> {
    let mut parser = Parser { text, at: 0, left: MOST, until, ended: false };
    let section = parser.section(0)?;
    if !parser.ended && parser.at < text.len() {
        return Err(parser.wrong("a brace is closed that was not opened"));
    }
    Ok(section)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    left: usize,
    until: Option<&'a str>,
    ended: bool,
}

impl<'a> Parser<'a> {
    fn wrong(&self, why: &'static str) -> Malformed {
        Malformed { at: self.at, why }
    }

    /// The next byte that is neither space nor comment; `None` at the end. The text ends with a
    /// NUL.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' | 0 => self.at += 1,
                b'#' => {
                    let rest = &bytes[self.at..];
                    self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                }
                byte => return Some(*byte),
            }
        }
    }

    /// Passes over `byte`, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn section(&mut self, depth: usize) -> Result<Section<'a>, Malformed> {
        if depth > DEEPEST {
            return Err(self.wrong("sections inside each other are too many"));
        }
        let mut section = Section::default();
        while !self.ended && self.peek().is_some_and(|byte| byte != b'}') {
            let key = self.key()?;
            if self.until == Some(key.as_ref()) {
                self.ended = true;
                break;
            }
            self.left = self.left.checked_sub(1).ok_or(self.wrong("there are too many values"))?;
            let value = if self.take(b'{') {
                let inner = self.section(depth + 1)?;
                if !self.ended && !self.take(b'}') {
                    return Err(self.wrong("a section does not end"));
                }
                Value::Section(inner)
            } else if self.take(b'=') {
                self.value(depth + 1)?
            } else {
                return Err(self.wrong("a key has neither value nor section"));
            };
            section.entries.push((key, value));
        }
        Ok(section)
    }

    fn key(&mut self) -> Result<Cow<'a, str>, Malformed> {
        match self.peek() {
            Some(b'"' | b'\'') => self.string(),
            _ => {
                let word = self.word();
                if word.is_empty() {
                    return Err(self.wrong("a key was expected"));
                }
                Ok(Cow::Borrowed(word))
            }
        }
    }

    /// The text up to the next space or mark of the grammar.
    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let is_end = |byte: u8| {
            matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0)
                || matches!(byte, b'{' | b'}' | b'[' | b']' | b'=' | b',' | b'#' | b'"' | b'\'')
        };
        let end = rest.bytes().position(is_end).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, Malformed> {
        if depth > DEEPEST {
            return Err(self.wrong("lists inside each other are too many"));
        }
        self.left = self.left.checked_sub(1).ok_or(self.wrong("there are too many values"))?;
        match self.peek() {
            Some(b'[') => {
                self.at += 1;
                let mut values = Vec::new();
                while !self.take(b']') {
                    values.push(self.value(depth + 1)?);
                    if !self.take(b',') && self.peek() != Some(b']') {
                        return Err(self.wrong("a list does not end"));
                    }
                }
                Ok(Value::List(values))
            }
            Some(b'"' | b'\'') => self.string().map(Value::Text),
            _ => match self.word() {
                "" => Err(self.wrong("a value was expected")),
                word => Ok(word
                    .parse()
                    .map_or_else(|_| Value::Text(Cow::Borrowed(word)), Value::Number)),
            },
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Malformed> {
        let rest = &self.text[self.at..];
        let mut bytes = rest.bytes().enumerate();
        let Some((_, quote)) = bytes.next() else {
            return Err(self.wrong("a string was expected"));
        };
        let mut escaped = false;
        while let Some((at, byte)) = bytes.next() {
            if byte == quote {
                self.at += at + 1;
                let inner = &rest[1..at];
                return Ok(if escaped { unescaped(inner).into() } else { inner.into() });
            }
            if byte == b'\\' && quote == b'"' {
                escaped = true;
                bytes.next();
            }
        }
        Err(self.wrong("a string does not end"))
    }
}

/// A string without its backslashes, of each two of which the second stays.
fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let next = || match chars.next() {
        Some('\\') => chars.next(),
        other => other,
    };
    std::iter::from_fn(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_values_lists_sections_and_comments() {
        let text = "# head\nvg {\n id = \"a\\\"b\\\\c\" # behind\n n=-7\n empty = []\n list = \
            [\"x\", 3,\n ['y']]\n \"odd key\" { f = 1.5 }\n}\nversion = 1\0\0";
        let parsed = parse(text, None).unwrap();
        let vg = parsed.section("vg").unwrap();
        assert_eq!(vg.text("id"), Some("a\"b\\c"));
        assert_eq!((vg.get("n"), vg.number("n")), (Some(&Value::Number(-7)), None));
        assert_eq!((vg.list("empty").len(), vg.list("list").len()), (0, 3));
        assert!(vg.has("list", "x") && !vg.has("list", "y"));
        assert_eq!(vg.section("odd key").unwrap().text("f"), Some("1.5"));
        assert_eq!(parsed.number("version"), Some(1));
    }

    #[test]
    fn the_head_ends_before_the_key_that_is_named() {
        let parsed = parse("vg { id = \"a\" logical_volumes { ] broken", Some("logical_volumes"));
        assert_eq!(parsed.unwrap().section("vg").unwrap().text("id"), Some("a"));
    }

    #[test]
    fn what_is_no_text_is_refused_at_its_place() {
        let wrong = |text: &str| parse(text, None).unwrap_err();
        for text in
            ["a", "a =", "a = [", "a = [1 2]", "a {", "}", "a = \"x", "= 1", "a = \"\\", "[]"]
        {
            assert!(wrong(text).at <= text.len(), "{text}");
        }
        assert_eq!(wrong("ab = 1\nc 2").at, 9);
        assert_eq!(wrong(&"a{".repeat(100)).why, "sections inside each other are too many");
        let lists = format!("a={}", "[".repeat(1 << 20));
        assert_eq!(wrong(&lists).why, "lists inside each other are too many");
        let many = format!("a=[{}]", "1,".repeat(1 << 20));
        assert_eq!(wrong(&many).why, "there are too many values");
    }
}
