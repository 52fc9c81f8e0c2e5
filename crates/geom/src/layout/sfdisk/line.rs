//! Lines of a script, each of which describes a partition.

use super::{Count, Fault, Line};
use crate::base::ondisk::Guid;
use crate::base::size;

/// Parses a line of named fields: `[node :] name[=value], ...`.
pub(super) fn named(text: &str) -> Result<Line, Fault> {
    let mut line = Line::default();
    let node = text.split_once(':').filter(|(node, _)| !node.contains('='));
    if let Some((node, _)) = node {
        let node = node.trim_end();
        let digits = &node[node.trim_end_matches(|c: char| c.is_ascii_digit()).len()..];
        line.number =
            Some(digits.parse().ok().filter(|&n| n > 0).ok_or_else(|| Fault::Node(node.into()))?);
    }
    let mut rest = node.map_or(text, |(_, fields)| fields).trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || is_between(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let (value, next) = match after.trim_start().strip_prefix('=') {
            Some(value) => {
                let (value, next) = value_of(value.trim_start())?;
                (Some(value), next)
            }
            None => (None, after),
        };
        line.set(&name.to_ascii_lowercase(), value)?;
        rest = past_separator(next);
    }
    Ok(line)
}

/// Parses a line of start, size, type and bootable, in this order.
pub(super) fn unnamed(text: &str) -> Result<Line, Fault> {
    let (mut fields, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (field, next) = value_of(rest)?;
        fields.push(field);
        rest = past_separator(next);
    }
    let mut line = Line::default();
    for (place, field) in
        ["start", "size", "type", "bootable", "more than four fields:"].into_iter().zip(&fields)
    {
        match (place, field.as_str()) {
            ("bootable", "*") => line.bootable = true,
            (_, "" | "-") => {}
            ("start" | "size" | "type", field) => line.set(place, Some(field.into()))?,
            (_, field) => return Err(Fault::Mark { place, value: field.into() }),
        }
    }
    Ok(line)
}

impl Line {
    fn set(&mut self, name: &str, value: Option<String>) -> Result<(), Fault> {
        let value = match (name, value) {
            ("bootable", None) => {
                self.bootable = true;
                return Ok(());
            }
            ("", _) => return Err(Fault::NoName),
            (_, Some(value)) => value,
            (_, None) => return Err(Fault::NoValue(name.into())),
        };
        let bad = || Fault::FieldValue { name: name.into(), value: value.clone() };
        match name {
            "start" => self.start = count(&value).ok_or_else(bad)?,
            "size" => self.size = count(&value).ok_or_else(bad)?,
            "type" | "id" => self.kind = Some(value),
            "uuid" => self.uuid = Some(value.parse().map_err(|()| bad())?),
            "name" => self.name = Some(value),
            "attrs" => self.attributes = attributes(&value)?,
            _ => return Err(Fault::Field(name.into())),
        }
        Ok(())
    }
}

fn is_between(c: char) -> bool {
    matches!(c, ',' | ';') || c.is_whitespace()
}

/// A value, quoted or not, and the text after it.
fn value_of(text: &str) -> Result<(String, &str), Fault> {
    match text.strip_prefix('"') {
        Some(quoted) => {
            let (value, rest) = quoted.split_once('"').ok_or(Fault::Quotation)?;
            Ok((unescaped(value), rest))
        }
        None => {
            let (value, rest) = text.split_at(text.find(is_between).unwrap_or(text.len()));
            Ok((value.into(), rest))
        }
    }
}

/// The text after blanks and at most one comma or semicolon.
fn past_separator(text: &str) -> &str {
    let text = text.trim_start();
    text.strip_prefix([',', ';']).unwrap_or(text).trim_start()
}

/// A value with each `\x22` replaced by its byte.
fn unescaped(value: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), value);
    while let Some((before, after)) = rest.split_once("\\x") {
        bytes.extend(before.as_bytes());
        match after.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.extend(b"\\x");
                rest = after;
            }
        }
    }
    bytes.extend(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A number: decimal, hexadecimal after 0x, octal after 0.
pub(super) fn number(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    match text.strip_prefix('0').filter(|octal| !octal.is_empty()) {
        Some(octal) => u64::from_str_radix(octal, 8).ok(),
        None => text.parse().ok(),
    }
}

/// A start or size. The inner `None` is one that is chosen; the outer one is an error.
fn count(text: &str) -> Option<Option<Count>> {
    if matches!(text, "+" | "-" | "") {
        return Some(None);
    }
    let count = number(text).map(Count::Sectors);
    count
        .or_else(|| {
            text.ends_with(|c: char| c.is_ascii_alphabetic() && c != 's')
                .then(|| size::bytes(text).map(Count::Bytes))?
        })
        .map(Some)
}

/// The bits of GPT attributes by sfdisk's names and numbers, between blanks or commas.
fn attributes(text: &str) -> Result<u64, Fault> {
    let mut bits = 0;
    for word in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty()) {
        let number = || word.strip_prefix("GUID:").unwrap_or(word).parse::<u32>().ok();
        let bit = match word {
            "RequiredPartition" | "RequiredPartiton" => Some(0),
            "NoBlockIOProtocol" => Some(1),
            "LegacyBIOSBootable" => Some(2),
            _ => number().filter(|&n| n < 3 || (48..64).contains(&n)),
        };
        bits |= 1 << bit.ok_or_else(|| Fault::Attribute(word.into()))?;
    }
    Ok(bits)
}

/// The name by which [`crate::table::scheme::Scheme::kind`] knows a type: shortcuts and aliases
/// first.
pub(super) fn kind(text: &str, gpt: bool) -> String {
    let alias = match text {
        "L" | "linux" => "linux-data",
        "S" | "swap" => "linux-swap",
        "E" | "Ex" | "extended" => "extended",
        "X" | "linuxex" => "extended-linux",
        "H" | "home" => "linux-home",
        "U" | "uefi" => "efi",
        "R" | "raid" => "linux-raid",
        "V" | "lvm" => "linux-lvm",
        _ => "",
    };
    if !alias.is_empty() {
        return alias.into();
    }
    let hex = text.strip_prefix("0x").unwrap_or(text);
    match u8::from_str_radix(hex, 16) {
        Ok(byte) if !gpt => format!("!{byte}"),
        _ if gpt && text.parse::<Guid>().is_ok() => format!("!{}", text.to_ascii_lowercase()),
        _ => text.into(),
    }
}
