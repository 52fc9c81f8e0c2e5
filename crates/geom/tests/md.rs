//! Sets of Linux's md: which members make one, what is said of those that do not, and reads of
//! members that fail. The kernel's own sets are compared in `crates/cli/tests/disks/sets.rs`.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trueline_geom::base::error::Errno;
use trueline_geom::base::finding::INCOMPLETE;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

const CHUNK: u64 = 4096;
/// Bytes of data on every member, behind [`START`].
const ROOM: u64 = 16 * CHUNK;
const START: u64 = 64 << 10;
const LENGTH: u64 = START + ROOM;

/// A member with superblock 1.2.
#[derive(Clone, Copy)]
struct Super {
    level: i32,
    layout: u32,
    disks: u32,
    role: u16,
    events: u64,
    features: u32,
    uuid: u8,
    /// Identity of the member; its place in the table of roles.
    device: u8,
    /// Knowledge of the first eight roles: `0xfffe` has failed.
    roles: [u16; 8],
    recovery: u64,
    clean: bool,
}

fn member(level: i32, disks: u32, role: u16) -> Super {
    let layout = match level {
        10 => 0x102,
        _ => 2,
    };
    let device = u8::try_from(role).unwrap();
    let roles = [0, 1, 2, 3, 4, 5, 6, 7];
    let (events, features, uuid, recovery) = (7, 0, 1, 0);
    Super {
        level,
        layout,
        disks,
        role,
        events,
        features,
        uuid,
        device,
        roles,
        recovery,
        clean: true,
    }
}

impl Super {
    fn bytes(&self) -> Vec<u8> {
        let mut sb = vec![0; 512];
        let mut put = |at: usize, bytes: &[u8]| sb[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &0xa92b_4efc_u32.to_le_bytes());
        put(4, &1u32.to_le_bytes());
        put(8, &self.features.to_le_bytes());
        put(16, &[self.uuid; 16]);
        put(32, b"host:r");
        put(72, &self.level.to_le_bytes());
        put(76, &self.layout.to_le_bytes());
        put(80, &(ROOM / 512).to_le_bytes());
        let chunk = if self.level == 1 { 0 } else { CHUNK / 512 };
        put(88, &u32::try_from(chunk).unwrap().to_le_bytes());
        put(92, &self.disks.to_le_bytes());
        put(128, &(START / 512).to_le_bytes());
        put(136, &(ROOM / 512).to_le_bytes());
        put(144, &8u64.to_le_bytes());
        put(152, &(self.recovery / 512).to_le_bytes());
        put(160, &u32::from(self.device).to_le_bytes());
        put(168, &[self.device + 1; 16]);
        put(200, &self.events.to_le_bytes());
        put(208, &(if self.clean { u64::MAX } else { 0 }).to_le_bytes());
        put(220, &8u32.to_le_bytes());
        for (at, role) in (256..).step_by(2).zip(self.roles) {
            put(at, &role.to_le_bytes());
        }
        put(256 + usize::from(self.device) * 2, &self.role.to_le_bytes());
        let words = sb[..272].chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap()));
        let sum: u64 = words.map(u64::from).sum();
        let sum = u32::try_from((sum & 0xffff_ffff) + (sum >> 32)).unwrap();
        sb[216..220].copy_from_slice(&sum.to_le_bytes());
        sb
    }
}

/// A member that can be made to fail, behind the bytes of its superblock.
struct Fails {
    inner: Sparse,
    fails: Arc<AtomicBool>,
}

impl Store for Fails {
    fn length(&self) -> u64 {
        self.inner.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        if offset >= START && self.fails.load(Ordering::Relaxed) {
            return Err(Errno::Io);
        }
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}

/// The members, with these bytes as their data, and what makes each of them fail.
fn taste_with(members: &[Super], data: &[Vec<u8>]) -> (Graph, Vec<Arc<AtomicBool>>) {
    let mut switches = Vec::new();
    let disks = members.iter().enumerate().map(|(n, member)| {
        let mut inner = Sparse::new(LENGTH);
        inner.put(4096, &member.bytes());
        if let Some(bytes) = data.get(n) {
            inner.put(START, bytes);
        }
        let fails = Arc::new(AtomicBool::new(false));
        switches.push(fails.clone());
        let topology = Topology::new(512, LENGTH);
        Disk::new(format!("disk{n}"), Box::new(Fails { inner, fails }), topology)
    });
    let graph = Graph::taste(disks.collect(), Limits::default());
    (graph, switches)
}

fn taste(members: &[Super]) -> Graph {
    taste_with(members, &[]).0
}

/// The length of the set that is made, and what is said of the members.
fn outcome(graph: &Graph) -> (Option<u64>, Vec<String>) {
    let set = graph.providers.iter().find(|p| p.is_set).map(|p| p.topology.length);
    let said = graph.providers.iter().flat_map(|p| {
        p.findings.iter().filter(|f| *f.rule == INCOMPLETE).map(|f| f.message.clone())
    });
    (set, said.collect())
}

/// Why a set may not be written; `None` if it may, or if there is none.
fn read_only(graph: &Graph) -> Option<&'static str> {
    graph.providers.iter().find(|p| p.is_set)?.route().read_only()
}

