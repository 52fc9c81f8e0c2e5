//! A real directory of this machine: every call works below it, with the system calls that programs
//! use.

use super::{File, Files};
use crate::error::Error;
use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};
use std::{fs, io};
use trueline_host::disk::page_cache;

/// The most bytes of one write or read call.
const PIECE: u64 = 1 << 20;

/// A directory and the files open below it.
pub struct Directory {
    root: PathBuf,
    begin: Instant,
    open: HashMap<File, Opened>,
    next: u64,
    /// The source of all writes and the destination of all reads.
    buffer: Vec<u8>,
}

struct Opened {
    file: fs::File,
    name: String,
}

impl Directory {
    /// The directory `root`, which must exist and be empty.
    pub fn new(root: &Path) -> Result<Directory, Error> {
        let mut entries = fs::read_dir(root).map_err(|e| failed("open", root, &e))?;
        if entries.next().is_some() {
            return Err(Error::new(format!(
                "open {}: the directory is not empty: name an empty one",
                root.display()
            )));
        }
        Ok(Directory {
            root: root.to_owned(),
            begin: Instant::now(),
            open: HashMap::new(),
            next: 0,
            buffer: Vec::new(),
        })
    }

    /// The path of `name` below the directory. An empty part, `.` or `..` is an error, so no name
    /// leads out of it.
    fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let inside = |part: &str| !part.is_empty() && part != "." && part != "..";
        if name.split('/').all(inside) {
            Ok(self.root.join(name))
        } else {
            Err(Error::new(format!("open {name:?}: not a name below a directory")))
        }
    }

    fn opened(&mut self, file: fs::File, name: &str) -> File {
        self.next += 1;
        self.open.insert(File(self.next), Opened { file, name: name.to_owned() });
        File(self.next)
    }

    /// Calls `each` for every piece of a range of an open file, with the file, the buffer and the
    /// piece's offset.
    fn pieces(
        &mut self,
        attempt: &str,
        file: File,
        offset: u64,
        length: u64,
        each: impl Fn(&fs::File, &mut [u8], u64) -> io::Result<()>,
    ) -> Result<(), Error> {
        let opened = self
            .open
            .get(&file)
            .ok_or_else(|| Error::new(format!("{attempt} file {}: not open", file.0)))?;
        let end = offset.checked_add(length).ok_or_else(|| {
            Error::new(format!("{attempt} {} at {offset}: past 2^64", opened.name))
        })?;
        let longest = usize::try_from(PIECE.min(length)).unwrap_or(usize::MAX);
        if self.buffer.len() < longest {
            // Not zeros: a file system might store none of them.
            self.buffer.resize(longest, 0xa5);
        }
        let mut at = offset;
        while at < end {
            let piece = usize::try_from(PIECE.min(end - at)).unwrap_or(usize::MAX);
            each(&opened.file, &mut self.buffer[..piece], at)
                .map_err(|e| Error::new(format!("{attempt} {} at {at}: {e}", opened.name)))?;
            at += piece as u64;
        }
        Ok(())
    }
}

fn failed(attempt: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(format!("{attempt} {}: {error}", path.display()))
}

impl Files for Directory {
    fn now(&mut self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn make_directory(&mut self, name: &str) -> Result<(), Error> {
        let path = self.path(name)?;
        fs::create_dir(&path).map_err(|e| failed("make directory", &path, &e))
    }

    fn create(&mut self, name: &str) -> Result<File, Error> {
        let path = self.path(name)?;
        let file = fs::File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| failed("create", &path, &e))?;
        Ok(self.opened(file, name))
    }

