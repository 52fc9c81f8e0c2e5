//! Names, inodes and open files of a file system in memory, whatever its layout.

use super::numbered::Numbered;
use crate::error::Error;
use crate::files::File;
use std::collections::HashMap;

/// Which inode, as a place in [`Names`]; not its number on the medium.
pub(super) type Id = u32;

/// The root directory.
pub(super) const ROOT: Id = 0;

/// Names → inodes of `T`. Its memory is that of the files there are; a file system bounds them by its inodes.
pub(super) struct Names<T> {
    names: HashMap<Box<str>, Id>,
    nodes: Vec<Option<T>>,
    free: Vec<Id>,
    open: Numbered<File, Id>,
    next: u64,
}

impl<T> Names<T> {
    /// Only a root.
    pub(super) fn new(root: T) -> Names<T> {
        Names { names: HashMap::new(), nodes: vec![Some(root)], free: Vec::new(), open: Numbered::default(), next: 0 }
    }

    /// The directory a name is in.
    pub(super) fn parent(&self, name: &str) -> Result<Id, Error> {
        match name.rsplit_once('/') {
            Some((parent, _)) => self.find(parent, "no such directory"),
            None => Ok(ROOT),
        }
    }

    /// What a name leads to.
    pub(super) fn get(&self, name: &str) -> Result<Id, Error> {
        self.find(name, "no such file")
    }

    fn find(&self, name: &str, missing: &str) -> Result<Id, Error> {
        if name.is_empty() || name == "." {
            return Ok(ROOT);
        }
        self.names.get(name).copied().ok_or_else(|| Error(format!("open {name}: {missing}")))
    }

    /// Whether a name is taken.
    pub(super) fn is_there(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Enters a new inode.
    pub(super) fn enter(&mut self, name: &str, node: T) -> Result<Id, Error> {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let id = Id::try_from(self.nodes.len()).map_err(|_| Error(format!("create {name}: more than 2^32 files")))?;
                self.nodes.push(None);
                id
            }
        };
        self.nodes[id as usize] = Some(node);
        self.names.insert(name.into(), id);
        Ok(id)
    }

    /// Takes a name and its inode out.
    pub(super) fn leave(&mut self, name: &str) -> Option<T> {
        let id = self.names.remove(name)?;
        self.free.push(id);
        self.open.retain(|_, open| *open != id);
        self.nodes[id as usize].take()
    }

    /// An inode.
    pub(super) fn node(&mut self, id: Id) -> Result<&mut T, Error> {
        self.nodes.get_mut(id as usize).and_then(Option::as_mut).ok_or_else(|| Error(format!("inode {id}: not there")))
    }

    /// Opens an inode.
    pub(super) fn open(&mut self, id: Id) -> File {
        self.next += 1;
        let file = File(self.next);
        self.open.insert(file, id);
        file
    }

    /// What is open.
    pub(super) fn opened(&self, file: File) -> Result<Id, Error> {
        self.open.get(&file).copied().ok_or_else(|| Error(format!("file {}: not open", file.0)))
    }

    /// Closes it.
    pub(super) fn close(&mut self, file: File) -> Result<Id, Error> {
        self.open.remove(&file).ok_or_else(|| Error(format!("close of file {}: not open", file.0)))
    }

    /// All inodes.
    pub(super) fn nodes(&mut self) -> impl Iterator<Item = &mut T> {
        self.nodes.iter_mut().flatten()
    }
}
