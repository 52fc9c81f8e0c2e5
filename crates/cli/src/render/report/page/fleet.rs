//! The page of a fleet: thousands of targets by verdict, by maker and by rule, and the worst of
//! them.

use super::{numbers, open, verdict, write_pages_of_rules, write_table};
use crate::render::made::Made;
use crate::report::Verdict;
use crate::tally::{Counts, Maker, Ruled, Tally, WORST, Worst};
use crate::words::escape;
use std::io;

const STYLE: &str = include_str!("fleet.css");

/// Writes the page of a fleet.
pub(crate) fn write(tally: &Tally, made: &Made, out: &mut dyn io::Write) -> io::Result<()> {
    let all = tally.counts.all();
    open(&format!("Trueline check: {all} targets"), &[STYLE], out)?;
    writeln!(
        out,
        "<header>\n<h1>{}: {} targets</h1>\n{}",
        verdict(tally.verdict()),
        grouped(all),
        made.html()
    )?;
    writeln!(out, "<p>{}</p>{}", counted(tally.counts), bar(tally.counts))?;
    if tally.failed() > 0 {
        writeln!(
            out,
            "<p class=\"error\"><b>{} more could not be read</b>: see <a href=\"#unread\">below</a></p>",
            grouped(tally.failed())
        )?;
    }
    writeln!(out, "</header>\n<main>")?;
    write_gains(tally, out)?;
    write_makers(tally, out)?;
    write_worst(&tally.worst(), out)?;
    write_unread(tally, out)?;
    writeln!(out, "</main>")?;
    write_pages_of_rules(tally.rules.keys().map(String::as_str), out)?;
    writeln!(out, "</body>\n</html>")
}

/// Writes what mending all findings of one rule would gain, the largest gain first.
fn write_gains(tally: &Tally, out: &mut dyn io::Write) -> io::Result<()> {
    if tally.rules.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>What mending each would gain</h2>")?;
    write_table(
        "Rules",
        &[
            ("Rule", ""),
            ("Targets", "num"),
            ("Misaligned by it alone", "num"),
            ("Device operations", "num"),
            ("The dearest", ""),
        ],
        out,
    )?;
    let mut rules: Vec<(&str, &Ruled)> =
        tally.rules.iter().map(|(id, ruled)| (id.as_str(), ruled)).collect();
    rules.sort_by(|(_, a), (_, b)| {
        b.alone.cmp(&a.alone).then(b.excess.total_cmp(&a.excess)).then(b.targets.cmp(&a.targets))
    });
    for (id, ruled) in rules {
        let (cost, target, message, cure) = &ruled.worst;
        // Lines may come from anywhere.
        let id = escape::xml(&escape::plain(id));
        let class = ruled.severity.map_or("", |severity| severity.name());
        #[allow(clippy::cast_precision_loss, reason = "a mean; no fleet has 2^53 images")]
        let mean = 1.0 + ruled.excess / ruled.targets.max(1) as f64;
        let costs = if *cost > 1.0 { format!("{mean:.1} × on average") } else { String::new() };
        let cure = cure.as_deref().map_or(String::new(), |cure| {
            format!("<br><span class=\"dim\">fix:</span> {}", numbers(&escape::plain(cure)))
        });
        writeln!(
            out,
            "<tr><td class=\"{class}\"><a href=\"#{id}\">{id}</a><td class=\"num\">{}<td class=\"num gain\">{}<td class=\"num\">{costs}<td class=\"long\">{}: {}{cure}</tr>",
            grouped(ruled.targets),
            grouped(ruled.alone),
            escape::xml(&escape::plain(target)),
            numbers(&escape::plain(message)),
        )?;
    }
    writeln!(out, "</tbody></table></div>")
}

