//! Members of GEOM's sets, whose metadata are in their last sector, on sectors of another size.

use super::made::{bytes, gpt, sparse};
use super::{BOTH, TO_LARGE, TO_SMALL, converted, golden, graph, shown};
use crate::medium::Random;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::class::metadata::{Component, Label, Labelled};
use trueline_geom::class::{concat, mirror, stripe};
use trueline_geom::convert::plan;
use trueline_geom::graph::Graph;

/// First sector of the first member.
const FIRST: u64 = 128;

/// A GPT whose second and third partitions, of so many sectors, are members of a set that `class`
/// labels. The set has a squashfs at its start; a stripe has random bytes in all of its chunks.
pub(super) fn set(class: &str, sectors: [u64; 2]) -> Vec<u8> {
    let second = FIRST + sectors[0].next_multiple_of(8);
    let parts = [(64, 8), (FIRST, sectors[0]), (second, sectors[1])];
    let mut disk = gpt(&parts, 1 << 20, &Sparse::new(512));
    let component = |&n: &u64| Component { length: n * 512, sector: 512, hardcoded: None };
    let components: Vec<Component> = sectors.iter().map(component).collect();
    let label = Label { name: "data", id: 7, components: &components };
    let options = mirror::Options {
        balance: "load",
        slice: 4096,
        no_autosync: false,
        no_failsync: false,
        ids: &[1, 2],
    };
    let labels: Vec<Labelled> = match class {
        "mirror" => mirror::label(&label, &options).unwrap(),
        "stripe" => stripe::label(&label, 16 << 10).unwrap(),
        _ => concat::label(&label).unwrap(),
    };
    let (_, inside) = golden().into_iter().find(|(name, _)| name == "squashfs-default").unwrap();
    let mut random = Random(17);
    for (n, (start, label)) in [FIRST, second].into_iter().zip(labels).enumerate() {
        let from = usize::try_from(start * 512).unwrap();
        let length = usize::try_from(components[n].length).unwrap();
        let member = &mut disk[from..from + length];
        member.fill(0);
        if class == "stripe" {
            for byte in &mut member[4096..200 << 10] {
                *byte = u8::try_from(random.next(256)).unwrap();
            }
        }
        if n == 0 || class == "mirror" {
            inside.read_at(&mut member[..4096], 0).unwrap();
        }
        member[length - 512..].copy_from_slice(&label.sector);
    }
    disk
}

/// The bytes of the set on a disk.
fn contents(graph: &Graph) -> Vec<u8> {
    let set = graph.providers.iter().position(|p| p.is_set).unwrap();
    let mut bytes = vec![0; usize::try_from(graph.providers[set].topology.length).unwrap()];
    graph.read_at(set, &mut bytes, 0).unwrap();
    bytes
}

fn refused(disk: &[u8]) -> String {
    let first = graph(sparse(disk), 512);
    let found = plan(&first, first.disk(0), TO_LARGE, true).unwrap_err();
    found.iter().map(|o| o.refusal.found.as_str()).collect::<Vec<_>>().join("; ")
}

/// Sets have the same bytes on other sectors, and their metadata in the last one.
#[test]
fn sets_are_the_same_on_other_sectors() {
    for (class, sectors, lost, returns) in [
        ("mirror", [512, 512], 3584, true),
        // Members off the larger sector have room for all of the set.
        ("mirror", [513, 513], 0, true),
        ("mirror", [515, 600], 1024, true),
        ("stripe", [512, 512], 0, true),
        ("stripe", [515, 520], 0, true),
        // The first one's data end where they did, and would not on the way back.
        ("concat", [513, 512], 3584, false),
    ] {
        let disk = set(class, sectors);
        let first = graph(sparse(&disk), 512);
        assert!(first.find(&format!("{class}/data")).is_some(), "{class} {sectors:?}");
        let conversion = plan(&first, first.disk(0), TO_LARGE, true)
            .unwrap_or_else(|why| panic!("{class} {sectors:?}: {why:?}"));
        assert_eq!(conversion.rewritten.len(), 2);
        let large = converted(&sparse(&disk), &conversion);
        let second = graph(large.clone(), 4096);
        assert_eq!(shown(&first), shown(&second), "{class} {sectors:?}");
        let (before, after) = (contents(&first), contents(&second));
        assert_eq!(before.len() - after.len(), lost, "{class} {sectors:?}");
        assert!(before[..after.len()] == after[..], "{class} {sectors:?}");
        // Nothing of the old metadata is left.
        let magic = |disk: &Sparse| bytes(disk).windows(6).filter(|part| part == b"GEOM::").count();
        assert_eq!(magic(&large), 2);
        let back = plan(&second, second.disk(0), TO_SMALL, true);
        assert_eq!(back.is_ok(), returns, "{class} {sectors:?}");
        let Ok(conversion) = back else { continue };
        let third = converted(&large, &conversion);
        assert_eq!(magic(&third), 2);
        let third = graph(third, 512);
        assert_eq!(shown(&first), shown(&third), "{class} {sectors:?}");
        assert!(contents(&third) == after, "{class} {sectors:?}");
    }
}

