//! The text of `part show`, byte for byte that of gpart(8), today's or that of FreeBSD 9.
//!
//! Sizes in parentheses are rounded like `humanize_number(3)` of each release. Release 9 divides
//! the remainder by 1000 although it counts by 1024, and so prints `232G` for 232.9.

use crate::words::escape;
use crate::words::width::columns_of;
use std::io;
use trueline_geom::table::scheme::Scheme;
use trueline_geom::table::{Entry, Table, types};

/// A table with its scheme and the name of its provider.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// Name of the provider it is on.
    pub name: &'a Called,
    pub table: &'a Table,
    pub scheme: &'a dyn Scheme,
}

/// The printed name of a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Called {
    text: String,
    /// Text between the name and the suffix of a partition.
    join: &'static str,
}

impl Called {
    /// A name in GEOM: `ada0`, `ada0s1`.
    pub(crate) fn geom(name: impl Into<String>) -> Called {
        Called { text: name.into(), join: "" }
    }

    /// A name as the command line takes it, for provider `own` of these disks: `disk.img`,
    /// `disk.img#s1`.
    pub(crate) fn typed(disks: &str, own: &str) -> Called {
        match own {
            "" => Called { text: disks.into(), join: "#" },
            own => Called { text: format!("{disks}#{own}"), join: "" },
        }
    }

    /// The name as text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The name of a provider on this one with that suffix; its own name without one.
    pub(crate) fn with(&self, suffix: &str) -> String {
        if suffix.is_empty() {
            self.text.clone()
        } else {
            format!("{}{}{suffix}", self.text, self.join)
        }
    }
}

impl Shown<'_> {
    /// Name of a partition. A logical one is named after the disk, not after the extended partition
    /// that holds its chain.
    pub(crate) fn partition(&self, entry: &Entry) -> String {
        let suffix = self.scheme.suffix(entry);
        let digits = self.name.text.trim_end_matches(|c: char| c.is_ascii_digit());
        match digits.strip_suffix('s').filter(|_| self.table.lead > 0) {
            Some(disk) => format!("{disk}{suffix}"),
            None => self.name.with(&suffix),
        }
    }
}

/// The attribute of a partition that a listing shows.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum What {
    /// The type by its name.
    #[default]
    Type,
    /// `-l`: the label of the partition.
    Label,
    /// `-r`: its type as it is on the disk.
    Raw,
}

/// Options of a listing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Format {
    pub what: What,
    /// `-p`: names in place of indexes.
    pub names: bool,
    /// `--compat 9`: sizes as FreeBSD 9 rounds them.
    pub release9: bool,
    /// Our names, which `add` takes, for types that gpart(8) has no name for; false for gpart's
    /// exact output.
    pub ours: bool,
}

/// Writes a table and an empty line.
pub(crate) fn write(shown: Shown<'_>, format: Format, out: &mut dyn io::Write) -> io::Result<()> {
    let table = shown.table;
    let lba = |byte: u64| byte / table.sector.max(1);
    let size = |bytes| if format.release9 { humanize9(bytes) } else { humanize(bytes) };
    let digits = lba(table.usable.end.saturating_sub(1)).to_string().len();
    let names: Vec<String> =
        table.by_start().into_iter().map(|e| escape::plain(&shown.partition(e))).collect();
    let name = escape::plain(shown.name.text());
    let others = names.iter().filter(|_| format.names);
    let wide = others.chain([&name]).map(|n| columns_of(n)).max().unwrap_or(0);
    let mark = match (table.damage.is_empty(), shown.scheme.is_editable()) {
        (false, _) => " [CORRUPT]",
        (true, false) => " [READ ONLY]",
        (true, true) => "",
    };
    let (first, sectors) =
        (lba(table.usable.start), lba(table.usable.end.saturating_sub(table.usable.start)));
    let (scheme, whole) = (shown.scheme.name(), size(table.length));
    writeln!(
        out,
        "=>{first:>digits$}  {sectors:>digits$}  {name:>wide$}  {scheme}  ({whole}){mark}"
    )?;
    let free = |from: u64, to: u64, out: &mut dyn io::Write| {
        let (at, sectors, size) = (lba(from), lba(to - from), size(to - from));
        writeln!(out, "  {at:>digits$}  {sectors:>digits$}  {:>wide$}  - free -  ({size})", "")
    };
    let mut at = table.usable.start;
    for (entry, name) in table.by_start().into_iter().zip(names) {
        let range = table.counted(entry);
        if at < range.start {
            free(at, range.start, out)?;
        }
        let id = if format.names { name } else { entry.partition.index.to_string() };
        let what = match format.what {
            What::Type => match types::gpart_name(entry.partition.kind) {
                unnamed if format.ours && unnamed.starts_with('!') => {
                    types::name(entry.partition.kind)
                }
                name => name,
            },
            What::Label => entry.partition.label.as_deref().map_or("(null)".into(), escape::plain),
            What::Raw => types::raw_name(entry.partition.kind),
        };
        let marks = entry.marks(shown.scheme).join(",");
        let marks = if marks.is_empty() { String::new() } else { format!(" [{marks}] ") };
        let (start, sectors, size) =
            (lba(range.start), lba(range.end - range.start), size(entry.partition.length));
        writeln!(
            out,
            "  {start:>digits$}  {sectors:>digits$}  {id:>wide$}  {what} {marks} ({size})"
        )?;
        at = at.max(range.end);
    }
    if at < table.usable.end {
        free(at, table.usable.end, out)?;
    }
    writeln!(out)
}

/// `bytes` divided by 1024 while `more(quotient, remainder)`: quotient, remainder, power.
fn divided(bytes: u64, more: impl Fn(u64, u64) -> bool) -> (u64, u64, usize) {
    let (mut quotient, mut rest, mut power) = (bytes, 0, 0);
    while more(quotient, rest) && power < 6 {
        (quotient, rest, power) = (quotient / 1024, quotient % 1024, power + 1);
    }
    (quotient, rest, power)
}

/// A size as FreeBSD 10 and later print it: `233G`, `3.5K`, `1.0K`.
fn humanize(bytes: u64) -> String {
    let (quotient, rest, power) = divided(bytes, |q, r| q >= 1000 || (q == 999 && r >= 512));
    let prefix = ["B", "K", "M", "G", "T", "P", "E"][power];
    if power > 0 && (quotient < 9 || (quotient == 9 && rest < 973)) {
        let tenths = (10 * rest + 512) / 1024;
        format!("{}.{}{prefix}", quotient + tenths / 10, tenths % 10)
    } else {
        format!("{}{prefix}", quotient + (rest + 512) / 1024)
    }
}

/// A size as FreeBSD 9 prints it: `232G`, `25k`, `3.5k`.
fn humanize9(bytes: u64) -> String {
    let (quotient, rest, power) = divided(bytes, |q, r| q >= 1000 || (q == 999 && r >= 950));
    let prefix = ["B", "k", "M", "G", "T", "P", "E"][power];
    let rounded = rest + 50;
    if power > 0 && quotient <= 9 && rest < 950 {
        format!("{}.{}{prefix}", quotient + rounded / 1000, rounded / 100 % 10)
    } else {
        format!("{}{prefix}", quotient + rounded / 1000)
    }
}

#[cfg(test)]
#[path = "gpart/tests.rs"]
mod tests;
