//! Bounded view of one provider for a class that tastes it: read only, within a budget.

mod blind;
pub(crate) mod reach;
pub mod read_set;
pub mod unlock;
use crate::base::error::Errno;
use crate::base::patch::{Patch, lay_over};
use crate::base::store::{Sparse, Store};
use crate::base::topology::round_down;
use crate::mapping::geom::Geom;
use crate::mapping::route::{Leaf, Route};
use crate::mapping::slices::{PartitionType, Slices};
use crate::probe::reach::Reach;
use crate::probe::read_set::ReadSet;
use crate::probe::unlock::Unlock;
pub use blind::Blind;
use std::cell::{Cell, Ref, RefCell};
use std::sync::Arc;
use zerocopy::FromBytes;

/// Bytes read at once at the head of every provider: most signatures lie there.
const HEAD: u64 = 4096;
/// Size in bytes of the sectors in which everything else is read.
const SECTOR: u64 = 512;

/// Reads that are kept in mind before those of the same place are joined.
const MOST_READS: usize = 1 << 16;

/// Bounds on tasting, over all providers of one graph.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes that may be read, for each disk.
    pub bytes: u64,
    /// Bytes of maps that may be read besides, for all disks together: what sets keep on their
    /// members of the places of their bytes.
    pub maps: u64,
    /// Providers that may be made.
    pub providers: usize,
    /// Tables, sets and data areas that may lie inside each other.
    pub depth: usize,
}

impl Default for Limits {
    /// Bounds that are enough for any disk in use; tasting a hostile one stops within some
    /// milliseconds.
    fn default() -> Limits {
        Limits { bytes: 4 << 20, maps: 64 << 20, providers: 2048, depth: 16 }
    }
}

/// The rest of [`Limits::bytes`], and a record of the reads that spent the other part.
#[derive(Clone, Debug)]
pub struct Budget {
    left: Cell<u64>,
    maps: Cell<u64>,
    spent: Cell<u64>,
    /// Store, first byte and length in bytes of every read, failed ones included.
    read: RefCell<Vec<(usize, u64, u64)>>,
}

impl Budget {
    /// A full budget of `limits.bytes` bytes.
    pub fn new(limits: Limits) -> Budget {
        let (left, maps) = (Cell::new(limits.bytes), Cell::new(limits.maps));
        Budget { left, maps, spent: Cell::new(0), read: RefCell::default() }
    }

    /// Bytes read so far.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Places that were read on the first `stores` stores.
    pub fn read_set(&self, stores: usize) -> ReadSet {
        ReadSet::at(stores, &self.read.borrow())
    }

    /// Fills `buffer` from `offset` of `route`, and notes every place that was asked for it: where
    /// one failed, those that the read turned to are among them.
    fn read(
        &self,
        route: &Route,
        stores: &[Box<dyn Store>],
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), Errno> {
        route.read_through(&Noted { stores, read: &self.read }, buffer, offset)
    }

    /// Takes `bytes` that were read of maps; all that is left, where that is less.
    fn spend_map(&self, bytes: u64) -> bool {
        let left = self.maps.get();
        self.maps.set(left.saturating_sub(bytes));
        bytes <= left
    }

    fn take(&self, bytes: u64) -> bool {
        let enough = self.left.get() >= bytes;
        if enough {
            self.left.set(self.left.get() - bytes);
            self.spent.set(self.spent.get() + bytes);
        }
        enough
    }
}

/// Stores whose reads are noted.
struct Noted<'a> {
    stores: &'a [Box<dyn Store>],
    /// Store, first byte and length in bytes of every read.
    read: &'a RefCell<Vec<(usize, u64, u64)>>,
}

impl Leaf for Noted<'_> {
    fn read(&self, store: usize, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let mut read = self.read.borrow_mut();
        read.push((store, offset, buffer.len() as u64));
        // Sets within sets, each with a disk missing, may take the same bytes again and again.
        if read.len() >= MOST_READS && read.len().is_power_of_two() {
            read.sort_unstable();
            read.dedup();
        }
        self.stores.get(store).ok_or(Errno::NoDevice)?.read_at(buffer, offset)
    }
}

