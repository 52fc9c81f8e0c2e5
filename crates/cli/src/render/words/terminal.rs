//! Markdown for a terminal: headings, paragraphs, lists and tables that fit its width, code as it stands.

use super::{columns, escape};
use crate::render::Style;
use anstyle::Style as Colour;
use std::io;

/// The narrowest column of a table that is broken into lines; a narrower terminal gets longer lines.
const NARROW: usize = 10;

/// Writes `page`. Without a width its text is as it was typed: for files, and for other programs.
pub(crate) fn write(page: &str, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let Some(width) = style.width else { return writeln!(out, "{}", page.trim_end()) };
    let mut lines = page.trim_end().lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.trim_end();
        if text.starts_with("```") {
            for code in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                writeln!(out, "    {}", escape::plain(code))?;
            }
        } else if text.is_empty() || text.starts_with("    ") {
            writeln!(out, "{}", escape::plain(text))?;
        } else if text.starts_with('#') {
            let bold = Colour::new().bold();
            writeln!(out, "{bold}{}{bold:#}", plain(text.trim_start_matches('#').trim()))?;
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

/// Whether a line goes on with the paragraph above it.
fn continues(line: &str) -> bool {
    let text = line.trim_start();
    let begins = ["#", "|", "```", "- ", "* "].iter().any(|mark| text.starts_with(mark)) || numbered(text).is_some();
    !text.is_empty() && !begins && !line.starts_with("    ")
}

/// Characters of the number in front of an item: `12. `.
fn numbered(text: &str) -> Option<usize> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (digits > 0 && text[digits..].starts_with(". ")).then_some(digits + 2)
}

fn paragraph(text: &str, width: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let bullet = if text.starts_with("- ") || text.starts_with("* ") { Some(2) } else { numbered(text) };
    let indent = bullet.unwrap_or(0);
    let (mark, rest) = text.split_at(indent);
    columns::wrap(mark, indent, &plain(rest), indent, Some(width), out)
}

/// The cells of a row, without their marks.
fn cells(row: &str) -> Vec<String> {
    let inner = row.trim().trim_start_matches('|').trim_end_matches('|');
    inner.replace(r"\|", "\u{1}").split('|').map(|cell| plain(cell.trim()).replace(r"\u{1}", "|")).collect()
}

/// Text without the marks of code, emphasis and links; what a terminal would obey is spelt out.
fn plain(text: &str) -> String {
    let mut unlinked = String::new();
    let mut rest = text;
    // `[words](place)` is its words; a place that is all there is, as `<place>`, stays.
    while let Some((before, (words, after))) =
        rest.split_once('[').and_then(|(b, a)| Some((b, a.split_once("](").and_then(|(w, p)| Some((w, p.split_once(')')?.1)))?)))
    {
        unlinked = unlinked + before + words;
        rest = after;
    }
    escape::plain(&(unlinked + rest).replace("**", "").replace('`', ""))
}

/// A table whose columns share the width; the longest gives way first, broken into lines within its column.
fn table(rows: &[Vec<String>], width: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let is_rule = |row: &[String]| row.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| c == '-' || c == ':'));
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| !is_rule(row)).collect();
    let long = |nth: usize| rows.iter().filter_map(|row| row.get(nth)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let mut wide: Vec<usize> = (0..count).map(long).collect();
    while wide.iter().sum::<usize>() + 2 * count.saturating_sub(1) > width {
        let Some(most) = wide.iter_mut().max().filter(|most| **most > NARROW) else { break };
        *most -= 1;
    }
    for row in rows {
        let broken: Vec<Vec<String>> = (0..count).map(|nth| lines(row.get(nth).map_or("", String::as_str), wide[nth])).collect();
        for line in 0..broken.iter().map(Vec::len).max().unwrap_or(0) {
            let cells = broken.iter().zip(&wide).map(|(cell, wide)| format!("{:wide$}", cell.get(line).map_or("", String::as_str)));
            writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
    }
    Ok(())
}

/// `text` in lines of at most `width`, broken between words.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > width {
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
        let page = "# A `b`\n\nOne **two** [three](x.md)\nfour five.\n\n- item one\n  goes on\n\n    code  as it is, however long it is\n\n| k | v |\n|---|---|\n| `a` | one two three four five |\n";
        let want = "A b\n\nOne two three\nfour five.\n\n- item one goes\n  on\n\n    code  as it is, however long it is\n\nk  v\na  one two three\n   four five\n";
        assert_eq!(anstream::adapter::strip_str(&at(Some(16), page)).to_string(), want);
        assert_eq!(at(None, page), page);
    }

    #[test]
    fn every_page_of_a_rule_fits_a_terminal_of_80_but_for_its_code() {
        for rule in RULES {
            let text = anstream::adapter::strip_str(&at(Some(80), rule.page)).to_string();
            let wide = text.lines().find(|line| line.chars().count() > 80 && !line.starts_with("    "));
            assert_eq!(wide, None, "{}", rule.id);
            let marked = text.lines().find(|line| !line.starts_with("    ") && (line.contains("**") || line.starts_with('|')));
            assert_eq!(marked, None, "{}", rule.id);
        }
    }
}
