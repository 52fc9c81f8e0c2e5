use super::*;
use crate::os::openbsd_ffs::{self, OpenbsdFfs};
use crate::workload::recorder::Recorder;
use std::io::Cursor;

fn sizes(files: u64) -> Sizes {
    Sizes { files, ..Sizes::default() }
}

fn listed(plan: &TreeSource, backwards: bool) -> Vec<TreeEntry> {
    let mut entries = Vec::new();
    plan.walk(backwards, &mut |entry| {
        entries.push(entry.clone());
        Ok(true)
    })
    .unwrap();
    entries
}

#[test]
fn a_seeded_tree_is_lognormal() {
    let entries = listed(&TreeSource::Seeded(sizes(20_000)), false);
    let mut bytes: Vec<u64> = entries.iter().filter_map(|entry| entry.size).collect();
    bytes.sort_unstable();
    let (median, mean) = (bytes[10_000], bytes.iter().sum::<u64>() / 20_000);
    assert!((3900..4300).contains(&median), "{median}");
    assert!((9500..11_000).contains(&mean), "{mean}");
    assert_eq!(entries.len() as u64, TreeSource::Seeded(sizes(20_000)).entries());
    assert_ne!(entries, listed(&TreeSource::Seeded(Sizes { seed: 2, ..sizes(20_000) }), false));
}

#[test]
fn more_files_than_memory_holds_are_refused() {
    assert!(TreeSource::Seeded(sizes(1 << 21)).check().is_ok());
    let words = TreeSource::Seeded(sizes((1 << 21) + 1)).check().unwrap_err().message;
    assert!(
        words.starts_with("2097153 files, ")
            && words.contains("1 to 2097152 files, as all are kept in memory"),
        "{words}"
    );
}

#[test]
fn directories_come_before_what_is_in_them_and_go_after() {
    let plan = TreeSource::Seeded(sizes(1000));
    let there =
        |entries: &[TreeEntry], name: &str| entries.iter().position(|entry| entry.name == name);
    for backwards in [false, true] {
        let entries = listed(&plan, backwards);
        for (n, entry) in entries.iter().enumerate() {
            let Some((above, _)) = entry.name.rsplit_once('/') else { continue };
            let above = there(&entries, above).unwrap();
            assert_eq!(above < n, !backwards, "{}", entry.name);
            assert!(entries[above].size.is_none());
        }
    }
}

#[test]
fn unpacked_copied_deleted() {
    let mut rig = Recorder::new(1 << 30);
    let mut files = OpenbsdFfs::new(&mut rig, openbsd_ffs::Parameters::default()).unwrap();
    let parameters = Parameters { plan: TreeSource::Seeded(sizes(300)), think_ns: 1000 };
    let runs = run(&mut files, &parameters, Phase::Delete, &mut |_| true).unwrap();
    assert_eq!(
        runs.iter().map(|(phase, _)| phase.name()).collect::<Vec<_>>(),
        ["unpack", "copy", "delete"]
    );
    assert!(runs.iter().all(|(_, run)| run.ops == parameters.plan.entries() && run.ns > 0));
    assert_eq!(runs[0].1.bytes, runs[1].1.bytes);
    assert!(files.stat("d0").is_err() && files.stat("trueline-copy/d0").is_ok());
    clean(&mut files, &parameters, Phase::Delete).unwrap();
    assert!(files.stat("trueline-copy").is_err());
}

#[test]
fn watched_and_stopped() {
    let mut rig = Recorder::new(1 << 30);
    let mut files = OpenbsdFfs::new(&mut rig, openbsd_ffs::Parameters::default()).unwrap();
    let runs =
        run(&mut files, &Parameters::default(), Phase::Unpack, &mut |asked| asked < 10).unwrap();
    assert_eq!((runs.len(), runs[0].1.ops), (1, 10));
}

