//! `part show`'s text: gpart(8)'s, blank for blank, today's or that of FreeBSD 9.
//!
//! Sizes in parentheses are rounded as `humanize_number(3)` did in either: release 9 divides what is left over by 1000 where
//! it counted by 1024, and so says `232G` of 232.9.

use crate::words::escape;
use std::io;
use trueline_geom::table::scheme::Scheme;
use trueline_geom::table::{Entry, Table, types};

/// A table, what it is called, and who knows more of it.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// The provider it is on.
    pub name: &'a Called,
    pub table: &'a Table,
    pub scheme: &'a dyn Scheme,
}

/// The name of a provider as it is printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Called {
    text: String,
    /// What stands between it and the rest of a partition's name.
    join: &'static str,
}

impl Called {
    /// GEOM's name: `ada0`, `ada0s1`.
    pub(crate) fn geom(name: impl Into<String>) -> Called {
        Called { text: name.into(), join: "" }
    }

    /// The name that the command line takes, of provider `own` of these disks: `disk.img`, `disk.img#s1`.
    pub(crate) fn typed(disks: &str, own: &str) -> Called {
        match own {
            "" => Called { text: disks.into(), join: "#" },
            own => Called { text: format!("{disks}#{own}"), join: "" },
        }
    }

    /// The name itself.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The name of a provider on this one, by the rest of its name; its own without any.
    pub(crate) fn with(&self, suffix: &str) -> String {
        if suffix.is_empty() { self.text.clone() } else { format!("{}{}{suffix}", self.text, self.join) }
    }
}

impl Shown<'_> {
    /// What a partition is called. A logical one is the disk's, not the extended partition's that holds its chain.
    pub(crate) fn partition(&self, entry: &Entry) -> String {
        let suffix = self.scheme.suffix(entry);
        let digits = self.name.text.trim_end_matches(|c: char| c.is_ascii_digit());
        match digits.strip_suffix('s').filter(|_| self.table.lead > 0) {
            Some(disk) => format!("{disk}{suffix}"),
            None => self.name.with(&suffix),
        }
    }
}

/// What is said of a partition.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum What {
    /// Its type by name.
    #[default]
    Type,
    /// `-l`: its label.
    Label,
    /// `-r`: its type as it is on the disk.
    Raw,
}

/// How a table is shown.
#[derive(Clone, Copy, Default)]
pub(crate) struct Format {
    pub what: What,
    /// `-p`: names in place of indexes.
    pub names: bool,
    /// `--compat 9`.
    pub release9: bool,
    /// Types that gpart(8) has no name for by ours, which `add` takes; not where gpart's own words are asked for.
    pub ours: bool,
}

/// Writes a table and an empty line.
pub(crate) fn write(shown: Shown<'_>, format: Format, out: &mut dyn io::Write) -> io::Result<()> {
    let table = shown.table;
    let lba = |byte: u64| byte / table.sector.max(1);
    let size = |bytes| if format.release9 { humanize9(bytes) } else { humanize(bytes) };
    let digits = lba(table.usable.end.saturating_sub(1)).to_string().len();
    let names: Vec<String> = table.by_start().into_iter().map(|e| escape::plain(&shown.partition(e))).collect();
    let name = escape::plain(shown.name.text());
    let others = names.iter().filter(|_| format.names);
    let wide = others.chain([&name]).map(|n| n.chars().count()).max().unwrap_or(0);
    let corrupt = if table.damage.is_empty() { "" } else { " [CORRUPT]" };
    let (first, sectors) = (lba(table.usable.start), lba(table.usable.end.saturating_sub(table.usable.start)));
    let (scheme, whole) = (shown.scheme.name(), size(table.length));
    writeln!(out, "=>{first:>digits$}  {sectors:>digits$}  {name:>wide$}  {scheme}  ({whole}){corrupt}")?;
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
        let id = if format.names { name } else { entry.index.to_string() };
        let what = match format.what {
            What::Type => match types::gpart_name(entry.kind) {
                unnamed if format.ours && unnamed.starts_with('!') => types::name(entry.kind),
                name => name,
            },
            What::Label => entry.label.as_deref().map_or("(null)".into(), escape::plain),
            What::Raw => types::raw_name(entry.kind),
        };
        let marks = entry.marks(shown.scheme).join(",");
        let marks = if marks.is_empty() { String::new() } else { format!(" [{marks}] ") };
        let (start, sectors, size) = (lba(range.start), lba(range.end - range.start), size(entry.length));
        writeln!(out, "  {start:>digits$}  {sectors:>digits$}  {id:>wide$}  {what} {marks} ({size})")?;
        at = at.max(range.end);
    }
    if at < table.usable.end {
        free(at, table.usable.end, out)?;
    }
    writeln!(out)
}

/// What `bytes` divided by 1024 comes to while `more(quotient, rest)`: quotient, rest, power.
fn divided(bytes: u64, more: impl Fn(u64, u64) -> bool) -> (u64, u64, usize) {
    let (mut quotient, mut rest, mut power) = (bytes, 0, 0);
    while more(quotient, rest) && power < 6 {
        (quotient, rest, power) = (quotient / 1024, quotient % 1024, power + 1);
    }
    (quotient, rest, power)
}

/// As FreeBSD 10 and later: `233G`, `3.5K`, `1.0K`.
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

/// As FreeBSD 9: `232G`, `25k`, `3.5k`.
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
