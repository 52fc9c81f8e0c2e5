//! Names, inodes and open files of a file system in memory, whatever its layout.

use super::numbered::{Named, Numbered};
use crate::error::Error;
use crate::files::File;

/// The index of an inode in [`Names`], not its number on the medium.
pub(super) type Id = u32;

/// The index of the root directory.
pub(super) const ROOT: Id = 0;

/// A map of names to inodes `T`. Its memory grows with the files; a file system bounds them by its
/// inodes.
pub(super) struct Names<T> {
    names: Named<Id>,
    /// The last name entered, and the last parent directory found: most lookups ask for these.
    last: (String, Id),
    above: (String, Id),
    nodes: Vec<Option<T>>,
    free: Vec<Id>,
    open: Numbered<File, Id>,
    next: u64,
}

impl<T> Names<T> {
    /// A file system with nothing but a root.
    pub(super) fn new(root: T) -> Names<T> {
        Names {
            names: Named::default(),
            last: (String::new(), ROOT),
            above: (String::new(), ROOT),
            nodes: vec![Some(root)],
            free: Vec::new(),
            open: Numbered::default(),
            next: 0,
        }
    }

    /// The directory that contains a name.
    pub(super) fn parent(&mut self, name: &str) -> Result<Id, Error> {
        let Some((parent, _)) = name.rsplit_once('/') else { return Ok(ROOT) };
        if self.above.0 != parent {
            let id = self.find(parent, "no such directory")?;
            note(&mut self.above, parent, id);
        }
        Ok(self.above.1)
    }

    /// The inode of a name. It is an error if there is none.
    pub(super) fn get(&self, name: &str) -> Result<Id, Error> {
        self.find(name, "no such file")
    }

    fn find(&self, name: &str, missing: &str) -> Result<Id, Error> {
        if name.is_empty() || name == "." {
            return Ok(ROOT);
        }
        if self.last.0 == name {
            return Ok(self.last.1);
        }
        self.names.get(name).copied().ok_or_else(|| Error::new(format!("open {name}: {missing}")))
    }

    /// True if the name exists.
    pub(super) fn is_there(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Adds a name and its inode. More than 2^32 inodes are an error.
    pub(super) fn enter(&mut self, name: &str, node: T) -> Result<Id, Error> {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let id = Id::try_from(self.nodes.len())
                    .map_err(|_| Error::new(format!("create {name}: more than 2^32 files")))?;
                self.nodes.push(None);
                id
            }
        };
        self.nodes[id as usize] = Some(node);
        self.names.insert(name.into(), id);
        note(&mut self.last, name, id);
        Ok(id)
    }

    /// Removes a name, and returns its inode. Its open files are closed.
    pub(super) fn leave(&mut self, name: &str) -> Option<T> {
        let id = self.names.remove(name)?;
        for noted in [&mut self.last, &mut self.above] {
            if noted.1 == id {
                note(noted, "", ROOT);
            }
        }
        self.free.push(id);
        self.open.retain(|_, open| *open != id);
        self.nodes[id as usize].take()
    }

    /// The inode of an index. It is an error if it was removed.
    pub(super) fn node(&mut self, id: Id) -> Result<&mut T, Error> {
        self.nodes
            .get_mut(id as usize)
            .and_then(Option::as_mut)
            .ok_or_else(|| Error::new(format!("inode {id}: not there")))
    }

    /// Opens an inode, and returns a new handle.
    pub(super) fn open(&mut self, id: Id) -> File {
        self.next += 1;
        let file = File(self.next);
        self.open.insert(file, id);
        file
    }

    /// The inode of an open file.
    pub(super) fn opened(&self, file: File) -> Result<Id, Error> {
        self.open
            .get(&file)
            .copied()
            .ok_or_else(|| Error::new(format!("file {}: not open", file.0)))
    }

    /// Closes a file, and returns its inode.
    pub(super) fn close(&mut self, file: File) -> Result<Id, Error> {
        self.open
            .remove(&file)
            .ok_or_else(|| Error::new(format!("close of file {}: not open", file.0)))
    }

    /// All inodes that exist.
    pub(super) fn nodes(&mut self) -> impl Iterator<Item = &mut T> {
        self.nodes.iter_mut().flatten()
    }
}

/// Overwrites a remembered name and reuses its memory.
fn note(noted: &mut (String, Id), name: &str, id: Id) {
    noted.0.clear();
    noted.0.push_str(name);
    noted.1 = id;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_out_is_not_found_where_it_was_noted() {
        let mut names = Names::new(());
        let directory = names.enter("d", ()).unwrap();
        assert_eq!(
            (names.parent("d/a").unwrap(), names.parent("d/b").unwrap(), names.get("d").unwrap()),
            (directory, directory, directory)
        );
        let file = names.enter("d/a", ()).unwrap();
        assert_eq!((names.get("d/a").unwrap(), names.parent("x").unwrap()), (file, ROOT));
        assert!(names.leave("d/a").is_some() && names.get("d/a").is_err());
        assert!(
            names.leave("d").is_some() && names.get("d").is_err() && names.parent("d/a").is_err()
        );
        // Its place is another's now, and found again under its new name only.
        let other = names.enter("e", ()).unwrap();
        assert_eq!(
            (names.get("e").unwrap(), names.get("").unwrap(), names.parent("e/a").unwrap()),
            (other, ROOT, other)
        );
        assert!(names.parent("d/a").is_err());
    }
}
