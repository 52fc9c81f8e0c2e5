//! `--into FILE`: lines that go on where an interrupted run has ended.

use crate::appended::{self, Appended};
use crate::failure::Reason;
use crate::report::{CHECK, Verdict};
use crate::tally::{Seen, Tally};
use serde::Deserialize;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use trueline_host::disk::locks;

/// Longest line that is kept, in bytes: a report of the most providers that a target may have.
const LONGEST: u64 = 64 << 20;

/// Targets of which a file has lines. Of a name its hash is kept, so that a million of them are 16
/// MiB.
pub(super) struct Done {
    hasher: RandomState,
    /// Hash of the state of a target, by that of its name.
    states: HashMap<u64, u64>,
    /// Counts of the targets that are done.
    pub(super) tally: Tally,
}

/// Keys of a line that say which target it is about, and in which state that was.
#[derive(Deserialize)]
struct Line {
    /// Name in a line of `--jsonl`, in one of `--rows`.
    #[serde(alias = "uri")]
    target: String,
    /// State in a line of `--rows`, in one of `--jsonl`.
    #[serde(default)]
    etag: String,
    #[serde(default)]
    image: Image,
    #[serde(default)]
    error_class: String,
    /// Verdict on the target, and the worst severity, of a line of `--rows`.
    target_verdict: Option<Verdict>,
    #[serde(default)]
    severity: String,
}

#[derive(Default, Deserialize)]
struct Image {
    etag: String,
}

impl Done {
    /// No target at all, of a new file.
    pub(super) fn nothing() -> Done {
        let (hasher, states) = (RandomState::new(), HashMap::new());
        Done { hasher, states, tally: Tally::default() }
    }

    /// True if the lines of the target called `name` are there, of the state that it is in. One
    /// whose state is not known is never done.
    pub(super) fn has(&self, name: &str, etag: &str) -> bool {
        let state = self.states.get(&self.hasher.hash_one(name));
        !etag.is_empty() && state == Some(&self.hasher.hash_one(etag))
    }

    /// Takes the lines of a target as done, unless they are there already.
    fn add(&mut self, group: &Group) -> bool {
        let (name, state) = (self.hasher.hash_one(&group.name), self.hasher.hash_one(&group.etag));
        self.states.insert(name, state).is_none()
    }
}

/// A run of lines about one target: its name and state, and the place of the lines.
struct Group {
    name: String,
    etag: String,
    start: u64,
    end: u64,
    is_error: bool,
    /// Counts of the lines: of `--jsonl`, and of `--rows`.
    seen: Option<Seen>,
    row: Option<(Verdict, String)>,
}

