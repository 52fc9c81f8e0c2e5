use super::superblock::check_hash;
use super::*;
use crate::format::ufs::fs::{Csum, Fs};
use std::collections::BTreeMap;
use zerocopy::{FromBytes, LE};

mod checked;
mod vectors;

/// Disk of sparse writes; bytes that were not written are zero.
#[derive(Default)]
pub(super) struct Disk(BTreeMap<u64, Vec<u8>>);

impl Disk {
    fn made(newfs: &Newfs) -> Disk {
        let mut disk = Disk::default();
        let done: Result<(), ()> =
            newfs.write(1_000_000_000, &mut || 0, &[0; 65536], &mut |at, bytes| {
                disk.0.insert(at, bytes.to_vec());
                Ok(())
            });
        done.expect("nothing fails here");
        disk
    }

    /// Contents at `at`, as long as the piece written there.
    fn bytes(&self, at: u64, length: u64) -> &[u8] {
        let (start, piece) = self.0.range(..=at).next_back().expect("written");
        let skip = usize::try_from(at - start).expect("small");
        &piece[skip..skip + usize::try_from(length).expect("small")]
    }

    fn superblock(&self, at: u64) -> Fs<LE> {
        Fs::read_from_prefix(&self.0[&at]).expect("a superblock").0
    }

    fn word(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.bytes(at, 4).try_into().expect("four bytes"))
    }
}

fn newfs(length: u64, options: Options) -> Newfs {
    Newfs::new(length, 512, None, &options).expect("a file system")
}

#[test]
fn the_first_and_the_last_piece_are_the_superblock() {
    let newfs = newfs(64 << 20, Options::default());
    let mut pieces = Vec::new();
    let mut total = 0;
    let done: Result<(), ()> = newfs.write(0, &mut || 7, &[0; 65536], &mut |at, bytes| {
        pieces.push((at, bytes.to_vec()));
        total += u64::try_from(bytes.len()).expect("small");
        Ok(())
    });
    assert_eq!(done, Ok(()));
    assert_eq!(total, newfs.bytes_to_write());
    let magic =
        |i: usize| u32::from_le_bytes(pieces[i].1[1372..1376].try_into().expect("four bytes"));
    assert_eq!((pieces[0].0, magic(0)), (SUPERBLOCK, 0x1996_0408));
    assert_eq!((pieces[pieces.len() - 1].0, magic(pieces.len() - 1)), (SUPERBLOCK, 0x1954_0119));
    assert_eq!(pieces.iter().filter(|(at, _)| *at == SUPERBLOCK).count(), 2);
    // Whole sectors, and nothing but the two superblocks twice.
    let mut ends: Vec<(u64, u64)> = pieces[1..]
        .iter()
        .map(|(at, b)| (*at, at + u64::try_from(b.len()).expect("small")))
        .collect();
    ends.sort_unstable();
    assert!(
        ends.iter().all(|(a, b)| a % 512 == 0 && b % 512 == 0 && *b <= newfs.geometry().bytes())
    );
    assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "{ends:?}");
}

#[test]
fn a_failed_write_is_the_last() {
    let newfs = newfs(64 << 20, Options::default());
    let mut count = 0;
    let failed = newfs.write(0, &mut || 0, &[0; 65536], &mut |_, _| {
        count += 1;
        if count == 5 { Err("full") } else { Ok(()) }
    });
    assert_eq!((failed, count), (Err("full"), 5));
}

