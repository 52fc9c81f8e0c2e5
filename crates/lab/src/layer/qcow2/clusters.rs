//! Places of the guest's clusters in the image file: `block/qcow2-cluster.c`.

use super::cache::Which;
use super::refcounts::Refcounts;
use super::{Geometry, up};
use std::collections::BTreeMap;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::round_down;

/// Bytes of an entry of the L1 table.
const L1_ENTRY: u64 = 8;

/// An L2 table: its offset, and for each cluster of the guest the one of the file, 0 if there is
/// none, and the subclusters that hold data.
struct Table {
    place: u64,
    clusters: Vec<u64>,
    /// Empty where clusters have no subclusters.
    filled: Vec<u32>,
}

/// The state of a range of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Data of the image, from this offset of the file on.
    Data(u64),
    /// No data of the image, in a cluster that has this offset of the file.
    Placed(u64),
    /// No cluster of the image.
    Absent,
}

/// Clusters that a write makes or fills: what beside its own data goes there, and what changes in
/// the L2 table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allocation {
    /// The offset of the first cluster, as the guest sees it.
    pub(super) guest: u64,
    /// The offset of the first cluster in the file.
    pub(super) host: u64,
    clusters: u64,
    /// The range before the data that is copied, in bytes from the first cluster.
    pub(super) head: (u64, u64),
    /// The range behind the data that is copied.
    pub(super) tail: (u64, u64),
}

/// A part of a write that is one range of the file.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub(super) guest: u64,
    pub(super) host: u64,
    pub(super) length: u64,
    /// The latest first, as QEMU lists them.
    pub(super) allocations: Vec<Allocation>,
}

/// The L1 table and the L2 tables over the counts of clusters.
pub(super) struct Clusters {
    pub(super) counts: Refcounts,
    geometry: Geometry,
    /// The cluster of the L1 table.
    l1: u64,
    tables: BTreeMap<u64, Table>,
}

impl Clusters {
    /// The tables of an image of `size` bytes that has no data.
    pub(super) fn new(
        mut counts: Refcounts,
        geometry: Geometry,
        size: u64,
    ) -> Result<Clusters, Errno> {
        let bytes = geometry.l1_entries(size) * L1_ENTRY;
        let l1 = counts.allocate(bytes.div_ceil(geometry.cluster))?;
        counts.caches.file.write(l1 * geometry.cluster, bytes)?;
        Ok(Clusters { counts, geometry, l1, tables: BTreeMap::new() })
    }

    /// Uses the L2 table of an offset. Where there is none, one is made (`l2_allocate`).
    fn load(&mut self, guest: u64) -> Result<&mut Table, Errno> {
        let (index, _) = self.geometry.table_of(guest);
        if !self.tables.contains_key(&index) {
            let Geometry { cluster, slice, .. } = self.geometry;
            let place = self.counts.allocate(1)? * cluster;
            let caches = &mut self.counts.caches;
            caches.flush(Which::Blocks)?;
            for nth in 0..cluster.div_ceil(slice) {
                caches.create(Which::Tables, place + nth * slice)?;
            }
            caches.flush(Which::Tables)?;
            // The entries of the L1 table that fill a unit of the file's alignment.
            let unit = self.geometry.alignment.max(L1_ENTRY);
            let at = round_down(index * L1_ENTRY, unit);
            caches.file.write_sync(self.l1 * cluster + at, unit)?;
            self.tables.insert(index, self.geometry.empty_table(place));
        }
        let table = self.tables.get_mut(&index).ok_or(Errno::Io)?;
        self.counts.caches.get(Which::Tables, table.place + self.geometry.slice_of(guest))?;
        Ok(table)
    }

