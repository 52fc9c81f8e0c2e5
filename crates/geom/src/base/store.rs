//! Leaf bytes: what a disk is read from and written to. Files and devices are in `crates/host`;
//! here is memory.

use crate::base::error::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU8;

pub mod filter;

/// A run of bytes that can be read at any offset, and perhaps written.
///
/// Five methods must be written. What carries bytes and is left out is made of these five of the
/// same store: slower, and never past it. What is a hint and is left out is not taken. A layer that
/// sees requests at the addresses of the store beneath is a [`Filter`](filter::Filter) instead.
pub trait Store: Send + Sync {
    /// The length in bytes, which [`Store::grow`] alone changes.
    fn length(&self) -> u64;

    /// Fills `buffer` from `offset`. All of it or an error: a short read at the end is
    /// [`Errno::Range`].
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno>;

    /// Writes all of `bytes` at `offset`; [`Errno::ReadOnly`] where nothing can be written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno>;

    /// Returns when everything written so far would survive a loss of power.
    fn flush(&self) -> Result<(), Errno>;

    /// Gives up `length` bytes from `offset`: what they read as from now on is not said. A hint: a
    /// store that cannot says it has.
    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno>;

    /// Properties, which stay the same for as long as the store is there.
    fn properties(&self) -> Properties {
        Properties::default()
    }

    /// Writes all of `bytes` at `offset` and returns when they would survive a loss of power
    /// (forced unit access).
    fn write_through(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.write_at(bytes, offset)?;
        self.flush()
    }

    /// Makes the store at least `length` bytes long, with zeros behind what was its end.
    /// [`Errno::NoSpace`] where it has the length that it has.
    fn grow(&self, length: u64) -> Result<(), Errno> {
        let _ = length;
        Err(Errno::NoSpace)
    }

    /// Makes `length` bytes from `offset` zero, without writing them where that can be had.
    fn zero(&self, offset: u64, length: u64) -> Result<(), Errno> {
        match self.try_zero(offset, length, false) {
            Err(Errno::Unsupported) => write_zeros(length, &mut |done, zeros| {
                self.write_at(zeros, offset.checked_add(done).ok_or(Errno::Range)?)
            }),
            done => done,
        }
    }

    /// Makes `length` bytes from `offset` zero without sending them, or does nothing and says
    /// [`Errno::Unsupported`]. `keep`: their room stays theirs.
    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        let _ = (offset, length, keep);
        Err(Errno::Unsupported)
    }

    /// Reads as [`Store::read_at`] if that need not wait for a device; `false` if it must, and what
    /// is in `buffer` then means nothing.
    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        let _ = (buffer, offset);
        Ok(false)
    }

    /// Borrows the `length` bytes from `offset` themselves, where they are memory, in one piece;
    /// others may write them meanwhile. A borrower reads all of them. [`None`]: they are to be
    /// read.
    fn borrow(&self, offset: u64, length: u64) -> Result<Option<&[AtomicU8]>, Errno> {
        let _ = (offset, length);
        Ok(None)
    }

    /// Content at `offset`, and for how many of the next `length` bytes at least; `length` is not
    /// 0.
    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let _ = offset;
        Ok(Run { content: Content::Data, length })
    }

    /// Starts to bring the `length` bytes from `offset` into memory, where there is one, because
    /// they will be read. A hint.
    fn prefetch(&self, offset: u64, length: u64) {
        let _ = (offset, length);
    }

    /// Starts to bring what was written in the `length` bytes from `offset` to the medium, so that
    /// a flush has less to wait for. A hint.
    fn start_writeback(&self, offset: u64, length: u64) {
        let _ = (offset, length);
    }
}

/// Properties of a store. By default those of one that takes any byte and may always wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The unit of reads and writes in bytes: 1 where any byte will do.
    pub unit: u64,
    /// Requests that it works on at one time: a server keeps so many threads waiting for it at
    /// most.
    pub depth: usize,
    /// A write goes to memory and is done: a server does it at once and keeps no thread for it.
    pub write_back: bool,
    /// No request ever waits for a device: a server does everything at once.
    pub non_blocking: bool,
    /// Each read is a round trip to a server that bills it: tasting reads less.
    pub is_far: bool,
}

impl Default for Properties {
    fn default() -> Properties {
        Properties { unit: 1, depth: 16, write_back: false, non_blocking: false, is_far: false }
    }
}

/// Bytes of one kind, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The kind of all of them.
    pub content: Content,
    /// Number of bytes in the run.
    pub length: u64,
}

/// Content of bytes, as far as it is known without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes of any value.
    Data,
    /// Zeros that take room.
    Zero,
    /// Zeros that take none.
    Hole,
}

