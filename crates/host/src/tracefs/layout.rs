//! Places of an event's fields, as its `format` file gives them.

use std::ops::Range;

/// Record of one event: its number, and the places of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventLayout {
    /// The number that records of the event begin with.
    pub(super) id: u16,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
}

impl EventLayout {
    /// The layout in the text of a `format` file; `None` if it has no `ID`.
    ///
    /// A field is `field:unsigned int nr_sector; offset:24; size:4; signed:0;`, where the name is
    /// the last word of the declaration, without the brackets of an array.
    pub(super) fn parse(text: &str) -> Option<EventLayout> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        Some(EventLayout { id, fields: text.lines().filter_map(Field::parse).collect() })
    }

    /// The place of the field `name` in a record; `None` if it has none.
    pub(super) fn place(&self, name: &str) -> Option<Range<usize>> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some(field.offset..field.offset.checked_add(field.size)?)
    }

    /// The bytes of the field `name` in a record; `None` if it has none, or is cut.
    fn bytes<'a>(&self, record: &'a [u8], name: &str) -> Option<&'a [u8]> {
        record.get(self.place(name)?)
    }

    /// The number in the field `name`, of at most 8 bytes in the machine's order.
    pub(super) fn number(&self, record: &[u8], name: &str) -> Option<u64> {
        number(self.bytes(record, name)?)
    }

    /// The text in the field `name`, up to its first zero byte.
    pub(super) fn text(&self, record: &[u8], name: &str) -> Option<String> {
        let bytes = self.bytes(record, name)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

impl Field {
    fn parse(line: &str) -> Option<Field> {
        let line = line.trim().strip_prefix("field:")?;
        let mut parts = line.split(';').map(str::trim);
        let name = parts.next()?.rsplit([' ', '\t']).next()?;
        let name = name.split_once('[').map_or(name, |(name, _)| name).to_owned();
        let value = |part: Option<&str>, key: &str| part?.strip_prefix(key)?.parse().ok();
        let (offset, size) = (value(parts.next(), "offset:")?, value(parts.next(), "size:")?);
        Some(Field { name, offset, size })
    }
}

/// A number of at most 8 bytes in the machine's order.
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    match *bytes {
        [a] => Some(u64::from(a)),
        [a, b] => Some(u64::from(u16::from_ne_bytes([a, b]))),
        [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}
