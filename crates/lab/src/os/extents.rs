//! The extents of a file: where its blocks lie.

/// Contiguous blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The number of the first block within the file.
    pub(super) lbn: u64,
    /// The number of its first fragment within the file system.
    pub(super) at: u64,
    /// The length in fragments. Only the last block of a file may be shorter than a block.
    pub(super) fragments: u32,
}

/// The runs of a file, in its order. A block is `frag` fragments; `frag` is 1 where there are no
/// fragments.
#[derive(Clone, Debug, Default)]
pub(super) enum Extents {
    /// A file without blocks.
    #[default]
    None,
    /// A file of one run, as most are: it needs no heap memory.
    One(Run),
    Many(Vec<Run>),
}

impl Extents {
    /// The runs in the file's order.
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

    /// The place of block `lbn`: first fragment, fragments. `None` if the file has no such block.
    pub(super) fn block(&self, lbn: u64, frag: u32) -> Option<(u64, u32)> {
        self.rest(lbn, frag).map(|(at, left)| (at, left.min(frag)))
    }

    /// The place of block `lbn`, and the number of contiguous fragments from its first on.
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

    /// Adds blocks after the last one, or replaces the last block.
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
