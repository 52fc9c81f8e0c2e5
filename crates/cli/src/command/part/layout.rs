//! Layouts as people write them, in TOML: `docs/manual/apply.md` describes the keys.

use crate::failure::Reason;
use crate::input_text;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::fmt;
use std::fmt::Display;
use std::str::FromStr;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::size;
use trueline_geom::layout::{self, Part, Size};
use trueline_geom::mapping::slices::Dialect;
use trueline_geom::registry::{self, SCHEMES};
use trueline_geom::table::scheme::{Id, Scheme};

/// A table of the layout.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    scheme: Word<SchemeName>,
    /// Sector in bytes, of the outermost table only.
    sector: Option<Bytes>,
    id: Option<Word<Id>>,
    entries: Option<u32>,
    usable: Option<[Bytes; 2]>,
    align: Option<Bytes>,
    dialect: Option<Word<Flavour>>,
    #[serde(default, rename = "partition")]
    partitions: Vec<Partition>,
}

/// A partition of the layout.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Partition {
    index: Option<u32>,
    start: Option<Bytes>,
    #[serde(default)]
    size: Option<Share>,
    #[serde(rename = "type")]
    kind: String,
    label: Option<String>,
    uuid: Option<Word<Uuid>>,
    attributes: Option<Vec<String>>,
    table: Option<Box<Table>>,
}

/// A layout, and the sector that its disk must have.
pub(crate) struct Document {
    pub(crate) layout: layout::Layout,
    pub(crate) sector: Option<u64>,
}

/// Parses a layout. An error is one line: position, then message.
pub(crate) fn parse(text: &str) -> Result<Document, Reason> {
    let table: Table = input_text::toml(text)?;
    let sector = table.sector.as_ref().map(|s| s.0);
    if let Some(sector) = sector.filter(|s| !s.is_power_of_two() || !(512..=65536).contains(s)) {
        return Err(Reason(format!(
            "a sector of {sector} bytes: it is a power of two from 512 to 65536"
        )));
    }
    Ok(Document { layout: table.layout(true)?, sector })
}

impl Table {
    fn layout(self, outermost: bool) -> Result<layout::Layout, Reason> {
        let scheme = self.scheme.0.0;
        if self.sector.is_some() && !outermost {
            return Err(Reason(format!(
                "the sector is the disk's: say it of the outermost table, not of the {} inside",
                scheme.name()
            )));
        }
        Ok(layout::Layout {
            scheme,
            id: self.id.map(|id| id.0),
            entries: self.entries,
            usable: self.usable.map(|[first, end]| (first.0, end.0)),
            align: self.align.map(|a| a.0),
            dialect: self.dialect.map(|d| d.0.0),
            from_above: false,
            parts: self.partitions.into_iter().map(|p| p.part(scheme)).collect::<Result<_, _>>()?,
        })
    }
}

impl Partition {
    fn part(self, scheme: &dyn Scheme) -> Result<Part, Reason> {
        let bit = |name: &String| {
            let attribute = scheme
                .attributes()
                .iter()
                .find(|a| !a.of_table && a.name.eq_ignore_ascii_case(name));
            attribute.map(|a| a.bit).ok_or_else(|| {
                let names: Vec<&str> =
                    scheme.attributes().iter().filter(|a| !a.of_table).map(|a| a.name).collect();
                let there = if names.is_empty() {
                    "it has none".into()
                } else {
                    format!("there are {}", names.join(", "))
                };
                format!("partitions of {} have no attribute '{name}': {there}", scheme.name())
            })
        };
        let bits = |names: Vec<String>| {
            names.iter().try_fold(0, |bits, name| bit(name).map(|bit| bits | bit))
        };
        Ok(Part {
            index: self.index,
            start: self.start.map(|s| s.0),
            size: self.size.map_or(Size::Rest, |s| s.0),
            kind: self.kind,
            label: self.label,
            uuid: self.uuid.map(|u| u.0.0),
            attributes: self.attributes.map(bits).transpose()?,
            inside: self.table.map(|t| t.layout(false)).transpose()?,
        })
    }
}

/// A value that is written as a word; a mistake in it is reported at its position.
struct Word<T>(T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Word).map_err(de::Error::custom)
    }
}

struct SchemeName(&'static dyn Scheme);

impl FromStr for SchemeName {
    type Err = Reason;

    fn from_str(text: &str) -> Result<SchemeName, Reason> {
        registry::scheme_named(text).map(SchemeName).ok_or_else(|| {
            let names: Vec<String> = SCHEMES.iter().map(|s| s.name().to_lowercase()).collect();
            Reason(format!("no scheme '{text}': there are {}", names.join(", ")))
        })
    }
}

struct Uuid(Guid);

impl FromStr for Uuid {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Uuid, Reason> {
        text.parse()
            .map(Uuid)
            .map_err(|()| Reason(format!("'{text}' is not a UUID: write it as uuidgen does")))
    }
}

struct Flavour(Dialect);

impl FromStr for Flavour {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Flavour, Reason> {
        let all = [Dialect::FreeBsd, Dialect::OpenBsd, Dialect::NetBsd];
        let found = all.into_iter().find(|d| d.name().eq_ignore_ascii_case(text));
        found.map(Flavour).ok_or_else(|| {
            Reason(format!("no dialect '{text}': there are freebsd, openbsd, netbsd"))
        })
    }
}

/// A number of bytes, or a size such as "512MiB".
struct Bytes(u64);

/// A size, a share of the table's range, or the rest.
struct Share(Size);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Number(|text: &str| {
            size::bytes(text).map(Bytes).ok_or_else(|| {
                Reason(format!("'{text}' is not a size: \"512MiB\", \"4k\", or a number of bytes"))
            })
        }))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Number(|text: &str| {
            let size = match text.strip_suffix('%') {
                _ if text == "rest" => Some(Size::Rest),
                Some(number) => percent(number).map(Size::Percent),
                None => size::bytes(text).map(Size::Bytes),
            };
            size.map(Share).ok_or_else(|| {
                Reason(format!(
                    "'{text}' is not a size: \"512MiB\", \"12.5%\", \"rest\", or a number of bytes"
                ))
            })
        }))
    }
}

