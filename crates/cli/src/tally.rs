//! A fleet in numbers: what a page about thousands of targets says, in memory that does not grow
//! with them.

use crate::report::{Finding, Target, Verdict};
use crate::words;
use serde::Deserialize;
use std::collections::BTreeMap;
use trueline_geom::base::finding::Severity;

/// Targets that are named, the worst first.
pub(crate) const WORST: usize = 100;
/// Creators, and classes of errors, that are told apart; the bytes of images name them.
const MOST_KINDS: usize = 256;
/// Name of the kinds that are not told apart any more.
const OTHERS: &str = "others";

/// Parts of a target that are counted: of a report, or of a line of `--jsonl` that was made of one.
#[derive(Debug, Deserialize)]
pub(crate) struct Seen {
    target: String,
    verdict: Verdict,
    #[serde(default)]
    image: Maker,
    findings: Vec<Found>,
}

/// Container that a target is, and the program that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Maker {
    pub(crate) container: String,
    pub(crate) creator: String,
}

/// Finding of such a target.
#[derive(Clone, Debug, Deserialize)]
struct Found {
    rule: String,
    severity: String,
    rmw_factor: f64,
    message: String,
    fix: Vec<String>,
}

impl From<&Target> for Seen {
    fn from(target: &Target) -> Seen {
        let found = |f: &Finding| Found {
            rule: f.rule.into(),
            severity: f.severity.name().into(),
            rmw_factor: f.rmw_factor,
            message: f.message.clone(),
            fix: f.fix.iter().take(1).cloned().collect(),
        };
        Seen {
            target: target.target.clone(),
            verdict: target.verdict,
            image: Maker {
                container: words::container(target).into(),
                creator: words::creator(target).into(),
            },
            findings: target.findings.iter().map(found).collect(),
        }
    }
}

impl Found {
    fn severity(&self) -> Severity {
        severity_of(&self.severity).unwrap_or(Severity::Note)
    }
}

/// The severity of a word in a line; `None` for no such word.
fn severity_of(word: &str) -> Option<Severity> {
    [Severity::Error, Severity::Warning, Severity::Note].into_iter().find(|s| s.name() == word)
}

/// Numbers of targets by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Targets with the verdict.
    pub(crate) misaligned: u64,
    pub(crate) unknown: u64,
    pub(crate) aligned: u64,
}

impl Counts {
    fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Misaligned => self.misaligned += 1,
            Verdict::Unknown => self.unknown += 1,
            Verdict::Aligned => self.aligned += 1,
        }
    }

    /// Number of all of them.
    pub(crate) fn all(&self) -> u64 {
        self.misaligned + self.unknown + self.aligned
    }
}

/// Targets with findings of one rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ruled {
    /// Number of targets with a finding of it.
    pub(crate) targets: u64,
    /// Targets that are misaligned by this rule alone: those that are aligned once it is mended.
    pub(crate) alone: u64,
    /// Sum of the costs of the dearest finding of each target, beyond the 1 of an aligned write.
    pub(crate) excess: f64,
    /// The dearest: its cost, the target, the finding and its cure.
    pub(crate) worst: (f64, String, String, Option<String>),
    /// The worst severity of those findings.
    pub(crate) severity: Option<Severity>,
}

/// Target among the worst.
#[derive(Clone, Debug)]
pub(crate) struct Worst {
    pub(crate) target: String,
    pub(crate) verdict: Verdict,
    /// Device operations for a write, relative to one on the grain.
    pub(crate) cost: f64,
    pub(crate) rule: String,
    pub(crate) message: String,
    pub(crate) cure: Option<String>,
}

/// Numbers of a fleet.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    /// By the container that targets are, and the program that made it.
    pub(crate) makers: BTreeMap<Maker, Counts>,
    /// By the id of a rule, without notes.
    pub(crate) rules: BTreeMap<String, Ruled>,
    /// Targets that could not be read, by the class of the error, each with the first of them.
    pub(crate) unread: BTreeMap<String, (u64, String)>,
    worst: Vec<Worst>,
    /// The worst severity of all findings.
    pub(crate) severity: Option<Severity>,
}

impl Tally {
    /// Adds a target to all counts.
    pub(crate) fn add(&mut self, target: &Seen) {
        self.counts.add(target.verdict);
        let others = || Maker { container: OTHERS.into(), creator: String::new() };
        let maker = bounded(&self.makers, target.image.clone(), others);
        self.makers.entry(maker).or_default().add(target.verdict);
        self.severity = self.severity.max(target.findings.iter().map(Found::severity).max());
        let grave: Vec<&Found> =
            target.findings.iter().filter(|f| f.severity() != Severity::Note).collect();
        let mut by_rule: BTreeMap<&str, &Found> = BTreeMap::new();
        for found in &grave {
            let dearest = by_rule.entry(&found.rule).or_insert(found);
            if found.rmw_factor > dearest.rmw_factor {
                *dearest = found;
            }
        }
        // What costs nothing keeps nothing misaligned.
        let costly = by_rule.values().filter(|found| found.rmw_factor > 1.0).count();
        let is_misaligned = target.verdict == Verdict::Misaligned;
        for found in by_rule.into_values() {
            let is_alone = is_misaligned && costly == 1 && found.rmw_factor > 1.0;
            self.ruled(target, found, is_alone);
        }
        let dearest = grave.iter().rev().max_by(|a, b| {
            a.severity().cmp(&b.severity()).then(a.rmw_factor.total_cmp(&b.rmw_factor))
        });
        if let Some(found) = dearest {
            self.worst.push(Worst {
                target: target.target.clone(),
                verdict: target.verdict,
                cost: found.rmw_factor,
                rule: found.rule.clone(),
                message: found.message.clone(),
                cure: found.fix.first().cloned(),
            });
        }
        if self.worst.len() >= 2 * WORST {
            cut(&mut self.worst);
        }
    }

