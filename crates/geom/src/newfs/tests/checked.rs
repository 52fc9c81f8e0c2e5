//! Checks of every file system: the demands of a reader on a superblock (`validate_sblock`), and
//! that the maps, the summaries and the totals agree. Counted anew, fragment by fragment.

use super::*;
use crate::newfs::group::summary_of;
use crate::newfs::superblock::superblock;

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(u64::try_from(of.len()).expect("small"))).expect("small")]
    }

    /// A size of `low` to `high` bits.
    fn size(&mut self, low: u64, high: u64) -> u64 {
        let bits = low + self.below(high - low);
        (1 << bits) + self.below(1 << bits)
    }

    fn options(&mut self) -> Options {
        let block = self.pick(&[4096, 8192, 16384, 32768, 65536]);
        let sizes = self.below(3);
        let density = self.size(10, 22);
        let keep = self.below(100);
        Options {
            block_size: (sizes > 0).then_some(block),
            fragment_size: (sizes > 1).then(|| (block >> self.below(4)).max(512)),
            density: (self.below(3) == 0).then_some(density),
            minfree: keep,
            max_blocks_per_group: self.pick(&[0x7fff_ffff, 0x7fff_ffff, 5000, 100_000]),
            maxphys: self.pick(&[131_072, 1 << 20, 4096]),
            maxcontig: self.pick(&[None, None, Some(1), Some(7), Some(256)]),
            snap: self.below(4) != 0,
            flavour: self.pick(&[
                Flavour::FreeBsd9,
                Flavour::FreeBsd12,
                Flavour::FreeBsd13,
                Flavour::FreeBsd14,
            ]),
            metaspace: self.pick(&[None, Some(0), Some(100), Some(0x7fff_ffff)]),
            ..Options::default()
        }
    }
}

/// `validate_sblock`: powers of two and limits, then what follows from them by formula.
fn validate(fs: &Fs<LE>, at: u64) {
    let (bsize, fsize, frag) =
        (u64::from(fs.fs_bsize.get()), u64::from(fs.fs_fsize.get()), u64::from(fs.fs_frag.get()));
    assert!(bsize.is_power_of_two() && fsize.is_power_of_two() && (4096..=65536).contains(&bsize));
    assert!(fsize >= 512 && fsize * frag == bsize && frag <= 8);
    assert_eq!(
        (fs.fs_magic.get(), fs.fs_sblockloc.get(), fs.fs_sblockactualloc.get()),
        (0x1954_0119, 65536, at)
    );
    assert_eq!((fs.fs_maxsymlinklen.get(), fs.fs_clean), (120, 1));
    let (nindir, inopb) = (u64::from(fs.fs_nindir.get()), u64::from(fs.fs_inopb.get()));
    assert_eq!((nindir, inopb), (bsize / 8, bsize / 256));
    let up = |x: u64, unit: u64| x.next_multiple_of(unit);
    let (ipg, fpg, ncg) =
        (u64::from(fs.fs_ipg.get()), u64::from(fs.fs_fpg.get()), u64::from(fs.fs_ncg.get()));
    let [sblkno, cblkno, iblkno, dblkno] =
        [fs.fs_sblkno, fs.fs_cblkno, fs.fs_iblkno, fs.fs_dblkno].map(|n| u64::from(n.get()));
    assert_eq!(sblkno, up((65536_u64 + 8192).div_ceil(fsize), frag));
    assert_eq!(cblkno, sblkno + up(8192_u64.div_ceil(fsize), frag));
    assert_eq!(iblkno, cblkno + frag);
    assert_eq!(dblkno, iblkno + ipg / (fsize / 256));
    assert!(
        ipg % inopb == 0 && ipg >= inopb && ipg * ncg <= (1 << 32) - inopb,
        "{ipg} inodes in each of {ncg}"
    );
    let (cgsize, contigsumsize) =
        (u64::from(fs.fs_cgsize.get()), u64::from(fs.fs_contigsumsize.get()));
    let clusters = if contigsumsize > 0 { 4 * contigsumsize + (fpg / frag).div_ceil(8) } else { 0 };
    let cg = 176 + 4 + ipg.div_ceil(8) + fpg.div_ceil(8) + clusters;
    assert!(cgsize % fsize == 0 && cg <= cgsize && cgsize <= bsize);
    assert_eq!(
        (fs.fs_bmask.get(), fs.fs_fmask.get()),
        (fs.fs_bsize.get().wrapping_neg(), fs.fs_fsize.get().wrapping_neg())
    );
    assert_eq!((fs.fs_qbmask.get(), fs.fs_qfmask.get()), (bsize - 1, fsize - 1));
    let shifted =
        [fs.fs_bshift, fs.fs_fshift, fs.fs_fragshift, fs.fs_fsbtodb].map(|n| 1_u64 << n.get());
    assert_eq!(shifted, [bsize, fsize, frag, fsize / 512]);
    let sbsize = u64::from(fs.fs_sbsize.get());
    assert!((1376..=8192).contains(&sbsize) && sbsize % 512 == 0);
    let (nifree, ndir) = (fs.fs_cstotal.cs_nifree.get(), fs.fs_cstotal.cs_ndir.get());
    assert!(nifree <= ipg * ncg && ndir <= ipg * ncg - nifree);
    let (size, cssize) = (fs.fs_size.get(), u64::from(fs.fs_cssize.get()));
    assert!(
        8 * frag <= size
            && (ncg - 1) * fpg < size
            && size <= ncg * fpg
            && size <= fs.fs_providersize.get()
    );
    assert!(
        cssize == up(16 * ncg, fsize)
            && cssize / fsize <= fpg - dblkno
            && fs.fs_csaddr.get() == dblkno
    );
    assert!(
        fs.fs_metaspace.get() <= fpg / 2
            && fs.fs_metaspace.get().is_multiple_of(frag)
            && fs.fs_minfree.get() <= 99
    );
    let reach = 12 * bsize - 1 + bsize * (nindir + nindir.pow(2) + nindir.pow(3));
    assert_eq!(fs.fs_maxfilesize.get(), reach);
    let maxcontig = fs.fs_maxcontig.get();
    assert!(
        (1..=256).contains(&maxcontig)
            && contigsumsize == if maxcontig > 1 { u64::from(maxcontig.min(16)) } else { 0 }
    );
    assert!(fpg >= 3 * frag);
    // Not only readers' rules: every group has room for its own tables.
    assert!(size - (ncg - 1) * fpg >= dblkno && fpg >= dblkno);
}

