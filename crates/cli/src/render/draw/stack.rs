//! A target's providers in reading order, and each disk's and set's as rows of a drawing.

use crate::report::{Provider, Target};
use std::collections::HashMap;

/// Most rows for overlapping providers of one depth; further ones are named instead of drawn.
const LANES: usize = 6;

/// Tree of the providers of a target. Indices are those of `target.providers`.
pub(crate) struct Stack<'a> {
    providers: &'a [Provider],
    children: Vec<Vec<usize>>,
    /// Roots of the tree: disks first, then sets.
    pub roots: Vec<usize>,
}

/// One provider of a disk or set, to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Index in the target.
    pub provider: usize,
    /// First byte on the disk or set.
    pub start: u64,
    /// The byte after the last; greater than the first.
    pub end: u64,
    /// Row above the disk's or set's own, which is 0; `None` if too many providers overlap here.
    pub row: Option<usize>,
    /// True if nothing stands on it.
    pub leaf: bool,
}

impl<'a> Stack<'a> {
    /// Puts the providers of `target` in order.
    pub(crate) fn new(target: &'a Target) -> Stack<'a> {
        let providers = &target.providers[..];
        let mut children = vec![Vec::new(); providers.len()];
        let (mut roots, mut last) = (Vec::new(), HashMap::new());
        for (i, p) in providers.iter().enumerate() {
            // A parent comes before its children, so no provider can stand on itself.
            match p.parent.as_ref().and_then(|parent| last.get(parent.as_str())) {
                Some(&parent) => Vec::push(&mut children[parent], i),
                None => roots.push(i),
            }
            last.insert(p.provider.as_str(), i);
        }
        for of_one in &mut children {
            of_one.sort_by_key(|&i| providers[i].base);
        }
        roots.sort_by_key(|&i| !providers[i].members.is_empty());
        Stack { providers, children, roots }
    }

    /// Drawings from top to bottom: sets, the last made first, then disks in containers, then disks.
    pub(crate) fn top_down(&self) -> Vec<usize> {
        let (disks, sets): (Vec<usize>, Vec<usize>) =
            self.roots.iter().partition(|&&root| self.providers[root].members.is_empty());
        let shown = (0..self.providers.len()).rev().filter(|&id| self.has_own_scale(id));
        sets.into_iter().rev().chain(shown).chain(disks).collect()
    }

    /// True for the disk in a container: its bytes are no range of the file that it stands on.
    fn has_own_scale(&self, id: usize) -> bool {
        let p = &self.providers[id];
        p.parent.is_some() && p.root == p.provider
    }

    /// The providers directly on `id`, by start.
    pub(crate) fn children(&self, id: usize) -> &[usize] {
        &self.children[id]
    }

    /// The disk or set `root` and all that stands on it, in rows: overlapping providers of one
    /// depth get rows of their own.
    pub(crate) fn pieces(&self, root: usize) -> Vec<Piece> {
        let whole = self.providers[root].length.max(1);
        let (mut pieces, mut level, mut first_row) = (Vec::new(), vec![root], 0);
        while !level.is_empty() {
            let mut lanes: Vec<u64> = Vec::new();
            let mut here: Vec<Piece> = level.iter().map(|&i| self.piece(i, root, whole)).collect();
            here.sort_by_key(|p| (p.start, p.provider));
            for piece in &mut here {
                let lane = lanes.iter().position(|&end| end <= piece.start).unwrap_or(lanes.len());
                if lane == lanes.len() && lane < LANES {
                    lanes.push(0);
                }
                if let Some(end) = lanes.get_mut(lane) {
                    *end = piece.end;
                    piece.row = Some(first_row + lane);
                }
            }
            first_row += lanes.len();
            pieces.extend(here);
            let above = level.iter().flat_map(|&i| self.children[i].iter().copied());
            level = above.filter(|&i| !self.has_own_scale(i)).collect();
        }
        pieces
    }

    /// The part of a provider that lies inside its root, at least one byte.
    fn piece(&self, id: usize, root: usize, whole: u64) -> Piece {
        let p = &self.providers[id];
        let start = if id == root { 0 } else { p.base.min(whole - 1) };
        let end = start.saturating_add(p.length).clamp(start + 1, whole);
        Piece { provider: id, start, end, row: None, leaf: self.children[id].is_empty() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn overlapping_slices_get_rows_of_their_own() {
        let mut target = samples::gpt();
        let p2 = target.providers.iter().position(|p| p.provider == "p2").unwrap();
        target.providers[p2].base -= 4096;
        let stack = Stack::new(&target);
        let rows: Vec<_> = stack.pieces(0).iter().map(|p| p.row.unwrap()).collect();
        assert_eq!(rows, [0, 1, 2, 3]);
    }

    /// A file of 64 MiB has room in 448 KiB.
    #[test]
    fn the_disk_in_a_container_has_a_scale_of_its_own() {
        let mut target = samples::gpt();
        let mut file = samples::gpt().providers.swap_remove(0);
        (file.length, file.root) = (448 << 10, "file".into());
        file.provider = "file".into();
        target.providers[0].parent = Some("file".into());
        target.providers.insert(0, file);
        let stack = Stack::new(&target);
        assert_eq!(stack.top_down(), [1, 0]);
        assert_eq!(stack.pieces(0).len(), 1);
        assert_eq!(stack.pieces(1).len(), target.providers.len() - 1);
        assert_eq!(stack.pieces(1)[0].end, target.providers[1].length);
    }

    #[test]
    fn a_lie_about_a_place_stays_on_the_disk() {
        let mut target = samples::gpt();
        for p in &mut target.providers[1..] {
            (p.base, p.length) = (u64::MAX, 0);
        }
        let whole = target.providers[0].length;
        assert!(Stack::new(&target).pieces(0).iter().all(|p| p.start < p.end && p.end <= whole));
    }
}
