//! gpart(8)'s backup text: a table as lines, from which `restore` makes it again.
//!
//! ```text
//! GPT 128
//! 1   freebsd-boot        40      1024 boot  [bootme]
//! 2    freebsd-ufs      2048 488394752 root
//! ```
//!
//! Scheme and room for entries; then index, type, start, size, label and attributes of every
//! partition, blanks between them. The text may be hostile: numbers are checked, the partitions
//! counted, and a mistake is named with its line. A label with blanks, which gpart writes and
//! cannot read, is read.
//!
//! # Sources
//! FreeBSD `lib/geom/part/geom_part.c` (`gpart_backup`, `gpart_restore`).

use crate::base::size;
use crate::base::topology::is_whole;
use crate::table::{Table, types};
use std::fmt;

/// Largest number of partitions, more than any table has room for.
const PARTITIONS: usize = 4096;

/// Table in the form of its backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Name of the scheme, as written.
    pub scheme: String,
    /// Number of entries it had room for, if the backup has it.
    pub entries: Option<u32>,
    /// Partitions in the order of their lines.
    pub partitions: Vec<Line>,
}

/// One partition of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Line of the text, from 1.
    pub number: usize,
    /// Index of the partition in its table.
    pub index: u32,
    /// Type by name, for [`Scheme::kind`](crate::table::scheme::Scheme::kind).
    pub kind: String,
    /// First byte, of the range that gpart counts to a partition ([`Table::counted`]).
    pub start: u64,
    /// Size of that range in bytes.
    pub size: u64,
    /// Label of the partition; `None` if it has none.
    pub label: Option<String>,
    /// Names of the attributes that are set.
    pub attributes: Vec<String>,
}

/// Line from which no table can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line of the text, from 1.
    pub line: usize,
    /// Fault of the line, in words for the user.
    pub found: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.found)
    }
}

impl std::error::Error for Mistake {}

/// The backup text of `table`, byte for byte gpart's.
pub fn write(table: &Table) -> String {
    let scheme = table.scheme;
    let sectors = |bytes: u64| bytes / table.sector.max(1);
    // gpart has one name for several numbers of an MBR: a restored table must have the same number.
    let same = |name: &String, kind| scheme.kind_in(table, name) == Some(kind);
    let name = |kind| {
        Some(types::gpart_name(kind))
            .filter(|name| same(name, kind))
            .unwrap_or_else(|| format!("!{}", types::raw_name(kind)))
    };
    let types: Vec<String> = table.entries.iter().map(|e| name(e.partition.kind)).collect();
    let widest = types.iter().map(String::len).max().unwrap_or(0);
    let digits = sectors(table.usable.end.saturating_sub(1)).to_string().len();
    let entries = table.capacity.to_string();
    let mut text = format!("{} {entries}\n", scheme.name());
    for (entry, kind) in table.entries.iter().zip(types) {
        let range = table.counted(entry);
        let (start, size) = (sectors(range.start), sectors(range.end - range.start));
        // A label must not break its line.
        let label =
            entry.partition.label.as_deref().unwrap_or_default().replace(char::is_control, "?");
        let marks = entry.marks(scheme).join(",");
        let marks = if marks.is_empty() { String::new() } else { format!(" [{marks}] ") };
        let (wide, index) = (entries.len(), entry.partition.index);
        text.push_str(&format!(
            "{index:<wide$} {kind:>widest$} {start:>digits$} {size:>digits$} {label} {marks}\n"
        ));
    }
    text
}

/// Parses a backup of a table on sectors of `sector` bytes.
pub fn parse(text: &str, sector: u64) -> Result<Backup, Mistake> {
    let mut backup: Option<Backup> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let mistake = |found: String| Mistake { line: number, found };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
        match (fields.as_slice(), &mut backup) {
            ([scheme], None) => {
                backup =
                    Some(Backup { scheme: (*scheme).into(), entries: None, partitions: Vec::new() })
            }
            ([scheme, entries], None) => {
                let entries = number_of(entries)
                    .ok_or_else(|| mistake(format!("'{entries}' is not a number of entries")))?;
                backup = Some(Backup {
                    scheme: (*scheme).into(),
                    entries: Some(entries),
                    partitions: Vec::new(),
                });
            }
            ([_] | [_, _], Some(_)) => {
                return Err(mistake("a second table: one is restored at a time".into()));
            }
            (&[index, kind, start, size], Some(backup)) => {
                if backup.partitions.len() == PARTITIONS {
                    return Err(mistake(format!("more than {PARTITIONS} partitions")));
                }
                let index = number_of(index)
                    .filter(|&i| i > 0)
                    .ok_or_else(|| mistake(format!("'{index}' is not an index")))?;
                let place = |text: &str, what: &str| {
                    let wrong = || {
                        mistake(format!(
                            "'{text}' is not a {what}: write sectors, or bytes with a unit (90g)"
                        ))
                    };
                    place(text, sector).ok_or_else(wrong)
                };
                let (start, size) = (place(start, "start")?, place(size, "size")?);
                let (label, attributes) = label(rest(line));
                backup.partitions.push(Line {
                    number,
                    index,
                    kind: kind.into(),
                    start,
                    size,
                    label,
                    attributes,
                });
            }
            (_, None) => {
                return Err(mistake(
                    "a backup begins with the scheme and its entries: GPT 128".into(),
                ));
            }
            _ => return Err(mistake(
                "a partition is its index, type, start, size, and perhaps a label and [attributes]"
                    .into(),
            )),
        }
    }
    backup.ok_or(Mistake {
        line: 1,
        found: "nothing here: a backup begins with the scheme and its entries: GPT 128".into(),
    })
}

