//! File systems of any size and any options: refused, or whole. What is counted is counted here
//! anew, from the bytes alone.

use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::is_whole;
use trueline_geom::newfs::{Newfs, Options, SUPERBLOCK};

/// The largest file system that is written out: its bytes in memory.
const WRITTEN: u64 = 24 << 20;
/// Groups that are looked at.
const GROUPS: u64 = 64;

/// Decides upon a file system; if it is small, writes it, and counts.
pub fn newfs_holds(length: u64, sector: u64, unit: Option<u64>, options: &Options) {
    let Ok(newfs) = Newfs::new(length, sector, unit, options) else { return };
    let g = newfs.geometry();
    assert!(g.bytes() <= length && g.size > 0 && is_whole(g.bytes(), g.fsize), "{g:?}");
    assert!(
        g.ncg > 0 && g.base(g.ncg - 1) < g.size && g.size <= g.ncg.saturating_mul(g.fpg),
        "{g:?}"
    );
    assert!(
        g.size - g.base(g.ncg - 1) >= g.dblkno && g.ipg.saturating_mul(g.ncg) < 1 << 32,
        "{g:?}"
    );
    assert!(g.bsize == g.fsize * g.frag && g.frag <= 8 && is_whole(g.fsize, sector), "{g:?}");
    assert!(newfs.warnings().iter().all(|w| w.len() < 1000) && newfs.warnings().len() < 20);
    if newfs.bytes_to_write() > WRITTEN || g.ncg > GROUPS {
        return;
    }
    let mut disk = Sparse::new(length);
    let (mut bytes_put, mut ends) = (0, Vec::new());
    let done: Result<(), ()> = newfs.write(0, &mut || 7, &[0x5a; 65536], &mut |at, bytes| {
        assert!(
            is_whole(at, sector) && is_whole(bytes.len() as u64, sector),
            "{} bytes at {at}",
            bytes.len()
        );
        assert!(
            at + bytes.len() as u64 <= length && !bytes.is_empty(),
            "{} bytes at {at}",
            bytes.len()
        );
        disk.put(at, bytes);
        bytes_put += bytes.len() as u64;
        ends.push(at);
        Ok(())
    });
    assert_eq!((done, bytes_put), (Ok(()), newfs.bytes_to_write()));
    assert_eq!((ends.first(), ends.last()), (Some(&SUPERBLOCK), Some(&SUPERBLOCK)));
    counted(&newfs, &disk);
}

/// Whether maps, summaries and totals agree.
fn counted(newfs: &Newfs, disk: &Sparse) {
    let g = newfs.geometry();
    let read = |at: u64, length: u64| {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        assert_eq!(disk.read_at(&mut bytes, at), Ok(()));
        bytes
    };
    let word = |at: u64| u64::from(u32::from_le_bytes(read(at, 4).try_into().unwrap_or_default()));
    let long = |at: u64| u64::from_le_bytes(read(at, 8).try_into().unwrap_or_default());
    assert_eq!(word(SUPERBLOCK + 1372), 0x1954_0119);
    let mut totals = [0; 4];
    for cg in 0..g.ncg {
        let at = (g.base(cg) + g.cblkno) * g.fsize;
        assert_eq!(
            (word(at + 4), word(at + 12), word(at + 20)),
            (0x0009_0255, cg, g.ndblk(cg)),
            "group {cg}"
        );
        assert_eq!(
            word((g.base(cg) + g.sblkno) * g.fsize + 1372),
            0x1954_0119,
            "the backup in group {cg}"
        );
        let map = read(at, g.cgsize);
        let bit =
            |from: u64, n: u64| map[usize::try_from(from + n / 8).unwrap_or(0)] >> (n % 8) & 1 == 1;
        let (used, free) = (word(at + 92), word(at + 96));
        let block = |first: u64| {
            (first..(first + g.frag).min(g.ndblk(cg))).filter(|&n| bit(free, n)).count() as u64
        };
        let blocks: Vec<u64> =
            (0..g.ndblk(cg)).step_by(usize::try_from(g.frag).unwrap_or(1)).map(block).collect();
        let whole = blocks.iter().filter(|&&n| n == g.frag).count() as u64;
        let inodes = (0..g.ipg).filter(|&n| !bit(used, n)).count() as u64;
        let summary = [
            if cg == 0 { g.directories } else { 0 },
            whole,
            inodes,
            blocks.iter().sum::<u64>() - whole * g.frag,
        ];
        assert_eq!([24, 28, 32, 36].map(|n| word(at + n)), summary, "group {cg}");
        assert_eq!(
            [0, 4, 8, 12].map(|n| word(g.dblkno * g.fsize + 16 * cg + n)),
            summary,
            "the summary of group {cg}"
        );
        assert!(
            (0..g.data(cg)).all(|n| !bit(free, n) || (cg > 0 && n < g.sblkno)),
            "free tables in group {cg}"
        );
        totals.iter_mut().zip(summary).for_each(|(total, n)| *total += n);
    }
    let said = [0, 8, 16, 24].map(|n| long(SUPERBLOCK + 1008 + n));
    assert_eq!(said, totals);
}
