//! Names that are known by their magic alone: what the tools make, or, where none is here, bytes
//! written by hand, is called by us what blkid calls it; and nothing is written over it without a
//! word.

use crate::oracle::{missing_of, tell, tool};
use crate::recipe::Scratch;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const LENGTH: u64 = 64 << 20;

/// Made by their own tools: the name, a program that is needed, and a line of sh that makes `disk`
/// of what is a sparse file.
const MADE: &[(&str, &str, &str)] = &[
    ("bfs", "mkfs.bfs", "mkfs.bfs disk"),
    (
        "cramfs",
        "mkfs.cramfs",
        "mkdir d; echo a > d/a; mkfs.cramfs d made; dd if=made of=disk conv=notrunc",
    ),
    (
        "romfs",
        "genromfs",
        "mkdir d; echo a > d/a; genromfs -d d -f made; dd if=made of=disk conv=notrunc",
    ),
    ("gfs2", "mkfs.gfs2", "mkfs.gfs2 -O -p lock_nolock -J 8 disk"),
    (
        "ocfs2",
        "mkfs.ocfs2",
        "truncate -s 256M disk; echo y | mkfs.ocfs2 -M local --fs-features=local -N 1 disk",
    ),
    ("reiser4", "mkfs.reiser4", "mkfs.reiser4 -fffy disk"),
    (
        "DM_verity_hash",
        "veritysetup",
        "truncate -s 1M data; veritysetup format data made; dd if=made of=disk conv=notrunc",
    ),
    ("atari", "parted", "parted -s disk mklabel atari mkpart primary 1MiB 10MiB"),
];

/// Tables that are read and never written: the class, a program that is needed, a line of sh that
/// makes `disk` of what is a sparse file, and blkid's name.
const READ: &[(&str, &str, &str, &str)] = &[
    ("apm", "parted", "parted -s disk mklabel mac", "mac"),
    ("apm", "parted", "parted -s disk mklabel mac mkpart name hfs+ 1MiB 20MiB", "mac"),
    ("vtoc8", "parted", "parted -s disk mklabel sun", "sun"),
    ("vtoc8", "parted", "parted -s disk mklabel sun mkpart ext2 8MiB 24MiB", "sun"),
    ("vtoc8", "sfdisk", "echo 'label: sun' | sfdisk -q disk", "sun"),
    ("sgi", "parted", "parted -s disk mklabel dvh", "sgi"),
    ("sgi", "parted", "parted -s disk mklabel dvh mkpart primary xfs 8MiB 24MiB", "sgi"),
    ("sgi", "sfdisk", "echo 'label: sgi' | sfdisk -q disk", "sgi"),
    ("rdb", "parted", "parted -s disk mklabel amiga", "amiga"),
    ("rdb", "parted", "parted -s disk mklabel amiga mkpart DH0 affs1 1MiB 20MiB", "amiga"),
];

/// Names that this blkid has not: only ours is asked.
const OURS: &[&str] =
    &["amiga", "dasd", "ldm", "geli", "graid3", "gjournal", "gvirstor", "gshsec", "cs_fvault2"];

/// Bytes at a place, counted from the end if it is negative.
type Runs = Vec<(i64, Vec<u8>)>;

