//! The plan of a tree of files: from a seed, with memory for no more than a path, or from a list.

use crate::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use trueline_sim::random::Random;

/// A directory, or a file with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path from the root of the tree, with `/` between names.
    pub name: String,
    /// The size in bytes; `None` for a directory.
    pub size: Option<u64>,
}

/// Lognormal file sizes, over directories of equally many files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The number of files.
    pub files: u64,
    /// Files in a directory.
    pub per_directory: u64,
    /// Subdirectories of a directory.
    pub fan: u64,
    /// The median size in bytes, at least 1.
    pub median: f64,
    /// The mean size in bytes, at least the median.
    pub mean: f64,
    /// The seed of the random sizes.
    pub seed: u64,
}

impl Default for Sizes {
    /// A source tree: median 4 KiB, mean 10 KiB.
    fn default() -> Sizes {
        Sizes { files: 4000, per_directory: 12, fan: 8, median: 4096.0, mean: 10240.0, seed: 1 }
    }
}

/// The most files of a tree: a simulated file system keeps some 450 bytes of memory for each.
const MOST_FILES: u64 = 1 << 21;
/// The largest file of a seeded tree, in bytes.
const LARGEST: f64 = 1_073_741_824.0;

/// The source of a tree's entries.
#[derive(Clone, Debug)]
pub enum TreeSource {
    /// Entries generated from a seed.
    Seeded(Sizes),
    /// Entries of a list, every directory before its content.
    Listed(Arc<Vec<TreeEntry>>),
}

impl Default for TreeSource {
    fn default() -> TreeSource {
        TreeSource::Seeded(Sizes::default())
    }
}

impl TreeSource {
    /// Calls `each` for every entry, directories before their content, or in reverse, until it
    /// returns false.
    pub fn walk(
        &self,
        backwards: bool,
        each: &mut dyn FnMut(&TreeEntry) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        match self {
            TreeSource::Seeded(sizes) => sizes.walk(backwards, each),
            TreeSource::Listed(entries) => {
                let mut at = 0..entries.len();
                while let Some(n) = if backwards { at.next_back() } else { at.next() } {
                    if !each(&entries[n])? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Checks that the tree can be made within the bounds. The error says what cannot be.
    pub fn check(&self) -> Result<(), Error> {
        let TreeSource::Seeded(Sizes { files, per_directory, median, mean, .. }) = *self else {
            return Ok(());
        };
        if !(median >= 1.0 && mean >= median && mean <= LARGEST) {
            return Err(Error::new(format!(
                "files of a median of {median} and a mean of {mean} bytes: from 1 to 2^30, the mean not below the median"
            )));
        }
        if !(1..=MOST_FILES).contains(&files) || per_directory == 0 {
            return Err(Error::new(format!(
                "{files} files, {per_directory} a directory: 1 to {MOST_FILES} files, as all are kept in memory, at least 1 a directory"
            )));
        }
        Ok(())
    }

    /// The number of entries, directories included.
    pub fn entries(&self) -> u64 {
        match self {
            TreeSource::Seeded(sizes) => sizes.files + sizes.directories() - 1,
            TreeSource::Listed(entries) => entries.len() as u64,
        }
    }
}

impl Sizes {
    fn directories(&self) -> u64 {
        self.files.div_ceil(self.per_directory.max(1))
    }

    fn walk(
        &self,
        backwards: bool,
        each: &mut dyn FnMut(&TreeEntry) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let sigma = (2.0 * (self.mean / self.median).ln()).sqrt();
        let mut entry = TreeEntry { name: String::new(), size: None };
        for step in 0..self.directories() {
            let number = if backwards { self.directories() - 1 - step } else { step };
            let own = self.directory(number);
            let first = number * self.per_directory;
            let files = first..self.files.min(first + self.per_directory);
            let above = (!own.is_empty())
                .then(|| TreeEntry { name: own.trim_end_matches('/').to_owned(), size: None });
            if let Some(above) = above.as_ref().filter(|_| !backwards)
                && !each(above)?
            {
                return Ok(());
            }
            for file in files {
                entry.name.clear();
                entry.name.push_str(&own);
                // Writing to a String cannot fail.
                let _ = write!(entry.name, "{file:07x}.c");
                entry.size = Some(self.size(file, sigma));
                if !each(&entry)? {
                    return Ok(());
                }
            }
            if let Some(above) = above.as_ref().filter(|_| backwards)
                && !each(above)?
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A directory's path with a final `/`; empty for the root, number 0. Directories are numbered
    /// in the order of a walk through the tree, which is that of tar and cp.
    fn directory(&self, number: u64) -> String {
        let (mut name, mut left, mut all) = (String::new(), number, self.directories());
        while left > 0 {
            // A directory with everything below it takes its share of what is below its parent.
            let part = (all - 1).div_ceil(self.fan.max(2)).max(1);
            let nth = (left - 1) / part;
            name.push_str(&format!("d{nth:x}/"));
            all = part.min(all - 1 - nth * part);
            left = (left - 1) % part;
        }
        name
    }

    /// The size of a file in bytes. It depends on the seed and the file's number alone.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 2^30"
    )]
    fn size(&self, file: u64, sigma: f64) -> u64 {
        let mut random =
            Random::new(Random::new(self.seed).bits() ^ file.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Box and Muller: two uniform numbers make a normal one.
        let (u, v) = (1.0 - random.unit(), random.unit());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        (self.median * (sigma * normal).exp()).min(LARGEST) as u64
    }
}