/// One group's map against what must be there; what its summary must be.
fn recount(g: &Geometry, disk: &Disk, cg: u64, hash: bool) -> [u64; 4] {
    let at = (g.base(cg) + g.cblkno) * g.fsize;
    let bytes = disk.bytes(at, g.cgsize);
    let word = |n: u64| u64::from(disk.word(at + n));
    let bit = |map: u64, n: u64| {
        bytes[usize::try_from(map + n / 8).expect("small")] & (1 << (n % 8)) != 0
    };
    let ndblk = word(20);
    assert_eq!((word(4), word(12), word(116)), (0x0009_0255, cg, g.ipg));
    assert_eq!(ndblk, g.fpg.min(g.size - cg * g.fpg));
    assert_eq!(word(120), g.ipg.min(2 * g.bsize / 256));
    let [iused, free, next, sums, clusters] = [92, 96, 100, 104, 108].map(word);
    assert!(
        iused >= 168
            && iused + g.ipg.div_ceil(8) <= free
            && free + g.fpg.div_ceil(8) <= next
            && next <= g.cgsize
    );
    // Metadata, used or free: one of them.
    let directory = |n: u64| (g.dblkno + g.csfrags()).next_multiple_of(g.frag) + n * g.frag;
    let taken: Vec<u64> =
        if cg == 0 { (0..g.directories).map(directory).collect() } else { vec![] };
    let metadata = if cg == 0 { 0..g.dblkno + g.csfrags() } else { g.sblkno..g.dblkno };
    for n in 0..g.fpg.next_multiple_of(8) {
        let is_free = n < ndblk && !metadata.contains(&n) && !taken.contains(&n);
        assert_eq!(bit(free, n), is_free, "fragment {n} of group {cg}");
    }
    let mut frsum = [0; 8];
    let (mut nbfree, mut nffree, mut runs, mut run) = (0, 0, [0; 17], 0);
    for block in 0..ndblk.div_ceil(g.frag) {
        let fragments: Vec<bool> = (0..g.frag).map(|n| bit(free, block * g.frag + n)).collect();
        let whole = fragments.iter().all(|free| *free);
        if whole {
            nbfree += 1;
        } else {
            nffree += u64::try_from(fragments.iter().filter(|free| **free).count()).expect("small");
            fragments
                .split(|free| !free)
                .filter(|run| !run.is_empty())
                .for_each(|run| frsum[run.len()] += 1);
        }
        if g.contigsumsize > 0 {
            if block < g.fpg / g.frag {
                assert_eq!(bit(clusters, block), whole, "block {block} of group {cg}");
            }
            // The directories' blocks were free when runs were counted.
            let counted = whole || taken.contains(&(block * g.frag));
            let ends = !counted && run > 0;
            if ends {
                runs[run.min(16)] += 1;
            }
            run = if counted { run + 1 } else { 0 };
        }
    }
    if run > 0 {
        runs[run.min(16)] += 1;
    }
    for n in 1..=7_u64 {
        assert_eq!(
            word(52 + 4 * n),
            frsum[usize::try_from(n).expect("small")],
            "runs of {n} fragments in group {cg}"
        );
    }
    let counted = usize::try_from(g.contigsumsize).expect("small");
    for n in 1..=counted {
        let expected: u64 = if n == counted { runs[n..].iter().sum() } else { runs[n] };
        assert_eq!(
            word(sums + 4 * u64::try_from(n).expect("small")),
            expected,
            "runs of {n} blocks in group {cg}"
        );
    }
    let used = if cg == 0 { 2 + g.directories } else { 0 };
    assert!((0..g.ipg.next_multiple_of(8)).all(|n| bit(iused, n) == (n < used)));
    let summary = [if cg == 0 { g.directories } else { 0 }, nbfree, g.ipg - used, nffree];
    assert_eq!([24, 28, 32, 36].map(word), summary);
    assert_eq!(
        [0, 4, 8, 12].map(|n| u64::from(disk.word(g.dblkno * g.fsize + cg * 16 + n))),
        summary
    );
    let mut zeroed = bytes.to_vec();
    zeroed[132..136].fill(0);
    assert_eq!(word(132), if hash { u64::from(check_hash(&zeroed)) } else { 0 });
    summary
}

