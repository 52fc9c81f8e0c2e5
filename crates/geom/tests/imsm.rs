//! Volumes of Intel's firmware RAID: which disk is which, and what is named and not read. The
//! kernel's own are compared in `crates/cli/tests/disks/sets.rs`.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use trueline_geom::base::finding::{BLIND, INCOMPLETE, UNREAD};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Fact, Topology, Why};
use trueline_geom::format::{Inside, imsm};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

const CHUNK: u64 = 4096;
/// First byte of the volume on every disk, and its bytes there.
const START: u64 = 8192;
const SHARE: u64 = 16 * CHUNK;
const LENGTH: u64 = 1 << 20;

/// Metadata of a container of one volume.
#[derive(Clone)]
struct Container {
    level: u8,
    /// Lengths of the disks, whose serial numbers are `SN0`, `SN1` and so on.
    lengths: Vec<u64>,
    /// Bytes of a sector.
    sector: u64,
    generation: u32,
    attributes: u32,
    /// Disk that failed.
    failed: Option<usize>,
    state: u8,
    dirty: u8,
    /// Type of work under way.
    migration: Option<u8>,
    /// Length of the volume beside what its map has.
    excess: i64,
    start: u64,
    /// Bad blocks: disk, sector.
    bad: Vec<(u8, u16)>,
}

fn container(level: u8, disks: usize) -> Container {
    Container {
        level,
        lengths: vec![LENGTH; disks],
        sector: 512,
        generation: 4,
        attributes: 0x8000_0000,
        failed: None,
        state: 0,
        dirty: 0,
        migration: None,
        excess: 0,
        start: START,
        bad: Vec::new(),
    }
}

fn put(block: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    block.resize(block.len().max(at + bytes.len()), 0);
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

fn number(block: &mut Vec<u8>, at: usize, value: u64) {
    put(block, at, &u32::try_from(value).unwrap().to_le_bytes());
}

impl Container {
    fn sectors(&self, bytes: u64) -> u64 {
        bytes / self.sector
    }

    fn map(&self, block: &mut Vec<u8>, rebuilding: bool) {
        let (at, disks) = (block.len(), self.lengths.len());
        number(block, at, self.sectors(self.start));
        number(block, at + 4, self.sectors(SHARE));
        let copies = if self.level == 1 { 2 } else { 1 };
        number(block, at + 8, SHARE / CHUNK / copies);
        put(block, at + 12, &u16::try_from(self.sectors(CHUNK)).unwrap().to_le_bytes());
        put(block, at + 14, &[self.state, self.level, u8::try_from(disks).unwrap(), 1]);
        put(block, at + 47, &[0]);
        for disk in 0..disks {
            let lost = self.failed == Some(disk) || rebuilding && disk == 0;
            number(block, at + 48 + 4 * disk, disk as u64 | if lost { 1 << 24 } else { 0 });
        }
    }

    fn block(&self) -> Vec<u8> {
        let mut block = b"Intel Raid ISM Cfg Sig. 1.3.00".to_vec();
        number(&mut block, 40, 7);
        number(&mut block, 44, u64::from(self.generation));
        number(&mut block, 52, u64::from(self.attributes));
        put(&mut block, 56, &[u8::try_from(self.lengths.len()).unwrap(), 1]);
        number(&mut block, 64, 9);
        put(&mut block, 215, &[0]);
        for (disk, &length) in self.lengths.iter().enumerate() {
            let at = block.len();
            put(&mut block, at, format!("SN{disk}").as_bytes());
            number(&mut block, at + 16, self.sectors(length));
            number(&mut block, at + 24, if self.failed == Some(disk) { 6 } else { 2 });
            put(&mut block, at + 47, &[0]);
        }
        let (at, disks) = (block.len(), self.lengths.len() as u64);
        let data = match self.level {
            0 => disks,
            1 => disks / 2,
            _ => disks - 1,
        };
        put(&mut block, at, b"vol/a");
        let size = (SHARE * data).checked_add_signed(self.excess).unwrap();
        number(&mut block, at + 16, self.sectors(size));
        let (migrating, kind) = (u8::from(self.migration.is_some()), self.migration.unwrap_or(0));
        put(&mut block, at + 88, &[migrating, kind, self.dirty]);
        put(&mut block, at + 111, &[0]);
        self.map(&mut block, false);
        if migrating == 1 {
            self.map(&mut block, kind == 1);
        }
        if !self.bad.is_empty() {
            number(&mut block, 72, 8 + 8 * self.bad.len() as u64);
            let at = block.len();
            number(&mut block, at, 0xabad_b10c);
            number(&mut block, at + 4, self.bad.len() as u64);
            for &(disk, sector) in &self.bad {
                let [low, high] = sector.to_le_bytes();
                let at = block.len();
                put(&mut block, at, &[0, disk, low, high, 0, 0, 0, 0]);
            }
        }
        let length = block.len() as u64;
        number(&mut block, 36, length);
        let words = block.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap()));
        let sum = words.fold(0, u32::wrapping_add);
        put(&mut block, 32, &sum.to_le_bytes());
        block
    }

    /// Disk number `disk`, whose share is filled with `10 * disk` plus the number of the chunk.
    fn disk(&self, disk: usize) -> Sparse {
        let length = self.lengths[disk];
        let mut store = Sparse::new(length);
        let block = self.block();
        let sector = usize::try_from(self.sector).unwrap();
        let (first, rest) = block.split_at(sector.min(block.len()));
        store.put(length - 2 * self.sector, first);
        let sectors = rest.len().div_ceil(sector) as u64;
        store.put(length - (2 + sectors) * self.sector, rest);
        if self.start + SHARE < length {
            for chunk in 0..SHARE / CHUNK {
                let fill = u8::try_from(disk as u64 * 20 + chunk + 1).unwrap();
                store.put(self.start + chunk * CHUNK, &[fill; 4096]);
            }
        }
        store
    }

    fn disks(&self, order: &[usize]) -> Graph {
        taste(order.iter().map(|&disk| (self.disk(disk), None)).collect(), self.sector)
    }
}

