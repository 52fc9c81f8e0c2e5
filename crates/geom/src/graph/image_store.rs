//! The disk in a qcow2 as a store that is written: clusters are taken from the end of the file, and
//! tables follow in an order that survives a loss of power at any moment.
//!
//! # Order
//! Data and refcounts are written at once, or before anything else; entries that lead to them stay
//! in memory until a flush. A flush writes, with a flush of the file behind each step: refcounts
//! and tables that nothing leads to yet; entries of the refcount table; entries that lead to data
//! and tables. Refcounts of what is not used any more are lowered last. So at any moment an entry
//! in the file leads to what is there and has a refcount, and the worst that is left is a cluster
//! that nothing leads to.
//!
//! Requests to clusters that are there wait for no others. One request at a time takes clusters.

use super::provider_store::Through;
use super::{Graph, Id};
use crate::base::error::Errno;
use crate::base::store::Store;
use crate::class::qcow2::KIND;
use crate::class::qcow2::check::{Checked, check};
use crate::class::qcow2::image::{Image, Room, Spot};
use crate::class::qcow2::pages::{Halt, Rank};
use crate::class::qcow2::writing::{Layout, NotWritable, layout};
use crate::mapping::geom::Packed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod requests;

/// Questions about pages that one answer may take.
const MOST_ASKED: usize = 1 << 12;
/// Zeros that are written at once where a cluster has to be made for them.
const ZEROS: u64 = 1 << 20;

/// The disk in a qcow2, for reading and writing.
pub struct ImageStore {
    stores: Arc<[Box<dyn Store>]>,
    /// Index of the file's store.
    file: usize,
    /// The disk that has what the file does not have.
    parent: Option<Through>,
    length: u64,
    cluster: u64,
    /// Changed by one request at a time: locked for as long as that takes.
    order: Mutex<()>,
    /// Locked for one question.
    image: Mutex<Image>,
    /// The compressed cluster that was unpacked last, and its place.
    unpacked: Mutex<Option<(u64, Arc<[u8]>)>>,
    is_checked: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An index into bytes that are in memory, so it fits.
fn index(n: u64) -> Result<usize, Errno> {
    usize::try_from(n).map_err(|_| Errno::Range)
}

impl ImageStore {
    /// The disk that provider `id` of a graph is, the contents of a qcow2.
    ///
    /// Errors: the reason for which it is not written.
    pub fn open(graph: &Graph, id: Id) -> Result<ImageStore, NotWritable> {
        let no = |reason| Err(NotWritable::Reason(reason));
        let contents = &graph.providers[id];
        if contents.class != KIND.name {
            return no("of containers, a qcow2 alone is written");
        }
        let Some((&own, beneath)) = contents.parents.split_first() else {
            return no("its file is not here");
        };
        let image = &graph.providers[own];
        if image.is_backing {
            return no("another image stands on it");
        }
        let stores = graph.shared_stores();
        let route = image.route();
        let whole = route.medium().filter(|_| route.base() == 0);
        let whole = whole.and_then(|at| stores.get(at).map(|store| (at, store)));
        let Some((file, store)) = whole.filter(|(_, file)| file.length() == route.length()) else {
            return no("its file is not a whole disk or file");
        };
        let layout = layout(&graph.probe(own))?;
        let (length, cluster) = (store.length(), layout.cluster());
        let mut read = |bytes: &mut [u8], at| read_padded(&**store, bytes, at);
        let checked = check(&layout, length, &mut read)?;
        let grows = store.grow(length).is_ok();
        let (end, limit) = match checked {
            _ if grows => (length, i64::MAX.unsigned_abs()),
            Checked::Whole(end) => (end, length),
            Checked::TooLarge => {
                return no("its tables are too large to find where its device is free");
            }
        };
        if end >= limit {
            return no("its file cannot grow");
        }
        Ok(ImageStore {
            parent: beneath.first().map(|&parent| Through::new(graph, parent)),
            length: layout.length,
            cluster,
            order: Mutex::new(()),
            image: Mutex::new(Image::new(layout, end, limit)),
            unpacked: Mutex::new(None),
            is_checked: checked != Checked::TooLarge,
            stores,
            file,
        })
    }

    /// True if all refcounts were counted anew before the first write; false where the tables are
    /// too large for that.
    pub fn is_checked(&self) -> bool {
        self.is_checked
    }

    fn file(&self) -> Result<&dyn Store, Errno> {
        self.stores.get(self.file).map(|store| &**store).ok_or(Errno::NoDevice)
    }

