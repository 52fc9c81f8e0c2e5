//! `--into FILE`: lines that go on where an interrupted run has ended.

use crate::failure::Reason;
use crate::tally::{Seen, Tally};
use crate::words;
use serde::Deserialize;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

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
    error: String,
    #[serde(default)]
    error_class: String,
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

    /// True if the lines of the target called `name` are there, of the state that it is in.
    pub(super) fn has(&self, name: &str, etag: &str) -> bool {
        let state = self.states.get(&self.hasher.hash_one(name));
        state == Some(&self.hasher.hash_one(etag))
    }

    fn add(&mut self, name: &str, etag: &str) {
        let (name, state) = (self.hasher.hash_one(name), self.hasher.hash_one(etag));
        self.states.insert(name, state);
    }
}

/// A run of lines about one target: its name and state, and the place of the lines.
struct Group {
    name: String,
    etag: String,
    start: u64,
    end: u64,
    is_error: bool,
}

/// Opens the file that lines go to, behind those that it has. A target that was not finished, or
/// could not be read, is not among the done, and its lines are removed.
///
/// Errors: a file that cannot be written, or that has something else than such lines in it.
pub(super) fn open(path: &Path) -> Result<(File, Done), Reason> {
    let refused = |why: &str| Reason(format!("write {}: {why}: name a new file", path.display()));
    let failed = |e: io::Error| Reason(format!("write {}: {}", path.display(), words::os(&e)));
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let file = OpenOptions::new().append(true).create_new(true).open(path);
            return Ok((file.map_err(failed)?, Done::nothing()));
        }
        opened => opened.map_err(failed)?,
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(refused("it is no file"));
    }
    let mut done = Done::nothing();
    let (mut kept, mut last): (Vec<(u64, u64)>, Option<Group>) = (Vec::new(), None);
    let mut is_rows = false;
    let mut keep = |done: &mut Done, group: Group| {
        if !group.is_error {
            done.add(&group.name, &group.etag);
            match kept.last_mut() {
                Some(range) if range.1 == group.start => range.1 = group.end,
                _ => kept.push((group.start, group.end)),
            }
        }
    };
    let (mut at, mut line, mut lines) = (0, Vec::new(), BufReader::new(&file));
    loop {
        line.clear();
        let read = (&mut lines).take(LONGEST).read_until(b'\n', &mut line).map_err(failed)?;
        if line.last() != Some(&b'\n') {
            if line.first().is_some_and(|&byte| byte != b'{') || read as u64 >= LONGEST {
                return Err(refused("there is a file with something else in it"));
            }
            break;
        }
        let Ok(found) = serde_json::from_slice::<Line>(&line) else {
            return Err(refused("it has other lines than those of check --jsonl or --rows"));
        };
        is_rows = line.starts_with(b"{\"uri\"");
        let end = at + line.len() as u64;
        match &mut last {
            // The rows of one target stand together.
            Some(group) if is_rows && group.name == found.target => group.end = end,
            _ => {
                let etag = if is_rows { found.etag } else { found.image.etag };
                let is_error = !found.error_class.is_empty() || !found.error.is_empty();
                let group = Group { name: found.target, etag, start: at, end, is_error };
                if let Some(before) = last.replace(group) {
                    keep(&mut done, before);
                }
            }
        }
        if let Ok(seen) = serde_json::from_slice::<Seen>(&line) {
            done.tally.add(&seen);
        }
        at = end;
    }
    // Of rows, the last target may have more than were written.
    if let Some(group) = last.filter(|_| !is_rows) {
        keep(&mut done, group);
    }
    drop(lines);
    let file = match kept.as_slice() {
        [] => file.set_len(0).map(|()| file),
        [(0, end)] => file.set_len(*end).map(|()| file),
        ranges => rewrite(path, &file, ranges),
    };
    file.and_then(|_| OpenOptions::new().append(true).open(path))
        .map(|file| (file, done))
        .map_err(failed)
}

/// Replaces a file by one with these ranges of it alone.
fn rewrite(path: &Path, file: &File, ranges: &[(u64, u64)]) -> io::Result<File> {
    use std::os::unix::fs::FileExt;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside: PathBuf = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut out = BufWriter::new(OpenOptions::new().write(true).create_new(true).open(&beside)?);
    let mut copy = || {
        let mut buffer = vec![0; 1 << 20];
        for &(start, end) in ranges {
            let mut at = start;
            while at < end {
                let size = usize::try_from(end - at).map_or(buffer.len(), |n| n.min(buffer.len()));
                file.read_exact_at(&mut buffer[..size], at)?;
                out.write_all(&buffer[..size])?;
                at += size as u64;
            }
        }
        out.flush()
    };
    let copied = copy().and_then(|()| fs::rename(&beside, path));
    if copied.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&beside);
    }
    copied.and_then(|()| File::open(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("trueline-into-{}-{name}", std::process::id()))
    }

    fn line(name: &str, etag: &str) -> String {
        format!(
            "{{\"target\":\"{name}\",\"image\":{{\"etag\":\"{etag}\",\"container\":\"\",\"creator\":\"\",\"size\":0}},\"verdict\":\"aligned\",\"findings\":[]}}\n"
        )
    }

    #[test]
    fn a_line_that_was_cut_and_one_of_an_error_are_written_again() {
        let path = at("jsonl");
        let error = "{\"target\":\"b\",\"error\":\"no\"}\n";
        fs::write(
            &path,
            [&line("a", "1"), error, &line("c", "3"), "{\"target\":\"d\",\"im"].concat(),
        )
        .unwrap();
        let (mut file, done) = open(&path).unwrap();
        // One that has changed since, and one that could not be read, are not done with.
        let has = |name, etag| done.has(name, etag);
        assert!(has("a", "1") && has("c", "3"));
        assert!(!has("a", "2") && !has("b", "") && !has("d", ""));
        assert_eq!(done.tally.counts.aligned, 2);
        file.write_all(b"more\n").unwrap();
        let expected = [&line("a", "1"), &line("c", "3"), "more\n"].concat();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        fs::remove_file(&path).unwrap();
        let (_, done) = open(&path).unwrap();
        assert!(!done.has("a", "1") && path.exists());
        fs::remove_file(&path).unwrap();
    }

    /// The last target may lack rows.
    #[test]
    fn the_rows_of_the_last_target_are_written_again() {
        let path = at("rows");
        let row = |name: &str| format!("{{\"uri\":\"{name}\",\"etag\":\"1\",\"error\":\"\"}}\n");
        fs::write(&path, [row("a"), row("a"), row("b"), row("c"), row("c")].concat()).unwrap();
        let (_, done) = open(&path).unwrap();
        assert_eq!(["a", "b", "c"].map(|name| done.has(name, "1")), [true, true, false]);
        assert_eq!(fs::read_to_string(&path).unwrap(), [row("a"), row("a"), row("b")].concat());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn another_file_stays_as_it_is() {
        let path = at("other");
        for other in ["an image", "[1, 2]\n", "{\"a\": 1}\n", "{\"target\":\"a\"}\nx\n"] {
            fs::write(&path, other).unwrap();
            assert!(open(&path).is_err(), "{other}");
            assert_eq!(fs::read_to_string(&path).unwrap(), other);
        }
        fs::remove_file(&path).unwrap();
    }
}
