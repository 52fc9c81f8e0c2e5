//! `thin`: a thin volume of Linux's device mapper (LVM's thin pools), over the data device of its
//! pool.
//!
//! # Rules
//! - **A request is cut** at the borders of chunks (`max_io_len` in drivers/md/dm.c). Linux 6.1
//!   also cuts it at the device's `max-request`, from its beginning or a border on; over one that
//!   is smaller than its chunk, a volume takes the largest power of two up to it that divides the
//!   chunk (`pool_io_hints` in drivers/md/dm-thin.c). Chunks of 2 MiB over the usual 1280 KiB are
//!   never written as a whole then, and always zeroed first. Linux 6.12 has the chunk for a limit.
//! - **A chunk gets its place in the pool with its first write**, the next that is free, in the
//!   order of the pieces (`alloc_data_block`).
//! - **First write** (`schedule_zero`): the whole chunk is written with zeros, then the piece. A
//!   piece that is the whole chunk is written alone (`io_overwrites_block`), and so is every piece
//!   without zeroing (`skip_block_zeroing`).
//! - **First write to a chunk that a snapshot shares** (`break_sharing`): the chunk is read and
//!   written to its new place, then the piece is written. A piece that is the whole chunk is
//!   written alone.
//! - **First write to a chunk of an external origin** (`schedule_external_copy`): the same from the
//!   origin, and where that ends within the chunk, zeros behind it (none without zeroing).
//! - **Zeros and copies** are requests of 512 KiB (`kcopyd_subjob_size_kb` in
//!   drivers/md/dm-kcopyd.c). Zeros are written: a pool takes no WRITE ZEROES, though its device
//!   may (`write_zeroes_max_bytes` is 0 in both kernels).
//! - **A read of a chunk without a place** asks nothing, or as much of the external origin as there
//!   is.
//! - **A flush** is one of the data device: the metadata's commit makes it if there is something to
//!   commit (`metadata_pre_commit_callback`), and it is passed if not.
//! - **A write with FUA** after a change of the mapping waits for a commit, which flushes the data
//!   device (`bio_triggers_commit`). Of a whole chunk that gets its place, the commit follows
//!   (`complete_overwrite_bio`).
//!
//! # Limits
//! The metadata device is not modelled. A pool commits by itself a second after a change
//! (`COMMIT_PERIOD`). There is no clock here, so the flush of that commit is missing, and a later
//! write with FUA has one that the kernel no longer needs. Nothing is discarded, and the pool does
//! not run full: a volume is no longer than what its pool holds. All requests of one copy are in
//! flight together here; in the kernel eight are.
//!
//! # Measured
//! Linux 6.1.0 and 6.12.85 in a guest, recorded in `tests/kernel/layers/thin-*.txt`: every read and
//! write equals in its place and length, and every flush but for those of a write with FUA that
//! changes the mapping of several chunks: 25 such writes of 3240 requests. There the kernel makes
//! one or more, as commits meet, and the model one. Chunks of 65536 bytes:
//!
//! | request, in bytes | read | written | requests |
//! |---|---|---|---|
//! | first write of 4096 | 0 | 69632 | 2 |
//! | the same without zeroing | 0 | 4096 | 1 |
//! | first write of 65536, a chunk | 0 | 65536 | 1 |
//! | first write of 8192 across a border | 0 | 139264 | 4 |
//! | write of 4096 to a chunk of a snapshot | 65536 | 69632 | 3 |
//! | write of 65536, a chunk of a snapshot | 0 | 65536 | 1 |
//! | later writes of 4096 | 0 | 4096 | 1 |

use super::steps::Steps;
use super::{FLUSH, Layer, LayerKind, ask, parameters};
use crate::error::Error;
use crate::rig::Op;
use crate::streams::Ask;
use serde::Deserialize;
use std::collections::HashMap;
use trueline_geom::base::error::Errno;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::{is_whole, round_down, units};
use trueline_sim::model::keys::names;

/// The layer `thin` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "thin",
    title: "a thin volume of the device mapper (LVM), over its pool's data device",
    keys: names::<Keys>,
    make: |keys| Ok(Box::new(Thin::new(parameters(keys)?)?)),
};

/// The unit and the most of a chunk in bytes (`DATA_DEV_BLOCK_SIZE_MIN_SECTORS`, `_MAX_SECTORS`).
const CHUNK_UNIT: u64 = 64 << 10;
const LARGEST_CHUNK: u64 = 1 << 30;
/// The most bytes of a request that zeroes or copies (`DEFAULT_SUB_JOB_SIZE_KB`).
const SUB_JOB: u64 = 512 << 10;

