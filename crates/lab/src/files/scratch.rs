//! A private directory inside an existing one, for one run: made empty, and removed with its
//! content, also when the run ends with an error or at Ctrl-C.

use crate::error::Error;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use trueline_host::random;

/// The prefix of a scratch directory's name; sixteen hexadecimal digits follow.
pub const NAME: &str = ".trueline-";

/// A scratch directory, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    removed: bool,
}

impl Scratch {
    /// Makes a scratch directory in `directory`, with mode 0700.
    pub fn new(directory: &Path) -> Result<Scratch, Error> {
        let failed = |why: &dyn std::fmt::Display| {
            Error::new(format!("make a scratch directory in {}: {why}", directory.display()))
        };
        let number = u64::from_le_bytes(random::bytes().map_err(|e| failed(&e))?);
        let path = directory.join(format!("{NAME}{number:016x}"));
        // An existing directory is never taken over and later removed: mkdir(2) fails for it.
        DirBuilder::new().mode(0o700).create(&path).map_err(|e| failed(&e))?;
        Ok(Scratch { path, removed: false })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory and its content. A failure is an error with its path.
    pub fn remove(mut self) -> Result<(), Error> {
        self.removed = true;
        std::fs::remove_dir_all(&self.path)
            .map_err(|e| Error::new(format!("remove {}: {e}", self.path.display())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.removed {
            // The error that led here is the one to report.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_all_that_is_in_it_whichever_way() {
        let above = std::env::temp_dir();
        for by_drop in [false, true] {
            let scratch = Scratch::new(&above).unwrap();
            let path = scratch.path().to_owned();
            std::fs::create_dir(path.join("d")).unwrap();
            std::fs::write(path.join("d/f"), "x").unwrap();
            if by_drop {
                drop(scratch)
            } else {
                scratch.remove().unwrap()
            }
            assert!(!path.exists());
        }
        let scratch = Scratch::new(&above).unwrap();
        std::fs::remove_dir(scratch.path()).unwrap();
        assert!(scratch.remove().unwrap_err().to_string().starts_with("remove "));
        assert!(
            Scratch::new(&above.join("nowhere"))
                .unwrap_err()
                .to_string()
                .starts_with("make a scratch directory in ")
        );
    }
}
