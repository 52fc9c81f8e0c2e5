//! The text of `show`: every provider and every range of free space, in order of start.

use super::stack::Stack;
use crate::report::{Provider, Range, Report, Target};
use crate::style::Style;
use crate::words::columns::{self, Cell, Spare};
use crate::words::{self, escape, size};
use anstyle::Style as Colour;
use std::io;
use trueline_geom::base::topology::is_whole;

/// Writes the trees for people.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    for (nth, target) in report.targets.iter().enumerate() {
        if nth > 0 {
            writeln!(out)?;
        }
        let bold = Colour::new().bold();
        writeln!(out, "{bold}{}{bold:#}", escape::plain(&target.target))?;
        if let Some(judged) = &target.judged {
            judged.write(style.width, out)?;
        }
        write_target(target, out, style)?;
    }
    Ok(())
}

/// A row of the tree: a provider, or free space on one.
enum Item<'a> {
    Provider(usize),
    Free(&'a Provider, &'a Range),
}

fn write_target(target: &Target, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let dim = Colour::new().dimmed();
    let left = |s: &str| Cell::left(s).colour(dim);
    let right = |s: &str| Cell::right(s).colour(dim);
    let mut rows = vec![vec![
        left("PROVIDER"),
        right("START"),
        right("(LBA)"),
        right("LENGTH"),
        right("(SECTORS)"),
        right("SIZE"),
        left("TYPE"),
        left("CONTENT"),
        left("MOUNTED"),
        left("LABEL"),
    ]];
    let stack = Stack::new(target);
    let mut todo: Vec<(String, String, Item<'_>)> = stack
        .roots
        .iter()
        .rev()
        .map(|&r| (String::new(), String::new(), Item::Provider(r)))
        .collect();
    while let Some((under, branch, item)) = todo.pop() {
        let id = match item {
            Item::Free(on, range) => {
                rows.push(free_row(&branch, on, range, dim));
                continue;
            }
            Item::Provider(id) => id,
        };
        rows.push(row(&branch, target, &target.providers[id]));
        let items = items(target, &stack, id);
        let count = items.len();
        for (nth, item) in items.into_iter().enumerate().rev() {
            let last = nth + 1 == count;
            let tee = if last { style.glyph("└─", "`-") } else { style.glyph("├─", "|-") };
            let bar = if last { "  " } else { style.glyph("│ ", "| ") };
            todo.push((format!("{under}{bar}"), format!("{under}{tee}"), item));
        }
    }
    columns::write(&rows, &Spare(&[9, 4, 2, 8, 3], "-o"), style.width, out)
}

/// The providers on `id` and the free space between them, by start.
fn items<'a>(target: &'a Target, stack: &Stack<'_>, id: usize) -> Vec<Item<'a>> {
    let p = &target.providers[id];
    let mut items: Vec<(u64, Item<'_>)> =
        stack.children(id).iter().map(|&c| (target.providers[c].base, Item::Provider(c))).collect();
    if let Some(table) = &p.table {
        items.extend(table.free.iter().map(|r| (p.base.saturating_add(r.start), Item::Free(p, r))));
    }
    items.sort_by_key(|(start, _)| *start);
    items.into_iter().map(|(_, item)| item).collect()
}

fn row(branch: &str, target: &Target, p: &Provider) -> Vec<Cell> {
    let over = if p.members.is_empty() {
        String::new()
    } else {
        format!(" over {}", p.members.join(", "))
    };
    vec![
        Cell::left(format!("{branch}{}", words::name(&p.provider))),
        Cell::right(words::start_cell(p)),
        Cell::right(if p.placed { sectors(words::start(p), p) } else { String::new() }),
        Cell::right(p.length.to_string()),
        Cell::right(sectors(p.length, p)),
        Cell::right(size::human(p.length)),
        Cell::left(p.kind.as_deref().map_or(String::new(), escape::plain)),
        Cell::left(format!("{}{}", words::content(target, p), escape::plain(&over))),
        Cell::left(p.mountpoint.as_deref().map_or(String::new(), escape::plain)),
        Cell::left(p.label.as_deref().map_or(String::new(), escape::plain)),
    ]
}

fn free_row(branch: &str, on: &Provider, range: &Range, dim: Colour) -> Vec<Cell> {
    let start = words::start(on).saturating_add(range.start);
    let right = |s: String| Cell::right(s).colour(dim);
    let mut row = vec![
        Cell::left(format!("{branch}(free)")).colour(dim),
        right(start.to_string()),
        right(sectors(start, on)),
        right(range.length.to_string()),
        right(sectors(range.length, on)),
        right(size::human(range.length)),
    ];
    row.resize(10, Cell::default());
    row
}

/// Bytes in sectors, `(63)`; empty if they are not whole sectors.
fn sectors(bytes: u64, p: &Provider) -> String {
    if is_whole(bytes, p.sector_size) {
        format!("({})", bytes / p.sector_size)
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn free_space_stands_where_it_is() {
        let report = samples::report(vec![samples::gpt(), samples::stripe()]);
        let text = samples::text(|out| write(&report, out, Style::default()));
        samples::golden("tree.txt", &text);
    }
}
