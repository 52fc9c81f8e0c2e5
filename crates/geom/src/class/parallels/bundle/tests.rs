//! Descriptors written by hand, by QEMU's document: storages, snapshots, refusals.

use super::super::super::container::tests::{findings, opened, opened_among, read, reason};
use super::super::tests::image;
use super::super::{BY_CLUSTERS, BY_SECTORS};
use crate::base::store::Sparse;
use crate::format::tests::disk;

const ROOT: &str = "{11111111-0000-0000-0000-000000000001}";
const ZERO: &str = "{00000000-0000-0000-0000-000000000000}";
const TOP: &str = "{5FBAABE3-6958-40ff-92a7-860e329aab41}";

fn an_image(guid: &str, kind: &str, file: &str) -> String {
    format!("<Image><GUID>{guid}</GUID><Type>{kind}</Type><File>{file}</File></Image>\n")
}

fn storage(start: u64, end: u64, images: &str) -> String {
    format!(
        "<Storage><Start>{start}</Start><End>{end}</End><Blocksize>8</Blocksize>{images}</Storage>"
    )
}

fn shot(guid: &str, parent: &str) -> String {
    format!("<Shot><GUID>{guid}</GUID><ParentGUID>{parent}</ParentGUID></Shot>\n")
}

fn descriptor(sectors: u64, storages: &str, snapshots: &str) -> String {
    format!(
        "<?xml version='1.0' encoding='UTF-8'?>\n<Parallels_disk_image Version=\"1.0\">\n\
         <Disk_Parameters><Disk_size>{sectors}</Disk_size><Padding>0</Padding>\
         <Encryption><Engine>{ZERO}</Engine></Encryption></Disk_Parameters>\n\
         <StorageData>{storages}</StorageData>\n<Snapshots>{snapshots}</Snapshots>\n\
         </Parallels_disk_image>\n"
    )
}

fn text(xml: &str) -> Sparse {
    disk(xml.len() as u64, &[(0, xml.as_bytes())])
}

/// Two storages of three clusters of 4 KiB, each with a first image and one above it. Of the second
/// the first is plain.
#[test]
fn an_absent_cluster_is_the_one_of_the_snapshot_below() {
    let images = |n: u8, kind: &str| {
        an_image(ROOT, kind, &format!("{n}.root"))
            + &an_image(TOP, "Compressed", &format!("{n}.top"))
    };
    let storages = storage(24, 48, &images(1, "Plain")) + &storage(0, 24, &images(0, "Compressed"));
    let xml = descriptor(48, &storages, &(shot(TOP, ROOT) + &shot(ROOT, ZERO)));
    let of = |magic, entry, bytes: &[(u64, u8)]| {
        let file = image(magic, 8, entry);
        let full: Vec<(u64, Vec<u8>)> = bytes.iter().map(|&(at, n)| (at, vec![n; 4096])).collect();
        let mut runs: Vec<(u64, &[u8])> = vec![(0, &file)];
        runs.extend(full.iter().map(|(at, bytes)| (*at, &bytes[..])));
        disk(1 << 20, &runs)
    };
    let mut empty = image(BY_CLUSTERS, 8, 0);
    empty[72..76].fill(0);
    let it = opened_among(vec![
        ("", text(&xml), vec![("0.root", 1), ("0.top", 2), ("1.root", 3), ("1.top", 4)]),
        ("0.root", of(BY_SECTORS, 8, &[(4096, b'a'), (8192, b'c')]), vec![]),
        ("0.top", disk(1 << 20, &[(0, &empty)]), vec![]),
        ("1.root", disk(12288, &[(0, &[b'x'; 4096]), (4096, &[b'y'; 8192])]), vec![]),
        ("1.top", of(BY_CLUSTERS, 1, &[(4096, b'n'), (8192, b'o')]), vec![]),
    ]);
    let expected: Vec<u8> =
        [b'a', 0, b'c', b'n', b'y', b'o'].into_iter().flat_map(|n| [n; 4096]).collect();
    assert_eq!(read(&it, 0, 24576).map(|bytes| bytes == expected), Ok(true));
    assert_eq!(findings(&it), Vec::<&str>::new());
}

#[test]
fn what_is_not_as_the_document_has_it_is_unknown() {
    let one = an_image(ROOT, "Plain", "a");
    let whole = storage(0, 8, &one);
    let good = descriptor(8, &whole, "");
    // Files that are not here make it no less a disk.
    assert_eq!(reason(text(&good)), None);
    let looped = shot(ROOT, ROOT);
    let named = format!("<TopGUID>{ROOT}</TopGUID>");
    for (xml, part) in [
        (descriptor(9, &whole, ""), "as large"),
        (descriptor(0, "", ""), "as large"),
        (descriptor(8, &storage(1, 8, &one), ""), "behind another"),
        (descriptor(8, &storage(8, 0, &one), ""), "behind another"),
        (descriptor(8, &(storage(0, 4, &one) + &storage(3, 8, &one)), ""), "behind another"),
        (descriptor(8, &storage(0, 8, ""), ""), "damaged"),
        (descriptor(u64::MAX, &storage(0, u64::MAX, &one), ""), "damaged"),
        (descriptor(8, &whole, &shot(ROOT, ZERO)), "does not list"),
        (descriptor(8, &whole, &(named.clone() + &looped)), "more snapshots"),
        (descriptor(8, &whole, &shot(TOP, ZERO)), "lacks the image"),
        (good.replace("Plain", "Odd"), "type"),
        (good.replace("<File>a", "<File>&lt;"), "damaged"),
        (good.replace("</File>", ""), "damaged"),
        (good.replace("</Storage>", ""), "damaged"),
        (good.replace("<Padding>0", "<Padding>1"), "padding"),
        (good.replace(&format!("<Engine>{ZERO}"), &format!("<Engine>{ROOT}")), "encrypted"),
        (good.replace("<Disk_size>8", "<Disk_size>x"), "damaged"),
        (good.replace("<StorageData>", "<!-- --><StorageData>"), "not as Parallels"),
        (good.replace("<Parallels", "<!DOCTYPE x><Parallels"), "not as Parallels"),
        (good + &" ".repeat(64 << 10), "longer"),
    ] {
        let why = reason(text(&xml));
        assert!(why.is_some_and(|why| why.contains(part)), "{part}: {why:?}: {xml}");
    }
    let named = descriptor(8, &whole, &(named + &shot(ROOT, ZERO)));
    assert_eq!(reason(text(&named)), None);
    // Other XML is no disk, nor is one that ends before it says anything.
    for other in ["<?xml version='1.0'?><plist/>", "<?xml", "<Parallels_disk_image>"] {
        assert!(opened(text(other)).1.is_none(), "{other}");
    }
}
