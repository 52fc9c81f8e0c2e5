//! Markdown and plain text as requests of man(7): troff fills prose to the reader's width; tables
//! and code keep their lines.

use crate::style::Style;
use crate::words::width::columns_of;
use crate::words::{after_help, columns, terminal};
use std::io::{self, Write};

/// Columns for text that keeps its lines. A page of 80 columns indents a section by 7.
const WIDTH: usize = 70;
/// First characters of a line of a drawing, which is not broken.
const DRAWN: [char; 4] = ['│', '┌', '└', '├'];

/// Writes text whose paragraphs are filled; the lines of tables and code stay.
pub(super) fn markdown(page: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let mut lines = page.trim().lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.trim_end();
        if text.starts_with("```") {
            let code: Vec<&str> =
                lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            verbatim(&code.iter().flat_map(|line| code_lines(line)).collect::<Vec<_>>(), out)?;
        } else if let Some(first) = text.strip_prefix("    ") {
            let mut code = code_lines(first);
            while let Some(more) = lines.peek().and_then(|line| line.strip_prefix("    ")) {
                code.extend(code_lines(more));
                lines.next();
            }
            verbatim(&code, out)?;
        } else if text.starts_with('|') {
            let mut table = vec![text];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                table.push(row);
            }
            verbatim(&set(&table.join("\n"))?, out)?;
        } else if text.starts_with('#') {
            writeln!(out, ".SS \"{}\"", quoted(text.trim_start_matches('#').trim()))?;
        } else if !text.is_empty() {
            let (mark, rest) = item(text);
            match mark {
                Some(mark) => writeln!(out, ".IP \"{mark}\" 4\n{}", inline(rest))?,
                None => writeln!(out, ".PP\n{}", inline(text))?,
            }
            while let Some(more) = lines.next_if(|line| continues(line)) {
                writeln!(out, "{}", inline(more.trim()))?;
            }
        }
    }
    Ok(())
}

/// Writes a block of the text after the options of `--help`: a paragraph is filled, and lines of a
/// list keep their form.
pub(super) fn block(body: &str, out: &mut Vec<u8>, examples: bool) -> io::Result<()> {
    if !examples && body.lines().all(|line| !line.starts_with(' ')) {
        return writeln!(out, ".PP\n{}", text(&body.lines().collect::<Vec<_>>().join("\n")));
    }
    let mut set = Vec::new();
    let title = if examples { "Examples:\n" } else { "" };
    after_help::write(&format!("{title}{body}"), Some(WIDTH), &mut set)?;
    let set = String::from_utf8_lossy(&set);
    verbatim(&set.lines().skip(usize::from(examples)).map(str::to_owned).collect::<Vec<_>>(), out)
}

/// True if a line goes on with the paragraph or the item above it.
fn continues(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty()
        && !line.starts_with("    ")
        && !["#", "|", "```"].iter().any(|mark| text.starts_with(mark))
        && item(text).0.is_none()
}

/// The mark of an item of a list, if the line begins one, and the text behind it.
fn item(text: &str) -> (Option<String>, &str) {
    if let Some(rest) = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")) {
        return (Some("\\(bu".to_owned()), rest);
    }
    let number = text
        .split_once(". ")
        .filter(|(number, _)| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()));
    number.map_or((None, text), |(number, rest)| (Some(format!("{number}.")), rest))
}

/// A line of code in lines that fit: a command ends in backslashes, what it prints goes on with an
/// indentation.
fn code_lines(line: &str) -> Vec<String> {
    let mut set = Vec::new();
    let page = format!("    {}", line.trim_end());
    let style = Style { width: Some(WIDTH + 4), ascii: true };
    let written = terminal::write(&page, &mut set, style)
        .map(|()| anstream::adapter::strip_bytes(&set).into_vec());
    let text = String::from_utf8_lossy(&written.unwrap_or_default()).into_owned();
    text.trim_end_matches('\n')
        .split('\n')
        .flat_map(|line| fitting(line.strip_prefix("    ").unwrap_or(line)))
        .collect()
}

/// A line of output in lines that fit.
fn fitting(line: &str) -> Vec<String> {
    if columns_of(line) <= WIDTH || line.chars().any(|c| DRAWN.contains(&c)) {
        return vec![line.to_owned()];
    }
    let mut set = Vec::new();
    // Memory takes every write.
    let _ = columns::wrap("", 0, line, 6, Some(WIDTH), &mut set);
    String::from_utf8_lossy(&set).lines().map(str::to_owned).collect()
}

/// A table of Markdown in lines that fit.
fn set(table: &str) -> io::Result<Vec<String>> {
    let mut set = Vec::new();
    terminal::write(table, &mut set, Style { width: Some(WIDTH), ascii: true })?;
    let plain = anstream::adapter::strip_bytes(&set).into_vec();
    Ok(String::from_utf8_lossy(&plain).lines().map(str::to_owned).collect())
}

/// Lines that stay as they are, behind an empty one; those of a wide drawing begin at the edge.
fn verbatim(lines: &[String], out: &mut Vec<u8>) -> io::Result<()> {
    let wide = lines.iter().any(|line| columns_of(line) > WIDTH);
    let (begin, end) = if wide { (".in -7", ".in +7") } else { (".RS 2", ".RE") };
    writeln!(out, ".PP\n{begin}\n.nf\n{}\n.fi\n{end}", text(&lines.join("\n")))
}

/// Text as roff sets it: nothing in it is a request.
pub(super) fn text(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let lines: Vec<String> = text
        .lines()
        .map(|line| if line.starts_with('.') { format!("\\&{line}") } else { line.to_owned() })
        .collect();
    lines.join("\n")
}

/// Text as the argument of a request, between double quotes.
pub(super) fn quoted(words: &str) -> String {
    text(words).replace('"', "\\(dq")
}

/// A line of Markdown: code and strong text are bold, links their words.
fn inline(line: &str) -> String {
    let mut out = String::new();
    for (nth, part) in line.split('`').enumerate() {
        match nth % 2 {
            0 => out.push_str(&strong(&terminal::unlinked(part))),
            _ => out.push_str(&format!("\\fB{}\\fR", text(part))),
        }
    }
    if out.starts_with('.') { format!("\\&{out}") } else { out }
}

/// Text in which words between double stars are bold.
fn strong(line: &str) -> String {
    let parts = line.split("**").enumerate();
    parts
        .map(
            |(nth, part)| if nth % 2 == 0 { text(part) } else { format!("\\fB{}\\fR", text(part)) },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_left_to_troff_and_code_fits() {
        let page = "One `-a` two\nthree.\n\n- item\n  goes on\n\n```\n$ trueline serve disk.img \
            --overlay mem --emulate wd10ears --run 'one two three' --json x\n```\n";
        let mut out = Vec::new();
        markdown(page, &mut out).expect("memory");
        let out = String::from_utf8(out).expect("text");
        let want = ".PP\nOne \\fB\\-a\\fR two\nthree.\n.IP \"\\(bu\" 4\nitem\ngoes on\n.PP\n.RS 2\n\
            .nf\n$ trueline serve disk.img \\-\\-overlay mem \\-\\-emulate wd10ears \\-\\-run \\e\
            \n    \\(aqone two three\\(aq \\-\\-json x\n.fi\n.RE\n";
        assert_eq!(out, want);
    }
}
