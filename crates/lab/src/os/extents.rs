//! Where the blocks of a file are.

/// Blocks that are one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first, counted in the file.
    pub(super) lbn: u64,
    /// Its first fragment, counted in the file system.
    pub(super) at: u64,
    /// Fragments; only the last block of a file has fewer than a block.
    pub(super) fragments: u32,
}

/// The runs of a file, in its order. A block is `frag` fragments; of a file system without fragments one.
#[derive(Clone, Debug, Default)]
pub(super) enum Extents {
    /// An empty file.
    #[default]
    None,
    /// Most files: their run needs no memory of its own.
    One(Run),
    Many(Vec<Run>),
}

impl Extents {
    /// The runs.
    pub(super) fn runs(&self) -> &[Run] {
        match self {
            Extents::None => &[],
            Extents::One(run) => std::slice::from_ref(run),
            Extents::Many(runs) => runs,
        }
    }

    fn last_mut(&mut self) -> Option<&mut Run> {
        match self {
            Extents::None => None,
            Extents::One(run) => Some(run),
            Extents::Many(runs) => runs.last_mut(),
        }
    }

    fn push(&mut self, run: Run) {
        match self {
            Extents::None => *self = Extents::One(run),
            Extents::One(first) => *self = Extents::Many(vec![*first, run]),
            Extents::Many(runs) => runs.push(run),
        }
    }

    fn pop(&mut self) {
        match self {
            Extents::Many(runs) => drop(runs.pop()),
            _ => *self = Extents::None,
        }
    }

    /// Where a block is: first fragment, fragments.
    pub(super) fn block(&self, lbn: u64, frag: u32) -> Option<(u64, u32)> {
        self.rest(lbn, frag).map(|(at, left)| (at, left.min(frag)))
    }

    /// Where a block is, and how many fragments lie together from its first on.
    pub(super) fn rest(&self, lbn: u64, frag: u32) -> Option<(u64, u32)> {
        let runs = self.runs();
        let run = match runs.last() {
            Some(last) if last.lbn <= lbn => last,
            _ => runs[..runs.partition_point(|run| run.lbn <= lbn)].last()?,
        };
        let skipped = u32::try_from(lbn - run.lbn).ok()?.checked_mul(frag)?;
        let left = run.fragments.checked_sub(skipped).filter(|&left| left > 0)?;
        Some((run.at + u64::from(skipped), left))
    }

    /// Notes blocks after the last, or one in the place of the last.
    pub(super) fn put(&mut self, lbn: u64, at: u64, fragments: u32, frag: u32) {
        if let Some((_, old)) = self.block(lbn, frag)
            && let Some(run) = self.last_mut()
        {
            run.fragments -= old;
            if run.fragments == 0 {
                self.pop();
            }
        }
        match self.last_mut() {
            Some(run)
                if run.at + u64::from(run.fragments) == at
                    && run.fragments.is_multiple_of(frag)
                    && run.fragments < u32::MAX - fragments =>
            {
                run.fragments += fragments;
            }
            _ => self.push(Run { lbn, at, fragments }),
        }
    }
}