    /// The answer of the image, after the pages that it wants were read.
    fn ask<T>(&self, mut question: impl FnMut(&mut Image) -> Result<T, Halt>) -> Result<T, Errno> {
        for _ in 0..MOST_ASKED {
            let (halt, size, sweeps) = {
                let mut image = lock(&self.image);
                match question(&mut image) {
                    Ok(answer) => return Ok(answer),
                    Err(halt) => (halt, image.page_size(), image.sweeps()),
                }
            };
            let mut bytes = vec![0; index(size)?];
            match halt {
                Halt::Failed(errno) => return Err(errno),
                Halt::Page(at) => {
                    read_padded(self.file()?, &mut bytes, at)?;
                    lock(&self.image).insert(at, bytes, sweeps);
                }
                Halt::Hole(at) => {
                    self.reach(at, at + size)?;
                    self.file()?.write_at(&bytes, at)?;
                    lock(&self.image).fill_hole(at);
                }
            }
        }
        Err(Errno::Io)
    }

    /// The place of the cluster with byte `offset`, and the bytes that go on from there.
    fn find(&self, offset: u64, length: u64) -> Result<(Spot, u64), Errno> {
        self.ask(|image| image.find(offset, length))
    }

    /// Calls `each` with every run of a range: bytes before it, first byte, place, bytes.
    fn visit(
        &self,
        offset: u64,
        length: u64,
        each: &mut dyn FnMut(u64, u64, Spot, u64) -> Result<u64, Errno>,
    ) -> Result<(), Errno> {
        offset.checked_add(length).filter(|&end| end <= self.length).ok_or(Errno::Range)?;
        let mut done = 0;
        while done < length {
            let (place, run) = self.find(offset + done, length - done)?;
            let took = each(done, offset + done, place, run)?;
            done += if (1..=run).contains(&took) { took } else { return Err(Errno::Io) };
        }
        Ok(())
    }

    /// Byte of the file that has byte `offset`, given the place of its cluster.
    fn within(&self, at: u64, offset: u64) -> Result<u64, Errno> {
        at.checked_add(offset % self.cluster).ok_or(Errno::Range)
    }

    /// Fills `part` from `offset`, a run of one place.
    fn read_run(&self, part: &mut [u8], offset: u64, place: Spot) -> Result<(), Errno> {
        match place {
            Spot::Own(at) | Spot::Shared(at) => {
                self.file()?.read_at(part, self.within(at, offset)?)
            }
            Spot::Cleared(_) | Spot::Zero => {
                part.fill(0);
                Ok(())
            }
            Spot::Absent => self.read_parent(part, offset),
            Spot::Packed(packed) => {
                let block = self.unpacked(packed)?;
                let from = index(offset % self.cluster)?;
                let bytes = from.checked_add(part.len()).and_then(|end| block.get(from..end));
                part.copy_from_slice(bytes.ok_or(Errno::Io)?);
                Ok(())
            }
        }
    }

    /// Fills `part` from `offset` of the parent; behind its end, and without one, are zeros.
    fn read_parent(&self, part: &mut [u8], offset: u64) -> Result<(), Errno> {
        let end = self.parent.as_ref().map_or(0, Store::length);
        let here = end.saturating_sub(offset).min(part.len() as u64);
        let (own, behind) = part.split_at_mut(index(here)?);
        behind.fill(0);
        match &self.parent {
            Some(parent) if !own.is_empty() => parent.read_at(own, offset),
            _ => Ok(()),
        }
    }

    /// A compressed cluster, unpacked.
    fn unpacked(&self, packed: Packed) -> Result<Arc<[u8]>, Errno> {
        let last = lock(&self.unpacked).clone();
        if let Some((_, block)) = last.filter(|(at, _)| *at == packed.offset) {
            return Ok(block);
        }
        let file = self.file()?;
        let stored = packed.stored.min(file.length().saturating_sub(packed.offset));
        let (mut bytes, mut block) = (vec![0; index(stored)?], vec![0; index(packed.size)?]);
        file.read_at(&mut bytes, packed.offset)?;
        packed.packing.unpack(&bytes, &mut block)?;
        let block: Arc<[u8]> = block.into();
        *lock(&self.unpacked) = Some((packed.offset, block.clone()));
        Ok(block)
    }

    /// Makes the file at least `end` bytes long. True if all from `from` on is new, and zero.
    fn reach(&self, from: u64, end: u64) -> Result<bool, Errno> {
        let file = self.file()?;
        let length = file.length();
        if end > length {
            file.grow(end)?;
        }
        Ok(from >= length)
    }