    /// The state of the guest's bytes from `guest` on, and how many of up to `length` have it, side
    /// by side in the file (`qcow2_get_host_offset`). It ends where its slice of the L2 table ends.
    pub(super) fn state(&mut self, guest: u64, length: u64) -> Result<(State, u64), Errno> {
        let geometry = self.geometry;
        let (index, _) = geometry.table_of(guest);
        let bytes = geometry.entries_per_slice() * geometry.cluster;
        let length = length.min(bytes - (guest - round_down(guest, bytes)));
        let Some(table) = self.tables.get(&index) else { return Ok((State::Absent, length)) };
        self.counts.caches.get(Which::Tables, table.place + geometry.slice_of(guest))?;
        let state = table.state(&geometry, guest);
        let mut end = round_down(guest, geometry.part) + geometry.part;
        while end < guest + length && table.state(&geometry, end) == state.after(end - guest) {
            end += geometry.part;
        }
        Ok((state, length.min(end - guest)))
    }

    /// The part of a write from its begin on that is one range of the file, with the clusters that
    /// it makes (`qcow2_alloc_host_offset`).
    pub(super) fn place(&mut self, guest: u64, length: u64) -> Result<Extent, Errno> {
        let mut extent = Extent { guest, host: 0, length: 0, allocations: Vec::new() };
        while extent.length < length {
            let at = guest + extent.length;
            // The place in the file that goes on the range, if there is one yet.
            let next = (extent.length > 0).then_some(extent.host + extent.length);
            let Some((host, more)) = self.place_some(at, length, guest, next, &mut extent)? else {
                break;
            };
            if next.is_none() {
                extent.host = host;
            }
            extent.length += more;
        }
        Ok(extent)
    }

    fn place_some(
        &mut self,
        at: u64,
        length: u64,
        guest: u64,
        next: Option<u64>,
        extent: &mut Extent,
    ) -> Result<Option<(u64, u64)>, Errno> {
        let geometry = self.geometry;
        let cluster = geometry.cluster;
        let (_, first) = geometry.table_of(at);
        let within = at - round_down(at, cluster);
        let wanted = (within + (guest + length - at)).div_ceil(cluster);
        let per_slice = geometry.entries_per_slice();
        let rest = per_slice - (first as u64 - round_down(first as u64, per_slice));
        let wanted = usize::try_from(wanted.min(rest)).unwrap_or(0);
        let table = self.load(at)?;
        let entries = &table.clusters[first..first + wanted];
        let fresh = entries.iter().take_while(|&&place| place == 0).count() as u64;
        let (place, clusters) = if fresh == 0 {
            let own = entries[0];
            let kept = (own..).zip(entries).take_while(|(a, b)| a == *b).count() as u64;
            if next.is_some_and(|next| next != own * cluster) {
                return Ok(None);
            }
            (own, kept)
        } else {
            // The second look at the same table, as QEMU takes it.
            self.load(at)?;
            match next {
                None => (self.counts.allocate(fresh)?, fresh),
                Some(next) => {
                    let place = next.div_ceil(cluster);
                    (place, self.counts.allocate_at(place, fresh)?)
                }
            }
        };
        if clusters == 0 {
            return Ok(None);
        }
        let more = (clusters * cluster - within).min(guest + length - at);
        let made = self.allocation(at, more, place * cluster, fresh > 0);
        extent.allocations.splice(0..0, made);
        Ok(Some((place * cluster + within, more)))
    }

    /// The copies and the entries of a write of `length` bytes at `at` to clusters from `host` on
    /// (`calculate_l2_meta`); `None` where all subclusters that it touches have data.
    fn allocation(&self, at: u64, length: u64, host: u64, fresh: bool) -> Option<Allocation> {
        let Geometry { cluster, part, .. } = self.geometry;
        let guest = round_down(at, cluster);
        let (from, to) = (at - guest, at - guest + length);
        let has_data = |offset: u64| {
            let (index, _) = self.geometry.table_of(offset);
            let table = self.tables.get(&index)?;
            Some(matches!(table.state(&self.geometry, offset), State::Data(_)))
        };
        let data = |offset: u64| !fresh && has_data(guest + offset).unwrap_or(false);
        let (first, last) = (round_down(from, part), round_down(to - 1, part));
        let mut all = true;
        let mut sub = first;
        while all && sub <= last {
            all = data(sub);
            sub += part;
        }
        let head = if data(first) { from } else { first };
        let tail = if data(last) { to } else { up(to, part) };
        (!all).then_some(Allocation {
            guest,
            host,
            clusters: to.div_ceil(cluster),
            head: (head, from),
            tail: (to, tail),
        })
    }

