//! Carrying a move out, from its first step or from where it was interrupted.

use super::journal::{Begun, Journal};
use super::{Move, Piece, Step};
use crate::error::Errno;
use crate::store::Store;
use crate::topology::round_up;

/// Why a move ended before its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// The disk failed, at that byte of the provider with the table.
    Disk(u64, Errno),
    /// The journal failed.
    Journal(Errno),
    /// It was asked to end.
    Asked,
}

/// Told the bytes that are copied, before each step; whether to go on.
pub type Progress<'a> = dyn FnMut(u64) -> bool + 'a;

/// Zeros of this length, on a boundary of it, are not sent but asked for.
const RUN: u64 = 64 << 10;

/// Carries out the steps of `plan` on `disk`, from `begun` on. A move that overlaps must have a journal.
pub fn carry(
    plan: &Move,
    disk: &dyn Store,
    journal: Option<&Journal<'_>>,
    begun: Begun,
    progress: &mut Progress<'_>,
) -> Result<(), Interrupted> {
    if plan.overlaps() && journal.is_none() {
        return Err(Interrupted::Journal(Errno::Unsupported));
    }
    let (mut buffer, mut copied) = (Vec::new(), plan.copied(begun.step));
    for number in begun.step..plan.steps() {
        if !progress(copied) {
            return Err(Interrupted::Asked);
        }
        match plan.step(number) {
            Some(Step::Copy(piece)) => {
                copy(disk, journal, number, piece, begun, &mut buffer)?;
                copied += piece.length;
            }
            Some(Step::Write(patches)) => {
                // What was copied without a journal is not on the medium yet.
                flush(disk, plan.shown())?;
                journal.map_or(Ok(()), |journal| journal.begin(number)).map_err(Interrupted::Journal)?;
                for patch in patches {
                    if patch.after_flush {
                        flush(disk, patch.offset)?;
                    }
                    put(disk, &patch.bytes, patch.offset)?;
                }
                flush(disk, plan.shown())?;
            }
            None => {}
        }
    }
    progress(copied);
    journal.map_or(Ok(()), |journal| journal.begin(plan.steps())).map_err(Interrupted::Journal)
}

fn copy(
    disk: &dyn Store,
    journal: Option<&Journal<'_>>,
    number: u64,
    piece: Piece,
    begun: Begun,
    buffer: &mut Vec<u8>,
) -> Result<(), Interrupted> {
    buffer.resize(usize::try_from(piece.length).unwrap_or_default(), 0);
    // What was saved may be written over already; what was not saved is as it was.
    let saved = journal.filter(|_| begun.step == number && begun.saved.is_some());
    match saved {
        Some(journal) => journal.saved(number, buffer).map_err(Interrupted::Journal)?,
        None => disk.read_at(buffer, piece.from).map_err(|e| Interrupted::Disk(piece.from, e))?,
    }
    match journal {
        Some(journal) if piece.saved && saved.is_none() => journal.save(number, buffer).map_err(Interrupted::Journal)?,
        Some(journal) if saved.is_none() => journal.begin(number).map_err(Interrupted::Journal)?,
        _ => {}
    }
    put(disk, buffer, piece.to)?;
    disk.hasten(piece.to, piece.length);
    if journal.is_some() { flush(disk, piece.to) } else { Ok(()) }
}

fn flush(disk: &dyn Store, at: u64) -> Result<(), Interrupted> {
    disk.flush().map_err(|e| Interrupted::Disk(at, e))
}

/// Writes `bytes`, long zeros in the way that gives a sparse file its room back.
fn put(disk: &dyn Store, bytes: &[u8], at: u64) -> Result<(), Interrupted> {
    let end = bytes.len() as u64;
    let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let next = |from: u64| round_up(at + from + 1, RUN).map_or(end, |boundary| (boundary - at).min(end));
    let is_zero = |from: u64, to: u64| to - from == RUN && bytes[index(from)..index(to)].iter().all(|&byte| byte == 0);
    let mut from = 0;
    while from < end {
        let mut to = next(from);
        let zero = is_zero(from, to);
        while to < end && is_zero(to, next(to)) == zero {
            to = next(to);
        }
        let done = if zero { disk.zero(at + from, to - from) } else { disk.write_at(&bytes[index(from)..index(to)], at + from) };
        done.map_err(|e| Interrupted::Disk(at + from, e))?;
        from = to;
    }
    Ok(())
}