/// Written by hand, after libblkid's and the formats' own headers: magic, and what is checked
/// besides.
fn by_hand() -> Vec<(&'static str, Runs)> {
    let at = |at: i64, bytes: &[u8]| (at, bytes.to_vec());
    let one = |place: i64, bytes: &[u8]| vec![at(place, bytes)];
    let stratis = || {
        let mut sector = vec![0; 512];
        sector[4..20].copy_from_slice(b"!Stra0tis\x86\xff\x02^\x41rh");
        let sum = crc32c(&sector[4..]);
        sector[..4].copy_from_slice(&sum.to_le_bytes());
        sector
    };
    let mpool = || {
        let mut head = vec![0; 66];
        head[..8].copy_from_slice(b"mpoolDev");
        let sum = crc32c(&head[..62]);
        head[62..].copy_from_slice(&sum.to_le_bytes());
        head
    };
    vec![
        ("aix", one(0, b"\xc9\xc2\xd4\xc1")),
        ("ultrix", one(16312, b"\x57\x29\x03\0\x01\0\0\0")),
        ("dasd", one(1028, b"\xe5\xd6\xd3\xf1")),
        ("dasd", one(8192, b"\xd3\xd5\xe7\xf1")),
        ("ldm", one(3072, b"PRIVHEAD")),
        ("ddf_raid_member", vec![at(-512, b"\xde\x11\xde\x11"), at(-480, b"01.02.00")]),
        ("ceph_bluestore", one(0, b"bluestore block device\n")),
        ("drbdmanage_control_volume", one(0, b"$DRBDmgr=q:0123456789abcdef0123456789abcdef\n")),
        ("drbdproxy_datalog", one(0, b"DRBDdlh*")),
        ("LVM1_member", one(0, b"HM\x01\0")),
        ("DM_snapshot_cow", one(0, b"SnAp")),
        ("DM_integrity", one(0, b"integrt\0\x01")),
        ("VMFS_volume_member", one(1 << 20, b"\x0d\xd0\x01\xc0")),
        ("VMFS", one(2 << 20, b"\x5e\xf1\xab\x2f")),
        ("ubi", one(0, b"UBI#")),
        ("ubifs", one(0, b"\x31\x18\x10\x06")),
        ("stratis", vec![(512, stratis())]),
        ("cs_fvault2", vec![at(8, &[1, 0, 0x10, 0]), at(88, b"CS\x01\0\0\0")]),
        ("mpool", vec![(0, mpool())]),
        ("oracleasm", one(32, b"ORCLDISK")),
        ("geli", one(-512, b"GEOM::ELI")),
        ("graid3", one(-512, b"GEOM::RAID3")),
        ("gjournal", one(-512, b"GEOM::JOURNAL")),
        ("gvirstor", one(-512, b"GEOM::VIRSTOR")),
        ("gshsec", one(-512, b"GEOM::SHSEC")),
        (
            "xfs_external_log",
            vec![at(0, b"\xfe\xed\xba\xbe\0\0\0\x01\0\0\0\x02\0\0\x02\0"), at(300, &[0, 0, 0, 1])],
        ),
        ("hpfs", vec![at(8192, b"\x49\xe8\x95\xf9"), at(8704, b"\x49\x18\x91\xf9")]),
        ("sysv", one(10232, b"\x20\x7e\x18\xfd")),
        ("xenix", one(2048, b"\x2b\x55\x44")),
        ("ReFS", one(0, b"\0\0\0ReFS\0")),
        ("squashfs3", vec![at(0, b"sqsh"), at(28, &[0, 3])]),
        ("gfs", vec![at(65536, b"\x01\x16\x19\x70"), at(65560, &[0, 0, 5, 0x1d, 0, 0, 5, 0x79])]),
        ("ocfs", one(8192, b"OracleCFS")),
        ("vxfs", one(1024, b"\xf5\xfc\x01\xa5")),
        ("nss", one(4096, b"SPB5")),
        (
            "befs",
            vec![
                at(544, b"1SFBEGIB\0\x08\0\0\x0b\0\0\0"),
                at(580, b"\x31\x10\x12\xdd"),
                at(624, b"\x0e\x83\xb6\x15\0\0\0\0\x01\0\x01\0"),
                at(2048, b"\xd9\x0a\xbe\x3b"),
            ],
        ),
        ("isw_raid_member", one(-1024, b"Intel Raid ISM Cfg Sig. 1.0.00")),
        ("lsi_mega_raid_member", one(-512, b"$XIDE$")),
        ("via_raid_member", vec![at(-512, b"\x55\xaa"), at(-462, b"\xff")]),
        (
            "silicon_medley_raid_member",
            vec![at(-512 + 0x60, b"\0\0\0\x2f"), at(-512 + 0x13e, b"\0\xd1")],
        ),
        ("nvidia_raid_member", one(-1024, b"NVIDIA")),
        ("promise_fasttrack_raid_member", one(-63 * 512, b"Promise Technology, Inc.")),
        ("promise_fasttrack_raid_member", one(-3087 * 512, b"Promise Technology, Inc.")),
        ("hpt45x_raid_member", one(-11 * 512, b"\xf3\x16\x78\x5a")),
        ("hpt37x_raid_member", one(4640, b"\xf0\x16\x78\x5a")),
        ("adaptec_raid_member", vec![at(-512, b"\x37\xfc\x4d\x1e"), at(-256, b"DPTM")]),
        ("jmicron_raid_member", one(-512, b"JM\x01\x01\xb5\xb1")),
    ]
}