    fn ruled(&mut self, target: &Seen, found: &Found, is_alone: bool) {
        // A file of lines may hold anything.
        let rule = bounded(&self.rules, found.rule.clone(), || OTHERS.into());
        let ruled = self.rules.entry(rule).or_default();
        ruled.targets += 1;
        ruled.alone += u64::from(is_alone);
        ruled.excess += (found.rmw_factor - 1.0).max(0.0);
        ruled.severity = ruled.severity.max(Some(found.severity()));
        if ruled.targets == 1 || found.rmw_factor > ruled.worst.0 {
            let cure = found.fix.first().cloned();
            ruled.worst = (found.rmw_factor, target.target.clone(), found.message.clone(), cure);
        }
    }

    /// Adds a target by its rows, which have no findings of their own: its verdict, and the word
    /// for its worst severity.
    pub(crate) fn add_row(&mut self, verdict: Verdict, severity: &str) {
        self.counts.add(verdict);
        self.severity = self.severity.max(severity_of(severity));
    }

    /// Adds a target that could not be read.
    pub(crate) fn add_unread(&mut self, class: &str, error: &str) {
        let class = bounded(&self.unread, class.to_owned(), || OTHERS.into());
        self.unread.entry(class).or_insert_with(|| (0, error.to_owned())).0 += 1;
    }

    /// Number of targets that could not be read.
    pub(crate) fn failed(&self) -> u64 {
        self.unread.values().map(|(count, _)| count).sum()
    }

    /// The worst verdict; `unknown` at best where something could not be read, or nothing was.
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.counts {
            Counts { misaligned: 1.., .. } => Verdict::Misaligned,
            Counts { unknown: 0, aligned: 1.., .. } if self.unread.is_empty() => Verdict::Aligned,
            _ => Verdict::Unknown,
        }
    }

    /// The worst targets, the worst first; those of one cost by their names.
    pub(crate) fn worst(&self) -> Vec<Worst> {
        let mut worst = self.worst.clone();
        cut(&mut worst);
        worst
    }
}

/// Sorts targets, and leaves the worst of them.
fn cut(worst: &mut Vec<Worst>) {
    worst.sort_by(|a, b| {
        let cost = b.verdict.cmp(&a.verdict).then(b.cost.total_cmp(&a.cost));
        cost.then_with(|| a.target.cmp(&b.target))
    });
    worst.truncate(WORST);
}

/// The key, or the one of all others where there are too many.
fn bounded<K: Ord, V>(known: &BTreeMap<K, V>, key: K, others: impl FnOnce() -> K) -> K {
    if known.len() < MOST_KINDS || known.contains_key(&key) { key } else { others() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn a_fleet_is_counted_and_its_worst_are_kept() {
        let mut tally = Tally::default();
        assert_eq!(tally.verdict(), Verdict::Unknown);
        for nth in 0..300 {
            let mut target = samples::openbsd();
            target.target = format!("{nth:03}.img");
            target.verdict = if nth % 3 == 0 { Verdict::Misaligned } else { Verdict::Aligned };
            let cost = f64::from(nth) + 2.0;
            target.findings.iter_mut().for_each(|f| {
                (f.severity, f.rmw_factor, f.rule) = (Severity::Error, cost, "TL0001");
            });
            tally.add(&Seen::from(&target));
        }
        assert_eq!(tally.counts, Counts { misaligned: 100, unknown: 0, aligned: 200 });
        assert_eq!((tally.counts.all(), tally.verdict()), (300, Verdict::Misaligned));
        let ruled = &tally.rules["TL0001"];
        assert_eq!((ruled.targets, ruled.alone, ruled.worst.0), (300, 100, 301.0));
        let worst = tally.worst();
        let worst: Vec<&str> = worst.iter().map(|w| w.target.as_str()).collect();
        assert_eq!((worst.len(), worst[0], worst[99]), (100, "297.img", "000.img"));
        tally.add_unread("not found", "open x: no such file");
        assert_eq!(tally.failed(), 1);
    }

    #[test]
    fn images_cannot_fill_memory_with_creators() {
        let mut tally = Tally::default();
        for nth in 0..10_000 {
            let mut target = samples::gpt();
            target.providers[0].details = vec![("creator", format!("{nth}"))];
            tally.add(&Seen::from(&target));
        }
        assert_eq!(tally.makers.len(), MOST_KINDS + 1);
        assert_eq!(tally.makers.values().map(Counts::all).sum::<u64>(), 10_000);
    }
}