/// One provider, as a class sees it.
pub struct Probe<'a> {
    route: &'a Route,
    stores: &'a [Box<dyn Store>],
    budget: &'a Budget,
    sector: u64,
    start: Option<u64>,
    kind: Option<&'a PartitionType>,
    keys: Option<&'a dyn Unlock>,
    /// Writes that are planned, seen as if they were done.
    planned: Vec<Patch>,
    seen: RefCell<Vec<(u64, Vec<u8>)>>,
    blind: Cell<Option<Blind>>,
    /// Places in which labels are looked for where each read is a round trip.
    reach: Cell<Reach>,
}

impl<'a> Probe<'a> {
    /// A probe of the provider that `route` leads to. `start` is its first byte on the medium, if
    /// it has one place there; `kind` is its type in the table above.
    pub fn new(
        route: &'a Route,
        stores: &'a [Box<dyn Store>],
        budget: &'a Budget,
        sector: u64,
        start: Option<u64>,
        kind: Option<&'a PartitionType>,
    ) -> Probe<'a> {
        Probe {
            route,
            stores,
            budget,
            sector,
            start,
            kind,
            keys: None,
            planned: Vec::new(),
            seen: RefCell::default(),
            blind: Cell::new(None),
            reach: Cell::new(Reach::Near),
        }
    }

    /// The same, with keys to encrypted volumes.
    #[must_use]
    pub fn with_keys(self, keys: Option<&'a dyn Unlock>) -> Probe<'a> {
        Probe { keys, ..self }
    }

    /// The same provider as it will be once `patches` are written.
    #[must_use]
    pub fn after(&self, patches: &[Patch]) -> Probe<'a> {
        let planned = self.planned.iter().chain(patches).cloned().collect();
        Probe {
            planned,
            keys: self.keys,
            ..Probe::new(self.route, self.stores, self.budget, self.sector, self.start, self.kind)
        }
    }

    /// The route of the `length` bytes at `start`, for [`Probe::within`].
    pub fn route_within(&self, start: u64, length: u64) -> Route {
        let slice: Arc<dyn Geom> = Arc::new(Slices::data_area(start, length));
        Route::new(&slice, 0, length, std::slice::from_ref(self.route))
    }

    /// A probe of the partition at byte `start`, of the type `kind`; `route` leads to it.
    pub fn within<'b>(
        &'b self,
        route: &'b Route,
        start: u64,
        kind: &'b PartitionType,
    ) -> Probe<'b> {
        let cut = |patch: &Patch| {
            let from = usize::try_from(start.saturating_sub(patch.offset)).ok()?;
            let bytes = patch.bytes.get(from..).filter(|b| !b.is_empty())?.to_vec();
            Some(Patch { offset: patch.offset.saturating_sub(start), bytes, ..patch.clone() })
        };
        let planned = self.planned.iter().filter_map(cut).collect();
        let medium = self.start.map(|s| s.saturating_add(start));
        Probe {
            planned,
            keys: self.keys,
            ..Probe::new(route, self.stores, self.budget, self.sector, medium, Some(kind))
        }
    }

    /// Length of the provider in bytes.
    pub fn length(&self) -> u64 {
        self.route.length()
    }

    /// Logical sector in bytes; at least 1.
    pub fn sector(&self) -> u64 {
        self.sector
    }

    /// The provider's first byte on the medium; `None` where it has no single place, as on a
    /// stripe.
    pub fn start(&self) -> Option<u64> {
        self.start
    }

    /// Type in the table above; `None` for a disk or a set.
    pub fn kind(&self) -> Option<&PartitionType> {
        self.kind
    }

    /// Keys to encrypted volumes; `None` where none were given.
    pub fn keys(&self) -> Option<&'a dyn Unlock> {
        self.keys
    }

    /// True where each read is a round trip to a server: few entries of a container's table are
    /// looked at, and labels that nothing leads to are looked for near the ends alone.
    pub fn is_far(&self) -> bool {
        self.stores.iter().any(|store| store.properties().is_far)
    }

    /// True for a whole medium, and not for a part of one or a set.
    pub(crate) fn is_medium(&self) -> bool {
        self.kind.is_none() && self.stores.iter().any(|store| store.length() == self.length())
    }

    /// True if a label at `offset` is looked for although nothing leads to it.
    pub fn reaches(&self, offset: u64) -> bool {
        !self.is_far() || self.reach.get().contains(offset, self.length(), self.kind.is_some())
    }

    /// Has labels looked for in those places from now on.
    pub(crate) fn set_reach(&self, reach: Reach) {
        self.reach.set(reach);
    }

    /// First reason for which something could not be read; `None` if all reads succeeded.
    pub fn blind(&self) -> Option<Blind> {
        self.blind.get()
    }

    /// The `length` bytes at `offset`; `None` past the end, where the medium fails, or when the
    /// budget is spent.
    pub fn bytes(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        self.shown(offset, length).map(|bytes| bytes.to_vec())
    }

    /// Bytes as [`Probe::bytes`] has them, without a copy.
    fn shown(&self, offset: u64, length: usize) -> Option<Ref<'_, [u8]>> {
        let end = offset.checked_add(length as u64).filter(|&end| end <= self.length())?;
        if let Some(found) = self.cached(offset, end) {
            return Some(found);
        }
        let head = end <= HEAD;
        let from = if head { 0 } else { round_down(offset, SECTOR) };
        let to = if head { HEAD } else { end.div_ceil(SECTOR).saturating_mul(SECTOR) }
            .min(self.length());
        if !self.budget.take(to - from) {
            self.note(Blind::Budget);
            return None;
        }
        // What a read takes of tables and compressed blocks is known once it is done: the last one
        // may take more than is left.
        if self.budget.maps.get() == 0 && self.route.has_tables() {
            self.note(Blind::Budget);
            return None;
        }
        let before = self.route.effort();
        let mut data = vec![0; usize::try_from(to - from).ok()?];
        let read = self.budget.read(self.route, self.stores, &mut data, from);
        if !self.budget.spend_map(self.route.effort().saturating_sub(before)) {
            self.note(Blind::Budget);
            return None;
        }
        match read {
            Ok(()) => {
                lay_over(&self.planned, from, &mut data);
                self.seen.borrow_mut().push((from, data));
            }
            Err(errno) => {
                self.note(Blind::Unreadable(from, errno));
                return None;
            }
        }
        self.cached(offset, end)
    }

    /// Fills `buffer` from `offset` with a part of a map, within [`Limits::maps`] and without a
    /// copy kept: the reader of a map keeps it. An error is the reason for which it cannot be seen.
    pub fn map(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Blind> {
        let length = buffer.len() as u64;
        let failed = |errno| Blind::Unreadable(offset, errno);
        if offset.checked_add(length).is_none_or(|end| end > self.length()) {
            return Err(failed(Errno::Range));
        }
        self.budget.maps.set(self.budget.maps.get().checked_sub(length).ok_or(Blind::Budget)?);
        self.budget.read(self.route, self.stores, buffer, offset).map_err(failed)?;
        lay_over(&self.planned, offset, buffer);
        Ok(())
    }

    /// A probe of what `route`, over this provider or any other of the same disks, leads to.
    pub fn over<'b>(&self, route: &'b Route) -> Probe<'b>
    where
        'a: 'b,
    {
        Probe::new(route, self.stores, self.budget, self.sector, None, None).with_keys(self.keys)
    }

    /// The route to the provider's bytes.
    pub fn route(&self) -> &'a Route {
        self.route
    }

    /// Fills `buffer` from `offset`, as [`Probe::bytes`] reads; every failure is [`Errno::Io`].
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        buffer.copy_from_slice(&self.bytes(offset, buffer.len()).ok_or(Errno::Io)?);
        Ok(())
    }

    /// Fills `buffer` from `offset` with the contents that [`Probe::bytes`] would show, outside the
    /// budget and without a copy kept: for a command that is about to write, not for tasting.
    pub fn look(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        self.route.read_at(self.stores, buffer, offset)?;
        lay_over(&self.planned, offset, buffer);
        Ok(())
    }

    /// An on-disk structure at `offset`, read as [`Probe::bytes`] reads.
    pub fn read<T: FromBytes>(&self, offset: u64) -> Option<T> {
        T::read_from_bytes(&self.shown(offset, size_of::<T>())?).ok()
    }

    /// True if `magic` stands at `offset` and could be read.
    pub fn has(&self, offset: u64, magic: &[u8]) -> bool {
        self.shown(offset, magic.len()).is_some_and(|found| *found == *magic)
    }

    /// Offset of the byte `distance` bytes before the end; `None` if the provider is shorter.
    pub fn from_end(&self, distance: u64) -> Option<u64> {
        self.length().checked_sub(distance)
    }

    /// Everything read so far, on a disk otherwise zero.
    pub fn seen(&self) -> Sparse {
        let mut seen = Sparse::new(self.length());
        self.seen.borrow().iter().for_each(|(at, bytes)| seen.put(*at, bytes));
        seen
    }

    /// Offset of the first byte from `from` on that is not zero, among everything read so far.
    pub(crate) fn written(&self, from: u64) -> Option<u64> {
        let seen = self.seen.borrow();
        let first = |(at, data): &(u64, Vec<u8>)| {
            let skipped = usize::try_from(from.saturating_sub(*at)).unwrap_or(usize::MAX);
            let index = first_written(data.get(skipped..)?)? + skipped;
            at.checked_add(index as u64)
        };
        seen.iter().filter_map(first).min()
    }

    fn cached(&self, offset: u64, end: u64) -> Option<Ref<'_, [u8]>> {
        let found = Ref::filter_map(self.seen.borrow(), |seen| {
            let (at, data) =
                seen.iter().find(|(at, data)| *at <= offset && end <= at + data.len() as u64)?;
            let from = usize::try_from(offset - at).ok()?;
            let length = usize::try_from(end - offset).ok()?;
            data.get(from..from + length)
        });
        found.ok()
    }

    fn note(&self, blind: Blind) {
        if self.blind.get().is_none() {
            self.blind.set(Some(blind));
        }
    }
}