fn verify(newfs: &Newfs) {
    let (g, disk) = (newfs.geometry(), Disk::made(newfs));
    let fs = disk.superblock(SUPERBLOCK);
    validate(&fs, SUPERBLOCK);
    let hashes = fs.fs_metackhash.get();
    let mut totals = [0; 4];
    for cg in 0..g.ncg {
        let at = (g.base(cg) + g.sblkno) * g.fsize;
        let backup = disk.superblock(at);
        validate(&backup, at);
        assert_eq!(
            (backup.fs_fpg, backup.fs_ipg, backup.fs_ncg),
            (fs.fs_fpg, fs.fs_ipg, fs.fs_ncg)
        );
        let mut zeroed = disk.bytes(at, g.sbsize).to_vec();
        zeroed[1304..1308].fill(0);
        assert_eq!(backup.fs_ckhash.get(), if hashes & 1 != 0 { check_hash(&zeroed) } else { 0 });
        let summary = recount(g, &disk, cg, hashes & 2 != 0);
        totals = [0, 1, 2, 3].map(|n| totals[n] + summary[n]);
        let inodes = disk.bytes((g.base(cg) + g.iblkno) * g.fsize, g.inode_bytes()).chunks(256);
        let made = inodes
            .zip(0..)
            .filter(|(inode, _)| inode.iter().any(|byte| *byte != 0))
            .map(|(_, n)| n);
        assert_eq!(
            made.collect::<Vec<u64>>(),
            if cg > 0 { vec![] } else { (2..2 + g.directories).collect() }
        );
    }
    let said = &fs.fs_cstotal;
    assert_eq!(
        [said.cs_ndir.get(), said.cs_nbfree.get(), said.cs_nifree.get(), said.cs_nffree.get()],
        totals
    );
    // What may hold data: all but each group's own tables and the summaries.
    let own = g.sblkno + g.ncg * (g.dblkno - g.sblkno) + g.csfrags();
    assert_eq!(fs.fs_dsize.get(), g.size - own);
    assert_eq!(totals[1] * g.frag + totals[3] + g.directories, fs.fs_dsize.get());
}

#[test]
fn small_file_systems_agree_with_themselves() {
    let mut numbers = Numbers(0x5eed_0001);
    let (mut made, mut refused) = (0, 0);
    while made < 400 {
        let (length, options) = (numbers.size(17, 27), numbers.options());
        let sector = numbers.pick(&[512, 512, 4096]);
        match Newfs::new(length, sector, None, &options) {
            Ok(newfs) => {
                verify(&newfs);
                made += 1;
            }
            Err(Error::LastGroup(_)) if length < 1 << 19 => refused += 1,
            Err(Error::TooSmall { .. } | Error::FirstGroup { .. }) if length < 8 << 20 => {}
            Err(e) => panic!("{length} {options:?}: {e}"),
        }
    }
    assert!(refused < 10, "{refused}");
}