#[test]
fn nothing_is_written_over_a_table_that_is_only_read() {
    let mut wrong = Vec::new();
    for (nth, (class, program, made, name)) in READ.iter().enumerate() {
        if let Some(missing) = missing_of([*program]) {
            tell(&format!("known: skipped {class}: no {missing} here"));
            assert!(
                !std::env::var("TRUELINE_ORACLE").is_ok_and(|v| v == "all"),
                "TRUELINE_ORACLE=all: {missing}"
            );
            continue;
        }
        let scratch = Scratch::new(&format!("read-{nth}"));
        File::create(scratch.path().join("disk"))
            .and_then(|disk| disk.set_len(LENGTH))
            .expect("a disk");
        let ran = tool("sh", &["-c", made], scratch.path()).expect("sh");
        let found = read_only(class, name, scratch.path());
        wrong.extend(found.map(|why| {
            format!("{class}: {made}: {why}: {}", String::from_utf8_lossy(&ran.stderr))
        }));
    }
    assert!(wrong.is_empty(), "{}\n{} are wrong", wrong.join("\n"), wrong.len());
}

/// The flaw in what we say and do of `disk`, which has a table of `class` on it: edits are refused,
/// and it is found no more once it has been written over.
fn read_only(class: &str, name: &str, directory: &Path) -> Option<String> {
    let table = format!("\"scheme\": \"{class}\"");
    let (code, said) = trueline("part show disk", directory);
    if code != Some(0) || !said.contains(class) || !said.contains("[READ ONLY]") {
        return Some(format!("part show disk ends with {code:?}: {said}"));
    }
    for verb in [
        "part add -t linux-data disk",
        "part delete -i 1 disk",
        "part resize -i 1 -s 5m disk",
        "part destroy disk",
        "part recover disk",
    ] {
        let before = fs::read(directory.join("disk")).expect("the disk");
        let (code, said) = trueline(verb, directory);
        if code != Some(2)
            || !said.contains(class)
            || fs::read(directory.join("disk")).expect("the disk") != before
        {
            return Some(format!("{verb} ends with {code:?}: {said}"));
        }
    }
    let (_, said) = trueline("check --json disk", directory);
    if !said.contains(&table) {
        return Some(format!("check says {said}"));
    }
    named_by_blkid(name, directory).or_else(|| kept(class, &table, directory))
}

/// CRC-32C, bit by bit.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