#[test]
fn a_whole_set_is_made_without_a_word() {
    for (level, disks, chunks) in
        [(-1, 3, 48), (0, 3, 48), (1, 2, 16), (4, 3, 32), (5, 3, 32), (6, 4, 32), (10, 4, 32)]
    {
        let mut members: Vec<Super> =
            (0..disks).map(|role| member(level, u32::from(disks), role)).collect();
        assert_eq!(outcome(&taste(&members)), (Some(chunks * CHUNK), Vec::new()), "{level}");
        // In any order.
        members.reverse();
        assert_eq!(outcome(&taste(&members)), (Some(chunks * CHUNK), Vec::new()), "{level}");
        let writable = matches!(level, -1 | 0 | 1 | 10);
        assert_eq!(read_only(&taste(&members)).is_none(), writable, "{level}");
        members.pop();
        let (length, said) = outcome(&taste(&members));
        assert_eq!(length.is_some(), level > 0, "{level}");
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(read_only(&taste(&members)).is_some(), level > 0, "{level}");
    }
}

#[test]
fn the_newest_superblock_decides() {
    let three = || [0, 1, 2].map(|role| member(5, 3, role));
    // One event behind is what a crash between two writes leaves.
    let mut set = three();
    set[1].events = 6;
    assert_eq!(outcome(&taste(&set)), (Some(32 * CHUNK), Vec::new()));
    set[1].events = 5;
    let (length, said) = outcome(&taste(&set));
    assert_eq!(length, Some(32 * CHUNK));
    assert!(
        said.iter().any(|s| s.contains("stale: its event count is 5, the newest 7")),
        "{said:?}"
    );
    // With two of them there is no set, and the reason is said still.
    set[2].events = 5;
    let (length, said) = outcome(&taste(&set));
    assert_eq!((length, said.len()), (None, 3), "{said:?}");
    // It failed, and the others have not written since.
    let mut set = three();
    for at in [0, 2] {
        set[at].roles[1] = 0xfffe;
    }
    set[1].events = 6;
    let (_, said) = outcome(&taste(&set));
    assert!(said.iter().any(|s| s.contains("the others know it as failed")), "{said:?}");
}

#[test]
fn members_that_do_not_belong_are_named() {
    let three = || vec![member(5, 3, 0), member(5, 3, 1), member(5, 3, 2)];
    let (length, said) = outcome(&taste(&[three(), vec![member(5, 3, 1)]].concat()));
    assert_eq!(length, Some(32 * CHUNK));
    assert!(said[0].contains("a copy of another member, number 1"), "{said:?}");
    let (_, said) =
        outcome(&taste(&[three(), vec![Super { device: 5, ..member(5, 3, 1) }]].concat()));
    assert!(said[0].contains("another member has its role, number 1"), "{said:?}");
    let (length, said) =
        outcome(&taste(&[three(), vec![Super { layout: 0, ..member(5, 3, 1) }]].concat()));
    assert_eq!(length, Some(32 * CHUNK));
    assert!(said[0].contains("not what the others say"), "{said:?}");
    // Two sets of one name: each is made, the second with a number.
    let others = three().into_iter().map(|sb| Super { uuid: 2, ..sb });
    let graph = taste(&three().into_iter().chain(others).collect::<Vec<_>>());
    let names: Vec<&str> =
        graph.providers.iter().filter(|p| p.is_set).map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["md/r", "md/r_1"]);
    // A spare is neither missed nor counted.
    let spare = Super { role: 0xffff, device: 3, ..member(5, 3, 0) };
    assert_eq!(outcome(&taste(&[three(), vec![spare]].concat())), (Some(32 * CHUNK), Vec::new()));
    let (length, said) = outcome(&taste(&[member(5, 3, 0), spare]));
    assert_eq!(length, None);
    assert!(said[0].contains("1 of its 3 members here: members 1, 2 are missing"), "{said:?}");
}