fn taste(disks: Vec<(Sparse, Option<&str>)>, sector: u64) -> Graph {
    let disks = disks.into_iter().enumerate().map(|(nth, (store, serial))| {
        let topology = Topology::new(sector, store.length());
        let serial = serial.map(str::to_string);
        Disk { serial, ..Disk::new(format!("d{nth}"), Box::new(store), topology) }
    });
    Graph::taste(disks.collect(), Limits::default())
}

/// The first bytes of the first chunks of the volume; empty if they cannot be read.
fn front(graph: &Graph, chunks: u64) -> Vec<u8> {
    let id = graph.find("imsm/vol-a").expect("a volume");
    let byte = |chunk: u64| {
        let mut byte = [0];
        graph.read_at(id, &mut byte, chunk * CHUNK).map(|()| byte[0])
    };
    (0..chunks).map(byte).collect::<Result<_, _>>().unwrap_or_default()
}

/// Messages of the findings of one rule.
fn said(graph: &Graph, rule: &trueline_geom::base::finding::Rule) -> String {
    let found = graph.providers.iter().flat_map(|p| &p.findings).filter(|f| f.rule == rule);
    found.map(|f| f.message.clone()).collect::<Vec<_>>().join("; ")
}

fn read_only(graph: &Graph) -> Option<&'static str> {
    graph.providers[graph.find("imsm/vol-a").unwrap()].route().read_only()
}

#[test]
fn disks_without_serial_numbers_are_taken_in_order() {
    let made = container(0, 3);
    let graph = made.disks(&[0, 1, 2]);
    assert_eq!(front(&graph, 4), [1, 21, 41, 2]);
    let note = said(&graph, &BLIND);
    assert!(note.ends_with("SN0, SN1, SN2"), "{note}");
    assert_eq!(read_only(&graph), Some("the order of its disks is assumed"));
    assert_eq!(front(&made.disks(&[1, 0, 2]), 4), [21, 1, 41, 22]);
}

#[test]
fn serial_numbers_say_which_disk_is_which() {
    let made = container(0, 3);
    let disks = |names: [&'static str; 3]| {
        let stores = [2, 0, 1].map(|disk| made.disk(disk));
        taste(stores.into_iter().zip(names.map(Some)).collect(), 512)
    };
    let graph = disks(["SN2", " S N0", "SN1"]);
    assert_eq!((front(&graph, 4), said(&graph, &BLIND)), (vec![1, 21, 41, 2], String::new()));
    assert_eq!(read_only(&graph), None);
    // A serial number that is not in the metadata is that of a disk to which this was copied.
    let graph = disks(["SN2", "SN0", "COPY"]);
    assert_eq!(front(&graph, 4), [41, 1, 21, 42]);
    assert!(!said(&graph, &BLIND).is_empty());
}

#[test]
fn lengths_say_which_disk_is_which() {
    let made = Container { lengths: vec![LENGTH, LENGTH + 8192, LENGTH + 4096], ..container(5, 3) };
    let graph = made.disks(&[1, 2, 0]);
    // Left-asymmetric: the first row's parity is on the last disk, the second's on that before.
    assert_eq!((front(&graph, 4), said(&graph, &BLIND)), (vec![1, 21, 2, 42], String::new()));
    // Two of one length leave a doubt; lengths of other disks say nothing.
    let alike = Container { lengths: vec![LENGTH, LENGTH + 8192, LENGTH], ..container(0, 3) };
    let graph = alike.disks(&[1, 2, 0]);
    assert_eq!(front(&graph, 3), [41, 21, 1]);
    assert!(!said(&graph, &BLIND).is_empty());
}

