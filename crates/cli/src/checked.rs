//! `check --changed FILE`: the verdicts and findings of earlier runs, and what differs from them.
//!
//! A target that this run did not look at, or could not read, stays as it was: neither it nor its
//! findings are gone.

use crate::failure::Reason;
use crate::replaced::{self, Replacement};
use crate::report::{Finding, FindingKey, Target, Verdict};
use crate::{input_text, words};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trueline_geom::base::finding::{self, Severity};

/// Name of the format of a state.
const FORMAT: &str = "trueline/checked/1";
/// Beginning of the names of its other versions.
const FAMILY: &str = "trueline/checked/";
/// Largest state that is read or written, in bytes.
const LARGEST: u64 = 256 << 20;

/// State of the targets of all runs, and what this one found to differ from it.
pub(crate) struct Checked {
    /// The path as typed, for messages.
    named: PathBuf,
    /// The path behind all links, so that a link stays.
    path: PathBuf,
    /// Version and permissions of the file that was read; `None` if there was none.
    before: Option<(Version, Permissions)>,
    targets: BTreeMap<String, Known>,
    /// The worst severity of the findings that are new, or weigh more than before.
    pub(crate) worst: Option<Severity>,
    /// Targets that have become `unknown`.
    pub(crate) unknown: usize,
}

/// Version of a file: another run that replaced it has made another one.
type Version = (u64, u64, i64, i64, u64);

/// State of a target when it was last read.
struct Known {
    verdict: Verdict,
    findings: Vec<KnownFinding>,
}

/// A finding of an earlier run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownFinding {
    pub(crate) rule: String,
    #[serde(serialize_with = "name", deserialize_with = "named")]
    pub(crate) severity: Severity,
    pub(crate) provider: String,
    offset: u64,
    unit: u64,
    remainder: u64,
    pub(crate) message: String,
}

/// The text of a state.
#[derive(Serialize, Deserialize)]
struct Document {
    format: String,
    targets: Vec<StoredTarget>,
}

/// A target in the text of a state.
#[derive(Serialize, Deserialize)]
struct StoredTarget {
    target: String,
    verdict: Verdict,
    findings: Vec<KnownFinding>,
}

/// The key of a document that says what the others are.
#[derive(Deserialize)]
struct Head {
    format: String,
}

/// Difference of one target from its state before.
pub(crate) struct Difference<'a> {
    pub(crate) target: &'a Target,
    /// Its verdict before; `None` for a target that was never read.
    pub(crate) was: Option<Verdict>,
    /// Findings that were not there before.
    pub(crate) new: Vec<&'a Finding>,
    /// Findings of another severity, and the one that they had.
    pub(crate) changed: Vec<(&'a Finding, Severity)>,
    /// Findings that are not there any more.
    pub(crate) gone: Vec<KnownFinding>,
    /// Number of the findings that are as they were.
    pub(crate) same: usize,
}

