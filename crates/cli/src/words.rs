//! Words of the outputs for people.

pub(crate) mod after_help;
pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod date;
pub(crate) mod escape;
pub(crate) mod hexdump;
pub(crate) mod markdown;
pub(crate) mod metric;
pub(crate) mod quantity;
pub(crate) mod refusal;
pub(crate) mod size;
pub(crate) mod terminal;
pub(crate) mod width;
use crate::report::{Finding, Provider, Target, Verdict};
use crate::style::Style;
use std::io::{self, ErrorKind, Write};

use trueline_geom::base::finding::{self, Rule, Severity};
use trueline_geom::base::topology::{Why, is_whole, largest_grain};
use trueline_geom::graph::Recognised;
use trueline_geom::plan::edits;
use trueline_geom::registry;

/// An error of the operating system on a file, with advice.
pub(crate) fn os(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file or directory: check the name".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::AlreadyExists => "it is there already: name another file".into(),
        ErrorKind::InvalidData => "it is not a text file".into(),
        ErrorKind::IsADirectory => "it is a directory: name a file".into(),
        ErrorKind::StorageFull => "what it is stored on is full".into(),
        ErrorKind::ReadOnlyFilesystem => "its file system is read-only".into(),
        _ => without_number(&error.to_string()),
    }
}

/// The system's own text of an error, without the number at its end: `File name too long (os error
/// 36)`.
fn without_number(text: &str) -> String {
    text.rsplit_once(" (os error ").map_or(text, |(words, _)| words).into()
}

/// A provider's name, escaped; the only disk of a target has none and is called `disk`.
pub(crate) fn name(provider: &str) -> String {
    trueline_geom::base::escape::name(provider)
}

/// The format of the container that a target is; empty for a bare disk.
pub(crate) fn container(target: &Target) -> &str {
    let formats: Vec<&str> = registry::containers().collect();
    let mut signs = target.providers.iter().filter_map(|p| p.sign.as_deref());
    signs.find(|sign| formats.contains(sign)).unwrap_or_default()
}

/// The program that made the container that a target is; empty where it does not say.
pub(crate) fn creator(target: &Target) -> &str {
    let mut details = target.providers.iter().flat_map(|p| &p.details);
    details.find(|(name, _)| *name == "creator").map_or("", |(_, creator)| creator)
}

/// Content of a provider in a word or two; `-` where nothing is known.
pub(crate) fn content(target: &Target, p: &Provider) -> String {
    let set = target.providers.iter().find(|set| set.members.contains(&p.provider));
    let signs = if p.signs.is_empty() { p.sign.iter().cloned().collect() } else { p.signs.clone() };
    recognised(&Recognised {
        signs,
        table: p.table.as_ref().map(|table| table.scheme),
        set: set.map(|set| set.provider.clone()),
        kind: p.kind.clone(),
        class: p.class,
        level: p.arrangement.as_ref().map(|set| set.level.clone()),
        is_set: !p.members.is_empty(),
        is_part: p.parent.is_some(),
        is_contents: p.container.is_some(),
    })
}

/// The words for what was recognised: formats, else the table, else the set that it is part of,
/// else its type in the table above.
pub(crate) fn recognised(found: &Recognised) -> String {
    let text = if !found.signs.is_empty() {
        found.signs.join("+")
    } else if let Some(scheme) = found.table {
        format!("{scheme} table")
    } else if let Some(set) = &found.set {
        format!("in {set}")
    } else if let Some(kind) = &found.kind {
        format!("({kind})")
    } else if found.is_contents {
        format!("{} contents", found.class)
    } else if found.class == "lvm" {
        "LVM volume".into()
    } else if found.class == "luks" {
        "LUKS volume".into()
    } else if let (true, class @ ("md" | "imsm"), Some(level)) =
        (found.is_set, found.class, &found.level)
    {
        // Other classes are of one level.
        format!("{class} {level}")
    } else if found.is_set {
        format!("{} set", found.class)
    } else if found.is_part {
        format!("{} data", found.class)
    } else {
        "-".into()
    };
    escape::plain(&text)
}

/// As [`content`], after a space; empty if nothing is known.
pub(crate) fn and_content(target: &Target, p: &Provider) -> String {
    Some(content(target, p))
        .filter(|content| content != "-")
        .map_or(String::new(), |content| format!(" {content}"))
}

/// First byte of a provider: on the medium or, above a set, on the set.
pub(crate) fn start(p: &Provider) -> u64 {
    p.start.unwrap_or(p.base)
}

/// The start as a cell of a table: a question mark if it is not known.
pub(crate) fn start_cell(p: &Provider) -> String {
    if p.placed { start(p).to_string() } else { "?".into() }
}