#[test]
fn a_volume_has_the_boundaries_of_a_set() {
    let graph = container(5, 3).disks(&[0, 1, 2]);
    let topology = &graph.providers[graph.find("imsm/vol-a").unwrap()].topology;
    let sizes = |why| {
        let of = topology.facts.iter().filter(move |fact: &&Fact| fact.why == why);
        of.map(|fact| fact.grain.size()).collect::<Vec<_>>()
    };
    assert_eq!((sizes(Why::Chunk), sizes(Why::FullStripe)), (vec![CHUNK], vec![2 * CHUNK]));
    assert_eq!(topology.length, 2 * SHARE);
}

#[test]
fn missing_disks_leave_a_mirror_alone() {
    let graph = container(0, 3).disks(&[0, 2]);
    assert_eq!(graph.find("imsm/vol-a"), None);
    assert_eq!(said(&graph, &INCOMPLETE), "imsm set imsm/vol-a has 2 of its 3 members here");
    let graph = container(1, 2).disks(&[1]);
    assert_eq!(front(&graph, 2), [21, 22]);
    assert_eq!(read_only(&graph), Some("disks of it are missing, and would be stale"));
    // Whose serial number is known makes a RAID5 of two.
    let made = container(5, 3);
    let graph = taste(vec![(made.disk(2), Some("SN2")), (made.disk(0), Some("SN0"))], 512);
    assert_eq!(front(&graph, 2), [1, 1 ^ 41]);
    // Its parity may be wrong if it was not stopped in order.
    let dirty = Container { dirty: 1, ..made };
    let graph = taste(vec![(dirty.disk(2), Some("SN2")), (dirty.disk(0), Some("SN0"))], 512);
    assert!(front(&graph, 1).is_empty());
    assert!(said(&graph, &UNREAD).contains("was not stopped in order"));
}

#[test]
fn a_disk_too_many_is_not_guessed_about() {
    let graph = container(0, 2).disks(&[0, 1, 1]);
    assert!(front(&graph, 1).is_empty());
    assert!(said(&graph, &UNREAD).contains("3 disks are here where 2 are listed"));
}

#[test]
fn disks_that_failed_are_left_out() {
    let (old, new) = (container(5, 3), Container { failed: Some(1), state: 2, ..container(5, 3) });
    let new = Container { generation: 5, ..new };
    let graph = taste(vec![(new.disk(0), None), (old.disk(1), None), (new.disk(2), None)], 512);
    assert_eq!(front(&graph, 3), [1, 1 ^ 41, 2]);
    // Though it comes first, what it knows of the container is old.
    let graph = taste(vec![(old.disk(1), None), (new.disk(0), None), (new.disk(2), None)], 512);
    assert_eq!(front(&graph, 3), [1, 1 ^ 41, 2]);
    assert!(graph.incomplete.is_empty());
    let said = said(&graph, &INCOMPLETE);
    assert!(said.contains("has failed: SN1"), "{said}");
    assert!(said.contains("it is stale: its metadata are of generation 4, the newest of 5"));
    // Of one generation and not the same: the first counts.
    let other = Container { dirty: 1, ..container(1, 2) };
    let graph = taste(vec![(container(1, 2).disk(0), None), (other.disk(1), None)], 512);
    assert_eq!(front(&graph, 1), [1]);
}

#[test]
fn what_is_not_sure_is_named_and_not_read() {
    let made = container(5, 3);
    for (why, made) in [
        ("a reshape", Container { migration: Some(3), ..made.clone() }),
        ("attributes", Container { attributes: 8, ..made.clone() }),
        ("have failed", Container { state: 3, ..made.clone() }),
        ("no volume of level 7", Container { level: 7, ..made.clone() }),
        ("no volume of level 10", Container { level: 1, ..made.clone() }),
        ("its disks have", Container { excess: 4096, ..made.clone() }),
        ("past the metadata", Container { start: LENGTH - SHARE, ..made.clone() }),
    ] {
        let graph = made.disks(&[0, 1, 2]);
        assert!(front(&graph, 1).is_empty(), "{why}");
        assert!(said(&graph, &UNREAD).contains(why), "{why}: {}", said(&graph, &UNREAD));
        assert!(!graph.providers.last().unwrap().seen);
    }
}

#[test]
fn a_disk_that_is_rebuilt_holds_nothing_yet() {
    let made = Container { migration: Some(1), ..container(5, 3) };
    assert_eq!(front(&made.disks(&[0, 1, 2]), 2), [21 ^ 41, 21]);
    // Copies that are made for the first time may differ, parity is not asked for.
    let fresh = Container { migration: Some(0), ..container(1, 2) };
    let graph = fresh.disks(&[0, 1]);
    assert_eq!(front(&graph, 1), [1]);
    assert!(read_only(&graph).unwrap().contains("may differ"));
}