/// A writer of pieces: how many bytes came before, bytes.
pub type Put<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Errno> + 'a;

/// Zeros that are written at once.
const ZEROS: usize = 1 << 20;

/// Hands `length` zeros to `write`, a bounded piece at a time, each with how many came before it.
pub fn write_zeros(length: u64, write: &mut Put<'_>) -> Result<(), Errno> {
    let zeros = vec![0; to_index(length).min(ZEROS)];
    let mut done = 0;
    while done < length {
        let piece = &zeros[..to_index(length - done).min(ZEROS)];
        write(done, piece)?;
        done += piece.len() as u64;
    }
    Ok(())
}

/// The most that every `*` in a hexdump may stand for together, in bytes, unless they are zero: a
/// few lines of text must not fill the memory.
const REPEAT: u64 = 16 << 20;

/// Memory in which only what is not zero takes room.
///
/// Its text form is the output of `hexdump -C`, which is what the golden disks are kept in.
#[derive(Clone, Debug, Default)]
pub struct Sparse {
    length: u64,
    /// Start → bytes; runs neither overlap nor reach past `length`.
    runs: BTreeMap<u64, Vec<u8>>,
}

impl Sparse {
    /// A store of `length` zero bytes.
    pub fn new(length: u64) -> Sparse {
        Sparse { length, runs: BTreeMap::new() }
    }

    /// Puts `bytes` at `offset`, cut at the end of the disk.
    pub fn put(&mut self, offset: u64, bytes: &[u8]) {
        let room = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        let end = offset + bytes.len() as u64;
        if bytes.is_empty() {
            return;
        }
        let mut start = offset;
        let mut joined = Vec::new();
        let touching: Vec<u64> = self
            .runs
            .range(..=end)
            .rev()
            .map(|(&at, run)| (at, at + run.len() as u64))
            .take_while(|&(_, e)| e >= offset)
            .map(|(at, _)| at)
            .collect();
        for at in touching.into_iter().rev() {
            if let Some(run) = self.runs.remove(&at) {
                if joined.is_empty() && at <= start {
                    // Grown in place: a disk is most often put together from its front to its end.
                    (start, joined) = (at, run);
                    continue;
                }
                let from = to_index(at - start);
                joined.resize(joined.len().max(from + run.len()), 0);
                joined[from..from + run.len()].copy_from_slice(&run);
            }
        }
        let from = to_index(offset - start);
        joined.resize(joined.len().max(from + bytes.len()), 0);
        joined[from..from + bytes.len()].copy_from_slice(bytes);
        self.runs.insert(start, joined);
    }

    /// The runs that were put, by offset.
    pub fn runs(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.runs.iter().map(|(&at, bytes)| (at, bytes.as_slice()))
    }

    /// Reads `hexdump -C` text. Lines that begin with `#` are comments; `*` repeats the line before
    /// it up to the next offset; a last line with an offset alone is the length. `Err` names the
    /// first line that is none of these, goes back, or repeats more than 16 MiB that are not zero.
    pub fn from_hexdump(text: &str) -> Result<Sparse, NotHexdump> {
        let mut disk = Sparse::new(u64::MAX);
        let (mut previous, mut repeat, mut end, mut repeatable) = (Vec::new(), false, 0, REPEAT);
        for (number, line) in text.lines().enumerate() {
            let bad = || NotHexdump { line: number + 1, text: line.into() };
            let line = line.split('|').next().unwrap_or_default();
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            if line.trim() == "*" {
                repeat = true;
                continue;
            }
            let mut words = line.split_whitespace();
            let at = words.next().and_then(|w| u64::from_str_radix(w, 16).ok()).ok_or_else(bad)?;
            let bytes: Vec<u8> = words
                .map(|w| u8::from_str_radix(w, 16).map_err(|_| bad()))
                .collect::<Result<_, _>>()?;
            let gap = at.checked_sub(end).ok_or_else(bad)?;
            let next = at.checked_add(bytes.len() as u64).ok_or_else(bad)?;
            if repeat && previous.iter().any(|&b| b != 0) {
                repeatable = repeatable.checked_sub(gap).ok_or_else(bad)?;
                let filling: Vec<u8> =
                    previous.iter().copied().cycle().take(to_index(gap)).collect();
                disk.put(end, &filling);
            }
            if bytes.iter().any(|&b| b != 0) {
                disk.put(at, &bytes);
            }
            (end, repeat, previous) = (next, false, bytes);
        }
        disk.length = end;
        Ok(disk)
    }

