//! The time of simulated drives by its causes: a table with a row for every name.

use crate::style::Style;
use crate::words::columns::{self, Cell, Spare};
use crate::words::escape;
use std::io::{self, Write};
use trueline_lab::result::Spent;

/// Writes the table; a cause that no drive has gets no column.
pub(crate) fn write(
    spends: &[(&str, &Spent)],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let heading = [
        "where time went",
        "setup",
        "seek",
        "rotate",
        "transfer",
        "idle",
        "media ops",
        "RMW",
        "lost revs",
        "write x",
    ];
    let mut rows = vec![heading.map(Cell::right).to_vec()];
    rows[0][0] = Cell::left(heading[0]);
    let parts = |s: &Spent| [s.setup, s.seek, s.rotate, s.transfer, s.idle];
    // Flash has no arm: a cause that none of the drives has is no column.
    let mut has = [false; 5];
    for (_, s) in spends {
        has.iter_mut().zip(parts(s)).for_each(|(has, part)| *has |= part > 0.0);
    }
    for (name, s) in spends {
        let all = s.setup + s.seek + s.rotate + s.transfer + s.idle;
        let share =
            |part: f64| if all > 0.0 { format!("{:.1} %", part / all * 100.0) } else { "-".into() };
        let mut row = vec![Cell::left(escape::plain(name))];
        row.extend(
            parts(s)
                .into_iter()
                .zip(&has)
                .map(|(part, &has)| Cell::right(if has { share(part) } else { String::new() })),
        );
        row.extend(
            [s.media_ops, s.rmw, s.lost_revolutions]
                .map(|n| Cell::right(if n > 0 { n.to_string() } else { String::new() })),
        );
        row.push(Cell::right(
            s.write_amplification
                .filter(|x| *x > 0.0)
                .map_or_else(String::new, |x| format!("{x:.2}")),
        ));
        rows.push(row);
    }
    columns::write(&rows, &Spare::NONE, style.width, out)
}
