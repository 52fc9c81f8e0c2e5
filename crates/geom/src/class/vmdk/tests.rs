//! Extents written by hand, by the documents: grains, directories, refusals, hostile numbers.

use super::super::container::tests::{opened, opened_on, read, reason, survives};
use crate::base::error::Errno;
use crate::base::store::Sparse;
use crate::base::topology::Translation;
use crate::format::tests::disk;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

const GRAIN: usize = 8192;
const DESCRIPTOR: &[u8] =
    b"# Disk DescriptorFile\nversion=1\nCID=12345678\nparentCID=ffffffff\ncreateType=\"monolithicSparse\"\nRW 64 SPARSE \"disk.vmdk\"\n";

fn put(file: &mut [u8], at: usize, number: u32) {
    file[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

fn whole(file: &[u8]) -> Sparse {
    disk(file.len() as u64, &[(0, file)])
}

/// A hosted extent of four grains of 8 KiB, with two directories, and tables of four entries.
fn header(flags: u32) -> Vec<u8> {
    let mut file = vec![0; GRAIN];
    file[..4].copy_from_slice(b"KDMV");
    for (at, number) in [
        (4, 2),
        (8, flags),
        (12, 64),
        (20, 16),
        (28, 1),
        (36, 1),
        (44, 4),
        (48, 2),
        (56, 3),
        (64, 16),
        (1024, 4),
        (1536, 5),
    ] {
        put(&mut file, at, number);
    }
    file[73..77].copy_from_slice(b"\n \r\n");
    file[512..512 + DESCRIPTOR.len()].copy_from_slice(DESCRIPTOR);
    file
}

/// Its grains: the second of the file, none, one of zeros, the first.
fn hosted(flags: u32) -> Vec<u8> {
    let mut file = header(flags);
    for table in [2048, 2560] {
        for (nth, entry) in [32, 0, 1, 16].into_iter().enumerate() {
            put(&mut file, table + nth * 4, entry);
        }
    }
    file.extend([b'a'; GRAIN]);
    file.extend([b'b'; GRAIN]);
    file
}

fn expected() -> Vec<u8> {
    [[b'b'; GRAIN], [0; GRAIN], [0; GRAIN], [b'a'; GRAIN]].concat()
}

/// The third grain is one of zeros by the flag, and without it lies in sector 1.
#[test]
fn grains_are_where_the_tables_have_them() {
    let it = opened(whole(&hosted(7)));
    assert!(read(&it, 0, 4 * GRAIN).unwrap() == expected());
    let it = opened(whole(&hosted(3)));
    assert!(read(&it, 2 * GRAIN as u64, 64).unwrap() == DESCRIPTOR[..64]);
}

#[test]
fn the_second_directory_is_read_where_the_first_leads_past_the_end() {
    for (at, number) in [(1536, 0x00ff_ffff), (56, 0x00ff_ffff)] {
        let mut file = hosted(7);
        put(&mut file, at, number);
        let it = opened(whole(&file));
        assert!(read(&it, 0, 4 * GRAIN).unwrap() == expected(), "{at}");
        put(&mut file, 8, 5);
        assert_eq!(read(&opened(whole(&file)), 0, 512), Err(Errno::Io), "{at}");
    }
}

#[test]
fn a_grain_that_has_a_parent_is_not_zero() {
    let mut file = hosted(7);
    let at = DESCRIPTOR.windows(8).position(|part| part == b"ffffffff").unwrap();
    file[512 + at..512 + at + 8].copy_from_slice(b"0badcafe");
    let it = opened(whole(&file));
    assert!(read(&it, 0, 512).unwrap() == [b'b'; 512]);
    assert_eq!(read(&it, GRAIN as u64, 512), Err(Errno::Io));
    assert!(read(&it, 2 * GRAIN as u64, 512).unwrap() == [0; 512]);
}

fn translation(file: &[u8]) -> Translation {
    let (graph, contents) = opened(whole(file));
    let geom = graph.providers[contents.unwrap()].route().set().unwrap().geom;
    geom.translation().unwrap().clone()
}

#[test]
fn the_tables_say_if_grains_are_off() {
    let known = translation(&hosted(7));
    assert_eq!(
        (
            known.grain().size(),
            known.grain().phase(),
            known.off(crate::base::topology::Grain::new(4096, 0).unwrap())
        ),
        (8192, 0, Some(0))
    );
    let mut file = hosted(7);
    put(&mut file, 2560, 33);
    let known = translation(&file);
    assert_eq!(
        (known.looked_at(), known.off(crate::base::topology::Grain::new(4096, 0).unwrap())),
        (Some(2), Some(1))
    );
    // An empty one says nothing else than where the first grain will be.
    let known = translation(&header(7));
    assert_eq!((known.grain().size(), known.grain().phase(), known.looked_at()), (8192, 0, None));
}

/// Headers that QEMU and the documents refuse.
#[test]
fn what_is_refused_is_unknown() {
    for (at, number, part) in [
        (4, 0, "version"),
        (4, 4, "version"),
        (12, 0, "other files"),
        (16, u32::MAX, "larger than a file"),
        (16, 1 << 20, "larger than QEMU"),
        (20, 0, "grains are not"),
        (20, 0x20_0001, "grains are not"),
        (24, 1, "grains are not"),
        (28, 0, "one extent"),
        (36, 0, "one extent"),
        (44, 0, "tables are not"),
        (44, 513, "tables are not"),
        (56, 0, "no place"),
        (60, u32::MAX, "no place"),
        (64, 49, "cut off"),
        (68, u32::MAX, "cut off"),
        (72, 0x0d20_0d00, "copied as text"),
        (76, 0x0000_000d, "copied as text"),
        (76, 0x0000_020a, "compression"),
    ] {
        let mut file = hosted(7);
        put(&mut file, at, number);
        let why = reason(whole(&file));
        assert!(why.is_some_and(|why| why.contains(part)), "{at} {number:#x}: {why:?}");
    }
    let mut open = hosted(7);
    open[72] = 1;
    assert!(reason(whole(&open)).is_some_and(|why| why.contains("not closed")));
    assert_eq!(reason(whole(&hosted(7))), None);
}

/// A streamOptimized extent: its grains in order of their sectors, and a footer that has the header
/// again, with the place of the directory.
fn packed() -> Vec<u8> {
    let mut file = header(0x3_0001);
    put(&mut file, 4, 3);
    put(&mut file, 48, 0);
    file[77] = 1;
    let (directory, table) = (1536, 2560);
    put(&mut file, directory, 5);
    for (nth, fill) in [(0, b'b'), (3, b'a')] {
        let mut stream = ZlibEncoder::new(Vec::new(), Compression::best());
        stream.write_all(&[fill; GRAIN]).unwrap();
        let stream = stream.finish().unwrap();
        let sector = u32::try_from(file.len() / 512).unwrap();
        put(&mut file, table + nth * 4, sector);
        file.extend((nth as u64 * 16).to_le_bytes());
        file.extend(u32::try_from(stream.len()).unwrap().to_le_bytes());
        file.extend(stream);
        file.resize(file.len().next_multiple_of(512), 0);
    }
    let footer = file[..512].to_vec();
    put(&mut file, 56, u32::MAX);
    put(&mut file, 60, u32::MAX);
    let end = file.len();
    file.resize(end + 1536, 0);
    put(&mut file, end + 12, 3);
    file[end + 512..end + 1024].copy_from_slice(&footer);
    file
}

#[test]
fn a_packed_extent_is_read_and_never_off() {
    let file = packed();
    let it = opened(whole(&file));
    assert!(read(&it, 0, 4 * GRAIN).unwrap() == expected());
    assert!(translation(&file).is_transport());
    let end = file.len();
    for (at, number, part) in [
        (end - 1536 + 8, 1, "footer"),
        (end - 1536 + 12, 2, "footer"),
        (end - 1024, 0, "footer"),
        (end - 512 + 8, 1, "footer"),
        (end - 1024 + 4, 4, "version"),
    ] {
        let mut file = packed();
        put(&mut file, at, number);
        let why = reason(whole(&file));
        assert!(why.is_some_and(|why| why.contains(part)), "{at}: {why:?}");
    }
}

/// A marker of another grain, or of a stream that is empty or too long.
#[test]
fn a_marker_that_cannot_be_true_fails() {
    for (at, number) in [(GRAIN, 16), (GRAIN + 8, 0), (GRAIN + 8, 2 * 8192 + 1)] {
        let mut file = packed();
        put(&mut file, at, number);
        assert_eq!(read(&opened(whole(&file)), 0, 512), Err(Errno::Io), "{at} {number}");
    }
}

/// An extent of ESX: one sector in a grain, 4096 entries in a table.
fn esx() -> Vec<u8> {
    let mut file = vec![0; 512 * 40];
    file[..4].copy_from_slice(b"COWD");
    for (at, number) in
        [(4, 1), (8, 3), (12, 4096), (16, 1), (20, 4), (24, 1), (2048, 5), (2560, 39), (2568, 38)]
    {
        put(&mut file, at, number);
    }
    file[38 * 512..39 * 512].fill(b'c');
    file[39 * 512..].fill(b'd');
    file
}

#[test]
fn grains_of_a_snapshot_of_esx_are_sectors_and_absent_ones_the_parents() {
    let it = opened(whole(&esx()));
    assert!(read(&it, 0, 512).unwrap() == [b'd'; 512]);
    assert_eq!(read(&it, 512, 512), Err(Errno::Io));
    assert!(read(&it, 1024, 512).unwrap() == [b'c'; 512]);
    let known = translation(&esx());
    assert_eq!(
        (
            known.allocation,
            known.grain().size(),
            known.off(crate::base::topology::Grain::new(4096, 0).unwrap())
        ),
        (512, 512, Some(2))
    );
    for (at, number, part) in [
        (4, 3, "version"),
        (16, 0, "grains"),
        (16, 0x20_0001, "grains"),
        (20, 0, "no place"),
        (12, 4097, "too small"),
    ] {
        let mut file = esx();
        put(&mut file, at, number);
        let why = reason(whole(&file));
        assert!(why.is_some_and(|why| why.contains(part)), "{at} {number}: {why:?}");
    }
}

/// A seSparse extent of four grains: number 1, unmapped, zero, number 0x1000.
fn se_sparse() -> Vec<(u64, Vec<u8>)> {
    let mut head = vec![0; 4096];
    let mut put = |at: usize, number: u64| {
        head[at..at + 8].copy_from_slice(&number.to_le_bytes());
    };
    for (at, number) in [
        (0, 0xcafe_babe),
        (8, 0x2_0000_0001),
        (16, 32),
        (24, 8),
        (32, 64),
        (80, 1),
        (88, 1),
        (128, 2),
        (136, 1),
        (144, 64),
        (152, 128),
        (192, 256),
        (200, 1 << 20),
        (512, 0xcafe_cafe),
        (1024, 0x1000_0000_0000_0001),
    ] {
        put(at, number);
    }
    let table: [u64; 4] = [0x3001_0000_0000_0000, 1 << 60, 2 << 60, 0x3000_0000_0000_0001];
    let table = table.into_iter().flat_map(u64::to_le_bytes).collect();
    let grain = |number: u64| (256 + number * 8) * 512;
    vec![
        (0, head),
        (128 * 512, table),
        (grain(1), vec![b's'; 4096]),
        (grain(0x1000), vec![b't'; 4096]),
    ]
}

fn laid(parts: &[(u64, Vec<u8>)]) -> Sparse {
    let runs: Vec<(u64, &[u8])> = parts.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
    disk(64 << 20, &runs)
}

#[test]
fn entries_of_se_sparse_are_turned_around() {
    let it = opened(laid(&se_sparse()));
    let expected = [[b's'; 4096], [0; 4096], [0; 4096], [b't'; 4096]].concat();
    assert!(read(&it, 0, 16384).unwrap() == expected);
    for (at, number, part) in [
        (8, 2, "version"),
        (24, 16, "grains"),
        (32, 32, "tables"),
        (40, 1, "features"),
        (128, 0, "no place"),
        (136, 0, "too small"),
        (512, 0, "volatile"),
        (536, 1, "replayed"),
    ] {
        let mut parts = se_sparse();
        put(&mut parts[0].1, at, number);
        let why = reason(laid(&parts));
        assert!(why.is_some_and(|why| why.contains(part)), "{at} {number}: {why:?}");
    }
    let mut parts = se_sparse();
    parts[1].1[7] = 0x40;
    assert_eq!(read(&opened(laid(&parts)), 0, 512), Err(Errno::Io));
    let mut parts = se_sparse();
    parts[0].1[1024] = 2;
    assert_eq!(read(&opened(laid(&parts)), 0, 512), Err(Errno::Io));
}

/// A descriptor with these lines, and the content ID of its parent.
fn descriptor(parent: &str, lines: &str) -> Sparse {
    let head = format!("# Disk DescriptorFile\nversion=1\nCID=cafe0001\nparentCID={parent}\n");
    disk(65536, &[(0, format!("{head}{lines}").as_bytes())])
}

#[test]
fn what_a_descriptor_names_is_said() {
    let alone = |lines| descriptor("ffffffff", lines);
    let two = "RW 8 FLAT \"d-f001.vmdk\" 0\nRW 8 FLAT \"d-f002.vmdk\" 0\n";
    let (graph, _) = opened(alone(two));
    let sign = &graph.providers[0].signs[0];
    assert!(sign.details.contains(&("extents", "d-f001.vmdk, d-f002.vmdk".into())));
    assert!(sign.details.contains(&("virtual size", "8192".into())));
    assert_eq!(sign.identity.as_deref(), Some("cafe0001"));
    assert_eq!(graph.providers[0].findings.len(), 2);
    // A disk of zeros is one, without a file.
    assert_eq!(read(&opened(alone("RW 8 ZERO\n")), 0, 4096), Ok(vec![0; 4096]));
    let child = descriptor("12345678", "RW 8 VMFSSPARSE \"d-delta.vmdk\"\n");
    assert!(reason(child).expect("a reason").contains("does not name its parent"));
    for (lines, part) in [
        ("", "without extents"),
        ("RW 0 ZERO\n", "without extents"),
        ("RW x FLAT \"d\" 0\n", "no size"),
        ("RW 8 FLAT \"d\" x\n", "no size"),
        ("RW 99999999999999999 ZERO\n", "no size"),
        ("RW 36028797018963967 ZERO\nRW 36028797018963967 ZERO\n", "without extents"),
        ("RW 8 FLAT\n", "without a name"),
        ("RW 8 VMFSRAW \"/dev/sda\"\n", "device"),
    ] {
        assert!(reason(alone(lines)).expect("a reason").contains(part), "{lines}");
    }
}

/// Text behind the part that is read might name a further extent.
#[test]
fn a_descriptor_that_is_too_long_is_not_read_in_part() {
    let lines = "RW 8 ZERO\n".repeat(7000);
    let head = "# Disk DescriptorFile\nversion=1\nparentCID=ffffffff\n";
    let text = format!("{head}{lines}");
    let long = disk(text.len() as u64, &[(0, text.as_bytes())]);
    assert!(reason(long).expect("a reason").contains("longer"));
}

/// An extent begins where its line says; a file that ends before it has the rest nowhere.
#[test]
fn extents_are_one_after_another() {
    let file = disk(20 * 512, &[(0, &[[b'x'; 512], [b'a'; 512]].concat()), (8192, &[b'b'; 2048])]);
    let text = descriptor("ffffffff", "RW 1 ZERO\nRW 8 FLAT \"d\" 1\nRW 8 FLAT \"d\" 16\n");
    let it = opened_on(text, "d", file);
    assert_eq!(read(&it, 0, 512), Ok(vec![0; 512]));
    assert_eq!(read(&it, 512, 512), Ok(vec![b'a'; 512]));
    assert_eq!(read(&it, 9 * 512, 2048), Ok(vec![b'b'; 2048]));
    assert_eq!(read(&it, 13 * 512, 512), Err(Errno::Io));
}

/// An extent that has no descriptor is a disk's part, which a descriptor alone makes one.
#[test]
fn an_extent_of_several_is_read_through_its_descriptor() {
    let mut extent = hosted(7);
    put(&mut extent, 28, 0);
    assert!(reason(whole(&extent)).expect("a reason").contains("one extent"));
    let text = descriptor("ffffffff", "RW 64 SPARSE \"d\"\nRW 64 ZERO\n");
    let it = opened_on(text, "d", whole(&extent));
    assert!(read(&it, 0, 8 * GRAIN).unwrap() == [expected(), vec![0; 4 * GRAIN]].concat());
}

mod snapshots;

#[test]
fn nothing_panics() {
    survives(&hosted(7), 0..80);
    survives(&hosted(7), 1024..1028);
    survives(&hosted(7), 1536..1540);
    survives(&hosted(7), 2560..2576);
    let file = packed();
    survives(&file, 0..80);
    survives(&file, GRAIN..GRAIN + 32);
    survives(&file, file.len() - 1536..file.len() - 1536 + 592);
    survives(&esx(), 0..32);
    survives(&esx(), 2048..2052);
    survives(&esx(), 2560..2572);
    let head = &se_sparse()[0].1;
    survives(head, 0..208);
    survives(head, 512..544);
    survives(head, 1024..1032);
}