#[test]
fn what_is_not_known_is_not_built_on() {
    for (offset, byte, word) in [(72, 9, "checksum"), (216, 1, "checksum"), (221, 0xff, "longer")] {
        let mut sb = member(1, 2, 0).bytes();
        sb[offset] ^= byte;
        let mut store = Sparse::new(LENGTH);
        store.put(4096, &sb);
        let topology = Topology::new(512, LENGTH);
        let graph = Graph::taste(vec![Disk::new("", Box::new(store), topology)], Limits::default());
        let (length, said) = outcome(&graph);
        assert!(length.is_none() && said[0].contains(word), "{offset}: {said:?}");
    }
    let future = Super { features: 1 << 20, ..member(1, 2, 0) };
    let (length, said) = outcome(&taste(&[future, member(1, 2, 1)]));
    assert!(length.is_some() && said[0].contains("features that are not known"), "{said:?}");
    for bad in [
        Super { level: 7, ..member(5, 3, 0) },
        Super { layout: 77, ..member(5, 3, 0) },
        Super { layout: 0x909, ..member(10, 3, 0) },
    ] {
        let set: Vec<Super> =
            (0..3).map(|n| Super { role: n, device: u8::try_from(n).unwrap(), ..bad }).collect();
        let (length, said) = outcome(&taste(&set));
        assert!(length.is_none() && said[0].contains("is not made"), "{said:?}");
    }
}

/// Data of a RAID5 of three members in layout left-symmetric, by member, and of the set.
fn five() -> (Vec<Vec<u8>>, Vec<u8>) {
    let chunk = |n: usize| -> Vec<u8> {
        (0..4096).map(|x| u8::try_from((x * 7 + n * 31) % 256).unwrap()).collect()
    };
    let (mut members, mut set) = (vec![Vec::new(); 3], Vec::new());
    for row in 0..16 {
        let parity = 2 - row % 3;
        let (first, second) = (chunk(2 * row), chunk(2 * row + 1));
        let sum: Vec<u8> = first.iter().zip(&second).map(|(a, b)| a ^ b).collect();
        set.extend([first.clone(), second.clone()].concat());
        members[parity].extend(sum);
        members[(parity + 1) % 3].extend(first);
        members[(parity + 2) % 3].extend(second);
    }
    (members, set)
}

#[test]
fn a_member_that_fails_is_read_through_parity() {
    let (data, whole) = five();
    let set: Vec<Super> = (0..3).map(|role| member(5, 3, role)).collect();
    let (graph, switches) = taste_with(&set, &data);
    let id = graph.find("md/r").unwrap();
    let read = |offset: u64, length: usize| {
        let mut buffer = vec![0; length];
        graph.read_at(id, &mut buffer, offset).map(|()| buffer)
    };
    assert_eq!(read(0, whole.len()).unwrap(), whole);
    for switch in &switches {
        switch.store(true, Ordering::Relaxed);
        assert_eq!(read(0, whole.len()).unwrap(), whole);
        assert_eq!(read(4000, 9000).unwrap(), whole[4000..13000]);
        switch.store(false, Ordering::Relaxed);
    }
    switches[0].store(true, Ordering::Relaxed);
    switches[1].store(true, Ordering::Relaxed);
    assert_eq!(read(0, whole.len()), Err(Errno::Io));
    // Missing from the start, and rebuilt up to the middle.
    let (graph, _) = taste_with(&[set[0], set[2]], &[data[0].clone(), data[2].clone()]);
    let mut buffer = vec![0; whole.len()];
    graph.read_at(graph.find("md/r").unwrap(), &mut buffer, 0).unwrap();
    assert_eq!(buffer, whole);
    let half = Super { features: 2, recovery: ROOM / 2, ..set[1] };
    let mut partial = data.clone();
    partial[1][(ROOM / 2) as usize..].fill(0);
    let (graph, _) = taste_with(&[set[0], half, set[2]], &partial);
    graph.read_at(graph.find("md/r").unwrap(), &mut buffer, 0).unwrap();
    assert_eq!(buffer, whole);
}