/// Index of the first byte that is not zero.
fn first_written(bytes: &[u8]) -> Option<usize> {
    // Whole blocks are compared at once: nearly all of what is looked at is zero.
    const BLOCK: usize = 64;
    let zeros = bytes.chunks_exact(BLOCK).take_while(|block| **block == [0; BLOCK]).count();
    let rest = zeros * BLOCK;
    bytes.get(rest..)?.iter().position(|&byte| byte != 0).map(|index| rest + index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::topology::Topology;
    use crate::mapping::geom::{Extent, Op, ReadConsumer, Slot};

    /// Two copies, or where `is_parity` is true one disk of which the other can make what it
    /// cannot say.
    struct Pair {
        is_parity: bool,
    }

    impl Geom for Pair {
        fn providers(&self) -> Vec<Slot> {
            vec![Slot { name: "pair".into(), length: 1 << 20, kind: None }]
        }

        fn topology(&self, _slot: usize, _below: &[Topology]) -> Topology {
            Topology::new(512, 1 << 20)
        }

        fn map(&self, _slot: usize, offset: u64, length: u64, _op: Op) -> Extent {
            match self.is_parity {
                true => Extent::At { consumer: 0, offset, length },
                false => Extent::Copies { count: 2, length },
            }
        }

        fn rebuild(
            &self,
            _slot: usize,
            offset: u64,
            buffer: &mut [u8],
            read: &mut ReadConsumer<'_>,
        ) -> Result<(), Errno> {
            read(1, buffer, offset)
        }
    }

    #[test]
    fn places_that_a_read_turns_to_after_an_error_are_noted() {
        let below = [Route::store(0, 1 << 20), Route::store(1, 1 << 20)];
        for is_parity in [false, true] {
            let pair: Arc<dyn Geom> = Arc::new(Pair { is_parity });
            let route = Route::new(&pair, 0, 1 << 20, &below);
            // A disk that ends early fails past its end.
            let stores: [Box<dyn Store>; 2] =
                [Box::new(Sparse::new(64 << 10)), Box::new(Sparse::new(1 << 20))];
            let budget = Budget::new(Limits::default());
            let probe = Probe::new(&route, &stores, &budget, 512, None, None);
            assert!(probe.bytes(32 << 10, 512).is_some());
            assert!(probe.bytes(128 << 10, 512).is_some());
            assert_eq!(probe.map(256 << 10, &mut [0; 512]), Ok(()));
            let looked = budget.read_set(2);
            let at = |store, kib: u64| looked.is_at(store, kib << 10, 512);
            assert!(at(0, 32) && !at(1, 32), "{is_parity}");
            assert!(at(0, 128) && at(1, 128), "{is_parity}");
            assert!(at(0, 256) && at(1, 256), "{is_parity}");
        }
    }

    #[test]
    fn the_first_byte_that_is_written_is_found() {
        for length in [0, 1, 63, 64, 65, 200] {
            let mut bytes = vec![0; length];
            assert_eq!(first_written(&bytes), None);
            for at in (0..length).rev() {
                bytes[at] = 1;
                assert_eq!(first_written(&bytes), Some(at));
            }
        }
    }
}