/// Largest power of two that divides the start; `None` for byte 0 and a start that is not known.
pub(crate) fn start_grain(p: &Provider) -> Option<u64> {
    largest_grain(start(p)).filter(|_| p.placed)
}

/// Number of the sector at which it begins, if it begins at one.
pub(crate) fn lba(p: &Provider) -> Option<u64> {
    sector(start(p), p).filter(|_| p.placed)
}

/// Number of the sector of `p`'s size that begins at `byte`, if one does.
pub(crate) fn sector(byte: u64, p: &Provider) -> Option<u64> {
    is_whole(byte, p.sector_size).then(|| byte / p.sector_size)
}

/// The verdict to show at a provider: of one that does I/O, or whose contents are unknown. A
/// provider that only carries others has none of its own.
pub(crate) fn shown(p: &Provider) -> Option<Verdict> {
    let opaque = p.verdict == Verdict::Unknown
        && p.table.is_none()
        && p.sign.is_none()
        && p.signs.is_empty();
    (p.data_bearing || opaque).then_some(p.verdict)
}

/// A verdict as JSON spells it.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Aligned => "aligned",
        Verdict::Unknown => "unknown",
        Verdict::Misaligned => "misaligned",
    }
}

/// A verdict as one character.
pub(crate) fn mark(verdict: Verdict, style: Style) -> &'static str {
    match verdict {
        Verdict::Aligned => style.glyph("✓", "+"),
        Verdict::Unknown => "?",
        Verdict::Misaligned => style.glyph("✗", "x"),
    }
}

/// The measured cost of a finding, in words.
pub(crate) fn cost(f: &Finding) -> Option<String> {
    let crossing = match f.straddle {
        s if s >= 1.0 => Some("every I/O in its own blocks crosses a boundary".to_owned()),
        s if s > 0.0 => {
            Some(format!("{} of the I/Os in its own blocks cross a boundary", percent(s)))
        }
        _ => None,
    };
    let operations = times(f).map(|times| format!("{times} the device operations"));
    match (crossing, operations) {
        (Some(a), Some(b)) => Some(format!("{a}; {b}")),
        (a, b) => a.or(b),
    }
}

/// The factor of device operations, `1.75 x`, if it is more than 1.
pub(crate) fn times(f: &Finding) -> Option<String> {
    (f.rmw_factor > 1.0).then(|| factor(f.rmw_factor))
}

/// The cost of the dearest error or warning, then that of a note which costs more: `up to 1.25 x
/// the device operations, and 4.0 x by what is only noted`. `None` if no error or warning costs
/// anything.
pub(crate) fn dearest(target: &Target) -> Option<String> {
    let most = |noted: bool| {
        let costs = target
            .findings
            .iter()
            .filter(|f| (f.severity == Severity::Note) == noted)
            .map(|f| f.rmw_factor);
        costs.max_by(f64::total_cmp).filter(|&times| times > 1.0)
    };
    let worst = most(false)?;
    let more = most(true).filter(|&noted| noted > worst);
    let more = more
        .map_or(String::new(), |noted| format!(", and {} by what is only noted", factor(noted)));
    Some(format!("up to {} the device operations{more}", factor(worst)))
}

fn percent(share: f64) -> String {
    if share < 0.001 { "under 0.1 %".into() } else { format!("{:.1} %", share * 100.0) }
}

/// Name in words of the unit whose purpose JSON calls `why`.
pub(crate) fn unit(why: Why) -> &'static str {
    match why {
        Why::Physical => "physical unit",
        Why::Preferred => "preferred write unit",
        Why::Optimal => "optimal I/O size",
        Why::Chunk => "chunk",
        Why::FullStripe => "full stripe",
        Why::Erase => "erase unit",
        Why::Cluster => "container cluster",
        _ => "unit",
    }
}

/// A factor as text: `1.75 x`.
pub(crate) fn factor(times: f64) -> String {
    let factor = format!("{times:.2}");
    format!("{} x", factor.strip_suffix('0').unwrap_or(&factor))
}

/// `4096 bytes`, from 10000 on with the short form: `1048576 bytes (1 MiB)`.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        1 => "1 byte".into(),
        2..10_000 | 0 => format!("{n} bytes"),
        _ => format!("{n} bytes ({})", size::human(n)),
    }
}

/// True if `fix` is a fix, and not the sentence that there is nothing to do, which stands without a
/// heading.
pub(crate) fn is_a_fix(fix: &str) -> bool {
    !fix.starts_with("nothing to do")
}

