//! The summary of `serve`, and the table of `--top`.

use crate::command::serve::summary::{Export, Served};
use crate::render::traffic::{self, count, worst_first, write_table};
use crate::style::Style;
use crate::traffic::rows;
use crate::words::columns;
use crate::words::width::columns_of;
use crate::words::{escape, size};
use std::io;
use std::time::Duration;

/// Writes the counters, and the reason and cost of every miss.
pub(crate) fn write(served: &Served, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    columns::line(&head(served), style.width, out)?;
    traffic::write(&rows(&served.layers), style, out)
}

/// True if there is anything to report.
pub(crate) fn is_worth_saying(served: &Served) -> bool {
    !served.layers.is_empty() || served.exports.iter().any(|e| e.errors.sum() + e.flush_errors > 0)
}

/// The contents of the table at some moment.
pub(crate) struct Moment<'a> {
    pub served: &'a Served,
    /// The counters at the moment before.
    pub before: &'a Served,
    /// Lines above the table: the ways in, and the last notice.
    pub said: &'a [String],
}

/// Writes the table of a moment: rates since the one before, and verdicts since the start. The
/// table has at most `lines` lines, less those above it.
pub(crate) fn write_top(
    moment: &Moment<'_>,
    style: Style,
    lines: usize,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let (shown, old) = (rows(&moment.served.layers), rows(&moment.before.layers));
    let since = moment.served.duration_ns.saturating_sub(moment.before.duration_ns);
    let since = Duration::from_nanos(since).as_secs_f64().max(0.001);
    let above: Vec<String> =
        std::iter::once(head(moment.served)).chain(moment.said.iter().cloned()).collect();
    // A terminal breaks lines that are too long for it.
    let taken: usize = above
        .iter()
        .map(|line| style.width.map_or(1, |width| columns_of(line).div_ceil(width.max(1)).max(1)))
        .sum();
    // The line that names columns left out may continue on a second line.
    let gone = style.width.map_or(0, |_| 2);
    let mut shown = worst_first(&shown);
    shown.truncate(lines.saturating_sub(taken + 2 + gone));
    // A layer keeps its place from one second to the next.
    shown.sort_by_key(|row| row.all.id);
    above.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    write_table(&shown, Some((&old, since)), style.width, out)
}

/// The line of totals: time, requests, bytes.
pub(crate) fn head(served: &Served) -> String {
    let sum = |of: fn(&Export) -> u64| served.exports.iter().map(of).sum::<u64>();
    let seconds = Duration::from_nanos(served.duration_ns).as_secs_f64();
    let errors = sum(|e| e.errors.sum() + e.flush_errors);
    let mut parts = vec![
        format!("{seconds:.1} s"),
        format!(
            "{} ({})",
            count(sum(|e| e.requests.reads), "read", "s"),
            size::human(sum(|e| e.bytes.reads))
        ),
        format!(
            "{} ({})",
            count(sum(|e| e.requests.writes), "write", "s"),
            size::human(sum(|e| e.bytes.writes))
        ),
        count(sum(|e| e.flushes), "flush", "es"),
    ];
    // Without cuts or copies, a piece is a request.
    let pieces = sum(|e| e.pieces.sum());
    parts.extend(
        (pieces != sum(|e| e.requests.sum()))
            .then(|| count(pieces, "piece", "s") + " on the disks"),
    );
    let most = served.exports.iter().map(|e| e.most_waiting).max().unwrap_or(0);
    parts.extend((most > 0).then(|| format!("at most {most} at the device at a time")));
    parts.extend((errors > 0).then(|| format!("{errors} failed")));
    format!("served {}: {}", escape::plain(&served.target), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;
    use crate::traffic::Layer;

    #[test]
    fn the_summary_says_what_missed_and_why() {
        let (served, _) = samples::served();
        samples::golden("served.txt", &samples::text(|out| write(&served, Style::default(), out)));
    }

    #[test]
    fn a_moment_is_rates_and_fits_its_lines() {
        let (served, _) = samples::served();
        let mut before = served.clone();
        before.duration_ns -= 500_000_000;
        before.layers[1].requests.writes.misaligned -= 10;
        let said = ["at nbd://127.0.0.1:10809/, http://127.0.0.1:9100/".to_owned()];
        let moment = Moment { served: &served, before: &before, said: &said };
        let wide = |width, lines| {
            samples::text(|out| write_top(&moment, Style { width, ..Style::default() }, lines, out))
        };
        let of = |lines| wide(None, lines);
        let line = |text: &str, name: &str| {
            text.lines()
                .find(|l| l.starts_with(name))
                .map(|l| l.split_whitespace().map(str::to_owned).collect())
        };
        let (all, row): (String, Option<Vec<String>>) = (of(10), line(&of(10), "s4b"));
        assert_eq!(row.unwrap()[2..5], ["4K", "0", "20"], "{all}");
        // Of more layers than fit, those that miss most.
        let one = of(5);
        assert!(
            one.lines().count() <= 4 && one.contains("s4b") && !one.contains("\ndisk"),
            "{one}"
        );
        // The ways in are named, and take the lines that the terminal makes of them.
        assert_eq!(one.lines().nth(1), Some(said[0].as_str()));
        assert_eq!(
            [wide(Some(40), 24), wide(Some(40), 7)]
                .map(|text| text.lines().filter(|l| l.starts_with("disk")).count()),
            [1, 0]
        );
    }

    #[test]
    fn hostile_names_stay_on_their_line() {
        let (mut served, _) = samples::served();
        served.layers[0].provider = "s4\u{1b}[2J\n".into();
        let text = samples::text(|out| write(&served, Style::default(), out));
        assert!(!text.contains("\u{1b}[2J") && text.contains(r"s4\u{1b}[2J\n"), "{text}");
    }

    #[test]
    fn what_is_not_there_any_more_is_told_from_what_has_its_name_now() {
        let (mut served, _) = samples::served();
        let now = Layer { id: 9, content: "ext4".into(), ..served.layers[1].clone() };
        served.layers[1].gone = true;
        served.layers.push(now);
        let text = samples::text(|out| write(&served, Style::default(), out));
        let begins = |with: &[&str]| {
            text.lines().any(|line| {
                line.split_whitespace().zip(with).filter(|(a, b)| a == *b).count() == with.len()
            })
        };
        assert!(begins(&["s4b", "(gone)"]) && begins(&["s4b", "ext4"]), "{text}");
        assert!(text.contains("\ns4b (gone): 90 of ") && text.contains("\ns4b: 90 of "), "{text}");
    }
}
