//! Findings of one kind on several providers, merged.
//!
//! Two findings are of one kind if only provider, place and fix differ. A writer lists these under
//! the shared message.

use crate::report::Finding;
use crate::words;
use std::collections::HashMap;

/// Most findings of one kind that are shown each by itself.
const FEW: usize = 2;

/// Findings of one kind, in their order; at least one.
pub(crate) struct Group<'a> {
    /// The findings; only one if the kind is rare.
    pub findings: Vec<&'a Finding>,
    /// The message of a single finding, or the shared part of several.
    pub says: String,
}

impl<'a> Group<'a> {
    /// The first of them, for the rule, severity and cost of all.
    pub(crate) fn first(&self) -> &'a Finding {
        self.findings[0]
    }

    /// True if it holds more than one finding.
    pub(crate) fn several(&self) -> bool {
        self.findings.len() > 1
    }

    /// The fixes, if they are the same for all.
    pub(crate) fn shared_fix(&self) -> Option<&'a [String]> {
        let fix = &self.first().fix;
        self.findings.iter().all(|f| f.fix == *fix).then_some(&fix[..])
    }

    /// Place of a finding: `byte 32256 (LBA 63)`, and its distance past a boundary if distances
    /// differ.
    pub(crate) fn place(&self, f: &Finding) -> String {
        let past = if self.alike() { String::new() } else { format!(", {} past", f.remainder) };
        format!("{}{past}", place(&f.message).unwrap_or_default())
    }

    /// True if all are equally far past a boundary.
    fn alike(&self) -> bool {
        self.findings.iter().all(|f| f.remainder == self.first().remainder)
    }

    /// The providers they are on, with runs of numbers joined.
    pub(crate) fn names(&self) -> String {
        runs(self.findings.iter().map(|f| words::name(&f.provider)))
    }
}

/// `findings` by kind, each kind at the place of its first finding.
pub(crate) fn groups<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Group<'a>> {
    let findings: Vec<&'a Finding> = findings.into_iter().collect();
    // Findings are of one kind if only the provider, the place, the distance past a boundary and
    // the fix differ.
    let kinds: Vec<_> =
        findings.iter().map(|f| (f.rule, f.severity, words::cost(f), shared(f))).collect();
    let mut members: HashMap<_, Vec<usize>> = HashMap::new();
    for (i, kind) in kinds.iter().enumerate() {
        members.entry(kind).or_default().push(i);
    }
    let mut groups = Vec::new();
    for (i, kind) in kinds.iter().enumerate() {
        let all = &members[kind];
        if all.len() <= FEW {
            groups.push(Group { findings: vec![findings[i]], says: findings[i].message.clone() });
        } else if all[0] == i {
            let mut group = Group {
                findings: all.iter().map(|&i| findings[i]).collect(),
                says: kind.3.clone(),
            };
            if group.alike() {
                group.says = group.says.replacen(OFF, &past(group.first()), 1);
            }
            groups.push(group);
        }
    }
    groups
}

/// Stand-in for [`past`] while distances may differ.
const OFF: &str = " off a ";

fn past(f: &Finding) -> String {
    format!(" {} bytes past a ", f.remainder)
}

/// A finding's message without its provider, its place and its distance past a boundary.
fn shared(f: &Finding) -> String {
    let mut message = f.message.clone();
    if let Some(place) = place(&message) {
        let from = message.find(place).unwrap_or(0);
        message.replace_range(from..from + place.len(), "");
        message = message.replace(" at  ", " ").replace(" at , ", " ");
    }
    message.replacen(&format!(" on {} ", f.provider), " ", 1).replacen(&past(f), OFF, 1)
}

/// The first `byte 32256 (LBA 63)` in a message.
fn place(message: &str) -> Option<&str> {
    let from = message.find(" at byte ")? + 4;
    let digits = |s: &str| s.len() - s.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut to = from + 5;
    to += digits(&message[to..]);
    if let Some(rest) = message[to..].strip_prefix(" (LBA ") {
        let lba = digits(rest);
        if rest[lba..].starts_with(')') {
            to += 6 + lba + 1;
        }
    }
    Some(&message[from..to])
}

/// Names with runs of numbers joined: `p1 to p8, p10, s4a`.
pub(crate) fn runs(names: impl Iterator<Item = String>) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut run: Vec<(String, Option<(usize, u64)>)> = Vec::new();
    for name in names {
        // The number at the end and its position; `p01` is not part of a run.
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let number = name[stem..]
            .parse()
            .ok()
            .filter(|_| !name[stem..].starts_with('0'))
            .map(|n: u64| (stem, n));
        let follows = run.last().is_some_and(|(last, at)| match (at, number) {
            (Some((a, m)), Some((b, n))) => last[..*a] == name[..b] && m.checked_add(1) == Some(n),
            _ => false,
        });
        if !follows {
            close(&mut run, &mut out);
        }
        run.push((name, number));
    }
    close(&mut run, &mut out);
    out.join(", ")
}

fn close(run: &mut Vec<(String, Option<(usize, u64)>)>, out: &mut Vec<String>) {
    match &run[..] {
        [(first, _), .., (last, _)] if run.len() > 2 => out.push(format!("{first} to {last}")),
        all => out.extend(all.iter().map(|(name, _)| name.clone())),
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn what_differs_is_kept() {
        let mut findings = samples::openbsd().findings;
        assert_eq!(groups(&findings).len(), 4, "the costs differ");
        findings[1].rmw_factor = 1.5;
        for f in &mut findings {
            f.message =
                format!("starts at byte {} (LBA {}), 3584 bytes past", f.offset, f.offset / 512);
        }
        let groups = groups(&findings);
        assert_eq!(groups.iter().map(|g| g.findings.len()).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(
            (groups[0].says.as_str(), groups[0].names().as_str()),
            ("starts 3584 bytes past", "s4a, s4b, s4e")
        );
        assert_eq!(groups[1].says, "starts at byte 32256 (LBA 63), 3584 bytes past");
        assert_eq!(groups[0].shared_fix(), None);
    }

    #[test]
    fn runs_of_names() {
        let of = |names: &[&str]| runs(names.iter().map(|&n| n.to_owned()));
        assert_eq!(of(&["p1", "p2", "p3", "p5", "s1a", "s2", "s3"]), "p1 to p3, p5, s1a, s2, s3");
        assert_eq!(of(&["disk", "7", "8", "9", "p09", "p10"]), "disk, 7 to 9, p09, p10");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn places() {
        assert_eq!(
            place("xfs starts at byte 512 (LBA 1), 512 bytes past"),
            Some("byte 512 (LBA 1)")
        );
        assert_eq!(place("cannot be read at byte 7: EIO"), Some("byte 7"));
        assert_eq!(place("at byte é (LBA"), None);
        assert_eq!(place(" at byte (LBA é"), Some("byte "));
    }
}
