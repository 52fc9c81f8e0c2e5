//! The tree of files and their exports.

use std::collections::HashSet;

/// The file name of the default export, whose own name is empty.
pub(super) const DEFAULT: &str = "disk";
/// The longest file name in bytes, `NAME_MAX`.
const LONGEST: usize = 255;

/// The node of an inode number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A directory: names and indices of nodes, in the order of the exports.
    Directory(Vec<(String, usize)>),
    /// A file: the index of an export.
    File(usize),
}

/// Files and directories by index; the first is the root.
#[derive(Debug)]
pub(super) struct Tree(Vec<Node>);

impl Tree {
    /// A tree of a single file: the first export.
    pub(super) fn file() -> Tree {
        Tree(vec![Node::File(0)])
    }

    /// A tree of exports by name. A slash in a name makes a directory, as in `/dev`. A name that is
    /// taken, or that no file can have, is changed until it is valid: names come from disks and may
    /// contain anything.
    pub(super) fn directory<'a>(names: impl Iterator<Item = &'a str>) -> Tree {
        let mut tree = Tree(vec![Node::Directory(Vec::new())]);
        let mut taken = HashSet::new();
        for (export, name) in names.enumerate() {
            let name = if name.is_empty() { DEFAULT } else { name };
            let mut path: Vec<String> = name.split('/').map(clean).collect();
            let mut count = 1;
            while !tree.put(&path, export, &mut taken) {
                // First flat, then numbered.
                count += 1;
                path = vec![if count == 2 {
                    clean(&name.replace('/', "-"))
                } else {
                    clean(&format!("{count}-{}", name.replace('/', "-")))
                }];
            }
        }
        tree
    }

    /// Adds an export at `path`; false if the path is taken, or leads through a file.
    fn put(&mut self, path: &[String], export: usize, taken: &mut HashSet<String>) -> bool {
        let whole = path.join("/");
        let in_the_way = (1..path.len()).any(|depth| {
            matches!(self.walk(&path[..depth]).map(|at| &self.0[at]), Some(Node::File(_)))
        });
        if in_the_way || taken.contains(&whole) || self.walk(path).is_some() {
            return false;
        }
        let mut at = 0;
        for (depth, name) in path.iter().enumerate() {
            at = self.find(at, name).unwrap_or_else(|| {
                let node = if depth + 1 == path.len() {
                    Node::File(export)
                } else {
                    Node::Directory(Vec::new())
                };
                self.0.push(node);
                let new = self.0.len() - 1;
                if let Node::Directory(entries) = &mut self.0[at] {
                    entries.push((name.clone(), new));
                }
                new
            });
        }
        taken.insert(whole)
    }

    fn walk(&self, path: &[String]) -> Option<usize> {
        path.iter().try_fold(0, |at, name| self.find(at, name))
    }

    /// The index of the entry `name` in the directory `at`.
    pub(super) fn find(&self, at: usize, name: &str) -> Option<usize> {
        let Node::Directory(entries) = self.0.get(at)? else { return None };
        entries.iter().find(|(own, _)| own == name).map(|&(_, index)| index)
    }

    /// The node with this index.
    pub(super) fn node(&self, index: usize) -> Option<&Node> {
        self.0.get(index)
    }

    /// The number of nodes.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

/// A valid file name made of `name`.
fn clean(name: &str) -> String {
    if matches!(name, "" | "." | "..") {
        return "_".into();
    }
    let mut clean: String = name.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    while clean.len() > LONGEST {
        clean.pop();
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every file, by its path, and its export.
    fn files(tree: &Tree) -> Vec<(String, usize)> {
        fn walk(tree: &Tree, at: usize, path: &str, files: &mut Vec<(String, usize)>) {
            match tree.node(at).unwrap() {
                Node::File(export) => files.push((path.to_owned(), *export)),
                Node::Directory(entries) => entries
                    .iter()
                    .for_each(|(name, next)| walk(tree, *next, &format!("{path}/{name}"), files)),
            }
        }
        let mut found = Vec::new();
        walk(tree, 0, "", &mut found);
        found
    }

    fn files_of(names: &[&str]) -> Vec<(String, usize)> {
        files(&Tree::directory(names.iter().copied()))
    }

    #[test]
    fn a_file_each() {
        let want = [("/disk", 0), ("/p1", 1), ("/stripe/data", 2), ("/stripe/more", 3)];
        assert_eq!(
            files_of(&["", "p1", "stripe/data", "stripe/more"]),
            want.map(|(name, export)| (name.to_owned(), export))
        );
        assert_eq!(files(&Tree::file()), [(String::new(), 0)]);
    }

    /// Labels on disks are untrusted: each export is some file, each file is one export, and no
    /// name leaves the mount.
    #[test]
    fn names_that_cannot_be_are_changed() {
        let long = "x".repeat(400);
        let names = [
            "",
            "disk",
            "a",
            "a/b",
            "a/b",
            "a-b",
            "../etc",
            "/",
            ".",
            "\0\n",
            &long,
            &format!("{long}y"),
            "é",
        ];
        let found = files_of(&names);
        let mut exports: Vec<usize> = found.iter().map(|&(_, export)| export).collect();
        exports.sort_unstable();
        assert_eq!(exports, (0..names.len()).collect::<Vec<_>>());
        let distinct: HashSet<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(distinct.len(), names.len());
        for (path, _) in &found {
            for part in path.split('/').skip(1) {
                assert!(
                    !matches!(part, "" | "." | "..")
                        && part.len() <= LONGEST
                        && !part.chars().any(char::is_control),
                    "{path:?}"
                );
            }
        }
    }
}
