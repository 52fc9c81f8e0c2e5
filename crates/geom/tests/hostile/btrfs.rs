//! A small Btrfs made by hand, of nodes of 4096 bytes: mkfs.btrfs of this system makes none whose
//! block groups are in a tree of their own.

use crate::repair::{FSID, repair};
use std::ops::Range;
use trueline_geom::base::store::{Sparse, Store};

const DEVICE: [u8; 16] = *b"trueline's disk.";
const MIB: u64 = 1 << 20;
/// Length of the device in bytes.
pub const LENGTH: u64 = 100 * MIB;
/// Bytes of a node.
pub const NODE: u64 = 4096;
/// Chunks: logical address, length, kind, places.
pub const CHUNKS: [(u64, u64, u64, &[u64]); 3] = [
    (16 * MIB, MIB, 2, &[2 * MIB]),
    (32 * MIB, 4 * MIB, 0x24, &[4 * MIB, 12 * MIB]),
    (64 * MIB, 16 * MIB, 1, &[60 * MIB]),
];
/// Extents of data: logical address, length.
const DATA: [(u64, u64); 3] = [(64 * MIB, 65536), (65 * MIB, 4096), (67 * MIB, 100 * NODE)];
/// Logical address of the node of the chunk tree.
pub const CHUNK: u64 = 16 * MIB;
/// Logical address of the node of the root tree.
pub const ROOT: u64 = 32 * MIB;
/// Logical address of the root of the extent tree.
pub const EXTENT: u64 = ROOT + NODE;
/// Logical addresses of the leaves of the extent tree.
pub const LEAVES: [u64; 2] = [EXTENT + NODE, EXTENT + 2 * NODE];
/// Logical address of the node of the device tree.
pub const DEV: u64 = LEAVES[1] + 2 * NODE;
/// Logical address of the tree of block groups, or of nothing.
pub const GROUP: u64 = DEV + NODE;
const FILES: u64 = GROUP + 3 * NODE;
const GENERATION: u64 = 7;

type Key = (u64, u8, u64);
type Item = (Key, Vec<u8>);

/// The used logical addresses, in order.
pub fn used(has_group_tree: bool) -> Vec<Range<u64>> {
    let mut nodes = vec![CHUNK, ROOT, EXTENT, LEAVES[0], LEAVES[1], DEV, FILES];
    if has_group_tree {
        nodes.insert(6, GROUP);
    }
    let nodes = nodes.into_iter().map(|at| at..at + NODE);
    nodes.chain(DATA.map(|(at, length)| at..at + length)).collect()
}

/// The file system on its device.
pub fn disk(has_group_tree: bool) -> Sparse {
    let mut disk = Sparse::new(LENGTH);
    let used = used(has_group_tree);
    let sum = |start: u64, length: u64| -> u64 {
        let inside = used.iter().filter(|range| (start..start + length).contains(&range.start));
        inside.map(|range| range.end - range.start).sum()
    };
    let group = |&(start, length, kind, _): &(u64, u64, u64, &[u64])| {
        ((start, 192, length), numbers(&[sum(start, length), 256, kind]))
    };
    let groups: Vec<Item> = CHUNKS.iter().map(group).collect();
    let mut extents: Vec<Item> = used.iter().map(extent).collect();
    if !has_group_tree {
        extents.extend(groups.clone());
    }
    extents.sort();
    let chunks: Vec<Item> = CHUNKS
        .iter()
        .map(|&(start, length, kind, places)| ((256, 228, start), chunk(length, kind, places)))
        .collect();
    let mut stripes: Vec<(u64, u64, u64)> = CHUNKS
        .iter()
        .flat_map(|&(start, length, _, places)| places.iter().map(move |&at| (at, start, length)))
        .collect();
    stripes.sort_unstable();
    let device = device(stripes.iter().map(|stripe| stripe.2).sum());
    let mut chunk_items = vec![((1, 216, 1), device.clone())];
    chunk_items.extend(chunks.clone());
    let mut roots: Vec<Item> = [(2, EXTENT, 1), (4, DEV, 0), (5, FILES, 0), (11, GROUP, 0)]
        .into_iter()
        .filter(|root| root.0 != 11 || has_group_tree)
        .map(|(tree, at, level)| ((tree, 132, 0), root(at, level)))
        .collect();
    // An object that is none of the trees.
    roots.insert(2, ((5, 1, 0), vec![7; 40]));
    let dev_items: Vec<Item> = stripes
        .iter()
        .map(|&(at, start, length)| {
            ((1, 204, at), [numbers(&[3, 256, start, length]), vec![0; 16]].concat())
        })
        .collect();
    let (front, back) = extents.split_at(extents.len() / 2);
    let pointers: Vec<u8> = [(front, LEAVES[0]), (back, LEAVES[1])]
        .into_iter()
        .flat_map(|(items, at)| [key(items[0].0), numbers(&[at, GENERATION])].concat())
        .collect();
    let mut nodes = vec![
        (CHUNK, leaf(CHUNK, 3, &chunk_items)),
        (ROOT, leaf(ROOT, 1, &roots)),
        (EXTENT, [header(EXTENT, 2, 2, 1), pointers].concat()),
        (LEAVES[0], leaf(LEAVES[0], 2, front)),
        (LEAVES[1], leaf(LEAVES[1], 2, back)),
        (DEV, leaf(DEV, 4, &dev_items)),
        (FILES, leaf(FILES, 5, &[])),
    ];
    if has_group_tree {
        nodes.push((GROUP, leaf(GROUP, 11, &groups)));
    }
    for (at, mut bytes) in nodes {
        bytes.resize(4096, 0);
        put(&mut disk, at, &bytes);
    }
    let system = [key(chunks[0].0), chunks[0].1.clone()].concat();
    let bytes_used = used.iter().map(|range| range.end - range.start).sum();
    for at in [65536, 64 * MIB] {
        disk.put(at, &superblock(at, bytes_used, &device, &system, has_group_tree));
    }
    repair(&mut disk, 512);
    disk
}

