//! Markdown for a terminal: headings, paragraphs, lists and tables that fit its width.
//!
//! Code that fits stays as it is. Of code that does not fit, a command is folded with backslashes
//! and its remark stands above it; lines that `check` printed are broken as `check` breaks them;
//! drawings and other programs' output stay as wide as they are.

use super::columns::{self, Cell, Spare};
use super::escape;
use crate::style::Style;
use crate::words::after_help;
use crate::words::width::columns_of;
use anstyle::Style as Colour;
use std::io;

/// Narrowest column of a table that is broken into lines; if even such columns do not fit, a row
/// becomes a paragraph.
const NARROW: usize = 10;

/// Writes `page`. Without a width it stays as typed, for files and other programs.
pub(crate) fn write(page: &str, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let Some(width) = style.width else { return writeln!(out, "{}", page.trim_end()) };
    let mut lines = page.trim_end().lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.trim_end();
        if text.starts_with("```") {
            for code in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                write_code(&format!("    {code}"), width, out)?;
            }
        } else if text.is_empty() || text.starts_with("    ") {
            write_code(text, width, out)?;
        } else if text.starts_with('#') {
            let bold = Colour::new().bold();
            write!(out, "{bold}")?;
            columns::line(&plain(text.trim_start_matches('#').trim()), Some(width), out)?;
            write!(out, "{bold:#}")?;
        } else if text.starts_with('|') {
            let mut rows = vec![cells(text)];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            table(&rows, width, out)?;
        } else {
            let mut whole = text.to_owned();
            while let Some(more) = lines.next_if(|line| continues(line)) {
                whole = whole + " " + more.trim();
            }
            paragraph(&whole, width, out)?;
        }
    }
    Ok(())
}

/// First words of the lines that Trueline prints and breaks itself.
const PRINTED: [&str; 7] =
    ["error TL", "warning TL", "note TL", "costs: ", "fix: ", "or: ", "trueline: "];

/// Writes a line of code.
fn write_code(line: &str, width: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let line = escape::plain(line.trim_end());
    let code = line.trim_start();
    let indent = line.len() - code.len();
    if columns_of(&line) <= width {
        return writeln!(out, "{line}");
    }
    if PRINTED.iter().any(|begin| code.starts_with(begin)) {
        return columns::wrap(&" ".repeat(indent), indent, code, indent + 7, Some(width), out);
    }
    let (command, remark) =
        code.split_once(" # ").map_or((code, ""), |(command, remark)| (command.trim_end(), remark));
    // A drawing has gaps of two blanks, and a line of output has no option.
    if command.contains("  ") || remark.is_empty() && !command.contains(" -") {
        return writeln!(out, "{line}");
    }
    if !remark.is_empty() {
        write!(out, "{:indent$}", "")?;
        columns::wrap("# ", indent + 2, remark, indent + 2, Some(width), out)?;
    }
    writeln!(out, "{}", after_help::folded(command, indent, width))
}

/// True if a line continues the paragraph above it.
fn continues(line: &str) -> bool {
    let text = line.trim_start();
    let begins = ["#", "|", "```", "- ", "* "].iter().any(|mark| text.starts_with(mark))
        || numbered(text).is_some();
    !text.is_empty() && !begins && !line.starts_with("    ")
}

/// Length of the number in front of a list item, `12. `, in characters.
fn numbered(text: &str) -> Option<usize> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (digits > 0 && text[digits..].starts_with(". ")).then_some(digits + 2)
}

fn paragraph(text: &str, width: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let bullet =
        if text.starts_with("- ") || text.starts_with("* ") { Some(2) } else { numbered(text) };
    let indent = bullet.unwrap_or(0);
    let (mark, rest) = text.split_at(indent);
    columns::wrap(mark, indent, &plain(rest), indent, Some(width), out)
}

/// The cells of a row, without their separators.
fn cells(row: &str) -> Vec<String> {
    let inner = row.trim().trim_start_matches('|').trim_end_matches('|');
    inner
        .replace(r"\|", "\u{1}")
        .split('|')
        .map(|cell| plain(cell.trim()).replace(r"\u{1}", "|"))
        .collect()
}

/// Text without the marks of code, emphasis and links; control characters are spelt out.
fn plain(text: &str) -> String {
    escape::plain(&unlinked(text).replace("**", "").replace('`', ""))
}

/// Text whose links are their words: `[words](place)`; `<place>` stays.
pub(crate) fn unlinked(text: &str) -> String {
    let mut unlinked = String::new();
    let mut rest = text;
    while let Some((before, (words, after))) = rest.split_once('[').and_then(|(b, a)| {
        Some((b, a.split_once("](").and_then(|(w, p)| Some((w, p.split_once(')')?.1)))?))
    }) {
        unlinked = unlinked + before + words;
        rest = after;
    }
    unlinked + rest
}