/// The text after the first four fields.
fn rest(line: &str) -> &str {
    let field = |rest: &str| rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
    (0..4).fold(line, |rest, _| rest[field(rest)..].trim_ascii_start())
}

/// The label, and the attributes in brackets behind it.
fn label(rest: &str) -> (Option<String>, Vec<String>) {
    let bracket = rest.rfind('[').filter(|_| rest.ends_with(']'));
    let (label, marks) =
        bracket.map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..rest.len() - 1]));
    let marks = marks
        .split(',')
        .map(str::trim)
        .filter(|mark| !mark.is_empty())
        .map(str::to_owned)
        .collect();
    (Some(label.trim()).filter(|label| !label.is_empty()).map(str::to_owned), marks)
}

fn number_of(text: &str) -> Option<u32> {
    text.strip_prefix("0x")
        .map_or_else(|| text.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
}

/// A start or size in bytes: plain numbers and those with an `s` are sectors, any other unit is
/// bytes. `None` if it is neither, or not whole sectors.
fn place(text: &str, sector: u64) -> Option<u64> {
    let sectors = text.strip_suffix(['s', 'S']).unwrap_or(text);
    let count = sectors
        .strip_prefix("0x")
        .map_or_else(|| sectors.parse::<u64>().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    match count {
        Some(count) => count.checked_mul(sector),
        None => size::bytes(text).filter(|&bytes| is_whole(bytes, sector)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(
        number: usize,
        index: u32,
        (start, size): (u64, u64),
        label: Option<&str>,
        marks: &[&str],
    ) -> Line {
        let attributes = marks.iter().map(|&m| m.into()).collect();
        let kind = if index == 1 { "freebsd-boot" } else { "freebsd-ufs" };
        Line {
            number,
            index,
            kind: kind.into(),
            start: start * 512,
            size: size * 512,
            label: label.map(Into::into),
            attributes,
        }
    }

    #[test]
    fn reads_what_people_and_gpart_write() {
        let text = "# ada0\n\nGPT 128\n1   freebsd-boot  40 1024 boot  [bootme,bootonce] \n2 \
            freebsd-ufs 1m 4s  \n\
                    3\tfreebsd-ufs 0x1000 8 [bootme]\r\n4 freebsd-ufs 9000 1 my root [x] \n5 \
                    freebsd-ufs 9001 1 a[b";
        let backup = parse(text, 512).unwrap();
        assert_eq!((backup.scheme.as_str(), backup.entries), ("GPT", Some(128)));
        let want = [
            line(4, 1, (40, 1024), Some("boot"), &["bootme", "bootonce"]),
            line(5, 2, (2048, 4), None, &[]),
            line(6, 3, (4096, 8), None, &["bootme"]),
            line(7, 4, (9000, 1), Some("my root"), &["x"]),
            line(8, 5, (9001, 1), Some("a[b"), &[]),
        ];
        assert_eq!(backup.partitions, want);
        assert_eq!(
            parse("BSD", 512),
            Ok(Backup { scheme: "BSD".into(), entries: None, partitions: Vec::new() })
        );
    }

    #[test]
    fn mistakes_have_a_line() {
        let line = |text: &str| parse(text, 512).unwrap_err().line;
        assert_eq!(line(""), 1);
        assert_eq!(line("GPT 128\nMBR 4\n"), 2);
        assert_eq!(line("1 freebsd 34 10"), 1);
        assert_eq!(line("GPT 128\n\n1 freebsd 34"), 3);
        assert_eq!(line("GPT x"), 1);
        assert_eq!(line("GPT 128\n0 freebsd 34 10"), 2);
        assert_eq!(line("GPT 128\n1 freebsd -34 10"), 2);
        assert_eq!(line("GPT 128\n1 freebsd 34 18446744073709551615"), 2);
        assert_eq!(line("GPT 128\n1 freebsd 34 100b"), 2);
        assert_eq!(line(&format!("GPT 128\n{}", "1 freebsd 34 1\n".repeat(5000))), PARTITIONS + 2);
        assert_eq!(
            parse("GPT x", 512).unwrap_err().to_string(),
            "line 1: 'x' is not a number of entries"
        );
    }
}