/// The keys of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// The bytes of a chunk.
    pub chunk: u64,
    /// True if a new chunk is zeroed (LVM's `--zero y`).
    pub zero: bool,
    /// True if every chunk has its place before the first request.
    pub provisioned: bool,
    /// True if in addition a snapshot shares every chunk.
    pub shared: bool,
    /// The first byte beneath of an external origin, which ends the data device; `None` without.
    pub origin: Option<u64>,
    /// The bytes of the volume; `None`: as many as its pool holds.
    pub length: Option<u64>,
    /// The most bytes of a request to the device beneath (`max_sectors_kb`; 1310720 of most), which
    /// cuts requests in Linux 6.1; `None`: borders of chunks alone do, as in 6.12.
    pub max_request: Option<u64>,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys {
            chunk: CHUNK_UNIT,
            zero: true,
            provisioned: false,
            shared: false,
            origin: None,
            length: None,
            max_request: None,
        }
    }
}

/// A thin volume of a pool.
struct Thin {
    keys: Keys,
    /// The most bytes of a piece within a chunk.
    largest: u64,
    /// Chunks of the volume that got a place since, with that chunk of the pool.
    places: HashMap<u64, u64>,
    /// The next free chunk of the pool.
    next: u64,
    /// The bytes of the external origin.
    origin_length: u64,
    /// True if a chunk got its place since the last commit.
    changed: bool,
}

/// A chunk's place in the pool, in bytes.
#[derive(Clone, Copy)]
enum ChunkPlace {
    Own(u64),
    Shared(u64),
    Nowhere,
}

/// The requests of one write, by what they wait for.
#[derive(Default)]
struct Write {
    /// Requests that wait for nothing: reads of copies, zeros, pieces in chunks with a place.
    first: Vec<Ask>,
    /// The writes of copies.
    copies: Vec<Ask>,
    /// Pieces whose chunk is prepared before.
    last: Vec<Ask>,
    /// True if a chunk gets its place before the piece is written.
    prepared: bool,
    /// True if a piece is a whole chunk, which gets its place after.
    overwritten: bool,
}

impl Thin {
    fn new(keys: Keys) -> Result<Thin, Error> {
        let Keys { chunk, max_request, length, .. } = keys;
        if !is_whole(chunk, CHUNK_UNIT) || !(CHUNK_UNIT..=LARGEST_CHUNK).contains(&chunk) {
            return Err(Error::new(format!(
                "chunk = {chunk}: a multiple of {CHUNK_UNIT} bytes, at most {LARGEST_CHUNK}"
            )));
        }
        if let Some(most) = max_request.filter(|most| *most == 0 || !is_whole(*most, PAGE)) {
            return Err(Error::new(format!(
                "max-request = {most}: a multiple of {PAGE} bytes, from {PAGE}"
            )));
        }
        if length == Some(0) {
            return Err(Error::new("length = 0: a volume has at least a sector".into()));
        }
        Ok(Thin {
            keys,
            largest: max_request.map_or(chunk, |most| largest_piece(chunk, most)),
            places: HashMap::new(),
            next: 0,
            origin_length: 0,
            changed: false,
        })
    }

    /// The bytes of the volume over a data device of `data` bytes.
    fn volume(&self, data: u64) -> u64 {
        let Keys { chunk, shared, length, .. } = self.keys;
        length.unwrap_or_else(|| round_down(if shared { data / 2 } else { data }, chunk))
    }

    /// True if every chunk has its place before the first request: the same as in the volume.
    fn begins_full(&self) -> bool {
        self.keys.provisioned || self.keys.shared
    }

    fn place(&self, chunk: u64) -> ChunkPlace {
        match self.places.get(&chunk) {
            Some(place) => ChunkPlace::Own(place * self.keys.chunk),
            None if self.keys.shared => ChunkPlace::Shared(chunk * self.keys.chunk),
            None if self.keys.provisioned => ChunkPlace::Own(chunk * self.keys.chunk),
            None => ChunkPlace::Nowhere,
        }
    }

    /// Gives a chunk the next free place.
    fn provision(&mut self, chunk: u64) -> u64 {
        let place = self.next;
        self.next += 1;
        self.places.insert(chunk, place);
        self.changed = true;
        place * self.keys.chunk
    }

    /// The part of `offset..offset + length` that the external origin has: its place beneath.
    fn in_origin(&self, offset: u64, length: u64) -> Option<(u64, u64)> {
        let length = length.min(self.origin_length.checked_sub(offset)?);
        (length > 0).then_some((self.keys.origin? + offset, length))
    }

    /// Pieces of a request: each one's chunk, its offset within that, and its length.
    fn pieces(&self, ask: Ask) -> Vec<(u64, u64, u64)> {
        let (mut at, end, size) = (ask.offset, ask.offset + ask.length, self.keys.chunk);
        let mut pieces = Vec::new();
        while at < end {
            let (chunk, after) = units(at, at + 1, size);
            let length = (end - at).min(after * size - at).min(self.largest);
            pieces.push((chunk, at - chunk * size, length));
            at += length;
        }
        pieces
    }

