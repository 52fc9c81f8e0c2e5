//! Rows of cells in aligned columns.

use crate::words::width::columns_of;
use anstyle::Style as Colour;
use std::io;

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    colour: Colour,
    right: bool,
    wraps: bool,
    beneath: bool,
}

impl Cell {
    /// A cell aligned left.
    pub(crate) fn left(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// A cell aligned right, for numbers.
    pub(crate) fn right(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), right: true, ..Cell::default() }
    }

    /// The cell in that colour.
    #[must_use]
    pub(crate) fn colour(mut self, colour: Colour) -> Cell {
        self.colour = colour;
        self
    }

    /// A cell of the heading: its column, if it is the last, may be broken between words.
    #[must_use]
    pub(crate) fn wrapped(mut self) -> Cell {
        self.wraps = true;
        self
    }

    /// The cell of the heading: its column, if it is the last and has no room, stands on lines of
    /// its own beneath the rows.
    #[must_use]
    pub(crate) fn beneath(mut self) -> Cell {
        self.beneath = true;
        self
    }

    fn width(&self) -> usize {
        columns_of(&self.text)
    }
}

/// Least width of a wrapped column; with less room the table is written as paragraphs.
const WRAPPED: usize = 24;

/// Columns that a table can do without, the first of them first, and the options that show them
/// anyway: `-o or --json`.
pub(crate) struct Spare<'a>(pub &'a [usize], pub &'a str);

impl Spare<'_> {
    /// A table that needs every column.
    pub(crate) const NONE: Spare<'static> = Spare(&[], "");
}

/// Writes `rows`, all of one length, two spaces apart; the first is the heading. Empty columns are
/// left out. If the rows do not fit `width`, the columns of `spare` are left out and named in a
/// line beneath the table. If that is not enough, each row becomes a paragraph. A line is wider
/// than `width` only if a single word is.
pub(crate) fn write(
    rows: &[Vec<Cell>],
    spare: &Spare<'_>,
    width: Option<usize>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let Spare(spare, elsewhere) = *spare;
    let columns = rows.first().map_or(0, Vec::len);
    debug_assert!(
        rows.is_empty() || spare.iter().all(|&i| i < columns),
        "columns {spare:?} of {columns}"
    );
    // The first row is the heading: a column with no other text is left out.
    let empty = |i: usize| rows.iter().skip(1).all(|r| r[i].text.is_empty());
    let mut widths: Vec<usize> = (0..columns)
        .map(|i| if empty(i) { 0 } else { rows.iter().map(|r| r[i].width()).max().unwrap_or(0) })
        .collect();
    let whole = widths.clone();
    let mut spare = spare.iter();
    let mut beneath = None;
    while !fit(rows, &mut widths, width) {
        let last = widths
            .iter()
            .rposition(|&w| w > 0)
            .filter(|&i| beneath.is_none() && rows[0][i].beneath);
        if let Some(last) = last {
            (widths[last], beneath) = (0, Some(last));
            continue;
        }
        match spare.next() {
            Some(&i) => widths.iter_mut().skip(i).take(1).for_each(|width| *width = 0),
            // A paragraph has room for every column.
            None => return write_paragraphs(rows, &whole, width, out),
        }
    }
    write_table(rows, &widths, beneath.map(|i| (i, width)), out)?;
    let gone: Vec<usize> =
        (0..columns).filter(|&i| whole[i] > 0 && widths[i] == 0 && beneath != Some(i)).collect();
    if gone.is_empty() { Ok(()) } else { write_gone(&rows[0], &gone, elsewhere, width, out) }
}

/// Writes `rows`, which have no heading, two spaces apart, however wide.
pub(crate) fn write_bare(rows: &[Vec<Cell>], out: &mut dyn io::Write) -> io::Result<()> {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..columns).map(|i| rows.iter().map(|r| r[i].width()).max().unwrap_or(0)).collect();
    write_table(rows, &widths, None, out)
}