impl Checked {
    /// Reads the state at `named`, or begins one where there is no file.
    ///
    /// Errors: something else than a file, one that cannot be read, is larger than any state, or
    /// is no state of this version; a directory that is not there.
    pub(crate) fn open(named: &Path) -> Result<Checked, Reason> {
        let failed =
            |e: &io::Error| Reason(format!("read the state {}: {}", named.display(), words::os(e)));
        let path = replaced::behind_links(named).map_err(|e| failed(&e))?;
        let mut state = Checked {
            named: named.to_path_buf(),
            path,
            before: None,
            targets: BTreeMap::new(),
            worst: None,
            unknown: 0,
        };
        // A pipe would wait for its writer, so it is not opened.
        match fs::metadata(&state.path) {
            Ok(found) if !found.is_file() => return Err(state.refused("it is no file")),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                fs::metadata(replaced::directory(&state.path)).map_err(|e| failed(&e))?;
                return Ok(state);
            }
            found => found.map_err(|e| failed(&e))?,
        };
        let file = File::open(&state.path).map_err(|e| failed(&e))?;
        let found = file.metadata().map_err(|e| failed(&e))?;
        if !found.is_file() {
            return Err(state.refused("it is no file"));
        }
        let text = input_text::read(file, LARGEST).map_err(|why| state.refused(why))?;
        state.before = Some((version(&found), found.permissions()));
        state.targets = parse(&text).map_err(|why| state.refused(why))?;
        Ok(state)
    }

    /// True if no run has left a state yet.
    pub(crate) fn is_first(&self) -> bool {
        self.before.is_none()
    }

    /// Takes a target as it is now. Returns what differs from its state before; `None` if nothing
    /// does.
    pub(crate) fn compare<'a>(&mut self, target: &'a Target) -> Option<Difference<'a>> {
        let known = self.targets.get(&target.target);
        let was = known.map(|known| known.verdict);
        let before = known.map_or(&[][..], |known| &known.findings[..]);
        // Of several in one place the first is taken first.
        let mut keys: HashMap<FindingKey<'_>, Vec<usize>> = HashMap::new();
        for (nth, finding) in before.iter().enumerate().rev() {
            keys.entry(finding.key()).or_default().push(nth);
        }
        let mut is_left = vec![true; before.len()];
        let (mut new, mut changed, mut same) = (Vec::new(), Vec::new(), 0);
        for finding in &target.findings {
            let Some(nth) = keys.get_mut(&finding.key()).and_then(Vec::pop) else {
                new.push(finding);
                continue;
            };
            is_left[nth] = false;
            match before[nth].severity {
                severity if severity == finding.severity => same += 1,
                severity => changed.push((finding, severity)),
            }
        }
        let left = before.iter().zip(is_left).filter(|(_, is_left)| *is_left);
        let (hidden, gone): (Vec<KnownFinding>, Vec<KnownFinding>) = left
            .map(|(finding, _)| finding.clone())
            .partition(|finding| is_hidden(target, &finding.provider));
        let worse = changed.iter().filter(|(f, before)| f.severity > *before).map(|(f, _)| *f);
        let counted = new.iter().copied().chain(worse).map(|f| f.severity).max();
        self.worst = self.worst.max(counted);
        self.unknown +=
            usize::from(target.verdict == Verdict::Unknown && was != Some(target.verdict));
        let findings = target.findings.iter().map(KnownFinding::from).chain(hidden).collect();
        let now = Known { verdict: target.verdict, findings };
        self.targets.insert(target.target.clone(), now);
        let differs = was != Some(target.verdict)
            || !(new.is_empty() && changed.is_empty() && gone.is_empty());
        differs.then_some(Difference { target, was, new, changed, gone, same })
    }

    /// Replaces the file by the state that this run leaves.
    ///
    /// Errors: a file that another run has replaced meanwhile, a state that is larger than any
    /// that is read, a failed write.
    pub(crate) fn save(&self) -> Result<(), Reason> {
        let failed = |why: fmt::Arguments<'_>| {
            Reason(format!("write the state {}: {why}", self.named.display()))
        };
        let refused = |e: io::Error| failed(format_args!("{}", words::os(&e)));
        let entry = |(target, known): (&String, &Known)| StoredTarget {
            target: target.clone(),
            verdict: known.verdict,
            findings: known.findings.clone(),
        };
        let targets = self.targets.iter().map(entry).collect();
        let text = serde_json::to_vec(&Document { format: FORMAT.into(), targets })
            .map_err(|e| failed(format_args!("{e}")))?;
        if text.len() as u64 > LARGEST {
            let most = words::size::human(LARGEST);
            return Err(failed(format_args!(
                "more than {most}: give each part of the targets its own"
            )));
        }
        let permissions = self.before.as_ref().map(|(_, permissions)| permissions.clone());
        let mut new = Replacement::write(&self.path, permissions, |out| {
            out.write_all(&text)?;
            out.write_all(b"\n")
        })
        .map_err(refused)?;
        // As far as others let it, one run at a time looks at the file and replaces it.
        let _directory = replaced::lock(&self.path).map_err(refused)?;
        let now = fs::metadata(&self.path).ok();
        if now.as_ref().map(version) != self.before.as_ref().map(|(version, _)| *version) {
            return Err(failed(format_args!("another run has written it meanwhile")));
        }
        new.place(&self.path).map_err(refused)
    }

    fn refused(&self, why: impl fmt::Display) -> Reason {
        Reason(format!("read the state {}: {why}: name a new file", self.named.display()))
    }
}

impl KnownFinding {
    fn key(&self) -> FindingKey<'_> {
        let (rule, provider) = (self.rule.as_str(), self.provider.as_str());
        FindingKey {
            rule,
            provider,
            offset: self.offset,
            unit: self.unit,
            remainder: self.remainder,
        }
    }
}

impl From<&Finding> for KnownFinding {
    fn from(f: &Finding) -> KnownFinding {
        KnownFinding {
            rule: f.rule.into(),
            severity: f.severity,
            provider: f.provider.clone(),
            offset: f.offset,
            unit: f.unit,
            remainder: f.remainder,
            message: f.message.clone(),
        }
    }
}

fn version(file: &Metadata) -> Version {
    (file.dev(), file.ino(), file.mtime(), file.mtime_nsec(), file.len())
}

