//! A provider's bytes as a store: code that serves a disk serves every provider.

use crate::base::error::Errno;
use crate::base::store::{Content, Properties, Run, Store};
use crate::base::topology::lcm;
use crate::graph::{Graph, Id};
use crate::mapping::geom::Op;
use crate::mapping::route::{Piece, Route};
use known_runs::KnownRuns;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

mod known_runs;

/// One provider of a graph, as a store.
#[derive(Clone)]
pub struct Through {
    stores: Arc<[Box<dyn Store>]>,
    route: Route,
    /// Indices of the stores that its bytes can be on, each once.
    used: Arc<[usize]>,
    properties: Properties,
}

/// Operation on one run: its disk, first byte there, and bytes.
type Each<'a> = dyn FnMut(&dyn Store, u64, u64) -> Result<(), Errno> + 'a;

impl Through {
    /// The bytes of provider `id` of `graph`.
    pub fn new(graph: &Graph, id: Id) -> Through {
        Through::over(graph.shared_stores(), graph.providers[id].route().clone())
    }

    /// The bytes to which `route` leads on `stores` other than those of its graph: other wrappers
    /// of the same disks.
    pub fn over(stores: Arc<[Box<dyn Store>]>, route: Route) -> Through {
        let mut used = Vec::new();
        route.stores(&mut used);
        let own =
            || used.iter().filter_map(|&index| stores.get(index)).map(|store| store.properties());
        let properties = Properties {
            unit: own().try_fold(1, |unit, store| lcm(unit, store.unit)).unwrap_or(u64::MAX),
            // Any of them may serve a request, so the deepest queue counts.
            depth: own().map(|store| store.depth).max().unwrap_or(1),
            write_back: own().all(|store| store.write_back),
            non_blocking: own().all(|store| store.non_blocking),
            is_far: own().any(|store| store.is_far),
        };
        Through { used: used.into(), properties, stores, route }
    }

    fn store(&self, index: usize) -> Result<&dyn Store, Errno> {
        self.stores.get(index).map(|store| &**store).ok_or(Errno::NoDevice)
    }

    /// The disk it is a plain range of, and the address there of byte `offset`; `None` on a set, or
    /// if `length` bytes reach past the end.
    fn plain(&self, offset: u64, length: u64) -> Option<(&dyn Store, u64)> {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.route.length());
        let store = self.store(self.route.medium().filter(|_| inside)?).ok()?;
        Some((store, self.route.base() + offset))
    }

    /// Calls `each` on every run of a range that is to be written.
    fn visit_runs(&self, offset: u64, length: u64, each: &mut Each<'_>) -> Result<(), Errno> {
        self.route.runs(offset, length, &mut |store, offset, length| {
            each(self.store(store)?, offset, length)
        })
    }
}