/// Words in front of fix number `nth`, from 0: the others are further ways.
pub(crate) fn fix_head(nth: usize) -> &'static str {
    if nth == 0 { "fix: " } else { "or: " }
}

/// Edits between a word and the one with two letters turned.
const TURNED: usize = 2;

/// The name among `known` that was perhaps meant by `typed`; `None` if none is near.
pub(crate) fn near<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = typed.to_lowercase();
    let near = known.map(|known| (edits(&wanted, known), known)).min();
    near.filter(|&(far, known)| far <= (1 + known.len() / 4).max(TURNED)).map(|(_, known)| known)
}

/// A number and its noun: `1 error`, `2 errors`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// The number of errors, if any: `1 error`.
pub(crate) fn errors(target: &Target) -> Option<String> {
    let errors = target.findings.iter().filter(|f| f.severity == Severity::Error).count();
    (errors > 0).then(|| count(errors, "error"))
}

/// The number of findings of each severity, without zeros: `2 errors, 1 note`; empty for none.
pub(crate) fn severities<'a>(
    findings: impl IntoIterator<Item = &'a Finding, IntoIter: Clone>,
) -> String {
    let findings = findings.into_iter();
    let of = |s| findings.clone().filter(|f| f.severity == s).count();
    let counts = [Severity::Error, Severity::Warning, Severity::Note].map(|s| (of(s), s.name()));
    let parts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, s)| count(*n, s)).collect();
    parts.join(", ")
}

/// The number of providers that do I/O for each verdict, without zeros: `2 misaligned, 1 aligned`.
pub(crate) fn verdicts(target: &Target) -> String {
    let bearing = || target.providers.iter().filter(|p| p.data_bearing);
    let of = |v| bearing().filter(|p| p.verdict == v).count();
    let counts =
        [Verdict::Misaligned, Verdict::Unknown, Verdict::Aligned].map(|v| (of(v), verdict(v)));
    let parts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, v)| format!("{n} {v}")).collect();
    match target.verdict {
        _ if !parts.is_empty() => parts.join(", "),
        // Unread contents may do I/O.
        Verdict::Unknown => "nothing is known to do I/O".into(),
        _ => "nothing does I/O".into(),
    }
}

/// Reasons for the verdict `unknown`, a few words each, for the summary line.
pub(crate) fn unjudged(target: &Target) -> Option<String> {
    let reasons = [
        (&finding::EMPTY, "nothing is on it"),
        (&finding::UNKNOWN, "contents not recognised"),
        (&finding::UNREAD, "contents not read"),
        (&finding::OPAQUE, "contents not understood inside"),
    ];
    let is_here = |rule: &Rule| target.findings.iter().any(|f| f.rule == rule.id);
    let parts: Vec<&str> =
        reasons.iter().filter(|(rule, _)| is_here(rule)).map(|(_, words)| *words).collect();
    (target.verdict == Verdict::Unknown && !parts.is_empty()).then(|| parts.join(", "))
}

/// Writes a line for people on standard output, escaped, and broken to fit the terminal.
pub(crate) fn say(text: &str) -> io::Result<()> {
    let mut line = Vec::new();
    columns::line(&escape::plain(text), Style::of_stdout().width, &mut line)?;
    anstream::stdout().write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_words_without_numbers() {
        let of = |number| os(&io::Error::from_raw_os_error(number));
        assert_eq!(of(21), "it is a directory: name a file");
        assert_eq!(of(28), "what it is stored on is full");
        assert_eq!(of(30), "its file system is read-only");
        assert_eq!(of(36), "File name too long");
    }

    #[test]
    fn costs() {
        let of = |straddle, rmw_factor| {
            let (rule, severity, provider, message) =
                ("TL0001", Severity::Error, String::new(), String::new());
            cost(&Finding {
                rule,
                severity,
                provider,
                offset: 0,
                unit: 1,
                remainder: 0,
                straddle,
                rmw_factor,
                message,
                fix: vec![],
                commands: vec![],
            })
        };
        assert_eq!(of(0.0, 1.0), None);
        assert_eq!(
            of(1.0, 4.0).unwrap(),
            "every I/O in its own blocks crosses a boundary; 4.0 x the device operations"
        );
        assert_eq!(
            of(0.125, 1.125).unwrap(),
            "12.5 % of the I/Os in its own blocks cross a boundary; 1.12 x the device operations"
        );
        assert_eq!(of(0.0, 2.0).unwrap(), "2.0 x the device operations");
        assert_eq!(
            of(0.0001, 1.0).unwrap(),
            "under 0.1 % of the I/Os in its own blocks cross a boundary"
        );
    }
}
