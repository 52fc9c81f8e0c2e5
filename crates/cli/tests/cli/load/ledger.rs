//! A client's knowledge of its blocks, in a file that outlives it: the writes that it sent, and
//! those that were answered.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Clients at a time, each with blocks of its own. The blocks of one lie between those of the
/// others.
pub(super) const CLIENTS: usize = 16;
/// Blocks of a client: more than are ever in doubt, [`DEPTH`](super::client::DEPTH) for each time
/// it is killed.
pub(super) const BLOCKS: usize = 2048;
/// Bytes of a block: no sector's multiple, so that neighbours share sectors, and pages.
pub(super) const BLOCK: usize = 1000;
/// Bytes of the export that are written.
pub(super) const LENGTH: usize = CLIENTS * BLOCKS * BLOCK;

/// Bytes of an entry, and of the head: none crosses a page, so a killed client has written a whole
/// one or none.
const ENTRY: usize = 16;

/// The generations of a block: the first is the zeros it begins with.
#[derive(Clone, Copy, Default)]
pub(super) struct Block {
    /// The newest that was sent.
    pub(super) sent: u32,
    /// The newest that was answered.
    pub(super) answered: u32,
    /// The newest of which it was answered that it would survive: with FUA, or by a flush.
    pub(super) durable: u32,
}

impl Block {
    /// True if a write was sent and never answered: it may or may not be on the disk, and may still
    /// arrive.
    pub(super) fn in_doubt(self) -> bool {
        self.sent != self.answered
    }
}

pub(super) struct Ledger {
    file: File,
    pub(super) blocks: Vec<Block>,
    /// Requests of every kind that were answered.
    pub(super) requests: u64,
}

impl Ledger {
    /// As it is in the file; an empty one where there is none.
    pub(super) fn open(path: &Path) -> Ledger {
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .expect("a ledger");
        let length = (BLOCKS + 1) * ENTRY;
        file.set_len(length as u64).expect("room for a ledger");
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, 0).expect("a ledger");
        let word =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let block = |nth: usize| Block {
            sent: word(nth * ENTRY),
            answered: word(nth * ENTRY + 4),
            durable: word(nth * ENTRY + 8),
        };
        let requests = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        Ledger { blocks: (1..=BLOCKS).map(block).collect(), requests, file }
    }

    /// The requests that are answered so far, of a client that goes on.
    pub(super) fn requests_in(path: &Path) -> u64 {
        let mut head = [0; 8];
        File::open(path)
            .and_then(|file| file.read_exact_at(&mut head, 0))
            .map_or(0, |()| u64::from_le_bytes(head))
    }

    /// Changes a block, here and in the file.
    pub(super) fn set(&mut self, nth: usize, change: impl FnOnce(&mut Block)) {
        let block = &mut self.blocks[nth];
        change(block);
        let words = [block.sent, block.answered, block.durable, 0].map(u32::to_le_bytes);
        self.file
            .write_all_at(words.as_flattened(), ((nth + 1) * ENTRY) as u64)
            .expect("a ledger can be written");
    }

    /// Some more requests are answered.
    pub(super) fn count(&mut self, more: u64) {
        self.requests += more;
        self.file.write_all_at(&self.requests.to_le_bytes(), 0).expect("a ledger can be written");
    }
}

/// Block number on the export of a client's block.
pub(super) fn number(client: usize, nth: usize) -> usize {
    nth * CLIENTS + client
}

/// True if a generation is zeros, requested by `WRITE_ZEROES`.
pub(super) fn is_zeros(generation: u32) -> bool {
    generation.is_multiple_of(16)
}

/// Bytes of a generation of a block: its number, its generation and their sum, again and again.
pub(super) fn content(number: usize, generation: u32) -> Vec<u8> {
    if is_zeros(generation) {
        return vec![0; BLOCK];
    }
    let (number, generation) = (number as u64, u64::from(generation));
    let stamp = [number.to_le_bytes(), (number + generation + (generation << 32)).to_le_bytes()];
    let mut bytes = stamp.as_flattened().repeat(BLOCK.div_ceil(16));
    bytes.truncate(BLOCK);
    bytes
}

/// True if a block holds one generation or, if several are possible, nothing but bytes of those.
pub(super) fn holds(bytes: &[u8], number: usize, oldest: u32, newest: u32) -> bool {
    let wants: Vec<Vec<u8>> =
        (oldest..=newest).map(|generation| content(number, generation)).collect();
    match wants.as_slice() {
        [want] => bytes == want,
        wants => {
            bytes.iter().enumerate().all(|(at, byte)| wants.iter().any(|want| want[at] == *byte))
        }
    }
}
