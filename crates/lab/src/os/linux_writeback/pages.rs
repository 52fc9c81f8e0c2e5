//! The clean side of the page cache: blocks that need no read, in windows of 128 KiB, evicted in
//! the order of arrival.

use super::flusher::{DEVICE, Owner};
use super::shape::BLOCK;
use crate::error::Error;
use crate::os::extents::Extents;
use crate::os::numbered::Numbered;
use crate::os::queue::Queue;
use crate::rig::Op;
use std::collections::VecDeque;

/// Blocks of a window (`read_ahead_kb`, 128).
const WINDOW: u64 = 32;

/// The cached blocks of a window, one bit each, and the tag of the read that brings them, if it is
/// not known to be done.
#[derive(Clone, Copy, Default)]
struct Window {
    blocks: u32,
    arriving: Option<u64>,
}

/// The cached windows of all owners.
pub(super) struct Cache {
    windows: Numbered<(Owner, u64), Window>,
    order: VecDeque<(Owner, u64)>,
    most: usize,
    /// The owner and window that were read last.
    last: (Owner, u64),
}

impl Cache {
    /// An empty cache of `memory` bytes, at least 64 windows.
    pub(super) fn new(memory: u64) -> Cache {
        let most = usize::try_from(memory / (WINDOW * BLOCK)).unwrap_or(usize::MAX).max(64);
        Cache { windows: Numbered::default(), order: VecDeque::new(), most, last: (0, 0) }
    }

    /// Notes that blocks of a file, or of the device, were written and so are cached.
    pub(super) fn keep(&mut self, owner: Owner, first: u64, count: u64) {
        let (mut lbn, end) = (first, first + count);
        while lbn < end {
            let own = (WINDOW - lbn % WINDOW).min(end - lbn);
            self.window(owner, lbn / WINDOW).blocks |=
                (u32::MAX >> (WINDOW - own)) << (lbn % WINDOW);
            lbn += own;
        }
    }

    /// Reads a block of the device unless it is cached.
    pub(super) fn fetch_block(&mut self, queue: &mut Queue<'_>, block: u64) -> Result<(), Error> {
        if self.window(DEVICE, block / WINDOW).blocks >> (block % WINDOW) & 1 == 0 {
            queue.wait_for(Op::Read, block * BLOCK, BLOCK)?;
            self.keep(DEVICE, block, 1);
        }
        Ok(())
    }

    /// Reads a block of a file with its window; a sequential read also starts the next window.
    pub(super) fn read(
        &mut self,
        queue: &mut Queue<'_>,
        owner: Owner,
        extents: &Extents,
        lbn: u64,
    ) -> Result<(), Error> {
        let window = lbn / WINDOW;
        self.begin(queue, owner, extents, window, lbn)?;
        let (of, before) = self.last;
        if of == owner && window > 0 && before + 1 == window || window == 0 && lbn == 0 {
            self.begin(queue, owner, extents, window + 1, (window + 1) * WINDOW)?;
        }
        self.last = (owner, window);
        match self.window(owner, window).arriving.take() {
            Some(tag) => queue.finish(tag),
            None => Ok(()),
        }
    }

    /// Starts reads of the missing blocks of a window, if `lbn` is one of them.
    fn begin(
        &mut self,
        queue: &mut Queue<'_>,
        owner: Owner,
        extents: &Extents,
        window: u64,
        lbn: u64,
    ) -> Result<(), Error> {
        let known = self.window(owner, window).blocks;
        if known >> (lbn % WINDOW) & 1 == 1 {
            return Ok(());
        }
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        let mut blocks = known;
        for n in (0..WINDOW).filter(|n| known >> n & 1 == 0) {
            let Some((at, _)) = extents.block(window * WINDOW + n, 1) else { continue };
            blocks |= 1 << n;
            match pieces.last_mut() {
                Some((from, count)) if *from + *count == at => *count += 1,
                _ => pieces.push((at, 1)),
            }
        }
        let mut arriving = None;
        for (at, count) in pieces {
            if let Some(tag) = arriving.replace(queue.begin(Op::Read, at * BLOCK, count * BLOCK)?) {
                queue.finish(tag)?;
            }
        }
        *self.window(owner, window) = Window { blocks, arriving };
        Ok(())
    }

    fn window(&mut self, owner: Owner, window: u64) -> &mut Window {
        let key = (owner, window);
        if !self.windows.contains_key(&key) {
            if self.order.len() > 2 * self.windows.len() + 64 {
                self.order.retain(|key| self.windows.contains_key(key));
            }
            if self.windows.len() >= self.most
                && let Some(oldest) = self.order.pop_front()
            {
                self.windows.remove(&oldest);
            }
            self.order.push_back(key);
        }
        self.windows.entry(key).or_default()
    }

    /// Drops the windows of a removed file.
    pub(super) fn drop_owner(&mut self, owner: Owner) {
        let mut at = 0;
        while self.windows.remove(&(owner, at)).is_some() {
            at += 1;
        }
    }

    /// Empties the whole cache.
    pub(super) fn empty(&mut self) {
        self.windows.clear();
        self.order.clear();
        self.last = (0, 0);
    }
}
