//! A file in memory that notes every write, and what a loss of power may leave of it.

use super::guest::Random;
use std::sync::{Arc, Mutex, MutexGuard};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;

/// Bytes that a drive writes whole or not at all.
const SECTOR: usize = 512;

/// A change of a file.
#[derive(Clone)]
pub(crate) enum Change {
    /// Bytes that were written at an offset.
    Write(usize, Vec<u8>),
    /// A new length in bytes.
    Grow(usize),
    /// Everything before it is on the medium.
    Flush,
}

/// Bytes of a file, and its changes since it was made.
#[derive(Default)]
pub(crate) struct Tape {
    pub(crate) bytes: Vec<u8>,
    pub(crate) changes: Vec<Change>,
    /// The most bytes that it may grow to.
    pub(crate) most: usize,
    /// The number of further writes before one fails; none fails without it.
    pub(crate) fails_after: Option<usize>,
}

/// A file that is shared with the store that writes it.
#[derive(Clone, Default)]
pub(crate) struct File(Arc<Mutex<Tape>>);

impl File {
    /// A file of these bytes that may grow up to `most` bytes.
    pub(crate) fn new(bytes: Vec<u8>, most: usize) -> File {
        File(Arc::new(Mutex::new(Tape { bytes, most, ..Tape::default() })))
    }

    pub(crate) fn tape(&self) -> MutexGuard<'_, Tape> {
        self.0.lock().unwrap()
    }
}

impl Tape {
    fn write(&mut self, at: usize, bytes: Vec<u8>) -> Result<(), Errno> {
        if let Some(left) = &mut self.fails_after {
            *left = left.checked_sub(1).ok_or(Errno::NoSpace)?;
        }
        let end = at.checked_add(bytes.len()).filter(|&end| end <= self.bytes.len());
        self.bytes[at..end.ok_or(Errno::Range)?].copy_from_slice(&bytes);
        self.changes.push(Change::Write(at, bytes));
        Ok(())
    }
}

fn range(offset: u64, length: u64) -> (usize, usize) {
    (usize::try_from(offset).unwrap(), usize::try_from(length).unwrap())
}

impl Store for File {
    fn length(&self) -> u64 {
        self.tape().bytes.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let (at, length) = range(offset, buffer.len() as u64);
        buffer.copy_from_slice(self.tape().bytes.get(at..at + length).ok_or(Errno::Range)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        let (at, _) = range(offset, 0);
        self.tape().write(at, bytes.to_vec())
    }

    fn flush(&self) -> Result<(), Errno> {
        self.tape().changes.push(Change::Flush);
        Ok(())
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        // Whatever is read from there on is not said.
        let (at, length) = range(offset, length);
        self.tape().write(at, vec![0xdd; length])
    }

    fn try_zero(&self, offset: u64, length: u64, _: bool) -> Result<(), Errno> {
        let (at, length) = range(offset, length);
        self.tape().write(at, vec![0; length])
    }

    fn grow(&self, length: u64) -> Result<(), Errno> {
        let (_, length) = range(0, length);
        let mut tape = self.tape();
        if length > tape.most {
            return Err(Errno::NoSpace);
        }
        if length > tape.bytes.len() {
            tape.bytes.resize(length, 0);
            tape.changes.push(Change::Grow(length));
        }
        Ok(())
    }
}

/// Changes as they are, one after another, on a file of `bytes`.
fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(at, new) => {
            let end = at + new.len();
            bytes.resize(bytes.len().max(end), 0);
            bytes[*at..end].copy_from_slice(new);
        }
        Change::Grow(length) => bytes.resize(bytes.len().max(*length), 0),
        Change::Flush => {}
    }
}

/// The file after a loss of power behind the first `count` of `changes`: what was flushed, and of
/// the rest any sectors of any writes. `kill`: a process ended instead, and nothing is lost.
pub(crate) fn left_of(
    base: &[u8],
    changes: &[Change],
    count: usize,
    kill: bool,
    random: &mut Random,
) -> Vec<u8> {
    let (done, mut bytes) = (&changes[..count], base.to_vec());
    let flushed = done.iter().rposition(|change| matches!(change, Change::Flush)).unwrap_or(0);
    done[..flushed].iter().for_each(|change| apply(&mut bytes, change));
    // Some states lose almost all, some almost nothing.
    let odds = if kill { 0 } else { random.below(9) };
    for change in &done[flushed..] {
        match change {
            Change::Write(at, new) => {
                let torn = random.below(2) == 0;
                let is_lost = random.below(8) < odds;
                let mut from = 0;
                while from < new.len() {
                    // Up to the end of the sector of the file.
                    let to = (((at + from) / SECTOR + 1) * SECTOR - at).min(new.len());
                    let lost = if torn { random.below(8) < odds } else { is_lost };
                    if !lost {
                        apply(&mut bytes, &Change::Write(at + from, new[from..to].to_vec()));
                    }
                    from = to;
                }
            }
            Change::Grow(_) if random.below(8) < odds => {}
            other => apply(&mut bytes, other),
        }
    }
    bytes
}