/// Bytes of the device at which logical address `at` is.
pub fn places(at: u64) -> Vec<u64> {
    let chunk = CHUNKS.iter().find(|chunk| (chunk.0..chunk.0 + chunk.1).contains(&at));
    let (start, _, _, places) = chunk.expect("an address in a chunk");
    places.iter().map(|place| place + (at - start)).collect()
}

/// Puts `bytes` at a logical address.
pub fn put(disk: &mut Sparse, at: u64, bytes: &[u8]) {
    places(at).into_iter().for_each(|place| disk.put(place, bytes));
}

/// The logical address of the key, and that of the data, of item `nth` of the leaf at `node`.
pub fn item(disk: &Sparse, node: u64, nth: u64) -> (u64, u64) {
    let at = 101 + 25 * nth;
    let mut offset = [0; 4];
    disk.read_at(&mut offset, places(node)[0] + at + 17).expect("an item");
    (node + at, node + 101 + u64::from(u32::from_le_bytes(offset)))
}

fn numbers(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn key((object, kind, offset): Key) -> Vec<u8> {
    [&object.to_le_bytes()[..], &[kind], &offset.to_le_bytes()].concat()
}

fn header(at: u64, tree: u64, count: usize, level: u8) -> Vec<u8> {
    let count = u32::try_from(count).expect("a few").to_le_bytes();
    let front = [&[0; 32][..], &FSID, &numbers(&[at, 1 | 1 << 56]), &[9; 16]].concat();
    [front, numbers(&[GENERATION, tree]), count.to_vec(), vec![level]].concat()
}

fn leaf(at: u64, tree: u64, items: &[Item]) -> Vec<u8> {
    let mut bytes = header(at, tree, items.len(), 0);
    bytes.resize(4096, 0);
    let mut end = 4096;
    for (nth, (own, data)) in items.iter().enumerate() {
        end -= data.len();
        bytes[end..end + data.len()].copy_from_slice(data);
        let place = [end - 101, data.len()].map(|n| u32::try_from(n).expect("small"));
        let head = [key(*own), place.iter().flat_map(|n| n.to_le_bytes()).collect()].concat();
        bytes[101 + 25 * nth..][..25].copy_from_slice(&head);
    }
    bytes
}

/// The item of a used range: a node, or data.
fn extent(range: &Range<u64>) -> Item {
    let is_data = range.start >= CHUNKS[2].0;
    let length = range.end - range.start;
    let own = if is_data { (range.start, 168, length) } else { (range.start, 169, 0) };
    let reference = [&[if is_data { 178 } else { 176 }][..], &numbers(&[5])].concat();
    (own, [numbers(&[1, GENERATION, if is_data { 1 } else { 2 }]), reference].concat())
}

fn chunk(length: u64, kind: u64, places: &[u64]) -> Vec<u8> {
    let small: Vec<u8> = [4096_u32, 4096, 4096].iter().flat_map(|n| n.to_le_bytes()).collect();
    let count = u16::try_from(places.len()).expect("two").to_le_bytes();
    let stripes = places.iter().flat_map(|&at| [numbers(&[1, at]), DEVICE.to_vec()].concat());
    let front = [numbers(&[length, 2, 65536, kind]), small, count.to_vec(), vec![0; 2]].concat();
    front.into_iter().chain(stripes).collect()
}

fn device(used: u64) -> Vec<u8> {
    [numbers(&[1, LENGTH, used]), vec![0; 42], DEVICE.to_vec(), FSID.to_vec()].concat()
}

fn root(at: u64, level: u8) -> Vec<u8> {
    let middle = numbers(&[GENERATION, 0, at, 0, 0, 0, 0]);
    let mut bytes = [vec![0; 160], middle, vec![1, 0, 0, 0], vec![0; 18], vec![level]].concat();
    bytes.resize(439, 0);
    bytes
}

fn superblock(at: u64, used: u64, device: &[u8], system: &[u8], has_group_tree: bool) -> Vec<u8> {
    let mut sb = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| sb[at..at + bytes.len()].copy_from_slice(bytes);
    put(32, &FSID);
    put(48, &numbers(&[at, 1]));
    put(64, b"_BHRfS_M");
    put(72, &numbers(&[GENERATION, ROOT, CHUNK]));
    put(112, &numbers(&[LENGTH, used, 6, 1]));
    [144, 148].iter().for_each(|&at| put(at, &4096_u32.to_le_bytes()));
    put(160, &u32::try_from(system.len()).expect("one").to_le_bytes());
    put(164, &GENERATION.to_le_bytes());
    put(180, &u64::from(has_group_tree).wrapping_mul(8).to_le_bytes());
    put(188, &0x341_u64.to_le_bytes());
    put(201, device);
    put(811, system);
    sb
}