    fn open(&mut self, name: &str) -> Result<File, Error> {
        let path = self.path(name)?;
        let file = fs::File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|e| failed("open", &path, &e))?;
        Ok(self.opened(file, name))
    }

    fn write(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error> {
        self.pieces("write", file, offset, length, |file, piece, at| file.write_all_at(piece, at))
    }

    fn read(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error> {
        self.pieces("read", file, offset, length, |file, piece, at| file.read_exact_at(piece, at))
    }

    fn sync_file(&mut self, file: File) -> Result<(), Error> {
        let opened = self
            .open
            .get(&file)
            .ok_or_else(|| Error::new(format!("sync file {}: not open", file.0)))?;
        opened.file.sync_all().map_err(|e| Error::new(format!("sync {}: {e}", opened.name)))
    }

    fn close(&mut self, file: File) -> Result<(), Error> {
        self.open
            .remove(&file)
            .map(drop)
            .ok_or_else(|| Error::new(format!("close file {}: not open", file.0)))
    }

    fn stat(&mut self, name: &str) -> Result<u64, Error> {
        let path = self.path(name)?;
        fs::symlink_metadata(&path).map(|found| found.len()).map_err(|e| failed("stat", &path, &e))
    }

    fn set_times(&mut self, name: &str) -> Result<(), Error> {
        let path = self.path(name)?;
        let times = fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        fs::File::open(&path)
            .and_then(|file| file.set_times(times))
            .map_err(|e| failed("set times of", &path, &e))
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        let path = self.path(name)?;
        fs::remove_file(&path).map_err(|e| failed("remove", &path, &e))
    }

    fn remove_directory(&mut self, name: &str) -> Result<(), Error> {
        let path = self.path(name)?;
        fs::remove_dir(&path).map_err(|e| failed("remove", &path, &e))
    }

    /// Writes what is dirty (syncfs(2)) and drops the cached pages of open files
    /// (posix_fadvise(2)).
    fn forget(&mut self) -> Result<(), Error> {
        page_cache::forget(&self.root, self.open.values().map(|opened| &opened.file))
            .map_err(|e| Error::new(e.to_string()))
    }

    fn think(&mut self, _ns: u64) {}

    fn is_virtual(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tree::{self, Phase, Sizes, TreeSource};

    /// A new empty directory.
    fn empty(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("trueline-{name}-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        root
    }

    #[test]
    fn a_tree_is_unpacked_copied_and_deleted() {
        let root = empty("tree");
        let mut files = Directory::new(&root).unwrap();
        let sizes = Sizes { files: 50, per_directory: 5, ..Sizes::default() };
        let parameters = tree::Parameters { plan: TreeSource::Seeded(sizes), think_ns: 0 };
        let runs = tree::run(&mut files, &parameters, Phase::Copy, &mut |_| true).unwrap();
        assert!(runs.iter().all(|(_, run)| run.ops == 59 && run.ns > 0));
        let below = |directory: &Path| {
            fs::read_dir(directory)
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().path().is_file())
                .count()
        };
        assert_eq!((below(&root), below(&root.join("trueline-copy"))), (5, 5));
        let size = |name: &str| fs::metadata(root.join(name)).unwrap().len();
        assert_eq!(size("0000003.c"), size("trueline-copy/0000003.c"));
        tree::clean(&mut files, &parameters, Phase::Copy).unwrap();
        fs::remove_dir(&root).unwrap();
    }

    #[test]
    fn nothing_leads_out_of_it() {
        let root = empty("out");
        let mut files = Directory::new(&root).unwrap();
        for name in ["../a", "/etc/passwd", "a//b", ".", ""] {
            assert!(files.create(name).is_err(), "{name}");
        }
        let file = files.create("a").unwrap();
        assert_eq!(
            files.read(file, 0, 1).unwrap_err().message,
            "read a at 0: failed to fill whole buffer"
        );
        assert!(files.create("a").unwrap_err().message.starts_with("create "));
        assert!(
            Directory::new(&root).is_err_and(|e| e
                .message
                .ends_with("the directory is not empty: name an empty one"))
        );
        files.close(file).unwrap();
        files.remove("a").unwrap();
        fs::remove_dir(&root).unwrap();
    }
}