/// Writes the line beneath a table that names the columns left out and the way to see them.
fn write_gone(
    heading: &[Cell],
    gone: &[usize],
    elsewhere: &str,
    width: Option<usize>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let name = |&i: &usize| {
        Some(heading[i].text.trim()).filter(|name| !name.is_empty()).unwrap_or("remarks")
    };
    let names: Vec<String> = gone.iter().map(|i| format!("'{}'", name(i))).collect();
    let them = if names.len() == 1 { "it" } else { "them" };
    let text =
        format!("No room for {}: a wider terminal or {elsewhere} shows {them}.", names.join(", "));
    let dim = Colour::new().dimmed();
    write!(out, "{dim}")?;
    flow(0, &text, 2, width, out)?;
    writeln!(out, "{dim:#}")
}

/// True if columns of these widths fit; narrows the last one if its heading allows a wrap.
fn fit(rows: &[Vec<Cell>], widths: &mut [usize], width: Option<usize>) -> bool {
    let total: usize = widths.iter().filter(|&&w| w > 0).map(|w| w + 2).sum();
    let Some(over) = width.map(|width| total.saturating_sub(width + 2)) else { return true };
    let last = widths
        .iter()
        .rposition(|&w| w > 0)
        .filter(|&i| over > 0 && rows[0][i].wraps && widths[i] >= over + WRAPPED);
    last.inspect(|&i| widths[i] -= over).is_some() || over == 0
}

/// Writes the columns with a width above 0. A cell wider than its column, which is the last,
/// continues below. The column of `beneath` stands on lines of its own, no wider than that.
fn write_table(
    rows: &[Vec<Cell>],
    widths: &[usize],
    beneath: Option<(usize, Option<usize>)>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    for (nth, row) in rows.iter().enumerate() {
        let shown = || row.iter().zip(widths).filter(|(_, w)| **w > 0);
        // Lines end without trailing spaces.
        let last = shown().filter(|(c, _)| !c.text.is_empty()).count();
        let (mut seen, mut at) = (0, 0);
        for (nth, (cell, &width)) in shown().enumerate() {
            let pad = " ".repeat(width.saturating_sub(cell.width()));
            seen += usize::from(!cell.text.is_empty());
            let (colour, text) = (cell.colour, &cell.text);
            let gap = if nth > 0 { "  " } else { "" };
            at += gap.len();
            if cell.right {
                write!(out, "{gap}{pad}{colour}{text}{colour:#}")?;
            } else if cell.width() > width {
                write!(out, "{gap}{colour}")?;
                flow(at, text, at, Some(at + width), out)?;
                write!(out, "{colour:#}")?;
            } else {
                let pad = if seen >= last { "" } else { &pad };
                write!(out, "{gap}{colour}{text}{colour:#}{pad}")?;
            }
            at += width;
            if seen >= last {
                break;
            }
        }
        writeln!(out)?;
        let below = beneath
            .filter(|_| nth > 0)
            .map(|(i, width)| (&row[i], width))
            .filter(|(cell, _)| !cell.text.is_empty());
        if let Some((cell, width)) = below {
            let indent = row[0].text.chars().take_while(|&c| c == ' ').count() + INDENT;
            write!(out, "{:indent$}{}", "", cell.colour)?;
            flow(indent, &cell.text, indent, width, out)?;
            writeln!(out, "{:#}", cell.colour)?;
        }
    }
    Ok(())
}

/// Indentation of a paragraph beneath the first cell of its row, in columns.
const INDENT: usize = 4;