impl Store for Through {
    fn length(&self) -> u64 {
        self.route.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.route.read_at(&self.stores, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.route.write_at(&self.stores, bytes, offset)
    }

    fn zero(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.route.zero(&self.stores, offset, length)
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        // A hint: outside the provider there is nothing to write.
        let _ = self.route.start_writeback(&self.stores, offset, length);
    }

    fn prefetch(&self, offset: u64, length: u64) {
        let _ = self.route.extents(offset, length, Op::Read, &mut |_, piece| {
            if let Piece::Store { store, offset, length } = piece {
                self.store(store)?.prefetch(offset, length);
            }
            Ok(())
        });
    }

    fn flush(&self) -> Result<(), Errno> {
        // A flush that fails keeps no other store from its own.
        self.used.iter().map(|&index| self.store(index)?.flush()).fold(Ok(()), Result::and)
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        let mut all = true;
        self.route.extents(offset, buffer.len() as u64, Op::Read, &mut |from, piece| {
            let part = buffer.get_mut(piece.within(from)?).ok_or(Errno::Range)?;
            match piece {
                Piece::Store { store, offset, .. } if all => {
                    all = match self.store(store)?.try_read(part, offset) {
                        // A read that waits may find another copy.
                        Err(_) if self.used.len() > 1 => false,
                        read => read?,
                    }
                }
                Piece::Store { .. } => {}
                Piece::Zero { .. } => part.fill(0),
                // A read of a table waits.
                Piece::Rebuilt { .. } | Piece::Table { .. } => all = false,
            }
            Ok(())
        })?;
        Ok(all)
    }

    fn properties(&self) -> Properties {
        self.properties
    }

    fn borrow(&self, offset: u64, length: u64) -> Result<Option<&[AtomicU8]>, Errno> {
        self.plain(offset, length).map_or(Ok(None), |(store, at)| store.borrow(at, length))
    }

    fn write_through(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.route.extents(offset, bytes.len() as u64, Op::Write, &mut |from, piece| {
            let part = bytes.get(piece.within(from)?).ok_or(Errno::Range)?;
            match piece {
                Piece::Store { store, offset, .. } => {
                    self.store(store)?.write_through(part, offset)
                }
                Piece::Table { .. } => Ok(()),
                Piece::Zero { .. } | Piece::Rebuilt { .. } => Err(Errno::ReadOnly),
            }
        })
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.visit_runs(offset, length, &mut |store, offset, length| store.discard(offset, length))
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        self.visit_runs(offset, length, &mut |store, offset, length| {
            store.try_zero(offset, length, keep)
        })
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let asked = length;
        let (mut run, mut pieces, mut known) = (None, 0, KnownRuns::default());
        let walked = self.route.extents(offset, length, Op::Read, &mut |_, piece| {
            let next = match piece {
                Piece::Store { store, offset, length } => {
                    known.at((store, self.store(store)?), offset, (length, asked))?
                }
                Piece::Zero { length } => Run { content: Content::Hole, length },
                Piece::Rebuilt { length } => Run { content: Content::Data, length },
                Piece::Table { .. } => return Ok(()),
            };
            let joined = match run {
                None => next,
                Some(Run { content, length }) if content == next.content => {
                    Run { content, length: length.saturating_add(next.length) }
                }
                Some(_) => return Err(Errno::Io),
            };
            run = Some(joined);
            pieces += 1;
            // The next query begins behind it, so the rest of the range is not walked.
            let is_whole = next.length >= piece.length();
            if is_whole && pieces < MOST_PIECES { Ok(()) } else { Err(Errno::Io) }
        });
        run.ok_or(walked.err().unwrap_or(Errno::Range))
    }
}

/// Pieces that one answer about contents is made of at most. Users bound the answers that they ask
/// for, and so the pieces that are walked.
const MOST_PIECES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::topology::Topology;
    use crate::graph::Disk;
    use crate::probe::Limits;
    use std::sync::Mutex;
    use std::sync::atomic::Ordering;

    /// Memory that can be borrowed.
    struct Cells(Vec<AtomicU8>);

    /// A disk that counts its flushes, and fails them if it is given an error.
    struct Flushed {
        cells: Cells,
        fails: Option<Errno>,
        flushes: Arc<Mutex<Vec<usize>>>,
        number: usize,
    }

    impl Store for Flushed {
        fn length(&self) -> u64 {
            self.cells.length()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
            self.cells.read_at(buffer, offset)
        }

        fn flush(&self) -> Result<(), Errno> {
            self.flushes.lock().unwrap().push(self.number);
            self.fails.map_or(Ok(()), Err)
        }

        fn properties(&self) -> Properties {
            Properties { depth: 10 * (self.number + 1), ..Properties::default() }
        }

        fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
            Err(Errno::ReadOnly)
        }

        fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
            Ok(())
        }
    }

    impl Store for Cells {
        fn length(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
            let lent = self.borrow(offset, buffer.len() as u64)?.ok_or(Errno::Range)?;
            buffer
                .iter_mut()
                .zip(lent)
                .for_each(|(byte, cell)| *byte = cell.load(Ordering::Relaxed));
            Ok(())
        }

        fn properties(&self) -> Properties {
            Properties { non_blocking: true, ..Properties::default() }
        }

        fn borrow(&self, offset: u64, length: u64) -> Result<Option<&[AtomicU8]>, Errno> {
            let index = |n: u64| usize::try_from(n).map_err(|_| Errno::Range);
            let end = offset.checked_add(length).ok_or(Errno::Range)?;
            self.0.get(index(offset)?..index(end)?).map(Some).ok_or(Errno::Range)
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

    /// 1 MiB with one MBR partition of 64 KiB at 8192.
    fn disk() -> Disk {
        let mut bytes: Vec<u8> =
            (0..1_u32 << 20).map(|at: u32| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect();
        bytes[..512].fill(0);
        bytes[450] = 0x83;
        bytes[454..458].copy_from_slice(&16_u32.to_le_bytes());
        bytes[458..462].copy_from_slice(&128_u32.to_le_bytes());
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        Disk::new(
            "",
            Box::new(Cells(bytes.into_iter().map(AtomicU8::new).collect())),
            Topology::new(512, 1 << 20),
        )
    }

    /// A member of a stripe of two disks: its label is in the last sector.
    fn member(number: u8) -> Disk {
        Disk::new(format!("disk{number}"), Box::new(cells(number)), Topology::new(512, 1 << 20))
    }

    fn cells(number: u8) -> Cells {
        let mut label =
            b"GEOM::STRIPE\0\0\0\0\x03\0\0\0data\0\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0".to_vec();
        label.extend([number, 0, 2, 0, 0, 0x40, 0, 0]);
        label.extend([0; 16]);
        label.extend((1_u64 << 20).to_le_bytes());
        let mut bytes = vec![0; 1 << 20];
        bytes[(1 << 20) - 512..][..label.len()].copy_from_slice(&label);
        Cells(bytes.into_iter().map(AtomicU8::new).collect())
    }

    #[test]
    fn every_disk_is_flushed_whatever_another_says() {
        let flushes = Arc::new(Mutex::new(Vec::new()));
        let disks = [Some(Errno::NoSpace), Some(Errno::Io)].into_iter().enumerate().map(
            |(number, fails)| {
                let cells = cells(u8::try_from(number).unwrap());
                let store = Flushed { cells, fails, flushes: flushes.clone(), number };
                Disk::new(format!("disk{number}"), Box::new(store), Topology::new(512, 1 << 20))
            },
        );
        let graph = Graph::taste(disks.collect(), Limits::default());
        let set = Through::new(
            &graph,
            graph.providers.iter().position(|provider| provider.is_set).unwrap(),
        );
        assert_eq!(set.flush(), Err(Errno::NoSpace));
        assert_eq!(*flushes.lock().unwrap(), [0, 1]);
        assert_eq!((set.properties().depth, Through::new(&graph, 0).properties().depth), (20, 10));
    }

    /// A disk whose first 512 KiB are a hole, and which counts questions about that.
    struct Holey {
        cells: Cells,
        asked: Arc<Mutex<Vec<u64>>>,
        /// Bytes of an answer, at most.
        most: u64,
    }

    const HALF: u64 = 512 << 10;

    impl Store for Holey {
        fn length(&self) -> u64 {
            self.cells.length()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
            self.cells.read_at(buffer, offset)
        }

        fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
            if offset.checked_add(length).is_none_or(|end| end > self.length()) {
                return Err(Errno::Range);
            }
            self.asked.lock().unwrap().push(offset);
            let (content, end) = match offset {
                ..HALF => (Content::Hole, HALF),
                _ => (Content::Data, self.length()),
            };
            Ok(Run { content, length: length.min(end - offset).min(self.most) })
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

    /// A hole of a sparse set is as long as the disks' are together, whatever its chunks are.
    #[test]
    fn a_run_of_a_set_goes_on_over_its_chunks() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let disks = [0, 1].map(|number| {
            let store = Holey { cells: cells(number), asked: asked.clone(), most: u64::MAX };
            Disk::new(format!("disk{number}"), Box::new(store), Topology::new(512, 1 << 20))
        });
        let graph = Graph::taste(disks.into(), Limits::default());
        let set = graph.providers.iter().position(|provider| provider.is_set).unwrap();
        let set = Through::new(&graph, set);
        let length = set.length();
        let run = |content, length| Ok(Run { content, length });
        assert_eq!(set.extent(0, length), run(Content::Hole, 2 * HALF));
        assert_eq!(*asked.lock().unwrap(), [0, 0], "one question a disk");
        // It begins in the middle of a chunk, and ends where it is asked to.
        assert_eq!(set.extent(0x5000, 0x10000), run(Content::Hole, 0x10000));
        assert_eq!(set.extent(2 * HALF - 512, 1024), run(Content::Hole, 512));
        let rest = length - 2 * HALF;
        assert_eq!(set.extent(2 * HALF, rest), run(Content::Data, rest));
        assert_eq!(set.extent(length, 512), Err(Errno::Range));
        assert_eq!(set.extent(length - 512, 1024), Err(Errno::Range));
        let mut runs = Vec::new();
        let each = &mut |store, offset, length| {
            runs.push((store, offset, length));
            Ok(())
        };
        assert_eq!(set.route.runs(0x5000, 0x20000, each), Ok(()));
        // From within the second chunk, the other disk's first, into the tenth.
        assert_eq!(runs, [(1, 0x1000, 0x10000), (0, 0x4000, 0x10000)]);
    }

    /// Both members of a stripe on one disk, in partitions: the answers, one behind the other, are
    /// those of each piece by itself, whatever they begin with, and take a bounded number of
    /// questions.
    #[test]
    fn runs_of_a_set_on_one_disk_are_those_of_its_pieces() {
        // A chunk at a time, each is a question.
        [u64::MAX, 0x4000].into_iter().for_each(runs_on_one_disk);
    }

    fn runs_on_one_disk(most: u64) {
        let mut bytes = vec![0_u8; 4 << 20];
        for (number, first) in [(0_u8, 2048_u32), (1, 4096)] {
            let entry = 446 + 16 * usize::from(number);
            bytes[entry + 4] = 0xa5;
            bytes[entry + 8..entry + 12].copy_from_slice(&first.to_le_bytes());
            bytes[entry + 12..entry + 16].copy_from_slice(&2048_u32.to_le_bytes());
            let at = usize::try_from(first).unwrap() * 512;
            for (index, cell) in cells(number).0.iter().enumerate() {
                bytes[at + index] = cell.load(Ordering::Relaxed);
            }
        }
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let cells = Cells(bytes.into_iter().map(AtomicU8::new).collect());
        let store = Holey { cells, asked: asked.clone(), most };
        let disk = Disk::new("disk", Box::new(store), Topology::new(512, 4 << 20));
        let graph = Graph::taste(vec![disk], Limits::default());
        let set = graph.providers.iter().position(|provider| provider.is_set).unwrap();
        let set = Through::new(&graph, set);
        let length = set.length();
        for begin in (0..length).step_by(0x7a00) {
            let mut at = begin;
            while at < length {
                let before = asked.lock().unwrap().len();
                let run = set.extent(at, length - at).unwrap();
                assert!(run.length > 0 && run.length <= length - at, "{at}");
                // All of it lies behind the hole.
                assert_eq!(run.content, Content::Data, "{at}");
                assert!(asked.lock().unwrap().len() - before <= known_runs::MOST_QUESTIONS, "{at}");
                at += run.length;
            }
            assert_eq!(at, length);
        }
        let mut runs = Vec::new();
        let each = &mut |store, offset, length| {
            runs.push((store, offset, length));
            Ok(())
        };
        assert_eq!(set.route.runs(0, 0x20000, each), Ok(()));
        assert_eq!(runs, [(0, 1 << 20, 0x10000), (0, 2 << 20, 0x10000)]);
    }

    /// A set's bytes are in several pieces, and a mirror's are in several places.
    #[test]
    fn a_set_lends_nothing() {
        let graph = Graph::taste(vec![member(0), member(1)], Limits::default());
        let set = Through::new(
            &graph,
            graph.providers.iter().position(|provider| provider.is_set).unwrap(),
        );
        assert!(set.properties().non_blocking && set.read_at(&mut [0; 70], 0).is_ok());
        assert!(matches!(set.borrow(0, 70), Ok(None)));
    }

    fn seen(cells: Result<Option<&[AtomicU8]>, Errno>) -> Vec<u8> {
        cells.unwrap().unwrap().iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn a_partition_of_memory_lends_its_own_bytes_and_no_others() {
        let graph = Graph::taste(vec![disk()], Limits::default());
        let (whole, part) =
            (Through::new(&graph, 0), Through::new(&graph, graph.find("s1").unwrap()));
        assert!(part.properties().non_blocking);
        assert_eq!(seen(part.borrow(1000, 70)), seen(whole.borrow(9192, 70)));
        assert!(seen(part.borrow(65_536, 0)).is_empty());
        for (offset, length) in [(65_533, 4), (65_536, 1), (u64::MAX, 1), (1, u64::MAX)] {
            assert!(matches!(part.borrow(offset, length), Ok(None)), "{length} bytes at {offset}");
        }
    }
}
