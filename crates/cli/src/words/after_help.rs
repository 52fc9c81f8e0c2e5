//! Text after the options of `--help` (examples, lists of names, paragraphs), laid out for a
//! terminal.
//!
//! A command is broken only between words of a shell, and the line then ends in a backslash.

use crate::words::columns;
use crate::words::width::columns_of;
use std::io;

/// Columns of a page without a terminal.
const USUAL: usize = 80;
/// Indentation of continued lines, in columns.
const FURTHER: usize = 4;

/// Writes `text`: blocks with an empty line between them. A block called `Examples:` holds
/// commands, each with an optional remark after two or more blanks. Other indented lines hold a
/// name and its meaning, or words without such a gap. The rest are paragraphs.
pub(crate) fn write(text: &str, width: Option<usize>, out: &mut dyn io::Write) -> io::Result<()> {
    let width = width.unwrap_or(USUAL);
    for (nth, block) in text.split("\n\n").enumerate() {
        if nth > 0 {
            writeln!(out)?;
        }
        let examples = block.starts_with("Examples:");
        let mut lines = block.lines().peekable();
        while let Some(line) = lines.next() {
            match line.strip_prefix("  ") {
                Some(example) if examples => write_example(example, width, out)?,
                Some(entry) if entry.contains("  ") => write_entry(entry, width, out)?,
                Some(words) => {
                    let mut whole = words.to_owned();
                    while let Some(more) =
                        lines.next_if(|line| line.starts_with("  ") && !line[2..].contains("  "))
                    {
                        whole = whole + " " + more.trim_start();
                    }
                    columns::wrap("  ", 2, &whole, 2, Some(width), out)?;
                }
                None => {
                    let mut whole = line.to_owned();
                    while let Some(more) = lines.next_if(|line| !line.starts_with(' ')) {
                        whole = whole + " " + more;
                    }
                    columns::wrap("", 0, &whole, 0, Some(width), out)?;
                }
            }
        }
    }
    Ok(())
}

/// Writes a command with its remark beside it, or beneath it if there is no room.
fn write_example(example: &str, width: usize, out: &mut dyn io::Write) -> io::Result<()> {
    if columns_of(example) + 2 <= width {
        return writeln!(out, "  {example}");
    }
    let (command, remark) = example.split_once("  ").unwrap_or((example, ""));
    let remark = remark.trim();
    writeln!(out, "{}", folded(command, 2, width))?;
    let indent = 2 + FURTHER;
    match remark {
        "" => Ok(()),
        remark => columns::wrap(&" ".repeat(indent), indent, remark, indent, Some(width), out),
    }
}

/// Writes a name and its meaning; lines of the meaning continue beneath it.
fn write_entry(entry: &str, width: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let (name, about) = entry.split_once("  ").unwrap_or((entry, ""));
    let at = entry.len() - about.trim_start().len() + 2;
    let indent = if at <= width / 2 { at } else { 2 + FURTHER };
    let pad = at - 2 - columns_of(name);
    columns::wrap(&format!("  {name}{:pad$}", ""), at, about.trim_start(), indent, Some(width), out)
}

/// A command from column `indent` on, folded to `width` with a backslash at the end of each line
/// but the last.
pub(crate) fn folded(command: &str, indent: usize, width: usize) -> String {
    let mut text = " ".repeat(indent);
    let mut at = indent;
    let words = shell_words(command);
    for (nth, word) in words.iter().enumerate() {
        let length = columns_of(word);
        // Every word but the last needs room for the backslash behind it.
        let behind = if nth + 1 == words.len() { 0 } else { 2 };
        if nth > 0 && at + 1 + length + behind > width && at > indent + FURTHER {
            text += &format!(" \\\n{:1$}", "", indent + FURTHER);
            at = indent + FURTHER;
        } else if nth > 0 {
            text.push(' ');
            at += 1;
        }
        text += word;
        at += length;
    }
    text
}

/// The words of a command; quoted text stays in one word.
fn shell_words(command: &str) -> Vec<&str> {
    let (mut words, mut from, mut quote) = (Vec::new(), 0, None);
    for (at, c) in command.char_indices() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => {
                words.push(&command[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    words.push(&command[from..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    fn at(width: usize, text: &str) -> String {
        samples::text(|out| write(text, Some(width), out))
    }

    #[test]
    fn commands_are_whole_or_end_in_a_backslash() {
        let text = "Examples:\n  trueline check disk.img     an image, as it is\n  trueline serve \
            d --run 'a b c d e f' --x";
        assert_eq!(at(80, text), format!("{text}\n"));
        let want = "Examples:\n  trueline check disk.img\n      an image, as it is\n  trueline \
            serve d --run \\\n      'a b c d e f' --x\n";
        assert_eq!(at(30, text), want);
        assert_eq!(folded("a 'b", 0, 2), "a 'b");
    }

    #[test]
    fn what_is_long_goes_on_beneath_itself() {
        let long = "word ".repeat(20);
        let words = "Types:\n  one two\n  three";
        let text = format!(
            "Uses:\n  a          short\n  long-name  {}\n\n{words}\n\nA paragraph\nthat goes on.",
            long.trim_end()
        );
        let text = at(80, &text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["Uses:", "  a          short"]);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80)
                && lines[3].starts_with("             word"),
            "{text}"
        );
        assert!(
            text.ends_with("\n\nTypes:\n  one two three\n\nA paragraph that goes on.\n"),
            "{text}"
        );
    }
}