    /// Reads the dumps of a set, each as [`Sparse::from_hexdump`], and their names: a line `# disk:
    /// NAME` begins a further one after the first, which is called `disk`.
    pub fn from_hexdumps(text: &str) -> Result<Vec<(String, Sparse)>, NotHexdump> {
        let (mut disks, mut name, mut rest) = (Vec::new(), "disk", text);
        while let Some((dump, next)) = rest.split_once("\n# disk: ") {
            disks.push((name.to_string(), Sparse::from_hexdump(dump)?));
            (name, rest) = next.split_once('\n').unwrap_or((next, ""));
        }
        disks.push((name.to_string(), Sparse::from_hexdump(rest)?));
        Ok(disks)
    }
}

/// A line of a text that is no `hexdump -C`, or goes back, or repeats too much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotHexdump {
    /// Number of the line, from 1.
    pub line: usize,
    /// Text of that line, unchanged.
    pub text: String,
}

impl fmt::Display for NotHexdump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: not hexdump -C: {}", self.line, self.text)
    }
}

impl std::error::Error for NotHexdump {}

/// An index into bytes that are in memory, so it fits.
fn to_index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

impl Store for Sparse {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let end = offset
            .checked_add(buffer.len() as u64)
            .filter(|&end| end <= self.length)
            .ok_or(Errno::Range)?;
        buffer.fill(0);
        for (&at, run) in self.runs.range(..end).rev() {
            let run_end = at + run.len() as u64;
            if run_end <= offset {
                break;
            }
            let (from, to) = (at.max(offset), run_end.min(end));
            let (into, out) = (to_index(from - offset), to_index(from - at));
            let count = to_index(to - from);
            buffer[into..into + count].copy_from_slice(&run[out..out + count]);
        }
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_join_and_read_back() {
        let mut disk = Sparse::new(100);
        let mut model = [0u8; 100];
        for (i, (at, len)) in
            [(10, 5), (20, 5), (12, 10), (0, 3), (95, 20), (3, 7), (50, 1), (9, 60)]
                .into_iter()
                .enumerate()
        {
            let bytes = vec![u8::try_from(i + 1).unwrap(); len];
            disk.put(at, &bytes);
            let at = usize::try_from(at).unwrap();
            let end = (at + len).min(100);
            model[at..end].fill(u8::try_from(i + 1).unwrap());
            for (from, to) in [(0, 100), (11, 23), (99, 100), (4, 4)] {
                let mut got = vec![9; to - from];
                disk.read_at(&mut got, from as u64).unwrap();
                assert_eq!(got, model[from..to]);
            }
        }
        assert_eq!(disk.read_at(&mut [0; 2], 99), Err(Errno::Range));
        assert_eq!(disk.read_at(&mut [0; 2], u64::MAX), Err(Errno::Range));
    }

    #[test]
    fn zeros_are_handed_over_in_pieces() {
        let long = 2 * ZEROS as u64;
        for length in [0, 1, long / 2, long - 1, long, long + 1] {
            let mut pieces = Vec::new();
            let mut next = 0;
            write_zeros(length, &mut |done, zeros| {
                assert_eq!(done, next);
                assert!(zeros.iter().all(|&b| b == 0));
                next += zeros.len() as u64;
                pieces.push(zeros.len());
                Ok(())
            })
            .unwrap();
            assert_eq!(next, length);
            assert!(pieces.iter().all(|n| (1..=ZEROS).contains(n)));
        }
        assert_eq!(write_zeros(long, &mut |_, _| Err(Errno::NoSpace)), Err(Errno::NoSpace));
    }

    #[test]
    fn hexdump_text_is_read() {
        let text = "# a comment\n00000000  00 00 00 00  |....|\n*\n00000008  41 42 43 44  \
            |ABCD|\n*\n00000010\n";
        let disk = Sparse::from_hexdump(text).unwrap();
        let mut all = [9; 16];
        disk.read_at(&mut all, 0).unwrap();
        assert_eq!((disk.length(), &all), (16, b"\0\0\0\0\0\0\0\0ABCDABCD"));
        let set = Sparse::from_hexdumps(&format!("{text}# disk: disk1\n00000000  41\n00000001\n"))
            .unwrap();
        let found: Vec<(&str, u64)> =
            set.iter().map(|(name, disk)| (name.as_str(), disk.length())).collect();
        assert_eq!(found, [("disk", 16), ("disk1", 1)]);
        for bad in ["zz\n", "10 01\n00 01\n", "00 01\n*\n8000000000\n", "ffffffffffffffff 01 02\n"]
        {
            assert!(Sparse::from_hexdump(bad).is_err(), "{bad}");
        }
    }
}
