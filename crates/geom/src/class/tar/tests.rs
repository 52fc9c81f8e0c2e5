//! Tests of archives made by hand; those of tar itself are in `crates/cli/tests/cli/containers.rs`.

use super::super::container::tests::{findings, opened, read, reason, survives};
use super::super::packed::least;
use super::Tar;
use crate::base::error::Errno;
use crate::base::store::Sparse;
use crate::format::tests::{disk, recognised};

/// A header of a member of `size` bytes, with `edit` made before its sum.
fn header(name: &str, kind: u8, size: &str, edit: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes[124..124 + size.len()].copy_from_slice(size.as_bytes());
    bytes[156] = kind;
    bytes[257..265].copy_from_slice(b"ustar\x0000");
    edit(&mut bytes);
    bytes[148..156].fill(b' ');
    let sum: u32 = bytes.iter().map(|&byte| u32::from(byte)).sum();
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    bytes
}

fn plain(name: &str, contents: &[u8]) -> Vec<u8> {
    member(header(name, b'0', &format!("{:011o}", contents.len()), |_| {}), contents)
}

fn member(mut header: Vec<u8>, contents: &[u8]) -> Vec<u8> {
    header.extend_from_slice(contents);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

fn file(members: &[Vec<u8>]) -> Sparse {
    let bytes = [members.concat(), vec![0; 1024]].concat();
    disk(bytes.len() as u64, &[(0, &bytes)])
}

#[test]
fn the_first_disk_is_looked_into() {
    let members =
        [plain("vm.ovf", b"<xml/>"), plain("vm.vmdk", &[b'd'; 600]), plain("b.img", &[1; 512])];
    let it = opened(file(&members));
    assert_eq!(read(&it, 0, 600), Ok(vec![b'd'; 600]));
    assert_eq!(findings(&it), ["TL0019"]);
    let sign = recognised(&Tar, file(&members)).expect("an archive");
    assert_eq!(sign.details, [("member", "vm.vmdk".to_string())]);

    // Long names: of GNU, of pax, and in two parts.
    let long = format!("{}/disk.raw", "d".repeat(120));
    let gnu =
        member(header("L", b'L', &format!("{:011o}", long.len() + 1), |_| {}), long.as_bytes());
    let record = format!(" path={long}\n");
    let record = format!("{}{record}", record.len() + 3);
    let pax =
        member(header("x", b'x', &format!("{:011o}", record.len()), |_| {}), record.as_bytes());
    for front in [gnu, pax] {
        let members = [front, plain("cut", &[b'd'; 512]), plain("other.txt", b"")];
        let sign = recognised(&Tar, file(&members)).expect("an archive");
        assert_eq!(sign.details, [("member", long.clone())]);
        assert_eq!(read(&opened(file(&members)), 0, 512), Ok(vec![b'd'; 512]));
    }
    let prefixed = header("disk.img", b'0', "00000001000", |header| {
        header[345..349].copy_from_slice(b"disk");
    });
    let sign = recognised(&Tar, file(&[member(prefixed, &[b'd'; 512])])).expect("an archive");
    assert_eq!(sign.details, [("member", "disk/disk.img".to_string())]);
}

/// A pax header of these records.
fn extended(kind: u8, records: &[&str]) -> Vec<u8> {
    let record = |text: &&str| {
        let rest = format!(" {text}\n");
        format!("{:02}{rest}", rest.len() + 2)
    };
    let records: String = records.iter().map(record).collect();
    let front = header("x", kind, &format!("{:011o}", records.len()), |_| {});
    member(front, records.as_bytes())
}

/// Attributes count for the next file alone, and what has no contents is passed over.
#[test]
fn members_are_found_behind_odd_ones() {
    let disk = || member(header("disk.raw", b'0', "", |_| {}), &[b'd'; 600]);
    let name = member(header("L", b'L', "00000000011", |_| {}), b"long.raw\0");
    let name_of = |members: &[Vec<u8>]| recognised(&Tar, file(members)).map(|sign| sign.details);
    for (front, expected) in [
        (vec![extended(b'x', &["size=600"])], "disk.raw"),
        (vec![extended(b'X', &["size=600"])], "disk.raw"),
        (vec![extended(b'x', &["size=600"]), name], "long.raw"),
        (
            vec![header("link.raw", b'1', "00000001000", |_| {}), extended(b'x', &["size=600"])],
            "disk.raw",
        ),
        (
            vec![header("directory", b'5', "00000001000", |_| {}), extended(b'x', &["size=600"])],
            "disk.raw",
        ),
        (vec![plain("d/._disk.raw", &[1; 512]), extended(b'x', &["size=600"])], "disk.raw"),
        (vec![plain("disk.raw", &[1; 512]), extended(b'x', &["size=600"])], "disk.raw"),
        (vec![extended(b'x', &["size=600", "GNU.sparse.name=own.raw", "path=made/up"])], "own.raw"),
    ] {
        let members = [front, vec![disk()]].concat();
        assert_eq!(name_of(&members), Some(vec![("member", expected.to_string())]), "{expected}");
        if expected != "own.raw" {
            let it = opened(file(&members));
            assert_eq!(read(&it, 0, 600), Ok(vec![b'd'; 600]), "{expected}");
        }
    }
    // Of a header that is too long what it says of the next member is not known.
    let long = member(header("x", b'x', "00001000000", |_| {}), &[b' '; 0o1_000_000]);
    assert_eq!(name_of(&[long, plain("disk.raw", &[1; 512])]), None);
}

/// Begin of a compressed archive: its last member goes on behind what is unpacked.
#[test]
fn an_archive_is_as_long_as_its_members() {
    let far = header("disk.raw", b'0', "100000000000", |_| {});
    let begin = [plain("vm.ovf", b"<xml/>"), far, vec![0x55; 4096]].concat();
    assert_eq!(least(&begin), 1024 + 512 + 0o100_000_000_000);
    assert_eq!(least(&[0; 2048]), 2048);
    // An entry of a table stands in the sector behind the header, and is none of the archive.
    let mut disk = vec![0; 512];
    disk[510..].copy_from_slice(&[0x55, 0xaa]);
    (disk[450], disk[457]) = (0x83, 1);
    disk[458..462].copy_from_slice(&[0, 0, 0, 1]);
    assert_eq!(least(&disk), 0x0200_0000 * 512);
    assert_eq!(least(&plain("disk.raw", &disk)), 1024);
}

#[test]
fn an_archive_without_a_disk_is_none() {
    for members in [vec![plain("a.txt", b"x")], vec![header("disk.raw", b'5', "", |_| {})], vec![]]
    {
        assert!(recognised(&Tar, file(&members)).is_none());
    }
    let mut wrong = plain("disk.raw", &[1; 512]);
    wrong[0] ^= 1;
    assert!(recognised(&Tar, file(&[wrong])).is_none());
}

/// Runs of old GNU tar: 512 bytes at 1024 and at 4096 of a disk of 8192, and more in `further`.
fn gnu_sparse(further: &[Vec<u8>], stored: &[u8]) -> Vec<u8> {
    let size = format!("{:011o}", stored.len());
    let header = header("disk.raw", b'S', &size, |header| {
        header[257..265].copy_from_slice(b"ustar  \0");
        for (nth, first) in [1024, 4096].into_iter().enumerate() {
            let run = format!("{first:011o}\0{:011o}\0", 512);
            header[386 + nth * 24..][..24].copy_from_slice(run.as_bytes());
        }
        header[482] = u8::from(!further.is_empty());
        header[483..494].copy_from_slice(format!("{:011o}", 8192).as_bytes());
    });
    member([header, further.concat()].concat(), stored)
}

#[test]
fn gaps_of_a_sparse_member_are_zeros() {
    let bytes = [[b'a'; 512], [b'b'; 512]].concat();
    let it = opened(file(&[gnu_sparse(&[], &bytes), plain("more.img", b"")]));
    let zeros = [0; 512];
    assert_eq!(read(&it, 512, 1536), Ok([&zeros[..], &bytes[..512], &zeros].concat()));
    assert_eq!(read(&it, 4096, 1024), Ok([&bytes[512..], &zeros].concat()));
    assert_eq!(read(&it, 7680, 512), Ok(zeros.to_vec()));
    // The member behind it is found.
    assert_eq!(findings(&it), ["TL0019"]);

    let mut further = vec![0; 512];
    further[..24].copy_from_slice(format!("{:011o}\0{:011o}\0", 7680, 512).as_bytes());
    let three = [&bytes[..], &[b'c'; 512]].concat();
    let it = opened(file(&[gnu_sparse(&[further], &three), plain("more.img", b"")]));
    assert_eq!(read(&it, 7168, 1024), Ok([&zeros[..], &[b'c'; 512]].concat()));
    assert_eq!(findings(&it), ["TL0019"]);
}

/// A sparse member of POSIX form 1.0 with this map and `stored` behind it.
fn posix_sparse(records: &[&str], map: &str, stored: &[u8]) -> Vec<Vec<u8>> {
    let mut contents = map.as_bytes().to_vec();
    contents.resize(512, 0);
    contents.extend_from_slice(stored);
    vec![extended(b'x', records), plain("GNUSparseFile.0/disk.raw", &contents)]
}

const FORM: [&str; 4] = [
    "GNU.sparse.major=1",
    "GNU.sparse.minor=0",
    "GNU.sparse.name=disk.raw",
    "GNU.sparse.realsize=4096",
];

#[test]
fn a_map_may_be_text() {
    let it = opened(file(&posix_sparse(&FORM, "2\n512\n512\n4096\n0\n", &[b'p'; 512])));
    assert_eq!(read(&it, 0, 1536), Ok([[0; 512], [b'p'; 512], [0; 512]].concat()));
    assert_eq!(read(&it, 3584, 512), Ok(vec![0; 512]));
    for (map, part) in [
        ("", "cannot be true"),
        ("3\n512\n512\n4096\n0\n", "cannot be true"),
        ("2\n1024\n512\n512\n512\n", "cannot be true"),
        ("1\n4096\n512\n", "cannot be true"),
        ("16385\n", "longer than is read"),
        ("1\n-1\n512\n", "cannot be true"),
        ("18446744073709551615\n", "longer than is read"),
        ("18446744073709551616\n", "cannot be true"),
    ] {
        let why = reason(file(&posix_sparse(&FORM, map, &[b'p'; 512])));
        assert!(why.is_some_and(|why| why.contains(part)), "{map:?}: {why:?}");
    }
    let old = posix_sparse(&["GNU.sparse.map=0,512", "GNU.sparse.size=512"], "", &[]);
    assert!(reason(file(&old)).is_some_and(|why| why.contains("form")));
}

#[test]
fn what_cannot_be_true_is_survived() {
    // A size in base 256, and one that no file has.
    for (size, why) in [(600_u64, None), (u64::MAX - 100, Some("it is longer than a disk"))] {
        let header = header("disk.raw", b'0', "", |header| {
            header[124] = 0x80;
            header[128..136].copy_from_slice(&size.to_be_bytes());
        });
        let file = file(&[member(header, &[b'd'; 600])]);
        assert_eq!(reason(file.clone()), why);
        assert_eq!(opened(file).1.is_some(), why.is_none());
    }
    // A cut member, and a map that leads in a circle.
    let whole = plain("disk.raw", &[b'd'; 1024]);
    let it = opened(disk(1024, &[(0, &whole[..1024])]));
    assert_eq!(read(&it, 512, 512), Err(Errno::Io));
    let mut circle = vec![0; 512];
    circle[504] = 1;
    opened(file(&[gnu_sparse(&vec![circle; 3], &[0; 1024])]));
    for members in
        [vec![gnu_sparse(&[], &[1; 1024])], posix_sparse(&FORM, "1\n512\n512\n", &[1; 512])]
    {
        survives(&members.concat(), 0..512);
    }
}