/// One header, with its checksum.
fn header(name: &str, kind: u8, size: u64) -> [u8; 512] {
    let mut record = [0; 512];
    record[..name.len()].copy_from_slice(name.as_bytes());
    record[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    record[156] = kind;
    record[257..263].copy_from_slice(b"ustar\0");
    seal(&mut record);
    record
}

fn seal(record: &mut [u8; 512]) {
    record[148..156].fill(b' ');
    let sum: u64 = record.iter().map(|&byte| u64::from(byte)).sum();
    record[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

/// Headers and their contents, each in whole records.
fn archive(parts: &[([u8; 512], &[u8])]) -> Cursor<Vec<u8>> {
    let mut bytes = Vec::new();
    for (header, content) in parts {
        bytes.extend(header);
        bytes.extend(*content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1024]);
    Cursor::new(bytes)
}

fn names(entries: &[TreeEntry]) -> Vec<(&str, Option<u64>)> {
    entries.iter().map(|entry| (entry.name.as_str(), entry.size)).collect()
}

#[test]
fn a_tarball_is_listed() {
    let record = |key: &str, value: &str| {
        let line = format!(" {key}={value}\n");
        let length = (line.len() + 2).max(line.len() + (line.len() + 2).to_string().len());
        format!("{length}{line}")
    };
    let pax = record("path", "a/very/long/name.txt") + &record("size", "5");
    let mut archive = archive(&[
        (header("./d/", b'5', 0), b""),
        (header("d/f", b'0', 3), b"abc"),
        (header("pax", b'x', pax.len() as u64), pax.as_bytes()),
        (header("short", b'0', 5), b"12345"),
        (header("././@LongLink", b'L', 4), b"g/h\0"),
        (header("cut", b'0', 600), &[7; 600]),
        (header("link", b'2', 0), b""),
        (header("d/f", b'0', 1), b"x"),
    ]);
    let entries = tar::list(&mut archive).unwrap();
    let expected = [
        ("d", None),
        ("d/f", Some(3)),
        ("a", None),
        ("a/very", None),
        ("a/very/long", None),
        ("a/very/long/name.txt", Some(5)),
        ("g", None),
        ("g/h", Some(600)),
    ];
    assert_eq!(names(&entries), expected);
}

#[test]
fn what_is_no_tarball_is_said() {
    let list = |bytes: &[u8]| {
        tar::list(&mut Cursor::new(bytes))
            .map(|entries| entries.len())
            .map_err(|error| error.message)
    };
    let mut gzip = vec![0x1f, 0x8b];
    gzip.resize(512, 1);
    assert_eq!(
        list(&gzip).unwrap_err(),
        "read the tar archive at 0: it is compressed with gzip: unpack it first"
    );
    assert_eq!(
        list(&[1; 512]).unwrap_err(),
        "read the tar archive at 0: not a tar header: its checksum is wrong"
    );
    assert!(list(&[]).is_err());
    assert!(list(&header("../a", b'0', 0)).unwrap_err().contains("leads outside"));
    let mut huge = header("a", b'0', 0);
    huge[124..136].fill(0xff);
    seal(&mut huge);
    assert!(list(&huge).is_err());
    // Cut short after a whole header: what was there is a list.
    assert_eq!(list(&header("a", b'0', 0)).unwrap(), 1);
}

/// Names of 4096 bytes, each below 2000 directories that the archive does not list: 4 MB of names
/// in 5 kB of archive.
#[test]
fn a_small_tarball_of_many_names_is_refused() {
    let deep = |nth: u32| format!("{nth:04x}/{}", "a/".repeat(2000));
    let mut bytes = Vec::new();
    for nth in 0..100 {
        let name = deep(nth);
        bytes.extend(header("././@LongLink", b'L', name.len() as u64));
        bytes.extend(name.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes.extend(header("cut", b'5', 0));
    }
    let said = tar::list(&mut Cursor::new(bytes)).map(|entries| entries.len()).unwrap_err();
    assert!(said.message.ends_with("names of more than 268435456 bytes"), "{said}");
}
