//! A guest that does what it likes, and a plain model of its disk.

use super::tape::File;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::Topology;
use trueline_geom::class::qcow2::writing::NotWritable;
use trueline_geom::graph::image_store::ImageStore;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

/// Random numbers by a seed (xorshift64*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(bits).unwrap() % limit.max(1)
    }
}

/// The byte of a backing file at an offset.
pub(crate) fn of_base(at: usize) -> u8 {
    u8::try_from(at / 256 % 251).unwrap() | 1
}

/// The file of an image, and a backing file of `base` bytes if that is not 0.
pub(crate) fn disks(file: &File, base: usize) -> Vec<Disk> {
    let disk = |name: &str, file: &File| {
        let topology = Topology::new(512, file.length());
        Disk::new(name, Box::new(file.clone()), topology)
    };
    let mut disks = vec![disk("", file)];
    if base > 0 {
        let bytes: Vec<u8> = (0..base).map(of_base).collect();
        disks.push(disk("base", &File::new(bytes, 0)));
        disks[0].references = vec![("base".into(), 1)];
        disks[1].format = Some("raw".into());
    }
    disks
}

/// The disk in an image, over a backing file of `base` bytes if that is not 0.
pub(crate) fn open(file: &File, base: usize) -> Result<ImageStore, NotWritable> {
    let graph = Graph::taste(disks(file, base), Limits::default());
    let contents = graph.find(".disk").expect("a disk in it");
    ImageStore::open(&graph, contents)
}

/// A request of the guest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    /// A byte, written over a range.
    Write(usize, usize, u8),
    /// The same, durable when it is done.
    Through(usize, usize, u8),
    /// Zeros over a range, without their bytes.
    Zero(usize, usize),
    /// A flush of everything before it.
    Flush,
}

impl Asked {
    /// A random request to a disk, in units of `unit` bytes and of about `most` at most.
    pub(crate) fn random(random: &mut Random, size: usize, unit: usize, most: usize) -> Asked {
        let from = random.below(size / unit) * unit;
        let length = (random.below(most / unit) + 1) * unit;
        let length = length.min(size - from);
        let byte = u8::try_from(random.below(255)).unwrap() + 1;
        match random.below(12) {
            0 | 1 => Asked::Flush,
            2 => Asked::Through(from, length, byte),
            3 | 4 => Asked::Zero(from, length),
            _ => Asked::Write(from, length, byte),
        }
    }

    /// Does it to a store, which takes it.
    pub(crate) fn run(self, store: &impl Store) {
        assert_eq!(self.try_run(store), Ok(()), "{self:?}");
    }

    /// Does it to a store, which may refuse it.
    pub(crate) fn try_run(self, store: &impl Store) -> Result<(), Errno> {
        match self {
            Asked::Write(at, length, byte) => store.write_at(&vec![byte; length], at as u64),
            Asked::Through(at, length, byte) => store.write_through(&vec![byte; length], at as u64),
            Asked::Zero(at, length) => store.zero(at as u64, length as u64),
            Asked::Flush => store.flush(),
        }
    }

    /// The range that it changes, and the byte that is there afterwards.
    pub(crate) fn change(self) -> Option<(usize, usize, u8)> {
        match self {
            Asked::Write(at, length, byte) | Asked::Through(at, length, byte) => {
                Some((at, length, byte))
            }
            Asked::Zero(at, length) => Some((at, length, 0)),
            Asked::Flush => None,
        }
    }

    /// True if all before it survives once it is done.
    pub(crate) fn is_durable(self) -> bool {
        matches!(self, Asked::Flush | Asked::Through(..))
    }
}

/// All bytes of a store.
pub(crate) fn all(store: &impl Store) -> Vec<u8> {
    let mut bytes = vec![9; usize::try_from(store.length()).unwrap()];
    store.read_at(&mut bytes, 0).unwrap();
    bytes
}
