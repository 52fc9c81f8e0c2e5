//! `mkfs`: the writes of mke2fs of 2009 for an ext2, through the page cache of Linux: an inode
//! table of 2 MiB for every 128 MiB, one after another; then, when it closes the device,
//! superblocks, descriptors and both bitmaps of every group; then fsync.
//!
//! The metadata of 1.5 TB are 22 GB of tables and 22,000 bitmaps. With `count`, only as many groups
//! are written, in eight stretches over the device. The time is then of these, and the ratio is
//! that of all groups as far as the stretches are typical.

use super::{Blocks, Needs, Parameters, Watch, WorkloadKind, whole};
use crate::error::Error;
use crate::os::linux_writeback::Limits;
use crate::os::linux_writeback::flusher::{DEVICE, Flusher};
use crate::os::linux_writeback::shape::{BLOCK, Ext2Layout};
use crate::rig::Rig;
use crate::run::Run;

/// The workload `mkfs` as listed.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "mkfs",
    title: "the writes of mke2fs, through Linux's page cache",
    needs: Needs::Blocks(make),
};

/// The host's memory in bytes, of which a tenth and a fifth may be dirty; the number of stretches.
const MEMORY: u64 = 8 << 30;
const STRETCHES: u64 = 8;

struct Mkfs {
    groups: Option<u64>,
    bytes: Option<u64>,
    /// The byte at which the file system begins.
    offset: u64,
}

fn make(parameters: &Parameters) -> Result<Box<dyn Blocks>, Error> {
    if parameters.count == Some(0) {
        return Err(Error::new("a file system of 0 groups: there is nothing to measure".into()));
    }
    Ok(Box::new(Mkfs {
        groups: parameters.count,
        bytes: parameters.size,
        offset: parameters.offset,
    }))
}

impl Mkfs {
    fn shape(&self, length: u64) -> Result<Ext2Layout, Error> {
        let room = length.saturating_sub(self.offset);
        let bytes = self.bytes.unwrap_or(room).min(room);
        Ext2Layout::new(bytes).ok_or_else(|| {
            Error::new(format!("mke2fs: {bytes} bytes are too few for a file system"))
        })
    }

    /// The groups that are written, in order.
    fn groups(&self, shape: &Ext2Layout) -> impl Iterator<Item = u64> + use<> {
        let all = shape.groups();
        let wanted = self.groups.unwrap_or(all).min(all);
        let stretches = if wanted == all { 1 } else { STRETCHES.min(wanted) };
        (0..stretches).flat_map(move |nth| {
            let first = nth * all / stretches;
            first..first + (wanted * (nth + 1) / stretches - wanted * nth / stretches)
        })
    }
}

impl Blocks for Mkfs {
    fn writes(&self) -> bool {
        true
    }

    fn depth(&self) -> usize {
        Limits::of_memory(MEMORY).requests
    }

    fn largest(&self) -> u64 {
        Limits::of_memory(MEMORY).request
    }

    fn extent(&self, length: u64) -> Option<u64> {
        let shape = self.shape(length).ok()?;
        Some(self.groups(&shape).count() as u64 * 2)
    }

    fn run(&self, rig: &mut dyn Rig, _seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let (shape, offset) = (self.shape(rig.length())?, self.offset);
        whole(rig, "mkfs", BLOCK, offset)?;
        let mut cache = Flusher::new(rig, Limits::of_memory(MEMORY));
        let begin = cache.queue.now();
        let (mut run, mut last, mut asked) = (Run::new(), begin, 0);
        let mut write = |cache: &mut Flusher<'_>, block: u64, blocks: u64| {
            cache.soil(DEVICE, block, blocks, block * BLOCK + offset)?;
            let now = cache.queue.now();
            run.record(blocks * BLOCK, now - last);
            last = now;
            Ok::<(), Error>(())
        };
        let mut goes_on = || {
            asked += 1;
            watch(asked - 1)
        };
        for group in self.groups(&shape) {
            if !goes_on() {
                break;
            }
            // `ext2fs_zero_blocks` writes 32 KiB at a time, but the flusher does not wake while a
            // table is made, so one write is the same.
            write(&mut cache, shape.table(group), Ext2Layout::TABLE)?;
        }
        for group in self.groups(&shape) {
            if !goes_on() {
                break;
            }
            if shape.backup(group) > 0 {
                write(&mut cache, shape.maps(group) - shape.backup(group), shape.head())?;
            }
            write(&mut cache, shape.maps(group), 2)?;
        }
        cache.sync()?;
        run.ns = cache.queue.now() - begin;
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::Op;
    use crate::workload::recorder::{Recorder, made, ran};

    #[test]
    fn tables_then_maps() {
        let mut rig = Recorder::new(10 << 30);
        let run = ran(&KIND, &Parameters::default(), &mut rig);
        // 80 groups: a table of 2 MiB each and two maps before it, which lie together. Nothing was
        // written while tables were made: they are fewer than a tenth of the memory.
        let bytes: u64 = rig.asked.iter().map(|&(_, _, length)| length).sum();
        assert_eq!(bytes, run.bytes);
        assert!(rig.asked.iter().all(|&(op, _, length)| op == Op::Write && length <= 512 << 10));
        // Nine groups have superblock and descriptors too, apart from their maps.
        assert_eq!(rig.asked.len(), 80 * 5 + 9);
        // A sector further: the same requests, each moved.
        let mut moved = Recorder::new((10 << 30) + 512);
        ran(&KIND, &Parameters { offset: 512, ..Parameters::default() }, &mut moved);
        assert!(moved.asked.iter().copied().eq(rig.asked.iter().map(|&(op, offset, length)| (
            op,
            offset + 512,
            length
        ))));
    }

    #[test]
    fn of_a_large_file_system_the_tables_go_first() {
        let mut rig = Recorder::new(1 << 40);
        ran(&KIND, &Parameters { count: Some(2048), ..Parameters::default() }, &mut rig);
        let whole = |asked: &&(Op, u64, u64)| asked.2 == 512 << 10;
        // 4 GiB of tables, of which at most 1.6 may be dirty: more than half of them go before the
        // first map.
        let maps = rig.asked.iter().position(|asked| asked.2 < 512 << 10).unwrap();
        assert!(rig.asked[..maps].iter().all(|asked| whole(&asked)) && maps > 2048 * 2, "{maps}");
    }

    #[test]
    fn a_sample_is_spread_over_the_device() {
        let shape = Ext2Layout::new(1 << 40).unwrap();
        let groups: Vec<u64> =
            Mkfs { groups: Some(409), bytes: None, offset: 0 }.groups(&shape).collect();
        assert_eq!(groups.len(), 409);
        assert!(groups.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((groups[0], groups[408] / 1024), (0, 7));
        assert_eq!(
            made(&KIND, &Parameters { count: Some(409), ..Parameters::default() }).extent(1 << 40),
            Some(818)
        );
    }
}