#[test]
fn a_mirror_that_is_not_whole_everywhere_has_an_order() {
    let noted = |made: &Container, order: [usize; 2]| {
        let disks = order.map(|disk| (made.disk(disk), None));
        let graph = taste(disks.to_vec(), 512);
        let id = graph.find("imsm/vol-a").unwrap();
        assert!(read_only(&graph).is_some());
        graph.providers[id].findings.iter().any(|finding| *finding.rule == BLIND)
    };
    for order in [[0, 1], [1, 0]] {
        // Which one is being rebuilt, and which one has a bad block, is not known without serials.
        assert!(noted(&Container { migration: Some(1), ..container(1, 2) }, order));
        assert!(noted(&Container { bad: vec![(0, 17)], ..container(1, 2) }, order));
        assert!(!noted(&Container { dirty: 1, ..container(1, 2) }, order));
    }
}

#[test]
fn a_raid10_of_more_than_four_disks_is_one_that_mdadm_serves() {
    let made = Container { attributes: 0x8000_0080, ..container(10, 6) };
    let graph = made.disks(&[0, 1, 2, 3, 4, 5]);
    let id = graph.find("imsm/vol-a").unwrap();
    let own = graph.providers[id].arrangement.clone().unwrap();
    assert_eq!((own.level.as_str(), own.members, own.present), ("raid10", 6, 6));
    assert!(graph.providers[id].findings.iter().all(|finding| *finding.rule != UNREAD));
}

#[test]
fn bad_blocks_are_read_elsewhere() {
    let sector = u16::try_from(START / 512).unwrap();
    let graph = Container { bad: vec![(0, sector)], ..container(1, 2) }.disks(&[0, 1]);
    let id = graph.find("imsm/vol-a").unwrap();
    let mut bytes = [0; 1024];
    graph.read_at(id, &mut bytes, 0).unwrap();
    assert_eq!((bytes[0], bytes[511], bytes[512]), (21, 21, 1));
    assert!(read_only(&graph).unwrap().contains("bad blocks"));
}

#[test]
fn sectors_of_4096_bytes_count() {
    let made = Container { sector: 4096, ..container(0, 2) };
    assert_eq!(front(&made.disks(&[0, 1]), 3), [1, 21, 2]);
    // An image does not say what its sectors are; the place of the metadata does.
    let disks = [0, 1].map(|disk| (made.disk(disk), None));
    assert_eq!(front(&taste(disks.to_vec(), 512), 3), [1, 21, 2]);
}

#[test]
fn damaged_metadata_are_not_believed() {
    let graph = |at: u64, byte: u8| {
        let mut disk = container(1, 2).disk(0);
        disk.put(LENGTH - 1024 + at, &[byte]);
        taste(vec![(disk, None)], 512)
    };
    for (at, byte, why) in [
        (100, 1, "wrong checksum"),
        (38, 9, "of a length that none have"),
        (39, 1, "of a length that none have"),
    ] {
        let graph = graph(at, byte);
        let sign = &graph.providers[0].signs[0];
        assert_eq!((sign.kind, sign.version.as_deref()), (imsm::KIND, None));
        assert!(matches!(sign.inside, Inside::Unknown(said) if said.contains(why)), "{sign:?}");
        assert_eq!(graph.find("imsm/vol-a"), None);
    }
}

#[test]
fn metadata_where_the_own_sectors_put_it_count() {
    let made = Container { sector: 4096, ..container(0, 2) };
    // Left from a time at which the disks had sectors of 512 bytes, and were a mirror.
    let before = Container { generation: 9, ..container(1, 2) };
    let disks = [0, 1].map(|disk| {
        let mut store = made.disk(disk);
        let block = before.block();
        let (first, rest) = block.split_at(block.len().min(512));
        store.put(LENGTH - 1024, first);
        store.put(LENGTH - 1024 - (rest.len().div_ceil(512) as u64) * 512, rest);
        (store, None)
    });
    assert_eq!(front(&taste(disks.to_vec(), 4096), 3), [1, 21, 2]);
    assert_eq!(front(&taste(disks.to_vec(), 512), 3), [1, 2, 3]);
}

/// Of a mirror any order will do, but one half may be a copy of the other, which is then stale.
#[test]
fn a_stranger_among_the_disks_of_a_mirror_keeps_it_from_being_written() {
    let made = container(1, 2);
    let with = |serial| taste(vec![(made.disk(0), Some("SN0")), (made.disk(1), serial)], 512);
    assert_eq!(read_only(&with(Some("SN1"))), None);
    assert_eq!(read_only(&with(None)), None);
    assert!(read_only(&with(Some("COPY"))).unwrap().contains("do not list"));
}