/// Opens the file that lines of a form go to, behind those that it has. Lines are removed of
/// targets that were not finished, could not be read, or are no longer in the state that `state`
/// says.
///
/// Errors: a file that another run writes, that cannot be written, or that has anything but such
/// lines in it, which is left alone.
pub(super) fn open(
    path: &Path,
    is_rows: bool,
    state: impl Fn(&str) -> String,
) -> Result<(File, Done), Reason> {
    let refused = |why: &str| appended::refused(path, why);
    let failed = |e: io::Error| appended::failed(path, &e);
    let Appended { path: to, file } = Appended::open(path)?;
    // The first key of every line of either form.
    let begin = if is_rows { "{\"uri\":".into() } else { format!("{{\"format\":\"{CHECK}\",") };
    let begin = begin.as_bytes();
    let (mut done, mut kept) = (Done::nothing(), Vec::<(u64, u64)>::new());
    let mut last: Option<Group> = None;
    let mut keep = |done: &mut Done, group: Group| {
        let is_current = !group.etag.is_empty() && state(&group.name) == group.etag;
        if group.is_error || !is_current || !done.add(&group) {
            return;
        }
        match (&group.seen, group.row) {
            (Some(seen), _) => done.tally.add(seen),
            (None, Some((verdict, severity))) => done.tally.add_row(verdict, &severity),
            (None, None) => {}
        }
        match kept.last_mut() {
            Some(range) if range.1 == group.start => range.1 = group.end,
            _ => kept.push((group.start, group.end)),
        }
    };
    let (mut at, mut line, mut lines) = (0, Vec::new(), BufReader::new(&file));
    loop {
        line.clear();
        (&mut lines).take(LONGEST).read_until(b'\n', &mut line).map_err(failed)?;
        if line.is_empty() {
            break;
        }
        let is_whole = line.last() == Some(&b'\n');
        if !line.starts_with(begin) && (is_whole || !begin.starts_with(&line)) {
            return Err(refused("it has something else in it than lines of this form"));
        }
        if !is_whole {
            if line.len() as u64 >= LONGEST {
                return Err(refused("it has a line that is longer than any of these"));
            }
            break;
        }
        let Ok(found) = serde_json::from_slice::<Line>(&line) else {
            return Err(refused("it has something else in it than lines of this form"));
        };
        let end = at + line.len() as u64;
        match &mut last {
            // The rows of one target stand together.
            Some(group) if is_rows && group.name == found.target => {
                group.end = end;
                group.row = group.row.take().map(|(v, s)| (v, worse(s, found.severity)));
            }
            _ => {
                let group = Group {
                    name: found.target,
                    etag: if is_rows { found.etag } else { found.image.etag },
                    start: at,
                    end,
                    is_error: !found.error_class.is_empty(),
                    seen: serde_json::from_slice(&line).ok(),
                    row: found.target_verdict.map(|verdict| (verdict, found.severity)),
                };
                if let Some(before) = last.replace(group) {
                    keep(&mut done, before);
                }
            }
        }
        at = end;
    }
    // Of rows, the last target may have more than were written.
    if let Some(group) = last.filter(|_| !is_rows) {
        keep(&mut done, group);
    }
    drop(lines);
    let kept = match kept.as_slice() {
        [] => file.set_len(0).map(|()| file),
        [(0, end)] => file.set_len(*end).map(|()| file),
        ranges => rewrite(&to, &file, ranges),
    };
    kept.map(|file| (file, done)).map_err(failed)
}

/// The names of the targets that a file has lines of, as far as it can be read.
pub(super) fn names(path: &Path) -> impl Iterator<Item = String> {
    let file =
        File::open(path).ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()));
    let mut lines = file.map(BufReader::new);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        lines.as_mut()?.take(LONGEST).read_until(b'\n', &mut line).ok()?;
        (!line.is_empty()).then_some(line)
    })
    .filter_map(|line| Some(serde_json::from_slice::<Line>(&line).ok()?.target))
}

/// The worse of two words for a severity, as a row has them.
fn worse(a: String, b: String) -> String {
    let rank = |word: &str| ["note", "warning", "error"].iter().position(|known| *known == word);
    if rank(&b) > rank(&a) { b } else { a }
}

