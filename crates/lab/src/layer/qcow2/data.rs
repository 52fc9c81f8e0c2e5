//! Reads and writes of the guest: `block/qcow2.c`.

use super::cache::Which;
use super::clusters::{Allocation, Clusters, Extent, State};
use super::file::Backing;
use crate::layer::steps::Steps;
use crate::streams::Ask;
use trueline_geom::base::error::Errno;

/// The most bytes between two copied ranges that are read with both, instead of each alone
/// (`perform_cow`).
const READ_ACROSS: u64 = 16384;

/// Parts of a request that are in flight together (`QCOW2_MAX_WORKERS`).
const WORKERS: usize = 8;

/// An image that is open.
pub(super) struct Image {
    pub(super) clusters: Clusters,
    /// The bytes of the guest's disk.
    pub(super) size: u64,
    pub(super) backing: Option<Backing>,
    /// True if the file can make a range zero without writing it.
    pub(super) zero_range: bool,
}

impl Image {
    /// Reads for the guest: side by side in the file is one request.
    pub(super) fn read(&mut self, at: u64, length: u64, steps: &mut Steps) -> Result<(), Errno> {
        let mut parts = Vec::new();
        let (mut at, end) = (at, at + length);
        while at < end {
            let (state, bytes) = self.clusters.state(at, end - at)?;
            self.serial(steps);
            self.fetch(state, at, bytes);
            parts.push(self.log());
            at += bytes;
        }
        together(parts, steps);
        Ok(())
    }

    /// Reads a range of one state.
    fn fetch(&mut self, state: State, at: u64, length: u64) {
        let file = &mut self.clusters.counts.caches.file;
        match (state, self.backing) {
            (State::Data(host), _) => file.read(host, length),
            (_, Some(backing)) => file.read_backing(backing, at, length),
            (_, None) => (),
        }
    }

    /// Writes for the guest, and copies the rest of the clusters that are made.
    pub(super) fn write(&mut self, at: u64, length: u64, steps: &mut Steps) -> Result<(), Errno> {
        let mut extents = Vec::new();
        let (mut at, end) = (at, at + length);
        while at < end {
            let extent = self.clusters.place(at, end - at)?;
            at += extent.length;
            extents.push(extent);
        }
        self.serial(steps);
        let mut parts = Vec::new();
        for extent in &extents {
            self.store(extent)?;
            parts.push(self.log());
        }
        together(parts, steps);
        for made in extents.iter().flat_map(|extent| &extent.allocations) {
            self.clusters.link(made, true)?;
        }
        self.serial(steps);
        Ok(())
    }

    /// Flushes: L2 tables, after what they depend on, refcount blocks, and the file.
    pub(super) fn flush(&mut self, steps: &mut Steps) -> Result<(), Errno> {
        let caches = &mut self.clusters.counts.caches;
        caches.write(Which::Tables)?;
        caches.write(Which::Blocks)?;
        caches.file.flush();
        self.serial(steps);
        Ok(())
    }

    /// Writes a part of a request, and what is copied with it (`qcow2_co_pwritev_task`).
    fn store(&mut self, extent: &Extent) -> Result<(), Errno> {
        let mut copies = Vec::new();
        for made in extent.allocations.iter().filter(|made| made.copied() > 0) {
            let (begin, end) = (made.head.0, made.tail.1);
            let zero = self.zero_range
                && [made.head, made.tail].map(|range| self.reads_zero(made, range)) == [true; 2];
            let file = &mut self.clusters.counts.caches.file;
            if !zero || !file.zero(made.host + begin, end - begin)? {
                copies.push(made);
            }
        }
        // One that lies around the whole part is written with it in one request.
        let around = copies.iter().position(|made| {
            made.guest + made.head.1 == extent.guest
                && made.guest + made.tail.0 == extent.guest + extent.length
        });
        if around.is_none() {
            self.clusters.counts.caches.file.write(extent.host, extent.length)?;
        }
        for (nth, made) in copies.into_iter().enumerate() {
            self.copy(made, Some(nth) == around)?;
        }
        Ok(())
    }

    /// True if a range of new clusters is zero without a look at a file: it is empty, or the image
    /// has no backing file. Past the end of the guest's disk QEMU does not look.
    fn reads_zero(&self, made: &Allocation, (from, to): (u64, u64)) -> bool {
        from == to || (self.backing.is_none() && made.guest + to <= self.size)
    }

    /// Copies what a new cluster has around the guest's data, in one write with it or alone
    /// (`perform_cow`).
    fn copy(&mut self, made: &Allocation, with_data: bool) -> Result<(), Errno> {
        let (head, tail) = (made.head, made.tail);
        let both = head.0 < head.1 && tail.0 < tail.1;
        let reads = if both && tail.0 - head.1 <= READ_ACROSS {
            vec![(head.0, tail.1)]
        } else {
            vec![head, tail]
        };
        for (from, to) in reads {
            let (mut at, end) = (made.guest + from, made.guest + to);
            while at < end {
                let (state, bytes) = self.clusters.state(at, end - at)?;
                self.fetch(state, at, bytes);
                at += bytes;
            }
        }
        let caches = &mut self.clusters.counts.caches;
        let writes = if with_data { vec![(head.0, tail.1)] } else { vec![head, tail] };
        for (from, to) in writes.into_iter().filter(|(from, to)| from < to) {
            caches.file.write(made.host + from, to - from)?;
        }
        Ok(())
    }

    fn log(&mut self) -> Vec<Ask> {
        self.clusters.counts.caches.file.take_log()
    }

    /// Adds what was done until now, one request after the other.
    fn serial(&mut self, steps: &mut Steps) {
        for ask in self.log() {
            steps.add(ask);
            steps.then();
        }
    }
}

impl Allocation {
    /// The bytes that are copied.
    fn copied(&self) -> u64 {
        (self.head.1 - self.head.0) + (self.tail.1 - self.tail.0)
    }
}

/// Adds the parts of a request, several of which are in flight together.
fn together(parts: Vec<Vec<Ask>>, steps: &mut Steps) {
    for some in parts.chunks(WORKERS) {
        let longest = some.iter().map(Vec::len).max().unwrap_or(0);
        for nth in 0..longest {
            some.iter().filter_map(|part| part.get(nth)).for_each(|&ask| steps.add(ask));
            steps.then();
        }
    }
}
