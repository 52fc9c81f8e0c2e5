//! Output of FreeBSD's newfs, and hashes of the bytes it wrote.

use super::*;

/// The lines of a terminal 204 columns wide, 25 January 2013: FreeBSD 9.
const PRINTED: &str = include_str!("ada1s1a.txt");

fn before_13() -> Options {
    Options { maxphys: 128 << 10, soft_updates: true, operator_gid: 37, ..Options::default() }
}

#[test]
fn a_published_transcript() {
    let newfs = newfs(188_743_680 * 512, Options { flavour: Flavour::FreeBsd9, ..before_13() });
    assert_eq!(newfs.lines("/dev/ada1s1a", 204).to_string(), PRINTED);
    assert!(newfs.warnings().is_empty());
    let narrow = newfs.lines("/dev/ada1s1a", 80).to_string();
    assert!(narrow.lines().skip(4).all(|line| line.len() < 80));
    assert_eq!(
        narrow.split_whitespace().collect::<Vec<_>>(),
        PRINTED.split_whitespace().collect::<Vec<_>>()
    );
    assert_eq!(newfs.lines("/dev/ada1s1a", 0).to_string(), narrow);
    let erased =
        Newfs { options: Options { erase: true, ..newfs.options.clone() }, ..newfs.clone() };
    assert!(erased.lines("x", 80).to_string().contains("\nErasing sectors [128...188743679]\n"));
    assert_eq!(erased.erase(), Some(65536..188_743_680 * 512));
}

#[test]
fn ninety_gigabytes() {
    for (maxphys, fpg, ipg, blks, second, dblkno, dsize, nbfree, metaspace, offsets) in [
        (
            128 << 10,
            160_280,
            80256,
            20035,
            1_282_432,
            5056,
            22_848_199,
            2_856_024,
            6408,
            [168, 10200, 32757, 30232, 30252],
        ),
        (
            1 << 20,
            160_056,
            80128,
            20007,
            1_280_640,
            5048,
            22_849_383,
            2_856_172,
            6400,
            [168, 10184, 32757, 30188, 30256],
        ),
    ] {
        let newfs = newfs(188_743_680 * 512, Options { maxphys, ..before_13() });
        let g = newfs.geometry();
        assert_eq!((g.ncg, g.fpg, g.ipg, g.fpg / g.frag), (148, fpg, ipg, blks));
        assert_eq!((g.sblkno, g.cblkno, g.iblkno, g.dblkno), (24, 32, 40, dblkno));
        assert_eq!((g.cgsize, g.cssize, g.metaspace), (32768, 4096, metaspace));
        assert_eq!((g.fsbtodb(g.sblkno), g.fsbtodb(g.base(1) + g.sblkno)), (192, second));
        let disk = Disk::made(&newfs);
        let fs = disk.superblock(192 * 512);
        assert_eq!(
            (fs.fs_dsize.get(), fs.fs_cstotal.cs_nbfree.get(), fs.fs_cstotal.cs_nffree.get()),
            (dsize, nbfree, 7)
        );
        let cg = 32 * 4096;
        assert_eq!([92, 96, 100, 104, 108].map(|at| disk.word(cg + at)), offsets);
        assert_eq!(
            disk.word((147 * fpg + 32) * 4096 + 20),
            u32::try_from(g.size - 147 * fpg).expect("small")
        );
    }
}

/// Geometry, superblock's hash, backups with their hashes, hashes of the groups, of inodes 2 and 3.
struct Vector {
    length: u64,
    options: Options,
    fpg: u64,
    ipg: u64,
    dblkno: u64,
    free: [u64; 3],
    superblock: u32,
    backups: [u64; 4],
    backup_hashes: Option<[u32; 4]>,
    groups: [u32; 4],
    inodes: [u32; 2],
}

fn verify(vector: Vector) {
    let newfs = newfs(vector.length, vector.options);
    let g = newfs.geometry();
    assert_eq!((g.ncg, g.fpg, g.ipg, g.dblkno), (4, vector.fpg, vector.ipg, vector.dblkno));
    let disk = Disk::made(&newfs);
    let fs = disk.superblock(SUPERBLOCK);
    assert_eq!(fs.fs_ckhash.get(), vector.superblock);
    let backups = [0, 1, 2, 3].map(|cg| (g.base(cg) + g.sblkno) * g.fsize);
    assert_eq!(backups.map(|at| at / 512), vector.backups);
    assert_eq!(
        [fs.fs_dsize.get(), fs.fs_cstotal.cs_nbfree.get(), fs.fs_cstotal.cs_nffree.get()],
        vector.free
    );
    if let Some(hashes) = vector.backup_hashes {
        assert_eq!(backups.map(|at| disk.superblock(at).fs_ckhash.get()), hashes);
    }
    assert_eq!(
        [0, 1, 2, 3].map(|cg| disk.word((g.base(cg) + g.cblkno) * g.fsize + 132)),
        vector.groups
    );
    assert_eq!(
        [2, 3].map(|inode| disk.word(g.iblkno * g.fsize + inode * 256 + 244)),
        vector.inodes
    );
}