/// Bytes where the metadata would be, unknown contents, chunks, the next member's place.
#[test]
fn sets_that_would_lose_bytes_are_refused() {
    let place = |n: u64| usize::try_from((FIRST + n) * 512).unwrap();
    for class in ["mirror", "stripe"] {
        let mut disk = set(class, [512, 512]);
        disk[place(505)] = 1;
        let found = refused(&disk);
        assert!(found.contains("there are bytes from byte 258048 on"), "{class}: {found}");
    }
    let mut disk = set("mirror", [512, 512]);
    // No squashfs on either member.
    (disk[place(0)], disk[place(512)]) = (0, 0);
    let found = refused(&disk);
    assert!(found.contains("its set would have 258048 bytes, and what is in it"), "{found}");
    let found = refused(&set("concat", [512, 512]));
    let wanted = "the next member's data begin 261632 bytes after its own, and would begin 258048";
    assert!(found.contains(wanted), "{found}");
    let first = graph(sparse(&set("stripe", [512, 512])), 512);
    let found = plan(&first, first.disk(0), BOTH, true).unwrap_err();
    let is_said = found.iter().any(|o| o.refusal.found.contains("cannot be one for both"));
    assert!(is_said, "{found:?}");
}

/// Metadata in the last sector that are only known by name, in either direction.
#[test]
fn other_metadata_in_the_last_sector_are_refused() {
    for (aim, sector) in [(TO_LARGE, 512), (TO_SMALL, 4096)] {
        let length = 1 << 20;
        let mut disk = Sparse::new(length);
        let (_, inside) =
            golden().into_iter().find(|(name, _)| name == "squashfs-default").unwrap();
        let mut bytes = [0; 4096];
        inside.read_at(&mut bytes, 0).unwrap();
        disk.put(0, &bytes);
        let plain = graph(disk.clone(), sector);
        assert!(plan(&plain, plain.disk(0), aim, true).is_ok());
        disk.put(length - sector, b"GEOM::LABEL\0\0\0\0\0");
        let first = graph(disk, sector);
        let found = plan(&first, first.disk(0), aim, true).unwrap_err();
        assert!(found[0].refusal.found.contains("of GEOM::LABEL are in its last"), "{found:?}");
    }
}

/// A label of a provider that has a table: it is of the disk, or of the partition that ends there.
#[test]
fn a_label_under_a_table_is_refused() {
    for (sectors, on) in [(1024_u32, Some("")), (2048 - 64, Some("s1")), (1024, None)] {
        let mut disk = vec![0; 1 << 20];
        disk[446 + 4] = 0x83;
        disk[446 + 8] = 64;
        disk[446 + 12..446 + 16].copy_from_slice(&sectors.to_le_bytes());
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        if on.is_some() {
            let last = disk.len() - 512;
            disk[last..last + 11].copy_from_slice(b"GEOM::LABEL");
        }
        let first = graph(sparse(&disk), 512);
        let found = plan(&first, first.disk(0), TO_LARGE, true);
        let Some(on) = on else {
            assert!(found.is_ok(), "{found:?}");
            continue;
        };
        let found = found.unwrap_err();
        let is_named = found.iter().any(|o| {
            let name = &first.providers[o.id].name;
            name == on && o.refusal.found.contains("of GEOM::LABEL are in its last sector")
        });
        assert!(is_named, "{sectors}: {found:?}");
    }
}

/// A member of which the others are elsewhere.
#[test]
fn a_set_that_is_not_all_here_is_converted_where_it_keeps_its_length() {
    for (name, wanted) in [("stripe-16k", true), ("concat-two", false)] {
        let (_, disk) = golden().into_iter().find(|(found, _)| found == name).unwrap();
        let first = graph(disk.clone(), 512);
        let found = plan(&first, first.disk(0), TO_LARGE, true);
        assert_eq!(found.is_ok(), wanted, "{name}: {found:?}");
        let Ok(conversion) = found else { continue };
        let second = graph(converted(&disk, &conversion), 4096);
        let member = |graph: &Graph| {
            let (class, member) = graph.providers[0].member.clone().unwrap();
            (class, member.set, member.number, member.chunk)
        };
        assert_eq!(member(&first), member(&second));
    }
}