    /// Takes up to `most` clusters: first byte, their number, and if all of them are zero.
    fn allocate(&self, most: u64) -> Result<(u64, u64, bool), Errno> {
        loop {
            match self.ask(|image| image.allocate(most))? {
                Room::Block(at) => {
                    if !self.reach(at, at + self.cluster)? {
                        self.file()?.zero(at, self.cluster)?;
                    }
                    self.ask(|image| image.add_block(at))?;
                }
                Room::Table => self.lengthen_table()?,
                Room::Clusters(first, count) => {
                    let end = first + count * self.cluster;
                    let is_zero = self.reach(first, end);
                    return match is_zero {
                        Ok(is_zero) => Ok((first, count, is_zero)),
                        Err(errno) => Err(self.give_back(first, count, errno)),
                    };
                }
            }
        }
    }

    /// Makes a refcount table that is longer, and has the header lead to it.
    fn lengthen_table(&self) -> Result<(), Errno> {
        // The old one is copied as it is in the file.
        self.commit()?;
        let (file, longer) = (self.file()?, self.ask(|image| image.longer_table())?);
        let length = (longer.clusters + 1) * self.cluster;
        if !self.reach(longer.block, longer.block + length)? {
            file.zero(longer.block, length)?;
        }
        let (old, length) = longer.old;
        let mut bytes = vec![0; index(length)?];
        read_padded(file, &mut bytes, old)?;
        file.write_at(&bytes, longer.table)?;
        self.ask(|image| image.fill_table(longer))?;
        self.write_pages(Rank::Leaf)?;
        file.flush()?;
        lock(&self.image).settle(Rank::Leaf);
        let (at, words) = Layout::refcount_table(longer.table, longer.clusters);
        let led = file.write_at(&words, at).and_then(|()| file.flush());
        match led {
            Ok(()) => lock(&self.image).use_table(longer),
            Err(_) => lock(&self.image).stop(),
        }
        led
    }

    /// Gives back clusters that could not be used because of `errno`.
    fn give_back(&self, first: u64, count: u64, errno: Errno) -> Errno {
        // A failure leaves clusters that nothing leads to, as a loss of power would.
        let _ = self.ask(|image| image.give_back(first, count));
        errno
    }

    /// Makes a table for the entry of the cluster with byte `offset`, if there is none.
    fn make_entry(&self, offset: u64) -> Result<(), Errno> {
        if self.ask(|image| image.has_entry(offset))? {
            return Ok(());
        }
        let (at, _, is_zero) = self.allocate(1)?;
        let zeroed = if is_zero { Ok(()) } else { self.file()?.zero(at, self.cluster) };
        let made = zeroed.and_then(|()| self.ask(|image| image.add_table(offset, at)));
        made.map_err(|errno| self.give_back(at, 1, errno))
    }

    /// Writes the first bytes of `bytes` at `offset`, into clusters that are made for them where
    /// there are none; how many.
    fn write_new(&self, bytes: &[u8], offset: u64) -> Result<u64, Errno> {
        let _order = lock(&self.order);
        if lock(&self.image).is_full() {
            self.commit()?;
        }
        // As it is now: another request may have made the cluster.
        let (place, run) = self.find(offset, bytes.len() as u64)?;
        let part = |length| bytes.get(..index(length)?).ok_or(Errno::Range);
        let within = offset % self.cluster;
        let in_page = lock(&self.image).in_page(offset);
        let run = run.min(in_page * self.cluster - within);
        let (first, count, is_zero, own) = match place {
            Spot::Own(at) => {
                self.file()?.write_at(part(run)?, self.within(at, offset)?)?;
                return Ok(run);
            }
            // Refcounts of an image that was checked never let this be.
            Spot::Shared(_) => return Err(Errno::ReadOnly),
            Spot::Cleared(at) => (at, (within + run).div_ceil(self.cluster), false, true),
            Spot::Zero | Spot::Absent | Spot::Packed(_) => {
                self.make_entry(offset)?;
                let (first, count, is_zero) =
                    self.allocate((within + run).div_ceil(self.cluster))?;
                (first, count, is_zero, false)
            }
        };
        let run = run.min(count * self.cluster - within);
        let done = self
            .fill(part(run)?, offset, place, first, is_zero)
            .and_then(|()| self.ask(|image| image.point(offset, count, first)));
        match done {
            Ok(()) => Ok(run),
            Err(errno) if own => Err(errno),
            Err(errno) => Err(self.give_back(first, count, errno)),
        }
    }