fn row1() -> Vector {
    Vector {
        length: 64 << 20,
        options: before_13(),
        fpg: 4104,
        ipg: 2176,
        dblkno: 176,
        free: [15751, 1966, 21],
        superblock: 0xb76f_e5e6,
        backups: [192, 33024, 65856, 98688],
        backup_hashes: Some([0x0e69_157f, 0x52b3_87fb, 0xf6b0_5f4a, 0x082a_c128]),
        groups: [0x95d4_5f2b, 0x8020_3dc3, 0x1596_66d7, 0xfd64_c8e7],
        inodes: [0x26bc_5b08, 0x96df_84ff],
    }
}

#[test]
fn sixty_four_megabytes() {
    verify(row1());
    let disk = Disk::made(&newfs(64 << 20, before_13()));
    assert_eq!(
        disk.bytes(176 * 4096, 32),
        b"\x02\0\0\0\xe8\x01\0\0\x7c\x08\0\0\x15\0\0\0\0\0\0\0\xee\x01\0\0\x80\x08\0\0\0\0\0\0"
    );
    // Where the directories are.
    assert_eq!(disk.bytes(184 * 4096, 12), b"\x02\0\0\0\x0c\0\x04\x01.\0\0\0");
    assert_eq!(
        disk.bytes(192 * 4096, 28),
        b"\x03\0\0\0\x0c\0\x04\x01.\0\0\0\x02\0\0\0\xf4\x01\x04\x02..\0\0\0\0\0\0"
    );
    assert_eq!(disk.bytes(184 * 4096 + 24, 16), b"\x03\0\0\0\xe8\x01\x04\x05.snap\0\0\0");
    verify(Vector {
        options: Options { maxphys: 1 << 20, ..before_13() },
        superblock: 0x0a6a_7c62,
        backup_hashes: Some([0xb36c_8cfb, 0xefb6_1e7f, 0x4bb5_c6ce, 0xb52f_58ac]),
        groups: [0xd16a_90b2, 0x3b87_0779, 0xae31_5c6d, 0xc5f0_6380],
        ..row1()
    });
}

#[test]
fn releases() {
    verify(Vector {
        options: Options { flavour: Flavour::FreeBsd12, ..before_13() },
        superblock: 0,
        backup_hashes: Some([0; 4]),
        inodes: [0; 2],
        ..row1()
    });
    verify(Vector {
        options: Options { flavour: Flavour::FreeBsd9, ..before_13() },
        superblock: 0,
        backup_hashes: Some([0; 4]),
        groups: [0; 4],
        inodes: [0; 2],
        ..row1()
    });
    let flags = |flavour| {
        let fs =
            Disk::made(&newfs(64 << 20, Options { flavour, ..before_13() })).superblock(SUPERBLOCK);
        (fs.fs_flags.get(), fs.fs_metackhash.get())
    };
    assert_eq!(flags(Flavour::FreeBsd9), (0x02, 0));
    assert_eq!(flags(Flavour::FreeBsd12), (0x202, 2));
    assert_eq!(flags(Flavour::FreeBsd13), (0x202, 7));
    let depth = |flavour| {
        Disk::made(&newfs(64 << 20, Options { flavour, ..before_13() }))
            .word(40 * 4096 + 3 * 256 + 240)
    };
    assert_eq!((depth(Flavour::FreeBsd13), depth(Flavour::FreeBsd14)), (0, 1));
}

#[test]
fn other_sizes() {
    verify(Vector {
        length: 256 << 20,
        fpg: 16392,
        ipg: 8320,
        dblkno: 560,
        free: [63367, 7918, 21],
        superblock: 0x6382_c87b,
        backups: [192, 131_328, 262_464, 393_600],
        backup_hashes: None,
        groups: [0x0a28_acaf, 0xa818_5012, 0x3dae_0b06, 0xcf7c_3550],
        inodes: [0xc736_5d39, 0x7755_82ce],
        ..row1()
    });
    verify(Vector {
        options: Options { block_size: Some(16384), fragment_size: Some(2048), ..before_13() },
        fpg: 8200,
        ipg: 4160,
        dblkno: 576,
        free: [30583, 3820, 21],
        superblock: 0xc107_c88b,
        backups: [160, 32960, 65760, 98560],
        backup_hashes: None,
        groups: [0x50cf_5170, 0x4746_a9d2, 0x5c3c_83c5, 0x4658_93a2],
        inodes: [0xf003_3a73, 0x6897_9194],
        ..row1()
    });
}

#[test]
fn the_check_hash() {
    assert_eq!(check_hash(b"123456789"), 0x1cf9_6d7c);
}