#[test]
fn blkid_has_the_same_names_and_nothing_is_written_over() {
    let mut wrong = Vec::new();
    for (nth, (name, program, made)) in MADE.iter().enumerate() {
        if let Some(missing) = missing_of([*program]) {
            tell(&format!("known: skipped {name}: no {missing} here"));
            assert!(
                !std::env::var("TRUELINE_ORACLE").is_ok_and(|v| v == "all"),
                "TRUELINE_ORACLE=all: {missing}"
            );
            continue;
        }
        let scratch = Scratch::new(&format!("known-made-{nth}"));
        File::create(scratch.path().join("disk"))
            .and_then(|disk| disk.set_len(LENGTH))
            .expect("a disk");
        let ran = tool("sh", &["-c", made], scratch.path()).expect("sh");
        wrong.extend(
            compare(name, scratch.path()).map(|why| {
                format!("{name}: {made}: {why}: {}", String::from_utf8_lossy(&ran.stderr))
            }),
        );
    }
    for (nth, (name, runs)) in by_hand().into_iter().enumerate() {
        let scratch = Scratch::new(&format!("known-hand-{nth}"));
        let disk = File::create(scratch.path().join("disk")).expect("a disk");
        disk.set_len(LENGTH).expect("its length");
        for (at, bytes) in &runs {
            let at = if *at < 0 { LENGTH - at.unsigned_abs() } else { at.unsigned_abs() };
            disk.write_all_at(bytes, at).expect("a write");
        }
        wrong.extend(compare(name, scratch.path()).map(|why| format!("{name}: {runs:?}: {why}")));
    }
    assert!(wrong.is_empty(), "{}\n{} are wrong", wrong.join("\n"), wrong.len());
}

/// The fault in our report on `disk`, which holds `name`, if any.
fn compare(name: &str, directory: &Path) -> Option<String> {
    let (code, said) = trueline("check --strict --json disk", directory);
    let sign = format!("\"sign\": \"{name}\"");
    // What is never written in place is aligned.
    let want = if matches!(name, "cramfs" | "romfs" | "squashfs3") { Some(0) } else { Some(3) };
    if code != want || !said.contains(&sign) {
        return Some(format!("check --strict ends with {code:?}: {said}"));
    }
    named_by_blkid(name, directory).or_else(|| kept(name, &sign, directory))
}

/// The output of the program on the disk in `directory`, and how it ends.
fn trueline(words: &str, directory: &Path) -> (Option<i32>, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(words.split_whitespace())
        .current_dir(directory)
        .output();
    let ran = ran.expect("trueline");
    (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
}

/// The words of blkid, where it has another name for `disk`.
fn named_by_blkid(name: &str, directory: &Path) -> Option<String> {
    if OURS.contains(&name) {
        return None;
    }
    let probed = tool("blkid", &["-p", "-o", "export", "disk"], directory).expect("blkid");
    let theirs = String::from_utf8_lossy(&probed.stdout).into_owned();
    let named = |line: &str| line == format!("TYPE={name}") || line == format!("PTTYPE={name}");
    (!theirs.lines().any(named)).then(|| format!("blkid says {theirs:?}"))
}

/// The command that writes over `disk` without being told to, or leaves what is `shown` in JSON
/// when it is told; `name` is what a refusal calls it.
fn kept(name: &str, shown: &str, directory: &Path) -> Option<String> {
    let before = fs::read(directory.join("disk")).expect("the disk");
    File::create(directory.join("other"))
        .and_then(|other| other.set_len(LENGTH))
        .expect("another disk");
    for verb in [
        "part create -s gpt disk",
        "part create -s mbr disk",
        "part create -s bsd disk",
        "mkfs ufs disk",
        "mkfs swap disk",
        "stripe label data disk other",
    ] {
        let (code, said) = trueline(verb, directory);
        // A label of GEOM's own is named as such.
        let named = said.contains(name) || said.contains("GEOM::");
        if code != Some(2)
            || !named
            || fs::read(directory.join("disk")).expect("the disk") != before
        {
            return Some(format!("{verb} ends with {code:?}: {said}"));
        }
    }
    let (code, said) = trueline("part create -s gpt --overwrite disk", directory);
    let (again, after) = trueline("part destroy disk", directory);
    let (_, left) = trueline("check --json disk", directory);
    let gone = !left.contains(shown);
    (code != Some(0) || again != Some(0) || !gone)
        .then(|| format!("part create --overwrite: {said}{after}{left}"))
}
