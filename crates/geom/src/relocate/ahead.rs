//! Pieces of a move that are read while those before them are written, and writeback that is begun
//! while the rest of a piece is written.
//!
//! No step writes where a later one reads, but for what the journal keeps, so the bytes are the
//! same at whatever time they are read. Only one thread writes, to the disk and to the journal.

use super::carry::Interrupted;
use super::journal::Journal;
use super::{Move, Piece};
use crate::base::error::Errno;
use crate::base::store::Store;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

/// Pieces that are in memory at once: the one that is written, the next one, whose sum is in the
/// note, what is saved with that, and one that is being read.
const BUFFERS: usize = 4;

/// Bytes of a piece in memory.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// The bytes, adapted to the new place and without gaps.
    pub(super) bytes: Vec<u8>,
    /// Sum of the bytes, CRC-32.
    pub(super) sum: u32,
    /// Sectors of the list that could not be read, in addresses of the range.
    pub(super) failed: Vec<Range<u64>>,
}

/// Bytes that a step needs.
#[derive(Debug)]
pub(super) struct Needed {
    /// The piece that the step copies.
    pub(super) piece: Loaded,
    /// Bytes that are saved in the journal before, if another step copies them.
    pub(super) kept: Option<Loaded>,
}

/// Pieces of the next steps, as a thread reads them.
pub(super) struct Ahead {
    read: Receiver<Result<Needed, Interrupted>>,
    free: Sender<Vec<u8>>,
    saved: Sender<()>,
    written: Sender<(u64, u64)>,
}

impl Ahead {
    /// Starts to read the pieces of `steps` of `plan`. Errors: there is no thread to be had.
    pub(super) fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        (plan, disk, journal): (&'scope Move, &'scope dyn Store, &'scope Journal<'scope>),
        steps: Range<u64>,
    ) -> Result<Ahead, Interrupted> {
        let ((found, read), (free, used), (saved, waits)) = (channel(), channel(), channel());
        // A resumed step reads its own piece, whose memory comes here too. With one less, the piece
        // that is written and the two that a note waits for are there all the same.
        let own = usize::from(steps.start > 0);
        for _ in own..BUFFERS {
            // The other end is here.
            let _ = free.send(Vec::new());
        }
        let reader = Reader { plan, disk, journal, used, saved: waits };
        Builder::new()
            .name("read ahead".into())
            .spawn_scoped(scope, move || {
                for number in steps {
                    let Some(needed) = reader.needed(number).transpose() else { continue };
                    let is_last = needed.is_err();
                    if found.send(needed).is_err() || is_last {
                        return;
                    }
                }
            })
            .map_err(|_| Interrupted::Disk(plan.from, Errno::Io))?;
        let (written, starts) = channel();
        Builder::new()
            .name("writeback".into())
            .spawn_scoped(scope, move || {
                for (at, length) in starts {
                    disk.start_writeback(at, length);
                }
            })
            .map_err(|_| Interrupted::Disk(plan.from, Errno::Io))?;
        Ok(Ahead { read, free, saved, written })
    }

    /// The bytes of the next step that needs any.
    pub(super) fn next(&self, plan: &Move) -> Result<Needed, Interrupted> {
        self.read.recv().unwrap_or(Err(Interrupted::Disk(plan.from, Errno::Io)))
    }

    /// Takes back the memory of a piece: fresh memory for each costs as much as reading it.
    pub(super) fn free(&self, piece: Loaded) {
        // The thread may have ended, with nothing left to read.
        let _ = self.free.send(piece.bytes);
    }

    /// Says that `length` bytes from `at` of the disk were written, and are to be flushed soon.
    pub(super) fn written(&self, at: u64, length: u64) {
        let _ = self.written.send((at, length));
    }

    /// Says that the journal has what a later step reads from it.
    pub(super) fn saved(&self) {
        let _ = self.saved.send(());
    }
}

/// Reader of pieces, on a thread of its own.
struct Reader<'a> {
    plan: &'a Move,
    disk: &'a dyn Store,
    journal: &'a Journal<'a>,
    used: Receiver<Vec<u8>>,
    saved: Receiver<()>,
}

impl Reader<'_> {
    /// The bytes that step `number` needs; `None` if it copies none. Errors: also that nothing is
    /// wanted any more.
    fn needed(&self, number: u64) -> Result<Option<Needed>, Interrupted> {
        let Some(piece) = self.plan.copies(number) else { return Ok(None) };
        let other = self.plan.kept(number).filter(|kept| kept.is_of_another());
        let kept = match other.filter(|kept| kept.first == number) {
            Some(kept) => Some(self.load(kept.piece)?),
            None => None,
        };
        let piece = match other.filter(|kept| kept.last == number) {
            Some(kept) => {
                self.saved.recv().map_err(|_| Interrupted::Asked)?;
                let mut bytes = self.buffer()?;
                let sum = self
                    .journal
                    .kept(self.plan, &kept, &mut bytes)
                    .map_err(Interrupted::Journal)?;
                Loaded { bytes, sum, failed: Vec::new() }
            }
            None => self.load(piece)?,
        };
        Ok(Some(Needed { piece, kept }))
    }

    fn buffer(&self) -> Result<Vec<u8>, Interrupted> {
        self.used.recv().map_err(|_| Interrupted::Asked)
    }

    fn load(&self, piece: Piece) -> Result<Loaded, Interrupted> {
        loaded(self.plan, self.disk, (piece, true), self.buffer()?)
    }
}

/// The bytes of `piece`, from the old place, in the memory of `bytes`. Sectors of the list may fail
/// if they are `tried`.
pub(super) fn loaded(
    plan: &Move,
    disk: &dyn Store,
    (piece, tried): (Piece, bool),
    mut bytes: Vec<u8>,
) -> Result<Loaded, Interrupted> {
    let (mut sum, mut failed) = (crc32fast::Hasher::new(), Vec::new());
    plan.load(disk, piece, &mut bytes, tried.then_some(&mut failed), &mut |part| sum.update(part))
        .map_err(|e| plan.unread(disk, (piece, tried), e))?;
    Ok(Loaded { bytes, sum: sum.finalize(), failed })
}