/// Writes a table whose columns share the width. The widest column gives way first and is broken
/// into lines.
fn table(rows: &[Vec<String>], width: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let is_rule = |row: &[String]| {
        row.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| c == '-' || c == ':'))
    };
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| !is_rule(row)).collect();
    let column = |nth: usize| rows.iter().filter_map(move |row| row.get(nth));
    let long = |nth: usize| column(nth).map(|cell| columns_of(cell)).max().unwrap_or(0);
    let word = |nth: usize| {
        column(nth).flat_map(|cell| cell.split_whitespace()).map(columns_of).max().unwrap_or(0)
    };
    let mut wide: Vec<usize> = (0..count).map(long).collect();
    let least: Vec<usize> = (0..count).map(|nth| word(nth).max(NARROW)).collect();
    let fits = |wide: &[usize]| wide.iter().sum::<usize>() + 2 * count.saturating_sub(1) <= width;
    while !fits(&wide) {
        let widest = wide
            .iter_mut()
            .zip(&least)
            .filter(|(wide, least)| **wide > **least)
            .max_by_key(|(wide, _)| **wide);
        let Some((most, _)) = widest else { break };
        *most -= 1;
    }
    if !fits(&wide) {
        let cells = |row: &&Vec<String>| {
            (0..count).map(|nth| Cell::left(row.get(nth).map_or("", String::as_str))).collect()
        };
        let rows: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
        return columns::write(&rows, &Spare::NONE, Some(width), out);
    }
    for row in rows {
        let broken: Vec<Vec<String>> = (0..count)
            .map(|nth| lines(row.get(nth).map_or("", String::as_str), wide[nth]))
            .collect();
        for line in 0..broken.iter().map(Vec::len).max().unwrap_or(0) {
            let cells = broken
                .iter()
                .zip(&wide)
                .map(|(cell, wide)| format!("{:wide$}", cell.get(line).map_or("", String::as_str)));
            writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
    }
    Ok(())
}

/// `text` in lines of at most `width` characters, broken between words.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().map_or(0, |line| columns_of(line));
        if line > 0 && line + 1 + columns_of(word) > width {
            lines.push(word.to_owned());
        } else if let Some(last) = lines.last_mut() {
            let space = if line > 0 { " " } else { "" };
            *last = format!("{last}{space}{word}");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;
    use trueline_geom::base::finding::RULES;

    fn at(width: Option<usize>, page: &str) -> String {
        samples::text(|out| write(page, out, Style { width, ascii: false }))
    }

    #[test]
    fn marks_are_gone_and_lines_fit() {
        let page = "# A `b`\n\nOne **two** [three](x.md)\nfour five.\n\n- item one\n  goes on\n\
            \n    code  as it is, however long it is\n\n| k | v |\n|---|---|\n| `a` | one two \
            three four five |\n";
        let want = "A b\n\nOne two three\nfour five.\n\n- item one goes\n  on\n\n    code  as it \
            is, however long it is\n\nk  v\na  one two three\n   four five\n";
        assert_eq!(anstream::adapter::strip_str(&at(Some(16), page)).to_string(), want);
        assert_eq!(at(None, page), page);
    }

    #[test]
    fn code_is_broken_where_it_stays_what_it_is() {
        let page = "    cmd --one 'two three' --four        # what it does\n\n    error TL0001 p1: \
            starts at byte 512\n\n    a   drawing   is   as   wide   as   it   is\n";
        let want = "    # what it does\n    cmd --one \\\n        'two three' \\\n        --four\n\
            \n    error TL0001 p1:\n           starts at\n           byte 512\n\n    a   drawing   \
            is   as   wide   as   it   is\n";
        assert_eq!(at(Some(24), page), want);
        assert_eq!(at(None, page), page);
    }

    #[test]
    fn every_page_of_a_rule_fits_a_terminal_of_80_but_for_its_code() {
        for rule in RULES {
            let text = anstream::adapter::strip_str(&at(Some(80), rule.page)).to_string();
            let wide =
                text.lines().find(|line| line.chars().count() > 80 && !line.starts_with("    "));
            assert_eq!(wide, None, "{}", rule.id);
            let marked = text.lines().find(|line| {
                !line.starts_with("    ") && (line.contains("**") || line.starts_with('|'))
            });
            assert_eq!(marked, None, "{}", rule.id);
        }
    }
}