    fn read(&self, wanted: Ask, steps: &mut Steps) {
        for (chunk, within, length) in self.pieces(wanted) {
            let found = match self.place(chunk) {
                ChunkPlace::Own(place) | ChunkPlace::Shared(place) => {
                    Some((place + within, length))
                }
                ChunkPlace::Nowhere => self.in_origin(chunk * self.keys.chunk + within, length),
            };
            if let Some((offset, length)) = found {
                steps.add(ask(Op::Read, offset, length));
            }
        }
    }

    fn write(&mut self, wanted: Ask, steps: &mut Steps) {
        let committed = !self.changed;
        let mut write = Write::default();
        let mut preparing = None;
        for (chunk, within, length) in self.pieces(wanted) {
            let piece = |place| Ask { offset: place + within, length, ..wanted };
            match self.place(chunk) {
                ChunkPlace::Own(place) if preparing == Some(chunk) || wanted.fua => {
                    write.last.push(piece(place));
                }
                ChunkPlace::Own(place) => write.first.push(piece(place)),
                other => {
                    let place = self.provision(chunk);
                    self.prepare(chunk, other, place, length, &mut write);
                    write.last.push(piece(place));
                    preparing = Some(chunk);
                }
            }
        }
        let commits = wanted.fua && (!committed || write.prepared);
        let follows = wanted.fua && write.overwritten;
        if commits || follows {
            self.changed = false;
        }
        let before = commits.then_some(FLUSH).into_iter().collect();
        let after = follows.then_some(FLUSH).into_iter().collect();
        for phase in [write.first, write.copies, before, write.last, after] {
            phase.into_iter().for_each(|ask| steps.add(ask));
            steps.then();
        }
    }

    /// Adds what comes before the first piece in a chunk, of `length` bytes, whose old place is
    /// `from` and whose new one `to`.
    fn prepare(&self, chunk: u64, from: ChunkPlace, to: u64, length: u64, write: &mut Write) {
        let Keys { chunk: size, zero, .. } = self.keys;
        let source = match from {
            ChunkPlace::Own(place) | ChunkPlace::Shared(place) => Some((place, size)),
            ChunkPlace::Nowhere => self.in_origin(chunk * size, size),
        };
        if length == size && (zero || source.is_some()) {
            write.overwritten = true;
            return;
        }
        write.prepared = true;
        let copied = source.map_or(0, |(offset, copied)| {
            jobs(Op::Read, offset, copied, &mut write.first);
            jobs(Op::Write, to, copied, &mut write.copies);
            copied
        });
        if zero {
            jobs(Op::Write, to + copied, size - copied, &mut write.first);
        }
    }
}

/// The most bytes of a piece: `most`, or of chunks that are larger the largest power of two up to
/// it that divides them.
fn largest_piece(chunk: u64, most: u64) -> u64 {
    let mut piece = most;
    while piece < chunk && !is_whole(chunk, piece) {
        piece = piece.next_power_of_two() / 2;
    }
    piece
}

/// Adds the requests of a copier that reads, writes or zeroes a range.
fn jobs(op: Op, offset: u64, length: u64, list: &mut Vec<Ask>) {
    let mut done = 0;
    while done < length {
        let part = (length - done).min(SUB_JOB);
        list.push(ask(op, offset + done, part));
        done += part;
    }
}

impl Layer for Thin {
    fn length(&self, beneath: u64) -> u64 {
        self.volume(self.keys.origin.unwrap_or(beneath).min(beneath))
    }

    fn attach(&mut self, length: u64, sector: u64) -> Result<(), Error> {
        let data = self.keys.origin.unwrap_or(length);
        if data > length || !is_whole(data, sector) {
            return Err(Error::new(format!(
                "origin = {data}: an address in whole sectors of {sector} bytes beneath {length}"
            )));
        }
        if data < self.keys.chunk {
            return Err(Error::new(format!(
                "a data device of {data} bytes: a chunk has {}",
                self.keys.chunk
            )));
        }
        self.origin_length = length - data;
        let volume = self.volume(data);
        let (_, chunks) = units(0, volume, self.keys.chunk);
        let held = data / self.keys.chunk / (1 + u64::from(self.keys.shared));
        if chunks > held || !is_whole(volume, sector) {
            return Err(Error::new(format!(
                "length = {volume}: whole sectors of {sector} bytes in the {held} chunks of {} \
                 bytes that the pool has for it",
                self.keys.chunk
            )));
        }
        self.next = if self.begins_full() { chunks } else { 0 };
        Ok(())
    }

    fn plan(&mut self, ask: Ask, steps: &mut Steps) -> Result<(), Errno> {
        match ask.op {
            Op::Read => self.read(ask, steps),
            Op::Write => self.write(ask, steps),
            Op::Flush => {
                self.changed = false;
                steps.add(ask);
            }
        }
        Ok(())
    }
}