/// Hundredths of a percent in a percentage with at most two decimals.
fn percent(text: &str) -> Option<u32> {
    let (whole, part) = text.trim_end().split_once('.').unwrap_or((text.trim_end(), "0"));
    if part.is_empty()
        || part.len() > 2
        || !part.bytes().chain(whole.bytes()).all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let part: u32 = format!("{part:0<2}").parse().ok()?;
    let hundredths = whole.parse::<u32>().ok()?.checked_mul(layout::PERCENT)?.checked_add(part)?;
    (1..=100 * layout::PERCENT).contains(&hundredths).then_some(hundredths)
}

/// A visitor for a number in TOML, or a word for one, that makes a value of it.
struct Number<F>(F);

impl<'de, T, F: Fn(&str) -> Result<T, Reason>> Visitor<'de> for Number<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size: \"512MiB\", or a number of bytes")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        (self.0)(&value.to_string()).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
        (self.0)(value).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        parse(text).err().map_or_else(|| format!("read: {text}"), |why| why.0)
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_with_its_place() {
        let part =
            |line: &str| format!("scheme = \"gpt\"\n[[partition]]\ntype = \"efi\"\n{line}\n");
        let table = [
            ("", "line 1, column 1: missing field `scheme`"),
            ("scheme = 5\n", "line 1, column 10: invalid type: integer `5`, expected a string"),
            ("scheme = \"gtp\"\n", "line 1, column 10: no scheme 'gtp': there are "),
            (
                "scheme = \"gpt\"\nx = 1\n",
                "line 2, column 1: unknown field `x`, expected one of `scheme`, `sector`, ",
            ),
            ("scheme = \"gpt\nx = 1\n", "line 1, column 14: "),
            (
                "scheme = \"gpt\"\nsector = 100\n",
                "a sector of 100 bytes: it is a power of two from 512 to 65536",
            ),
            ("scheme = \"gpt\"\nid = \"12\"\n", "line 2, column 6: '12' is no identity: "),
            (
                "scheme = \"gpt\"\nusable = [1]\n",
                "line 2, column 10: invalid length 1, expected an array of length 2",
            ),
            (
                "scheme = \"gpt\"\n[[partition]]\nsize = 1\n",
                "line 2, column 1: missing field `type`",
            ),
            (&part("size = \"1.5.5%\""), "line 4, column 8: '1.5.5%' is not a size: "),
            (&part("size = \"101%\""), "line 4, column 8: '101%' is not a size: "),
            (&part("size = \"0%\""), "line 4, column 8: '0%' is not a size: "),
            (&part("size = -1"), "line 4, column 8: '-1' is not a size: "),
            (
                &part("size = 1.5"),
                "line 4, column 8: invalid type: floating point `1.5`, expected a size: ",
            ),
            (&part("start = \"rest\""), "line 4, column 9: 'rest' is not a size: "),
            (&part("uuid = \"x\""), "line 4, column 8: 'x' is not a UUID: "),
            (
                &part("attributes = [\"no\"]"),
                "partitions of GPT have no attribute 'no': there are bootme, ",
            ),
            (
                &part("table = { scheme = \"bsd\", dialect = \"x\" }"),
                "line 4, column 37: no dialect 'x': there are ",
            ),
            (&part("table = { scheme = \"bsd\", sector = 512 }"), "the sector is the disk's: "),
        ];
        for (text, want) in table {
            let got = mistake(text);
            assert!(got.starts_with(want) && !got.contains('\n'), "{text}\n{got}\n{want}");
        }
    }

    #[test]
    fn sizes_are_bytes_shares_or_the_rest() {
        let text = "scheme = \"gpt\"\nsector = 4096\n[[partition]]\ntype = \"efi\"\nsize = \
            \"512MiB\"\nstart = 1048576\n[[partition]]\ntype = \"efi\"\nsize = \"12.5%\"\n\
            [[partition]]\ntype = \"efi\"\n";
        let document = parse(text).unwrap_or_else(|e| panic!("{e}"));
        let sizes: Vec<Size> = document.layout.parts.iter().map(|p| p.size).collect();
        assert_eq!(sizes, [Size::Bytes(512 << 20), Size::Percent(1250), Size::Rest]);
        assert_eq!((document.sector, document.layout.parts[0].start), (Some(4096), Some(1 << 20)));
    }
}