    /// Enters clusters in their L2 table (`qcow2_alloc_cluster_link_l2`). The subclusters of those
    /// that hold no data are not `filled`.
    pub(super) fn link(&mut self, made: &Allocation, filled: bool) -> Result<(), Errno> {
        self.counts.caches.depend(Which::Tables)?;
        let geometry = self.geometry;
        let table = self.load(made.guest)?;
        let place = table.place + geometry.slice_of(made.guest);
        let (_, first) = geometry.table_of(made.guest);
        let host = made.host.div_ceil(geometry.cluster);
        for (nth, entry) in (first..).zip(0..made.clusters) {
            table.clusters[nth] = host + entry;
            if filled && let Some(bits) = table.filled.get_mut(nth) {
                let begin = entry * geometry.cluster;
                let parts = (0..u32::BITS).filter(|sub| {
                    let at = begin + u64::from(*sub) * geometry.part;
                    (made.head.0..made.tail.1).contains(&at)
                });
                parts.for_each(|sub| *bits |= 1 << sub);
            }
        }
        self.counts.caches.change(Which::Tables, place)
    }
}

impl Table {
    fn state(&self, geometry: &Geometry, guest: u64) -> State {
        let (_, nth) = geometry.table_of(guest);
        let place = self.clusters[nth];
        if place == 0 {
            return State::Absent;
        }
        let within = guest - round_down(guest, geometry.cluster);
        let host = place * geometry.cluster + within;
        match self.filled.get(nth) {
            Some(bits) if bits & (1 << geometry.part_of(within)) == 0 => State::Placed(host),
            _ => State::Data(host),
        }
    }
}

impl State {
    /// The state that goes on this one `bytes` further.
    fn after(self, bytes: u64) -> State {
        match self {
            State::Data(host) => State::Data(host + bytes),
            State::Placed(host) => State::Placed(host + bytes),
            State::Absent => State::Absent,
        }
    }
}

impl Geometry {
    fn empty_table(&self, place: u64) -> Table {
        let entries = usize::try_from(self.entries_per_table()).unwrap_or(0);
        let filled = if self.part < self.cluster { vec![0; entries] } else { Vec::new() };
        Table { place, clusters: vec![0; entries], filled }
    }

    /// Entries of a slice of an L2 table.
    fn entries_per_slice(&self) -> u64 {
        self.slice.div_ceil(self.table_entry())
    }

    /// The offset within its L2 table of the slice that has a guest's offset.
    fn slice_of(&self, guest: u64) -> u64 {
        let (_, entry) = self.table_of(guest);
        round_down(entry as u64 * self.table_entry(), self.slice)
    }

    /// The guest's bytes of an L2 table.
    fn table_bytes(&self) -> u64 {
        self.entries_per_table() * self.cluster
    }

    /// Entries of the L1 table of an image of `size` bytes.
    pub(super) fn l1_entries(&self, size: u64) -> u64 {
        size.div_ceil(self.table_bytes())
    }

    /// The number of the L2 table of a guest's offset, and the entry in it.
    fn table_of(&self, guest: u64) -> (u64, usize) {
        let start = round_down(guest, self.table_bytes());
        let entry = round_down(guest - start, self.cluster).div_ceil(self.cluster);
        (start.div_ceil(self.table_bytes()), usize::try_from(entry).unwrap_or(0))
    }

    /// The number of the subcluster that has this byte of a cluster.
    fn part_of(&self, within: u64) -> u64 {
        round_down(within, self.part).div_ceil(self.part)
    }
}
