//! Tables in partitions: what is converted in them, what is refused, and how deep they go.

use super::made::{GUEST, gpt, guest, mbr, sparse};
use super::{TO_LARGE, TO_SMALL, converted, golden, graph, shown};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::convert::{Obstacle, plan};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

/// Partition that is a disk: its first sector on the disk around it.
const AT: u64 = 128;

fn host(inside: &[u8]) -> Vec<u8> {
    gpt(&[(AT, inside.len() as u64 / 512), (2184, 1024)], 2 << 20, &sparse(inside))
}

/// The obstacles of a conversion to large sectors, by provider.
fn obstacles(disk: &[u8]) -> Vec<(String, String)> {
    let first = graph(sparse(disk), 512);
    let found = plan(&first, first.disk(0), TO_LARGE, true).unwrap_err();
    let name = |id: usize| first.providers[id].name.clone();
    found.iter().map(|o| (name(o.id), o.refusal.found.clone())).collect()
}

/// There and back every byte of every partition is the same, but for the FAT, whose files move.
#[test]
fn a_disk_in_a_partition_is_the_same_on_other_sectors() {
    for disk in [host(&guest(48)), host(&mbr(&[]))] {
        let first = graph(sparse(&disk), 512);
        let conversion = plan(&first, first.disk(0), TO_LARGE, true).unwrap();
        assert_eq!(conversion.notes.len(), 1, "{:?}", conversion.notes);
        let large = converted(&sparse(&disk), &conversion);
        let second = graph(large.clone(), 4096);
        assert_eq!(shown(&first), shown(&second));
        let conversion = plan(&second, second.disk(0), TO_SMALL, true).unwrap();
        let third = graph(converted(&large, &conversion), 512);
        assert_eq!(shown(&first), shown(&third));
        let mut compared = 0;
        for (id, p) in first.providers.iter().enumerate() {
            if !p.signs.is_empty() || p.table.is_some() || p.is_data_area() || p.is_extended() {
                continue;
            }
            let read = |graph: &Graph| {
                let length = p.topology.length.min(graph.providers[id].topology.length);
                assert!(length + 4096 > p.topology.length, "{}", p.name);
                let mut bytes = vec![0; usize::try_from(length).unwrap()];
                graph.read_at(id, &mut bytes, 0).unwrap();
                bytes
            };
            assert!(read(&first) == read(&third), "{}", p.name);
            compared += 1;
        }
        assert!(compared >= 3, "{compared}");
    }
}

/// The number of sectors before a FAT counts from the disk that it was made on.
#[test]
fn hidden_sectors_count_from_the_disk_within() {
    for (hidden, wanted) in [(48, 6), (u32::try_from(AT).unwrap() + 48, 22), (47, 47)] {
        let disk = host(&guest(hidden));
        let first = graph(sparse(&disk), 512);
        let conversion = plan(&first, first.disk(0), TO_LARGE, true).unwrap();
        let mut field = [0; 4];
        let after = converted(&sparse(&disk), &conversion);
        after.read_at(&mut field, (AT + 48) * 512 + 28).unwrap();
        assert_eq!(u32::from_le_bytes(field), wanted);
    }
}

/// What is in the way within is named with its own provider.
#[test]
fn what_is_in_the_way_of_a_disk_within_is_named() {
    // A partition off the larger sector, one up to the old table's end, a damaged table.
    let off = gpt(&[(64, 256), (321, 104)], GUEST, &Sparse::new(512));
    assert_eq!(
        obstacles(&host(&off)),
        [("p1p2".into(), "it begins at byte 229888, no multiple of 4096".into())]
    );
    let last = GUEST / 512 - 33;
    let full = gpt(&[(64, 256), (1088, last - 1088)], GUEST, &Sparse::new(512));
    let found = obstacles(&host(&full));
    assert!(found[0].0 == "p1p2" && found[0].1.contains("has no room"), "{found:?}");
    let mut bad = guest(48);
    bad[1024] ^= 1;
    let found = obstacles(&host(&bad));
    assert!(found[0].0 == "p1" && found[0].1.contains("its table is damaged"), "{found:?}");
}

/// A table on a set is no partition's, though the set is on the disk.
#[test]
fn a_table_on_a_set_is_refused() {
    let members = golden().into_iter().filter(|(name, _)| name == "md-partitioned");
    let member = |(n, (_, disk)): (usize, (String, Sparse))| {
        let topology = Topology::new(512, disk.length());
        Disk::new(format!("disk{n}"), Box::new(disk), topology)
    };
    let disks = members.enumerate().map(member).collect();
    let set = Graph::taste(disks, Limits::default());
    let found = plan(&set, set.disk(0), TO_LARGE, true).unwrap_err();
    let is_said = |o: &Obstacle| o.refusal.found.contains("a table of gpt inside a set");
    assert!(found.iter().any(is_said), "{found:?}");
}

/// A GPT in a partition of a GPT, and so on.
fn nest(depth: u32) -> Vec<u8> {
    let mut disk = vec![0x5a; 4096];
    for _ in 0..depth {
        let sectors = disk.len() as u64 / 512;
        disk = gpt(&[(64, sectors)], (64 + sectors + 48) * 512, &sparse(&disk));
    }
    disk
}

#[test]
fn tables_go_so_deep_and_no_further() {
    let disk = nest(8);
    let first = graph(sparse(&disk), 512);
    assert_eq!(first.providers.len(), 9);
    let conversion = plan(&first, first.disk(0), TO_LARGE, true).unwrap();
    let second = graph(converted(&sparse(&disk), &conversion), 4096);
    assert_eq!(shown(&first), shown(&second));
    let found = obstacles(&nest(9));
    assert!(found.len() == 1 && found[0].1 == "it lies in 8 other tables", "{found:?}");
}
