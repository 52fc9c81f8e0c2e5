//! Names of the targets of a fleet: of the command line, of directories, and of lists.

use super::shard::Shard;
use super::walk;
use crate::target::{self, Named};
use crate::words;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Longest name in a list, in bytes; the rest of a longer one is passed over with it.
const LONGEST: u64 = 4096;

/// Target of a fleet, or what came instead of one.
pub(super) enum Item {
    /// Target that was named.
    Named(Named),
    /// File that a walk has found, which may be no image.
    Found(Named),
    /// Error of a directory or a list, in one line.
    Unread(String),
}

/// True if a file begins as a list of names does, and not as JSON. Of standard input, what was
/// looked at is read again.
pub(super) fn is_list(path: &Path) -> bool {
    let begins = |bytes: &[u8]| bytes.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
    let first = if path == Path::new("-") {
        io::stdin().lock().fill_buf().ok().and_then(begins)
    } else {
        let file = File::open(path).ok();
        file.and_then(|file| BufReader::new(file).fill_buf().ok().and_then(begins))
    };
    !matches!(first, None | Some(b'{' | b'['))
}

/// The targets of the command line, those of `directories` and those of `lists`, of which a share
/// may be wanted alone.
pub(super) fn all(
    targets: Vec<Named>,
    directories: Vec<PathBuf>,
    lists: Vec<PathBuf>,
    shard: Option<Shard>,
) -> impl Iterator<Item = Item> + Send {
    let found = directories.into_iter().flat_map(|directory| {
        let (names, unread) = walk::files(&directory);
        names.into_iter().map(Item::Found).chain(unread.into_iter().map(Item::Unread))
    });
    let listed = lists.into_iter().flat_map(|list| Lines::open(&list));
    let all = targets.into_iter().map(Item::Named).chain(found).chain(listed);
    all.filter(move |item| match (shard, item) {
        (Some(shard), Item::Named(Ok(name)) | Item::Found(Ok(name))) => shard.has(name.typed()),
        _ => true,
    })
}

/// Lines of a list, or names behind which a NUL stands.
enum Lines {
    Open(Box<dyn BufRead + Send>, u8),
    Wrong(String),
    Ended,
}

impl Lines {
    fn open(path: &Path) -> Lines {
        let opened: io::Result<Box<dyn BufRead + Send>> = if path == Path::new("-") {
            Ok(Box::new(BufReader::new(io::stdin())))
        } else {
            File::open(path).map(|file| Box::new(BufReader::new(file)) as _)
        };
        let begun = opened.and_then(|mut lines| {
            let end = if lines.fill_buf()?.contains(&0) { 0 } else { b'\n' };
            Ok(Lines::Open(lines, end))
        });
        begun
            .unwrap_or_else(|e| Lines::Wrong(format!("read {}: {}", path.display(), words::os(&e))))
    }

    /// The next name of a list that is open, without its end; `None` at the end.
    fn name(lines: &mut dyn BufRead, end: u8) -> io::Result<Option<Vec<u8>>> {
        let mut name = Vec::new();
        if lines.take(LONGEST + 1).read_until(end, &mut name)? == 0 {
            return Ok(None);
        }
        if name.last() == Some(&end) {
            name.pop();
        } else if name.len() as u64 > LONGEST {
            lines.skip_until(end)?;
        }
        if end == b'\n' && name.last() == Some(&b'\r') {
            name.pop();
        }
        Ok(Some(name))
    }
}

impl Iterator for Lines {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            let (lines, end) = match std::mem::replace(self, Lines::Ended) {
                Lines::Open(lines, end) => (lines, end),
                Lines::Wrong(why) => return Some(Item::Unread(why)),
                Lines::Ended => return None,
            };
            let mut lines = lines;
            match Lines::name(&mut *lines, end) {
                Ok(None) => return None,
                Err(e) => return Some(Item::Unread(format!("read the list: {}", words::os(&e)))),
                Ok(Some(name)) => {
                    *self = Lines::Open(lines, end);
                    if !name.is_empty() {
                        return Some(Item::Named(target::listed(&OsString::from_vec(name))));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_name_a_line_or_before_a_nul() {
        let names = |text: &[u8], end| {
            let mut text = text;
            let mut all = Vec::new();
            while let Some(name) = Lines::name(&mut text, end).unwrap() {
                all.push(name);
            }
            all
        };
        assert_eq!(names(b"a\nb c\r\n\nlast", b'\n'), [&b"a"[..], b"b c", b"", b"last"]);
        assert_eq!(names(b"a\nb\0c\0", 0), [&b"a\nb"[..], b"c"]);
        let long = [vec![b'x'; 10_000], b"\nnext\n".to_vec()].concat();
        let found = names(&long, b'\n');
        assert_eq!((found[0].len(), &found[1][..]), (4097, &b"next"[..]));
    }
}