/// Writes a line for each container and the program that made it.
fn write_makers(tally: &Tally, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "<h2>By container and maker</h2>")?;
    let columns = [
        ("Container", ""),
        ("Made by", ""),
        ("Targets", "num"),
        ("Misaligned", "num"),
        ("Unknown", "num"),
        ("Aligned", "num"),
        ("", ""),
    ];
    write_table("Makers", &columns, out)?;
    let mut makers: Vec<_> = tally.makers.iter().collect();
    makers.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.misaligned, counts.all())));
    for (Maker { container, creator }, counts) in makers {
        let container = if container.is_empty() { "bare disk" } else { container };
        writeln!(
            out,
            "<tr><td>{}<td class=\"long\">{}<td class=\"num\">{}<td class=\"num\">{}<td class=\"num\">{}<td class=\"num\">{}<td>{}</tr>",
            escape::xml(&escape::plain(container)),
            escape::xml(&escape::plain(creator)),
            grouped(counts.all()),
            grouped(counts.misaligned),
            grouped(counts.unknown),
            grouped(counts.aligned),
            bar(*counts),
        )?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn write_worst(worst: &[Worst], out: &mut dyn io::Write) -> io::Result<()> {
    if worst.is_empty() {
        return Ok(());
    }
    let heading = if worst.len() < WORST { "With findings" } else { "The worst hundred" };
    writeln!(out, "<h2>{heading}</h2>")?;
    let columns = [("Target", ""), ("Verdict", ""), ("Costs", "num"), ("The worst of it", "")];
    write_table("Worst", &columns, out)?;
    for w in worst {
        let costs = if w.cost > 1.0 { format!("{:.1} ×", w.cost) } else { String::new() };
        let cure = w.cure.as_deref().map_or(String::new(), |cure| {
            format!("<br><span class=\"dim\">fix:</span> {}", numbers(&escape::plain(cure)))
        });
        writeln!(
            out,
            "<tr><td class=\"long\">{}<td>{}<td class=\"num\">{costs}<td class=\"long\"><a href=\"#{}\">{}</a>: {}{cure}</tr>",
            escape::xml(&escape::plain(&w.target)),
            verdict(w.verdict),
            escape::xml(&escape::plain(&w.rule)),
            escape::xml(&escape::plain(&w.rule)),
            numbers(&escape::plain(&w.message)),
        )?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn write_unread(tally: &Tally, out: &mut dyn io::Write) -> io::Result<()> {
    if tally.unread.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2 id=\"unread\">Could not be read</h2>")?;
    let columns = [("Class", ""), ("Targets", "num"), ("The first", "")];
    write_table("Unread", &columns, out)?;
    for (class, (count, first)) in &tally.unread {
        writeln!(
            out,
            "<tr><td class=\"error\">{}<td class=\"num\">{}<td class=\"long\">{}</tr>",
            escape::xml(&escape::plain(class)),
            grouped(*count),
            escape::xml(&escape::plain(first))
        )?;
    }
    writeln!(out, "</tbody></table></div>")
}

/// Verdicts with their numbers, the worst first.
fn counted(counts: Counts) -> String {
    let parts = parts(counts).filter(|(count, _)| *count > 0);
    let parts = parts.map(|(count, v)| format!("{} {}", grouped(count), verdict(v)));
    parts.collect::<Vec<_>>().join(" · ")
}

fn parts(counts: Counts) -> impl Iterator<Item = (u64, Verdict)> {
    [
        (counts.misaligned, Verdict::Misaligned),
        (counts.unknown, Verdict::Unknown),
        (counts.aligned, Verdict::Aligned),
    ]
    .into_iter()
}

/// A bar of the shares of each verdict. What is there at all is seen.
fn bar(counts: Counts) -> String {
    #[allow(clippy::cast_precision_loss, reason = "a width; no fleet has 2^53 images")]
    let share = |count: u64| (count as f64 / counts.all().max(1) as f64 * 100.0).max(1.0);
    let parts = parts(counts).filter(|(count, _)| *count > 0).map(|(count, v)| {
        let word = crate::words::verdict(v);
        format!("<span class=\"{word}\" style=\"width:{:.1}%\"></span>", share(count))
    });
    format!("<div class=\"bar\" role=\"presentation\">{}</div>", parts.collect::<String>())
}

/// A number in groups of three digits.
fn grouped(number: u64) -> String {
    numbers(&number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;
    use crate::tally::Seen;

    #[test]
    fn hostile_names_stay_text_and_gains_come_first() {
        let mut tally = Tally::default();
        for nth in 0..3 {
            let mut target = samples::openbsd();
            target.target = format!("<script>{nth}");
            target.providers[0].details = vec![("creator", "<img src=x>".into())];
            tally.add(&Seen::from(&target));
        }
        // A line of another machine may say anything.
        let line = r#"{"target":"a","verdict":"misaligned","findings":[{"rule":"\"><script>",
            "severity":"error","rmw_factor":9.0,"message":"<script>","fix":["<script>"]}]}"#;
        tally.add(&serde_json::from_str(line).expect("a line"));
        tally.add_unread("not found", "open <x>: no such file");
        let page = samples::text(|out| write(&tally, &Made::sample(), out));
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
        let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what} in {page}"));
        assert!(
            at("What mending") < at("By container") && at("By container") < at("With findings")
        );
        assert!(at("open &lt;x&gt;") > at("With findings"));
        assert!(page.contains("<i>") || page.contains(">3 targets"), "{page}");
    }
}
