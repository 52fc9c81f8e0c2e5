//! First bytes of files whose names say nothing: a look that waits for nothing and changes nothing.
//!
//! # Limits
//! Regular files alone. A symbolic link is not followed, and the open of a FIFO or a device, which
//! may wait or have effects, is not waited for. Of a directory [`FILES`] names are read.
//!
//! # Sources
//! open(2) (`O_NOFOLLOW`, `O_NONBLOCK`), pread(2).

use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::{pread, retry_on_intr};
use std::fs;
use std::path::{Path, PathBuf};

/// Largest number of names that are read of a directory.
pub const FILES: usize = 4096;

/// First bytes of a regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Bytes from its beginning on.
    pub bytes: Vec<u8>,
    /// Device and number of the file: those of its other names are the same.
    pub identity: (u64, u64),
}

/// Up to `longest` bytes from the beginning of the file at `path`; `None` if it is no regular file
/// or cannot be read.
pub fn look(path: &Path, longest: usize) -> Option<Look> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags | OFlags::NOCTTY, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = vec![0; longest];
    let mut read = 0;
    while read < longest {
        match retry_on_intr(|| pread(&file, &mut bytes[read..], read as u64)).ok()? {
            0 => break,
            more => read += more,
        }
    }
    bytes.truncate(read);
    Some(Look { bytes, identity: (stat.st_dev, stat.st_ino) })
}

/// Regular files of `directory`, as far as its entries say, in the order of their names; and true
/// if there are more names than [`FILES`].
pub fn files(directory: &Path) -> (Vec<PathBuf>, bool) {
    let Ok(entries) = fs::read_dir(directory) else { return (Vec::new(), false) };
    let mut entries = entries.flatten();
    let mut files: Vec<PathBuf> = entries
        .by_ref()
        .take(FILES)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    (files, entries.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mknodat};
    use std::os::unix::fs::symlink;

    #[test]
    fn regular_files_alone_are_looked_at() {
        let directory = std::env::temp_dir().join(format!("trueline-look-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let at = |name: &str| directory.join(name);
        fs::write(at("a"), b"abcdef").expect("a file");
        fs::hard_link(at("a"), at("b")).expect("a link");
        symlink(at("a"), at("link")).expect("a link");
        fs::create_dir_all(at("directory")).expect("a directory");
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
        let (found, more) = files(&directory);
        assert_eq!((found, more), (vec![at("a"), at("b")], false));
        let [a, b] = ["a", "b"].map(|name| look(&at(name), 4).expect("a look"));
        assert_eq!((a.bytes.as_slice(), a.identity), (b"abcd".as_slice(), b.identity));
        assert_eq!(look(&at("a"), 100).map(|look| look.bytes), Some(b"abcdef".to_vec()));
        for other in ["link", "directory", "fifo", "none"] {
            assert_eq!(look(&at(other), 4), None, "{other}");
        }
        fs::remove_dir_all(&directory).expect("an end");
    }
}
