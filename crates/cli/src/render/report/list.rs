//! The list of `-o`, `-n` and `-b`: a line for each provider, in the columns asked for, as users of
//! lsblk expect it.

use crate::failure::Reason;
use crate::report::{Provider, Report, Target};
use crate::words::width::columns_of;
use crate::words::{self, escape, size};
use std::io;
use trueline_geom::base::finding::Severity;

/// A column of the list.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    /// Its heading, as typed.
    pub(crate) name: &'static str,
    right: bool,
    value: fn(&Target, &Provider, bool) -> String,
}

/// All columns that there are.
pub(crate) const COLUMNS: [Column; 16] = [
    left("NAME", |t, p, _| named(t, p)),
    left("TARGET", |t, _, _| t.target.clone()),
    left("PROVIDER", |_, p, _| words::name(&p.provider)),
    left("CONTENT", |t, p, _| words::content(t, p)),
    left("TYPE", |_, p, _| p.kind.clone().unwrap_or_default()),
    right("START", |_, p, _| words::start(p).to_string()),
    right("LBA", |_, p, _| words::lba(p).map_or(String::new(), |lba| lba.to_string())),
    right("SIZE", |_, p, bytes| {
        if bytes { p.length.to_string() } else { size::human(p.length).replace(' ', "") }
    }),
    right("ALIGN", |_, p, bytes| {
        p.largest_grain
            .map_or(String::new(), |a| if bytes { a.to_string() } else { size::short(a) })
    }),
    right("BLOCK", |_, p, _| p.block_size.map_or(String::new(), |block| block.to_string())),
    right("SECTOR", |_, p, _| p.sector_size.to_string()),
    left("VERDICT", |_, p, _| words::shown(p).map_or("", words::verdict).to_owned()),
    right("COST", |t, p, _| cost(t, p)),
    left("LABEL", |_, p, _| p.label.clone().unwrap_or_default()),
    left("UUID", |_, p, _| p.uuid.clone().unwrap_or_default()),
    left("MOUNTPOINT", |_, p, _| p.mountpoint.clone().unwrap_or_default()),
];

const fn left(name: &'static str, value: fn(&Target, &Provider, bool) -> String) -> Column {
    Column { name, right: false, value }
}

const fn right(name: &'static str, value: fn(&Target, &Provider, bool) -> String) -> Column {
    Column { name, right: true, value }
}

/// The columns of a list without `-o`.
pub(crate) fn usual() -> Vec<Column> {
    let names = ["NAME", "CONTENT", "START", "SIZE", "ALIGN", "VERDICT", "LABEL"];
    COLUMNS.into_iter().filter(|column| names.contains(&column.name)).collect()
}

impl Column {
    /// The column called `name`, in any case. Errors: no such column.
    pub(crate) fn parse(name: &str) -> Result<Column, Reason> {
        let names = || COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
        COLUMNS
            .into_iter()
            .find(|column| column.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| Reason(format!("there are {}", names())))
    }
}

/// The provider as a command line takes it.
pub(super) fn named(target: &Target, p: &Provider) -> String {
    let disks = target.target.split_once('#').map_or(target.target.as_str(), |(disks, _)| disks);
    if p.provider.is_empty() { disks.to_owned() } else { format!("{disks}#{}", p.provider) }
}

/// Device operations of the dearest finding on it, relative to the same I/O on the grain.
fn cost(target: &Target, p: &Provider) -> String {
    let found =
        target.findings.iter().filter(|f| f.provider == p.provider && f.severity != Severity::Note);
    let worst = found.map(|f| f.rmw_factor).fold(1.0, f64::max);
    if p.data_bearing { format!("{worst:.2}") } else { String::new() }
}

/// Writes the list; `bytes`: sizes as whole numbers of bytes. A missing value is `-`.
pub(crate) fn write(
    report: &Report,
    columns: &[Column],
    header: bool,
    bytes: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let value = |column: &Column, t: &Target, p: &Provider| {
        let value = escape::plain(&(column.value)(t, p, bytes));
        if value.is_empty() { "-".to_owned() } else { value }
    };
    let heads =
        header.then(|| columns.iter().map(|column| column.name.to_owned()).collect::<Vec<_>>());
    let providers =
        report.targets.iter().flat_map(|target| target.providers.iter().map(move |p| (target, p)));
    let rows: Vec<Vec<String>> = heads
        .into_iter()
        .chain(providers.map(|(t, p)| columns.iter().map(|column| value(column, t, p)).collect()))
        .collect();
    let wide: Vec<usize> = (0..columns.len())
        .map(|nth| rows.iter().map(|row| columns_of(&row[nth])).max().unwrap_or(0))
        .collect();
    for row in &rows {
        let cells = row.iter().zip(columns).zip(&wide).map(|((cell, column), &wide)| {
            let room = " ".repeat(wide.saturating_sub(columns_of(cell)));
            if column.right { room + cell } else { cell.clone() + &room }
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn a_line_a_provider_and_nothing_else() {
        let report = samples::report(vec![samples::openbsd()]);
        let columns: Vec<Column> = ["name", "START", "align", "verdict"]
            .map(|name| Column::parse(name).ok().unwrap())
            .to_vec();
        let text = samples::text(|out| write(&report, &columns, false, true, out));
        assert_eq!(text.lines().count(), report.targets[0].providers.len());
        let wanted = ["openbsd.img#s4a", "32256", "512", "misaligned"];
        assert!(text.lines().any(|line| line.split_whitespace().eq(wanted)), "{text}");
        let text = samples::text(|out| write(&report, &usual(), true, false, out));
        assert!(
            text.starts_with("NAME ") && text.lines().next().unwrap().ends_with("LABEL"),
            "{text}"
        );
        assert!(Column::parse("nonsense").err().unwrap().0.contains("NAME, TARGET"));
    }
}