#[test]
fn a_mirror_is_read_from_the_member_that_answers() {
    let data = vec![vec![5; usize::try_from(ROOM).unwrap()]; 2];
    let (graph, switches) = taste_with(&[member(1, 2, 0), member(1, 2, 1)], &data);
    let id = graph.find("md/r").unwrap();
    let mut buffer = vec![0; 10_000];
    for switch in &switches {
        switch.store(true, Ordering::Relaxed);
        buffer.fill(0);
        graph.read_at(id, &mut buffer, 3000).unwrap();
        assert_eq!(buffer, vec![5; 10_000]);
        switch.store(false, Ordering::Relaxed);
    }
    switches.iter().for_each(|switch| switch.store(true, Ordering::Relaxed));
    assert_eq!(graph.read_at(id, &mut buffer, 0), Err(Errno::Io));
    // Copies that may differ are not written.
    let dirty = [0, 1].map(|role| Super { clean: false, ..member(1, 2, role) });
    assert!(read_only(&taste(&dirty)).unwrap().contains("not stopped in order"));
}

/// Boundaries of a set: those of Linux's `minimum_io_size` and `optimal_io_size`, and the members'.
#[test]
fn a_set_has_its_rows_for_boundaries() {
    let fact = |why, size| Fact {
        grain: Grain::new(size, 0).unwrap(),
        why,
        source: Source::User,
        trust: Trust::Trusted,
    };
    for (level, disks, row) in [
        (0, 3, (Why::Row, 3)),
        (5, 4, (Why::FullStripe, 3)),
        (6, 5, (Why::FullStripe, 3)),
        (10, 4, (Why::Row, 2)),
    ] {
        let disks = (0..disks).map(|role| {
            let mut store = Sparse::new(LENGTH);
            store.put(4096, &member(level, u32::from(disks), role).bytes());
            let topology = Topology::new(512, LENGTH).with(fact(Why::Physical, 4096));
            Disk::new(format!("disk{role}"), Box::new(store), topology)
        });
        let graph = Graph::taste(disks.collect(), Limits::default());
        let top = &graph.providers[graph.find("md/r").unwrap()].topology;
        let of = |why| top.facts.iter().find(|f| f.why == why).map(|f| f.grain.size());
        assert_eq!(of(Why::Chunk), Some(CHUNK));
        assert_eq!(of(row.0), Some(row.1 * CHUNK), "{level}");
        assert_eq!((of(Why::Physical), top.clashes.len()), (Some(4096), 0));
    }
}

/// Numbers as large and as small as they can be, with a checksum that fits: nothing overflows, no
/// read goes past its budget, and whatever set is made can be read or says that it cannot.
#[test]
fn hostile_numbers_are_survived() {
    let numbers = [0u32, 1, 2, 3, 5, 6, 10, 0x7f, 0xff, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    let mut made = 0;
    for (level, disks) in [(-1, 2), (0, 2), (1, 2), (5, 3), (6, 4), (10, 3)] {
        let good: Vec<Vec<u8>> =
            (0..disks).map(|role| member(level, u32::from(disks), role).bytes()).collect();
        for at in (8..272).step_by(4).filter(|at| *at != 216) {
            for number in numbers {
                let members = good.iter().map(|sb| {
                    let mut sb = sb.clone();
                    // A reshape too, in whatever shape is there.
                    sb[8] |= if (100..128).contains(&at) { 4 } else { 0 };
                    sb[at..at + 4].copy_from_slice(&number.to_le_bytes());
                    seal(&mut sb);
                    let mut store = Sparse::new(LENGTH);
                    store.put(4096, &sb);
                    Disk::new("disk", Box::new(store), Topology::new(512, LENGTH))
                });
                let graph = Graph::taste(members.collect(), Limits::default());
                for id in (0..graph.providers.len()).filter(|&id| graph.providers[id].is_set) {
                    let length = graph.providers[id].topology.length;
                    made += 1;
                    for x in [0, length / 3, length.saturating_sub(512)] {
                        let mut buffer = vec![0; 512.min(usize::try_from(length).unwrap())];
                        let _ = graph.read_at(id, &mut buffer, x);
                    }
                }
            }
        }
    }
    assert!(made > 1000, "{made}");
}

/// Mends the checksum of a superblock of eight roles.
fn seal(sb: &mut [u8]) {
    sb[216..220].fill(0);
    let roles = u32::from_le_bytes(sb[220..224].try_into().unwrap()) as usize;
    let end = 256 + roles.min(128) * 2;
    let words = sb[..end].chunks(4).map(|word| {
        let mut all = [0; 4];
        all[..word.len()].copy_from_slice(word);
        u64::from(u32::from_le_bytes(all))
    });
    let sum: u64 = words.sum();
    let sum = u32::try_from((sum & 0xffff_ffff) + (sum >> 32)).unwrap_or(u32::MAX);
    sb[216..220].copy_from_slice(&sum.to_le_bytes());
}
