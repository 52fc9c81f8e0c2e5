//! The list of `-o` and its like: a line for each provider, in the columns asked for, as users of
//! lsblk expect it.

use crate::report::{Provider, Report, Target};
use crate::words::columns::{self, Cell, Spare};
use crate::words::escape;
use column::Column;
use std::io;

pub(crate) mod column;

/// Manner in which a list is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// True if a line has words for a shell in place of columns.
    pub(crate) pairs: bool,
    /// True if the columns have a heading.
    pub(crate) header: bool,
    /// True if sizes are whole numbers of bytes.
    pub(crate) bytes: bool,
    /// Columns of the terminal, for a list with a heading.
    pub(crate) width: Option<usize>,
}

/// Writes the list. In columns a missing value is `-`.
pub(crate) fn write(
    report: &Report,
    chosen: &[Column],
    manner: Manner,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut providers =
        report.targets.iter().flat_map(|target| target.providers.iter().map(move |p| (target, p)));
    if manner.pairs {
        return providers.try_for_each(|(t, p)| write_pairs(chosen, (t, p), out));
    }
    let cell = |column: &Column, text: String| {
        if column.right { Cell::right(text) } else { Cell::left(text) }
    };
    let value = |column: &Column, t: &Target, p: &Provider| {
        let value = escape::plain(&(column.value)(t, p, manner.bytes));
        cell(column, if value.is_empty() { "-".to_owned() } else { value })
    };
    let heading =
        manner.header.then(|| chosen.iter().map(|c| cell(c, c.name.to_owned())).collect());
    let rows: Vec<Vec<Cell>> = heading
        .into_iter()
        .chain(providers.map(|(t, p)| chosen.iter().map(|column| value(column, t, p)).collect()))
        .collect();
    if manner.header {
        columns::write(&rows, &Spare::NONE, manner.width, out)
    } else {
        columns::write_bare(&rows, out)
    }
}

/// Writes the columns of one provider as words that a shell can evaluate, as `lsblk -P -y` does:
/// names with `_` for `-`, and as `\xNN` what is not printable ASCII, or not plain between double
/// quotes.
fn write_pairs(
    chosen: &[Column],
    (target, p): (&Target, &Provider),
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut words = Vec::new();
    for column in chosen {
        let mut quoted = String::new();
        for byte in (column.value)(target, p, true).bytes() {
            match byte {
                b'"' | b'\\' | b'`' | b'$' => quoted += &format!("\\x{byte:02x}"),
                b' '..=b'~' => quoted.push(char::from(byte)),
                _ => quoted += &format!("\\x{byte:02x}"),
            }
        }
        words.push(format!("{}=\"{quoted}\"", column.name.replace('-', "_")));
    }
    writeln!(out, "{}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::column::{COLUMNS, NamedColumn, usual};
    use super::*;
    use crate::render::samples;

    const BARE: Manner = Manner { pairs: false, header: false, bytes: true, width: None };

    fn columns(names: &str) -> Vec<Column> {
        names.split(',').map(|name| NamedColumn::parse(name).ok().unwrap().column).collect()
    }

    #[test]
    fn a_line_a_provider_and_nothing_else() {
        let report = samples::report(vec![samples::openbsd()]);
        let chosen = columns("name,START,align,verdict");
        let text = samples::text(|out| write(&report, &chosen, BARE, out));
        assert_eq!(text.lines().count(), report.targets[0].providers.len());
        let wanted = ["openbsd.img#s4a", "32256", "512", "misaligned"];
        assert!(text.lines().any(|line| line.split_whitespace().eq(wanted)), "{text}");
        let headed = Manner { header: true, bytes: false, ..BARE };
        let text = samples::text(|out| write(&report, &usual(), headed, out));
        assert!(
            text.starts_with("NAME ") && text.lines().next().unwrap().ends_with("LABEL"),
            "{text}"
        );
        assert!(NamedColumn::parse("nonsense").err().unwrap().0.contains("NAME, TARGET"));
        assert!(NamedColumn::parse("+rules").ok().unwrap().is_added);
    }

    #[test]
    fn what_is_exported_is_inert_in_a_shell() {
        let mut target = samples::openbsd();
        target.providers.truncate(1);
        target.providers[0].label = Some("a\"b$(c)`d`\\e é\n".into());
        let report = samples::report(vec![target]);
        let manner = Manner { pairs: true, ..BARE };
        let text = samples::text(|out| write(&report, &columns("LABEL,LOG-SEC"), manner, out));
        let wanted = r#"LABEL="a\x22b\x24(c)\x60d\x60\x5ce \xc3\xa9\x0a" LOG_SEC="512""#;
        assert_eq!(text, format!("{wanted}\n"));
    }

    #[test]
    fn the_manual_lists_the_columns() {
        let manual = include_str!("../../../docs/manual/check.md");
        let table: String =
            COLUMNS.iter().map(|c| format!("| `{}` | {} |\n", c.name, c.help)).collect();
        assert!(manual.contains(&table), "docs/manual/check.md has not these rows:\n{table}");
    }
}