    /// Fills the clusters from byte `first` of the file on with `bytes`, the first of which belongs
    /// to `offset`, and around them with what was there: at `place`.
    fn fill(
        &self,
        bytes: &[u8],
        offset: u64,
        place: Spot,
        first: u64,
        is_zero: bool,
    ) -> Result<(), Errno> {
        let file = self.file()?;
        let begin = offset % self.cluster;
        let end = begin + bytes.len() as u64;
        let whole = end.next_multiple_of(self.cluster);
        for (from, to) in [(0, begin), (end, whole)] {
            if from == to {
                continue;
            }
            // What lies behind the end of the disk is zero.
            let guest = offset - begin + from;
            let here = if self.is_zero(place) { 0 } else { self.length.saturating_sub(guest) };
            let here = here.min(to - from);
            let mut old = vec![0; index(here)?];
            if here > 0 {
                self.read_run(&mut old, guest, place)?;
                file.write_at(&old, first + from)?;
            }
            if here < to - from && !is_zero {
                file.zero(first + from + here, to - from - here)?;
            }
        }
        file.write_at(bytes, first + begin)
    }

    /// True for a place that reads as zeros.
    fn is_zero(&self, place: Spot) -> bool {
        match place {
            Spot::Cleared(_) | Spot::Zero => true,
            Spot::Absent => self.parent.is_none(),
            Spot::Own(_) | Spot::Shared(_) | Spot::Packed(_) => false,
        }
    }

    /// Makes the first bytes of `length` at `offset` zero, which are not zero and have no place of
    /// their own; how many.
    fn zero_new(&self, offset: u64, length: u64) -> Result<u64, Errno> {
        let (within, whole) = (offset % self.cluster, length / self.cluster);
        // The last cluster of a disk may be cut.
        let whole = if offset + length == self.length && within == 0 {
            length.div_ceil(self.cluster)
        } else {
            whole
        };
        let order = lock(&self.order);
        let can_clear = lock(&self.image).can_clear();
        if !can_clear || within != 0 || whole == 0 {
            drop(order);
            let length = length.min(ZEROS).min(self.cluster - within);
            return self.write_new(&vec![0; index(length)?], offset);
        }
        if lock(&self.image).is_full() {
            self.commit()?;
        }
        let (place, run) = self.find(offset, length)?;
        match place {
            Spot::Absent | Spot::Packed(_) => {}
            Spot::Cleared(_) | Spot::Zero => return Ok(run),
            Spot::Own(_) | Spot::Shared(_) => {
                drop(order);
                return self.write_new(&vec![0; index(run.min(ZEROS))?], offset);
            }
        }
        let count = run.div_ceil(self.cluster).min(whole).min(lock(&self.image).in_page(offset));
        self.make_entry(offset)?;
        self.ask(|image| image.clear(offset, count))?;
        Ok((count * self.cluster).min(length))
    }

    /// Writes the changed pages of a rank.
    fn write_pages(&self, rank: Rank) -> Result<bool, Errno> {
        let pages = lock(&self.image).changed(rank);
        let file = self.file()?;
        for (at, bytes) in &pages {
            self.reach(*at, at + bytes.len() as u64)?;
            file.write_at(bytes, *at)?;
        }
        Ok(!pages.is_empty())
    }

    /// Brings all changes to the medium, in their order.
    fn commit(&self) -> Result<(), Errno> {
        let file = self.file()?;
        self.write_pages(Rank::Leaf)?;
        file.flush()?;
        lock(&self.image).settle(Rank::Leaf);
        for rank in [Rank::Root, Rank::Link] {
            if self.write_pages(rank)? {
                file.flush()?;
                lock(&self.image).settle(rank);
            }
        }
        // Room that is free from now on: it may as well be free later.
        self.ask(Image::settle_freed)?;
        self.write_pages(Rank::Leaf).map(drop)
    }
}

/// Fills `bytes` from `at`; behind the end of the file are zeros.
fn read_padded(file: &dyn Store, bytes: &mut [u8], at: u64) -> Result<(), Errno> {
    let here = file.length().saturating_sub(at).min(bytes.len() as u64);
    let (own, behind) = bytes.split_at_mut(index(here)?);
    behind.fill(0);
    if own.is_empty() { Ok(()) } else { file.read_at(own, at) }
}
