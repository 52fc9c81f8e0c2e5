//! Names of the targets of a fleet: of the command line, of directories, and of lists.

use super::walk;
use crate::failure::Reason;
use crate::shard::Shard;
use crate::target::{self, Named, object};
use crate::this_host::Listing;
use crate::words;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Longest name in a list, in bytes: more than a path may have.
const LONGEST: usize = 4097;

/// Target of a fleet, or what came instead of one.
pub(super) enum Item {
    /// Target that was named.
    Named(Named),
    /// File that a walk has found, which may be no image.
    Found(Named),
    /// Error of a directory or a list, in one line.
    Unread(String),
}

/// File of `--from`, opened once: a pipe cannot be opened twice.
pub(super) enum Given {
    /// List of names, which is read as far as it is wanted.
    List(Box<dyn BufRead + Send>),
    /// JSON of lsblk or nvme, or nothing.
    Devices(Listing),
}

impl Given {
    /// The file at a path, or standard input. JSON begins with a brace or a bracket.
    pub(super) fn open(path: &Path) -> Given {
        let is_stdin = path == Path::new("-");
        let opened: io::Result<Box<dyn BufRead + Send>> = if is_stdin {
            Ok(Box::new(BufReader::new(io::stdin())))
        } else {
            File::open(path).map(|file| Box::new(BufReader::new(file)) as _)
        };
        let place = if is_stdin { "stdin".to_string() } else { path.display().to_string() };
        let mut lines = match opened {
            Ok(lines) => lines,
            Err(e) => return Given::Devices(Listing::unread(place, &e)),
        };
        let first = lines
            .fill_buf()
            .map(|bytes| bytes.iter().find(|byte| !byte.is_ascii_whitespace()).copied());
        match first {
            Ok(None | Some(b'{' | b'[')) => Given::Devices(Listing::read(place, &mut lines)),
            Ok(Some(_)) => Given::List(lines),
            Err(e) => Given::Devices(Listing::unread(place, &e)),
        }
    }
}

/// True if a directory is the begin of the names of objects.
pub(super) fn is_prefix(directory: &Path) -> bool {
    directory.to_str().is_some_and(object::is_meant)
}

/// The targets of the command line, those of `directories` and those of `lists`, of which a share
/// may be wanted alone.
pub(super) fn all(
    targets: Vec<Named>,
    directories: Vec<PathBuf>,
    lists: Vec<Box<dyn BufRead + Send>>,
    shard: Option<Shard>,
) -> impl Iterator<Item = Item> + Send {
    let found =
        directories.into_iter().flat_map(|directory| -> Box<dyn Iterator<Item = Item> + Send> {
            if let Some(prefix) = directory.to_str().filter(|prefix| object::is_meant(prefix)) {
                return Box::new(walk::objects(prefix).map(|found| match found {
                    Ok(target) => Item::Found(Ok(target)),
                    Err(Reason(why)) => Item::Unread(why),
                }));
            }
            let (names, unread) = walk::files(&directory);
            Box::new(names.into_iter().map(Item::Found).chain(unread.into_iter().map(Item::Unread)))
        });
    let listed = lists.into_iter().flat_map(|lines| Lines { lines, end: None, is_over: false });
    let all = targets.into_iter().map(Item::Named).chain(found).chain(listed);
    all.filter(move |item| match (shard, item) {
        (Some(shard), Item::Named(Ok(name)) | Item::Found(Ok(name))) => shard.has(name.typed()),
        _ => true,
    })
}

/// Lines of a list, or names behind which a NUL stands: what ends the first name ends all.
struct Lines {
    lines: Box<dyn BufRead + Send>,
    end: Option<u8>,
    is_over: bool,
}

/// The next name of a list, without its end; `None` behind the last. The end of the first one is
/// noted.
fn name(lines: &mut dyn BufRead, end: &mut Option<u8>) -> io::Result<Option<Vec<u8>>> {
    let mut name = Vec::new();
    loop {
        let bytes = lines.fill_buf()?;
        if bytes.is_empty() {
            return Ok((!name.is_empty()).then_some(name));
        }
        let ends = |byte: &&u8| end.map_or(**byte == 0 || **byte == b'\n', |end| **byte == end);
        let at = bytes.iter().position(|byte| ends(&byte));
        // The rest of a name that is too long is passed over with it.
        let room = LONGEST.saturating_sub(name.len());
        let taken = at.unwrap_or(bytes.len());
        name.extend(&bytes[..taken.min(room)]);
        let Some(at) = at else {
            lines.consume(taken);
            continue;
        };
        *end = Some(bytes[at]);
        lines.consume(at + 1);
        if *end == Some(b'\n') && name.last() == Some(&b'\r') {
            name.pop();
        }
        return Ok(Some(name));
    }
}

impl Iterator for Lines {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while !self.is_over {
            match name(&mut *self.lines, &mut self.end) {
                Ok(None) => self.is_over = true,
                Ok(Some(name)) if name.is_empty() => {}
                Ok(Some(name)) => {
                    return Some(Item::Named(target::listed(&OsString::from_vec(name))));
                }
                Err(e) => {
                    self.is_over = true;
                    return Some(Item::Unread(format!("read the list: {}", words::os(&e))));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_name_a_line_or_before_a_nul() {
        let names = |text: &[u8]| {
            // A pipe gives a part at a time.
            let mut parts = BufReader::with_capacity(3, text);
            let (mut all, mut end) = (Vec::new(), None);
            while let Some(name) = name(&mut parts, &mut end).unwrap() {
                all.push(name);
            }
            all
        };
        assert_eq!(names(b"a\nb c\r\n\nlast"), [&b"a"[..], b"b c", b"", b"last"]);
        assert_eq!(names(b"a\0b\nc\0"), [&b"a"[..], b"b\nc"]);
        assert_eq!(names(b""), [] as [&[u8]; 0]);
        let long = [vec![b'x'; 10_000], b"\nnext\n".to_vec()].concat();
        let found = names(&long);
        assert_eq!((found[0].len(), &found[1][..]), (LONGEST, &b"next"[..]));
    }
}
