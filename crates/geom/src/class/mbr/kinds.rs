//! Names of types in an MBR: those of gpart(8), those of sfdisk, raw numbers.

use crate::mapping::slices::PartitionType;
use crate::table::types;

/// The type with a name of gpart's or sfdisk's (a byte in hexadecimal, a letter), or a raw number.
pub(super) fn kind(name: &str) -> Option<PartitionType> {
    let digits = |digits: &str, radix| {
        digits
            .bytes()
            .all(|b| b.is_ascii_alphanumeric())
            .then(|| u8::from_str_radix(digits, radix).ok())?
    };
    let prefixed =
        |name: &str| name.strip_prefix("0x").or(name.strip_prefix("0X")).map(|hex| digits(hex, 16));
    let byte = match (name.strip_prefix('!'), name) {
        // A raw number is parsed as strtol with base 0 does.
        (Some(raw), _) => {
            prefixed(raw).unwrap_or_else(|| digits(raw, if raw.starts_with('0') { 8 } else { 10 }))
        }
        // These are sfdisk's own; `e` is a byte.
        (None, "E") => Some(0x05),
        (None, "X") => Some(0x85),
        (None, name) if name.eq_ignore_ascii_case("ebr") => Some(0x05),
        (None, name) => match types::named(name) {
            Some(alias) => alias.mbr,
            None => prefixed(name).unwrap_or_else(|| digits(name, 16)),
        },
    };
    byte.filter(|&b| b != 0).map(PartitionType::Mbr)
}
