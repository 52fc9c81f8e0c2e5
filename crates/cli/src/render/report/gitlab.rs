//! `--gitlab`: a Code Quality report of GitLab, a subset of Code Climate's format.
//!
//! A finding's fingerprint is a hash of its file, place and rule, not of its words: GitLab compares
//! the reports of two branches by it.
//!
//! # Sources
//! GitLab documentation, "Code Quality report format": the keys, the severities; paths are relative
//! to the project, whose directory is in the predefined variable `CI_PROJECT_DIR`.

use super::sarif::artifact;
use crate::report::{Finding, Report, Target, UnreadTarget};
use crate::shard::fnv1a;
use crate::words;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use trueline_geom::base::finding::Severity;

/// Name of the check of a target that could not be read.
const UNREAD: &str = "unread";

/// Directories by which names of files become paths in a project.
pub(crate) struct Project {
    /// The directory that names are relative to.
    here: PathBuf,
    /// The directory of the project, as it is named and behind all links.
    roots: [PathBuf; 2],
}

/// An issue of the report.
#[derive(Serialize)]
struct Issue {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

/// Lines of a file. A disk has none, but the key is required.
#[derive(Serialize)]
struct Lines {
    begin: u64,
}

/// Fingerprints that were given, and how many times.
type Given = BTreeMap<u64, usize>;

/// Writes the report: an array of issues.
pub(crate) fn write(report: &Report, project: &Project, out: &mut dyn io::Write) -> io::Result<()> {
    let mut given = Given::new();
    let found = report.targets.iter().flat_map(|t| t.findings.iter().map(move |f| (t, f)));
    let mut issues: Vec<Issue> =
        found.map(|(target, finding)| issue(project, (target, finding), &mut given)).collect();
    issues.extend(report.errors.iter().map(|error| unread(project, error, &mut given)));
    serde_json::to_writer_pretty(&mut *out, &issues)?;
    writeln!(out)
}

fn issue(project: &Project, (target, f): (&Target, &Finding), given: &mut Given) -> Issue {
    let provider = target.providers.iter().find(|p| p.provider == f.provider);
    let path = project.path(artifact(target, provider));
    let fix = f.fix.first().map_or(String::new(), |fix| format!(" ({fix})"));
    Issue {
        description: format!("{}: {}{fix}", words::name(&f.provider), f.message),
        check_name: f.rule.into(),
        fingerprint: fingerprint(&[&path, &f.key().to_string()], given),
        severity: match f.severity {
            Severity::Error => "major",
            Severity::Warning => "minor",
            Severity::Note => "info",
        },
        location: Location { path, lines: Lines { begin: 1 } },
    }
}

/// The issue of a target that could not be read, whatever the reason is this time.
fn unread(project: &Project, error: &UnreadTarget, given: &mut Given) -> Issue {
    let path = match error.target.as_str() {
        "" => ".".to_owned(),
        target => project.path(target),
    };
    let words = if error.target.is_empty() { [UNREAD, &error.why] } else { [UNREAD, &path] };
    Issue {
        description: error.why.clone(),
        check_name: UNREAD.into(),
        fingerprint: fingerprint(&words, given),
        severity: "blocker",
        location: Location { path, lines: Lines { begin: 1 } },
    }
}

/// The hash of the words of a place. Of several issues with one fingerprint GitLab shows one, so a
/// second one has its number behind it.
fn fingerprint(words: &[&str], given: &mut Given) -> String {
    let hash = fnv1a(words.join("\0").as_bytes());
    let count = given.entry(hash).or_insert(0);
    *count += 1;
    if *count == 1 { format!("{hash:016x}") } else { format!("{hash:016x}-{count}") }
}

impl Project {
    /// The project whose directory is at `root`, which may be relative to `here`.
    pub(crate) fn new(here: PathBuf, root: &Path) -> Project {
        let named = normal(&here.join(root));
        let real = named.canonicalize().unwrap_or_else(|_| named.clone());
        Project { here, roots: [named, real] }
    }

    /// The path of a file in the project; of one that is outside of it, and of what is no file, the
    /// name as it is.
    fn path(&self, name: &str) -> String {
        if name.contains("://") {
            return name.to_owned();
        }
        let whole = normal(&self.here.join(name));
        let inside = |root: &PathBuf| whole.strip_prefix(root).ok();
        let path = self.roots.iter().find_map(inside);
        path.map_or_else(|| name.to_owned(), |path| path.display().to_string())
    }
}

/// A path without `.` and `..`, by its words alone: an image need not be there any more.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = normal.pop(),
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn issues(report: &Report) -> Vec<Value> {
        let project = Project::new("/p/out".into(), Path::new("/p"));
        serde_json::from_str(&samples::text(|out| write(report, &project, out))).unwrap()
    }

    #[test]
    fn fingerprints_are_unique_and_go_by_place_and_rule_alone() {
        let targets = || vec![samples::openbsd(), samples::openbsd(), samples::stripe()];
        let mut report = samples::report(targets());
        report.errors = vec!["open x: no".to_owned().into(), "open x: no".to_owned().into()];
        let prints = |all: &[Value]| -> Vec<String> {
            all.iter().map(|issue| issue["fingerprint"].to_string()).collect()
        };
        let before = prints(&issues(&report));
        assert_eq!(before.len(), before.iter().collect::<BTreeSet<_>>().len());
        // A target is named; the reason may be another one next time.
        report.errors[0].target = "out/x".into();
        let named = issues(&report);
        let unread = |all: &[Value]| -> Vec<Value> {
            let is_unread = |issue: &&Value| issue["check_name"] == UNREAD;
            all.iter().filter(is_unread).cloned().collect()
        };
        assert_eq!(unread(&named)[0]["location"]["path"], "out/out/x");
        report.errors[0].why = "read x: another reason".into();
        let again = issues(&report);
        assert_eq!(unread(&named)[0]["fingerprint"], unread(&again)[0]["fingerprint"]);
        let before = prints(&again);
        report.targets.iter_mut().flat_map(|t| &mut t.findings).for_each(|f| {
            f.message = "other words".into();
            f.severity = Severity::Note;
        });
        assert_eq!(prints(&issues(&report)), before);
        report.targets[0].findings[0].offset += 512;
        assert_ne!(prints(&issues(&report)), before);
    }

    #[test]
    fn paths_are_those_of_the_project() {
        let project = Project::new("/p/./out".into(), Path::new("../"));
        for (name, path) in [
            ("a.img", "out/a.img"),
            ("./a.img", "out/a.img"),
            ("/p/x/../a.img", "a.img"),
            ("../b/a.img", "b/a.img"),
            ("../../elsewhere.img", "../../elsewhere.img"),
            ("/dev/sda", "/dev/sda"),
            ("/project/a.img", "/project/a.img"),
            ("s3://b/k.img", "s3://b/k.img"),
        ] {
            assert_eq!(project.path(name), path);
        }
    }

    /// The shell of a job may name the project by a link, and a process then finds itself behind
    /// it.
    #[test]
    fn a_project_may_be_named_by_a_link() {
        let scratch = std::env::temp_dir().join(format!("trueline-link-{}", std::process::id()));
        let (real, link) = (scratch.join("real"), scratch.join("link"));
        std::fs::create_dir_all(&real).unwrap();
        let real = real.canonicalize().unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let project = Project::new(real.clone(), &link);
        for name in [Path::new("a.img"), &real.join("a.img"), &link.join("a.img")] {
            assert_eq!(project.path(name.to_str().unwrap()), "a.img");
        }
        std::fs::remove_dir_all(&scratch).unwrap();
    }
}