/// Writes every row but the heading as a paragraph: its first cell, and below it the others, each
/// behind its heading.
fn write_paragraphs(
    rows: &[Vec<Cell>],
    widths: &[usize],
    width: Option<usize>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let Some((heading, rows)) = rows.split_first() else { return Ok(()) };
    // Headings in capitals are words in a sentence here; MB/s is not, nor what stands in capitals
    // among words.
    let is_lower = |cell: &Cell| cell.text.chars().any(char::is_lowercase);
    let is_shouted = |cell: &Cell| !is_lower(cell) && cell.text.chars().any(char::is_uppercase);
    let has_words =
        heading.iter().any(|cell| is_lower(cell) && !cell.text.chars().any(char::is_uppercase));
    if let Some(title) = heading.first().filter(|title| is_lower(title)) {
        flow(0, &title.text, 2, width, out)?;
        writeln!(out)?;
    }
    for row in rows {
        let mut cells = row
            .iter()
            .zip(heading)
            .zip(widths)
            .filter(|((cell, _), width)| **width > 0 && !cell.text.is_empty());
        let Some(((first, _), _)) = cells.next() else { continue };
        let lead = first.width() - columns_of(first.text.trim_start());
        write!(out, "{:lead$}{}", "", first.colour)?;
        flow(lead, first.text.trim_start(), lead + 2, width, out)?;
        write!(out, "{:#}", first.colour)?;
        let (mut at, indent) = (None, lead + INDENT);
        for ((cell, heading), _) in cells {
            let name = match is_shouted(heading) && !has_words {
                true => heading.text.to_lowercase(),
                false => heading.text.clone(),
            };
            let name = if name.is_empty() { name } else { name + " " };
            let length = columns_of(&name) + cell.width();
            // A comma may follow the cell.
            let before = at.filter(|at| width.is_none_or(|width| at + 2 + length < width));
            let begins = before.map_or(indent, |at| at + 2);
            match (before, at) {
                (Some(_), _) => write!(out, ", ")?,
                (None, Some(_)) => write!(out, ",\n{:indent$}", "")?,
                (None, None) => write!(out, "\n{:indent$}", "")?,
            }
            let mut from = begins + columns_of(&name);
            let first = words(&cell.text).first().map_or(0, |word| columns_of(word));
            if before.is_none() && width.is_some_and(|width| from + first >= width) {
                // A long word stands beneath its heading, further left if it has room only there.
                let room = width.map_or(0, |width| width.saturating_sub(first + 1));
                from = if room > 0 { room.min(indent + 2) } else { indent + 2 };
                write!(out, "{}\n{:from$}", name.trim_end(), "")?;
            } else {
                write!(out, "{name}")?;
            }
            write!(out, "{}", cell.colour)?;
            at = Some(flow(
                from,
                &cell.text,
                indent + 2,
                width.map(|width| width.saturating_sub(1)),
                out,
            )?);
            write!(out, "{:#}", cell.colour)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes `text` after `head`, broken between words at `width`; further lines are indented by
/// `indent`. `shown` is the width of `head`.
pub(crate) fn wrap(
    head: &str,
    shown: usize,
    text: &str,
    indent: usize,
    width: Option<usize>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write!(out, "{head}")?;
    flow(shown, text, indent, width, out)?;
    writeln!(out)
}

/// Writes a line for people, broken like [`wrap`] with an indentation of two.
pub(crate) fn line(text: &str, width: Option<usize>, out: &mut dyn io::Write) -> io::Result<()> {
    wrap("", 0, text, 2, width, out)
}

/// Writes `# text` for a shell or another reader that skips comments; continued lines begin with
/// `#` too.
pub(crate) fn comment(text: &str, width: Option<usize>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut lines = Vec::new();
    wrap("# ", 2, text, 4, width, &mut lines)?;
    out.write_all(String::from_utf8_lossy(&lines).replace("\n    ", "\n#   ").as_bytes())
}

/// Writes `text` from column `at` on, broken like [`wrap`]. Returns the column after it.
fn flow(
    mut at: usize,
    text: &str,
    indent: usize,
    width: Option<usize>,
    out: &mut dyn io::Write,
) -> io::Result<usize> {
    for (nth, word) in words(text).into_iter().enumerate() {
        let length = columns_of(word);
        if nth > 0 && width.is_some_and(|width| at + 1 + length > width) {
            write!(out, "\n{:indent$}{word}", "")?;
            at = indent + length;
        } else {
            let space = if nth > 0 { " " } else { "" };
            write!(out, "{space}{word}")?;
            at += space.len() + length;
        }
    }
    Ok(at)
}

/// The unbreakable parts of a text: words, and a number with its noun: `byte 32256`, `(LBA 63)`,
/// `4.0 x`, `4 KiB`.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(' ') {
        let (word, next) = (&text[from..at], &text[at + 1..]);
        let times =
            next.strip_prefix('x').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        let size = word.ends_with(|c: char| c.is_ascii_digit()) && next.get(1..3) == Some("iB");
        let bound = matches!(word, "byte" | "(LBA") || times || size;
        if !bound {
            words.push(word);
            from = at + 1;
        }
    }
    words.push(&text[from..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    fn table(width: usize, spare: &[usize]) -> String {
        let row = |cells: [&str; 4]| {
            vec![
                Cell::left(cells[0]),
                Cell::right(cells[1]),
                Cell::left(cells[2]),
                Cell::left(cells[3]),
            ]
        };
        let mut rows = vec![row(["NAME", "SIZE", "KIND", "TITLE"])];
        rows[0][3] = rows[0][3].clone().wrapped();
        rows.push(row([
            "sda",
            "931 GiB",
            "disk",
            "one that turns and has an arm and a long title",
        ]));
        rows.push(row(["nvme0n1", "2 TiB", "", "flash"]));
        samples::text(|out| write(&rows, &Spare(spare, "--json"), Some(width), out))
    }

    #[test]
    fn no_line_is_wider_than_it_may_be_at_any_width() {
        for width in 20..100 {
            for spare in [&[][..], &[2], &[2, 3], &[3, 1, 2]] {
                let text = table(width, spare);
                assert!(
                    text.lines().all(|line| line.chars().count() <= width),
                    "{width} {spare:?}\n{text}"
                );
                assert!(
                    text.contains("sda") && text.contains("nvme0n1"),
                    "{width} {spare:?}\n{text}"
                );
            }
        }
    }

    #[test]
    fn the_last_column_is_wrapped_and_what_has_no_room_is_a_paragraph() {
        let want = "NAME        SIZE  KIND  TITLE\nsda      931 GiB  disk  one that turns and has \
            an\n                        arm and a long title\nnvme0n1    2 TiB        flash\n";
        assert_eq!(table(50, &[]), want);
        let want = "sda\n    size 931 GiB, kind disk,\n    title one that turns and\n      has an \
            arm and a long\n      title\nnvme0n1\n    size 2 TiB, title flash\n";
        assert_eq!(table(30, &[]), want);
        let want = "NAME        SIZE\nsda      931 GiB\nnvme0n1    2 TiB\nNo room for 'KIND', \
            'TITLE': a\n  wider terminal or --json\n  shows them.\n";
        assert_eq!(table(30, &[2, 3]), want);
    }

    #[test]
    fn a_last_column_without_room_stands_beneath_its_rows() {
        let row = |cells: [&str; 3]| cells.map(Cell::left).to_vec();
        let mut rows = vec![
            row(["NAME", "KIND", "REMARK"]),
            row(["  sda", "disk", "one that turns"]),
            row(["  sdb", "flash", ""]),
        ];
        rows[0][2] = rows[0][2].clone().wrapped().beneath();
        let table =
            |width| samples::text(|out| write(&rows, &Spare(&[1], "--json"), Some(width), out));
        assert_eq!(table(40), "NAME   KIND   REMARK\n  sda  disk   one that turns\n  sdb  flash\n");
        assert_eq!(table(20), "NAME   KIND\n  sda  disk\n      one that turns\n  sdb  flash\n");
        let without = "NAME\n  sda\n      one\n      that\n      turns\n  sdb\nNo room for\n  \
            'KIND': a\n  wider\n  terminal\n  or --json\n  shows it.\n";
        assert_eq!(table(11), without);
    }

    #[test]
    fn numbers_stay_with_what_they_count() {
        let text = "starts at byte 32256 (LBA 63), costing 4.0 x the time";
        let at = |width| samples::text(|out| wrap("fix: ", 5, text, 2, width, out));
        assert_eq!(
            at(Some(20)),
            "fix: starts at\n  byte 32256\n  (LBA 63), costing\n  4.0 x the time\n"
        );
        assert_eq!(at(None), format!("fix: {text}\n"));
        let text = |width| samples::text(|out| wrap("", 0, "a unit of 4 KiB", 2, width, out));
        assert_eq!(text(Some(11)), "a unit of\n  4 KiB\n");
    }
}