#[test]
fn every_size_near_the_least() {
    // From what is refused on, 4096 bytes at a time.
    let mut made = 0;
    for fragments in 40..700 {
        for snap in [true, false] {
            if let Ok(newfs) =
                Newfs::new(fragments * 4096, 512, None, &Options { snap, ..Options::default() })
            {
                verify(&newfs);
                made += 1;
            } else {
                assert!(fragments < 80, "{fragments}");
            }
        }
    }
    assert!(made > 1200);
}

#[test]
fn large_file_systems_are_valid() {
    let mut numbers = Numbers(0x5eed_0002);
    for _ in 0..400 {
        let (length, options) = (numbers.size(30, 58), numbers.options());
        let sector = numbers.pick(&[512, 4096]);
        let newfs = match Newfs::new(length, sector, None, &options) {
            Ok(newfs) => newfs,
            Err(Error::FirstGroup { .. } | Error::TooLarge(_)) if length > 1 << 38 => continue,
            Err(e) => panic!("{length} {options:?}: {e}"),
        };
        let g = newfs.geometry();
        let mut fs = superblock(g, newfs.options(), 0, 0);
        fs.fs_sblockactualloc = fs.fs_sblockloc;
        validate(&fs, SUPERBLOCK);
        // Groups between the first and the last are alike.
        let [first, other, last] = [0, 1.min(g.ncg - 1), g.ncg - 1].map(|cg| summary_of(g, cg));
        if g.ncg > 2 {
            let sum = |of: fn(&Csum<LE>) -> u32| {
                u64::from(of(&first)) + (g.ncg - 2) * u64::from(of(&other)) + u64::from(of(&last))
            };
            let [nbfree, nffree, nifree] = [
                sum(|c| c.cs_nbfree.get()),
                sum(|c| c.cs_nffree.get()),
                sum(|c| c.cs_nifree.get()),
            ];
            assert_eq!(fs.fs_cstotal.cs_nbfree.get(), nbfree + g.directories);
            assert_eq!(fs.fs_cstotal.cs_nffree.get() + g.directories * (g.frag - 1), nffree);
            assert_eq!(fs.fs_cstotal.cs_nifree.get(), nifree + g.directories);
        }
    }
}

#[test]
fn there_are_no_more_inodes_than_numbers() {
    // One inode for two fragments would be just enough for the numbers, were they not made in whole
    // blocks.
    let length = 2 * ((1 << 32) - 256) * 4096;
    let newfs = newfs(length, Options::default());
    validate(&superblock(newfs.geometry(), newfs.options(), 0, 0), SUPERBLOCK);
    assert_eq!(
        newfs.lines("x", 0).to_string().lines().next(),
        Some("density increased from 8192 to 12288")
    );
}

#[test]
fn hostile_numbers_end() {
    let all = [
        0,
        1,
        511,
        512,
        4096,
        65536,
        1 << 20,
        1 << 31,
        1 << 32,
        1 << 48,
        (1 << 63) - 1,
        1 << 63,
        u64::MAX,
    ];
    for length in all {
        for n in all {
            for options in [
                Options { density: Some(n), ..Options::default() },
                Options { block_size: Some(n), ..Options::default() },
                Options { fragment_size: Some(n), ..Options::default() },
                Options { max_blocks_per_group: n, maxbpg: Some(n), ..Options::default() },
                Options { maxphys: n, max_extent: Some(n), ..Options::default() },
                Options { reserved: n, size: Some(n), ..Options::default() },
                Options {
                    metaspace: Some(n),
                    block_size: Some(4096),
                    fragment_size: Some(512),
                    ..Options::default()
                },
            ] {
                for unit in [None, Some(n)] {
                    if let Ok(newfs) = Newfs::new(length, 512, unit, &options) {
                        validate(
                            &superblock(newfs.geometry(), newfs.options(), i64::MIN, u32::MAX),
                            SUPERBLOCK,
                        );
                    }
                }
            }
            assert!(
                n == 512
                    || n == 4096
                    || Newfs::new(length, n, Some(n), &Options::default()).is_err()
            );
        }
    }
}