/// Replaces a file by one with these ranges of it alone, which is whole before it takes its place.
fn rewrite(path: &Path, file: &File, ranges: &[(u64, u64)]) -> io::Result<File> {
    use std::os::unix::fs::FileExt;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside: PathBuf = path.with_file_name(format!(".{name}.new"));
    // One that is there was left by a run that was killed: the lock is ours.
    match fs::remove_file(&beside) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let new = OpenOptions::new().read(true).append(true).create_new(true).open(&beside)?;
    let copied = (|| {
        locks::keep(&new);
        new.set_permissions(file.metadata()?.permissions())?;
        let (mut out, mut buffer) = (BufWriter::new(&new), vec![0; 1 << 20]);
        for &(start, end) in ranges {
            let mut at = start;
            while at < end {
                let size = usize::try_from(end - at).map_or(buffer.len(), |n| n.min(buffer.len()));
                file.read_exact_at(&mut buffer[..size], at)?;
                out.write_all(&buffer[..size])?;
                at += size as u64;
            }
        }
        out.flush()?;
        drop(out);
        new.sync_all()?;
        fs::rename(&beside, path)
    })();
    match copied {
        Ok(()) => Ok(new),
        Err(e) => {
            // The first error is the one to report.
            let _ = fs::remove_file(&beside);
            Err(e)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("trueline-into-{}-{name}", std::process::id()))
    }

    fn line(name: &str, etag: &str) -> String {
        let image = json!({"size": 0, "etag": etag, "container": "", "creator": ""});
        let rest = json!({"target": name, "verdict": "aligned", "findings": [], "image": image});
        let rest = rest.to_string();
        format!("{{\"format\":\"trueline/check/1\",{}\n", &rest[1..])
    }

    const ERROR: &str = concat!(
        "{\"format\":\"trueline/check/1\",\"target\":\"b\",",
        "\"error_class\":\"denied\",\"error\":\"no\"}\n"
    );

    /// A line that was cut, one of an error, one of a target that was written since or is gone, and
    /// an older one of the same target are not kept.
    #[test]
    fn lines_that_are_true_are_kept() {
        let path = at("jsonl");
        let cut = "{\"format\":\"trueline/check/1\",\"im";
        let text =
            [&line("a", "1"), ERROR, &line("c", "3"), &line("gone", "1"), &line("d", ""), cut];
        fs::write(&path, text.concat()).unwrap();
        let state = |name: &str| if name == "gone" { String::new() } else { name_state(name) };
        let (mut file, done) = open(&path, false, state).unwrap();
        let has = |name, etag| done.has(name, etag);
        assert!(has("a", "1") && has("c", "3"));
        assert!(!has("a", "2") && !has("b", "") && !has("d", "") && !has("gone", "1"));
        assert_eq!(done.tally.counts.aligned, 2);
        file.write_all(b"more\n").unwrap();
        // Another run stays away as long as this one has it.
        assert!(open(&path, false, state).is_err_and(|Reason(why)| why.contains("another run")));
        let expected = [&line("a", "1"), &line("c", "3"), "more\n"].concat();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        drop(file);
        fs::remove_file(&path).unwrap();
        let (_, done) = open(&path, false, state).unwrap();
        assert!(!done.has("a", "1") && path.exists());
        fs::remove_file(&path).unwrap();
    }

    fn name_state(name: &str) -> String {
        if name == "c" { "3".into() } else { "1".into() }
    }

    /// Of a link the file is written again, with the rights that it has.
    #[test]
    fn a_file_that_is_rewritten_stays_where_and_as_it_is() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (path, link) = (at("target"), at("link"));
        fs::write(&path, [ERROR, &line("a", "1")].concat()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();
        // What a run left that was killed while it did so.
        fs::write(
            at("target").with_file_name(format!(".{}.new", path.file_name().unwrap().display())),
            "x",
        )
        .unwrap();
        let (mut file, _) = open(&link, false, |_| "1".into()).unwrap();
        file.write_all(b"more\n").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), [&line("a", "1"), "more\n"].concat());
        fs::remove_file(&path).unwrap();
        fs::remove_file(&link).unwrap();
    }

    /// The last target may lack rows.
    #[test]
    fn the_rows_of_the_last_target_are_written_again() {
        let path = at("rows");
        let row = |name: &str| {
            let rest = json!({"etag": "1", "target_verdict": "misaligned", "severity": "error"});
            format!("{{\"uri\":\"{name}\",{}\n", &rest.to_string()[1..])
        };
        fs::write(&path, [row("a"), row("a"), row("b"), row("c"), row("c")].concat()).unwrap();
        let (_, done) = open(&path, true, |_| "1".into()).unwrap();
        assert_eq!(["a", "b", "c"].map(|name| done.has(name, "1")), [true, true, false]);
        assert_eq!((done.tally.counts.misaligned, done.tally.severity.is_some()), (2, true));
        assert_eq!(fs::read_to_string(&path).unwrap(), [row("a"), row("a"), row("b")].concat());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn another_file_stays_as_it_is() {
        let path = at("other");
        for other in [
            "an image",
            "[1, 2]\n",
            "{\"a\": 1}",
            "{\"a\": 1}\n",
            "{\"level\":\"ERROR\",\"target\":\"app\",\"error\":\"boom\"}\n",
            "{\"uri\":\"a\",\"etag\":\"1\"}\n",
            &format!("{}x\n", line("a", "1")),
        ] {
            fs::write(&path, other).unwrap();
            assert!(open(&path, false, |_| "1".into()).is_err(), "{other}");
            assert_eq!(fs::read_to_string(&path).unwrap(), other);
        }
        fs::remove_file(&path).unwrap();
    }
}