#[test]
fn boot_code_stays_and_an_old_superblock_does_not() {
    let mut boot = [0xaa_u8; 65536];
    boot[8192 + 1372..8192 + 1376].copy_from_slice(&0x0001_1954_u32.to_le_bytes());
    for sector in [512, 4096] {
        let newfs = Newfs::new(64 << 20, sector, None, &Options::default()).expect("a file system");
        let mut after = boot;
        let done: Result<(), ()> = newfs.write(0, &mut || 0, &boot, &mut |at, bytes| {
            if let Ok(at @ ..65536) = usize::try_from(at) {
                assert!(sector == 512 || (at.is_multiple_of(4096) && bytes.len() == 4096));
                after[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Ok(())
        });
        assert_eq!(done, Ok(()));
        let changed: Vec<usize> = (0..65536).filter(|&at| boot[at] != after[at]).collect();
        assert_eq!(after[9564..9568], [0; 4]);
        assert!(changed.iter().all(|at| (9564..9568).contains(at) || *at >= 65516), "{changed:?}");
        let record: Vec<u32> = after[65516..]
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect();
        assert_eq!(record, [0x1954_0119, 3, 24, 4104, 4]);
    }
}

#[test]
fn what_was_made_is_recognised() {
    for (block_size, fragment_size) in [(65536, 8192), (16384, 2048), (4096, 4096)] {
        let options = Options {
            block_size: Some(block_size),
            fragment_size: Some(fragment_size),
            label: "scratch-1".to_string(),
            ..Options::default()
        };
        let newfs = newfs(200 << 20, options);
        let disk = Disk::made(&newfs);
        let pieces: Vec<(u64, &[u8])> =
            disk.0.iter().map(|(at, bytes)| (*at, bytes.as_slice())).collect();
        let signs = crate::format::tests::everything(200 << 20, &pieces);
        let [sign] = &signs[..] else { panic!("{signs:?}") };
        assert_eq!(
            (sign.kind.name, sign.version.as_deref(), sign.label.as_deref()),
            ("ufs", Some("2"), Some("scratch-1"))
        );
        assert_eq!((sign.size, sign.block), (Some(200 << 20), Some(block_size)));
        assert_eq!(sign.piece.map_or(block_size, |piece| piece.size), fragment_size);
    }
}

#[test]
fn a_fragment_is_never_below_the_physical_unit_unless_told() {
    let sizes = |sector, unit, block_size, fragment_size| {
        let newfs = Newfs::new(
            1 << 30,
            sector,
            unit,
            &Options { block_size, fragment_size, ..Options::default() },
        )
        .expect("made");
        (newfs.geometry.bsize, newfs.geometry.fsize, newfs.warnings.len())
    };
    assert_eq!(sizes(512, None, None, None), (32768, 4096, 0));
    assert_eq!(sizes(512, Some(512), None, None), (32768, 4096, 0));
    assert_eq!(sizes(512, Some(4096), None, None), (32768, 4096, 0));
    assert_eq!(sizes(512, Some(8192), None, None), (65536, 8192, 0));
    assert_eq!(sizes(512, Some(16384), None, None), (65536, 16384, 0));
    assert_eq!(sizes(4096, Some(65536), None, None), (65536, 65536, 0));
    // Out of reach, and not a power of two.
    assert_eq!(sizes(512, Some(131_072), None, None), (65536, 8192, 1));
    assert_eq!(sizes(512, Some(12288), None, None), (32768, 4096, 1));
    // Told.
    assert_eq!(sizes(512, Some(4096), Some(16384), Some(2048)), (16384, 2048, 1));
    assert_eq!(sizes(512, Some(16384), Some(8192), None), (8192, 8192, 1));
    assert_eq!(sizes(512, Some(16384), Some(65536), None), (65536, 16384, 0));
    // newfs's own corrections: what a fragment lacks to a sector, and to an eighth of a block.
    assert_eq!(sizes(4096, None, None, Some(512)), (4096, 4096, 0));
    assert_eq!(sizes(512, None, Some(65536), None), (65536, 8192, 0));
    assert_eq!(sizes(512, None, None, Some(65536)), (65536, 65536, 0));
}

#[test]
fn refusals_are_newfs_s() {
    let refused = |length, options: Options| {
        Newfs::new(length, 512, None, &options).expect_err("refused").to_string()
    };
    let plain = Options::default;
    assert_eq!(refused(100 << 10, plain()), "Filesystem size 25 < minimum size of 48");
    assert_eq!(refused(0, plain()), "preposterous size 0");
    assert_eq!(refused(511, plain()), "preposterous size 0");
    assert!(refused(48 << 12, plain()).starts_with("first cylinder group ran out of space: "));
    assert_eq!(
        refused(1 << 20, Options { reserved: 1 << 20, ..plain() }),
        "reserved not less than device size 2048"
    );
    assert_eq!(
        refused(1 << 20, Options { reserved: 512, size: Some(1 << 20), ..plain() }),
        "maximum file system size is 2047"
    );
    let small = Options { block_size: Some(4096), fragment_size: Some(512), ..plain() };
    assert!(
        refused(284_474, small.clone())
            .starts_with("no size of cylinder groups leaves the last of 555 fragments long enough")
    );
    assert!(refused(1 << 46, small).contains("a larger block (-b)"));
    assert_eq!(
        refused(1 << 30, Options { block_size: Some(12288), ..plain() }),
        "block size must be a power of 2, not 12288"
    );
    assert_eq!(
        refused(1 << 30, Options { block_size: Some(8192), fragment_size: Some(1000), ..plain() }),
        "fragment size must be a power of 2, not 1000"
    );
    assert_eq!(refused(1 << 30, Options { minfree: 100, ..plain() }), "100: bad free space %");
    assert!(
        refused(1 << 30, Options { label: "a b".into(), ..plain() })
            .starts_with("\"a b\": bad volume label")
    );
    let sector = |sector| Newfs::new(1 << 30, sector, None, &plain()).expect_err("refused");
    assert_eq!(
        [sector(0), sector(520), sector(16384)],
        [Error::Sector(0), Error::Sector(520), Error::Sector(16384)]
    );
    let asked =
        |asked| Newfs::new(1 << 30, 4096, None, &Options { sector: Some(asked), ..plain() });
    assert_eq!(asked(512).expect_err("refused"), Error::SmallSector(512));
    assert_eq!(asked(8192).expect("made").geometry().sector, 8192);
}

#[test]
fn words_are_newfs_s() {
    let parse = |words: &str| {
        Options::parse(&words.split_whitespace().map(String::from).collect::<Vec<_>>(), 4096)
    };
    let plain = Options::default;
    assert_eq!(parse(""), Ok(plain()));
    let some = Options {
        soft_updates: true,
        block_size: Some(65536),
        label: "data".into(),
        snap: false,
        ..plain()
    };
    for words in ["-U -b 65536 -L data -n", "-Unb64k -Ldata", "-nULdata -b 0x10000"] {
        assert_eq!(parse(words), Ok(some.clone()), "{words}");
    }
    // Sectors: of the device, or of `-S`, wherever it stands. A size of 0 is the default.
    assert_eq!(
        parse("-s 100 -r 2"),
        Ok(Options { size: Some(409_600), reserved: 8192, ..plain() })
    );
    assert_eq!(
        parse("-s 100 -S 512"),
        Ok(Options { size: Some(51200), sector: Some(512), ..plain() })
    );
    assert_eq!(parse("-s 0"), Ok(plain()));
    assert_eq!(
        parse("--maxphys=128k --flavour 9"),
        Ok(Options { maxphys: 131_072, flavour: Flavour::FreeBsd9, ..plain() })
    );
    assert_eq!(
        parse("--maxphys 131072 --flavour 11"),
        Ok(Options { maxphys: 131_072, flavour: Flavour::FreeBsd9, ..plain() })
    );
    assert_eq!(
        parse("-o space -m 5 -O 2"),
        Ok(Options { optimization: Optimization::Space, minfree: 5, ..plain() })
    );
    let all = "-a 8 -c 1000 -d 64k -e 100 -g 1m -h 10 -i 16k -k 0 -J -l -t -E -N -R";
    assert_eq!(
        parse(all),
        Ok(Options {
            maxcontig: Some(8),
            max_blocks_per_group: 1000,
            max_extent: Some(65536),
            maxbpg: Some(100),
            average_file_size: 1 << 20,
            average_files_per_directory: 10,
            density: Some(16384),
            metaspace: Some(0),
            gjournal: true,
            multilabel: true,
            trim: true,
            erase: true,
            only_print: true,
            reproducible: true,
            ..plain()
        })
    );
}

#[test]
fn words_that_are_not() {
    let refused = |words: &str| {
        let words: Vec<String> = words.split_whitespace().map(String::from).collect();
        let error = Options::parse(&words, 512).expect_err("refused").to_string();
        assert!(error.starts_with("newfs: ") && !error.contains('\n'), "{error}");
        error
    };
    for (words, about) in [
        ("-b", "needs a value"),
        ("-b 2048", "2048: bad block size"),
        ("-b 128k", "131072: bad block size"),
        ("-b 4x", "4x: bad block size"),
        ("-b -1", "-1: bad block size"),
        ("-b +4096", "bad block size"),
        ("-f 0", "0: bad fragment size"),
        ("-i 99999999999999999999", "bad bytes per inode"),
        ("-i 16e", "bad bytes per inode"),
        ("-i 17179869184g", "bad bytes per inode"),
        ("-m 100", "100: bad free space %"),
        ("-a 257", "257: bad maximum contiguous blocks"),
        ("-o speed", "`space' or `time'"),
        ("-O 1", "only UFS2"),
        ("-j", "tunefs -j enable"),
        ("-L no/slash", "bad volume label"),
        ("-L 01234567890123456789012345678901", "bad volume label"),
        ("-p a", "disk.img#s1a"),
        ("-T fd1440", "disktab"),
        ("-X", "unfinished"),
        ("-z 1", "unknown option -z"),
        ("-Uz 1", "unknown option -z"),
        ("-é", "unknown option"),
        ("--fast", "unknown option --fast"),
        ("--flavour 4", "a release of FreeBSD"),
        ("-", "unexpected"),
        ("/dev/ada0", "unexpected"),
    ] {
        assert!(refused(words).contains(about), "{words}: {}", refused(words));
    }
}

#[test]
fn too_little_kept_free_saves_space() {
    let newfs = newfs(1 << 30, Options { minfree: 5, ..Options::default() });
    assert_eq!(newfs.options().optimization, Optimization::Space);
    assert_eq!(
        newfs.warnings(),
        ["Warning: changing optimization to space because minfree is less than 8%"]
    );
    assert_eq!(Disk::made(&newfs).superblock(SUPERBLOCK).fs_optim.get(), 1);
}

#[test]
fn the_regression_test_is_reproducible() {
    let newfs = newfs(64 << 20, Options { reproducible: true, ..Options::default() });
    let image = |time, number| {
        let mut pieces = Vec::new();
        let done: Result<(), ()> =
            newfs.write(time, &mut || number, &[0; 65536], &mut |at, bytes| {
                pieces.push((at, bytes.to_vec()));
                Ok(())
            });
        assert_eq!(done, Ok(()));
        pieces
    };
    let pieces = image(5, 5);
    assert!(pieces == image(6, 6));
    assert_eq!(pieces[0].1[144..152], [0x00, 0xca, 0x9a, 0x3b, 1, 0, 0, 0]);
}