/// The targets of a text. Errors: no such text, one of another version, a target twice.
fn parse(text: &str) -> Result<BTreeMap<String, Known>, Reason> {
    let broken = |e: serde_json::Error| Reason(format!("it holds no state of --changed: {e}"));
    let Head { format } = serde_json::from_str(text).map_err(broken)?;
    if format != FORMAT {
        let version = format.strip_prefix(FAMILY);
        return Err(Reason(version.map_or_else(
            || format!("its format is {format}, not {FORMAT}"),
            |version| format!("another version of trueline wrote it: {version}, not 1"),
        )));
    }
    let document: Document = serde_json::from_str(text).map_err(broken)?;
    let mut targets = BTreeMap::new();
    for StoredTarget { target, verdict, findings } in document.targets {
        let known = Known { verdict, findings };
        if targets.contains_key(&target) {
            return Err(Reason(format!("it has {target} twice")));
        }
        targets.insert(target, known);
    }
    Ok(targets)
}

/// True if a finding on that provider may be there still: the provider, or what it stands on, was
/// not read this time.
fn is_hidden(target: &Target, provider: &str) -> bool {
    let unread = |name: &str| {
        target.findings.iter().any(|f| f.rule == finding::UNREAD.id && f.provider == name)
    };
    let find = |name: &str| target.providers.iter().find(|p| p.provider == name);
    let Some(mut at) = find(provider) else {
        return target.findings.iter().any(|f| f.rule == finding::UNREAD.id);
    };
    // Each stands on one before it; of two with one name the first would be its own parent.
    for _ in 0..target.providers.len() {
        if unread(&at.provider) {
            return true;
        }
        match at.parent.as_deref().and_then(find) {
            Some(below) => at = below,
            None => return false,
        }
    }
    false
}

fn name<S: Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.name())
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Severity, D::Error> {
    let word = String::deserialize(deserializer)?;
    [Severity::Error, Severity::Warning, Severity::Note]
        .into_iter()
        .find(|severity| severity.name() == word)
        .ok_or_else(|| serde::de::Error::custom(format_args!("no severity is called {word}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    fn begun() -> Checked {
        let path = PathBuf::from("state");
        let (named, targets) = (path.clone(), BTreeMap::new());
        Checked { named, path, before: None, targets, worst: None, unknown: 0 }
    }

    /// The target as it is seen without the right to open its disk.
    fn unread() -> Target {
        let mut target = samples::openbsd();
        target.verdict = Verdict::Unknown;
        target.providers.retain(|p| matches!(p.provider.as_str(), "" | "s4"));
        let mut note = samples::openbsd().findings.remove(3);
        (note.rule, note.provider) = (finding::UNREAD.id, String::new());
        target.findings = vec![note];
        target
    }

    #[test]
    fn what_a_disk_that_was_not_read_may_hide_is_not_gone() {
        let (mut state, target) = (begun(), samples::openbsd());
        let first = state.compare(&target).unwrap();
        assert_eq!((first.was, first.new.len(), state.worst), (None, 4, Some(Severity::Error)));
        let mut state = Checked { worst: None, ..state };
        let unread = unread();
        let hidden = state.compare(&unread).unwrap();
        assert_eq!(hidden.was, Some(Verdict::Misaligned));
        assert_eq!((hidden.new.len(), hidden.gone.len(), hidden.same), (1, 0, 0));
        assert_eq!((state.worst, state.unknown), (Some(Severity::Note), 1));
        let again = state.compare(&target).unwrap();
        assert_eq!((again.new.len(), again.gone.len(), again.same), (0, 1, 4));
        assert_eq!(again.gone[0].rule, finding::UNREAD.id);
        assert!(state.compare(&target).is_none());
        // One that was not read beside it hides nothing.
        let mut beside = samples::openbsd();
        beside.findings.remove(0);
        beside.findings[2].rule = finding::UNREAD.id;
        beside.findings[2].provider = "s4d".into();
        assert_eq!(state.compare(&beside).unwrap().gone.len(), 2);
    }

    #[test]
    fn severities_count_when_they_rise() {
        let (mut state, mut target) = (begun(), samples::openbsd());
        state.compare(&target);
        state.worst = None;
        target.findings[0].severity = Severity::Warning;
        let milder = state.compare(&target).unwrap();
        assert_eq!((milder.changed.len(), milder.changed[0].1), (1, Severity::Error));
        assert_eq!(state.worst, None);
        let target = samples::openbsd();
        assert_eq!(state.compare(&target).unwrap().changed.len(), 1);
        assert_eq!(state.worst, Some(Severity::Error));
        // Two in one place are two.
        let mut double = samples::openbsd();
        double.findings.insert(0, samples::openbsd().findings.remove(0));
        assert_eq!(state.compare(&double).unwrap().new.len(), 1);
        assert_eq!(state.compare(&target).unwrap().gone.len(), 1);
    }
}
