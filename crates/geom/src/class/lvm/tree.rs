//! B-trees and arrays of dm's persistent metadata, as thin pools and caches keep them.
//!
//! # On disk
//! Blocks of 4096 bytes, each with a CRC-32C that is kept without its last complement and differs
//! by a constant for each kind of block. A node has its keys, then its values; an array is a tree
//! whose values are blocks of values.
//!
//! # Sources
//! Linux `drivers/md/persistent-data/dm-btree-internal.h`, `dm-array.c`, `dm-block-manager.c`.

use super::fault::MapFault;
use crate::base::error::Errno;
use crate::base::ondisk::on_disk;
use crate::mapping::route::Route;
use crate::probe::{Blind, Probe};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

/// Size of a block in bytes.
pub(super) const BLOCK: usize = 4096;
/// Difference of a node's checksum, `BTREE_CSUM_XOR`.
const NODE_XOR: u32 = 121_107;
/// Difference of the checksum of a block of an array, `ARRAY_CSUM_XOR`.
const ARRAY_XOR: u32 = 595_846_735;
/// Nodes inside each other: more than any tree of 2^64 keys has.
const DEEPEST: usize = 16;
/// Nodes that are walked, at most, of all trees of one metadata volume: trees that share nodes are
/// walked anew, though read once.
const MOST_WALKED: u64 = 1 << 17;
/// Byte of a node at which its keys begin.
const KEYS: usize = 32;
/// Byte of a block of an array at which its values begin.
const VALUES: usize = 24;

on_disk! {
    /// Head of a node, `struct node_header`.
    struct NodeHeader of 32 bytes {
        0 => csum: U32,
        4 => flags: U32,
        8 => blocknr: U64,
        16 => nr_entries: U32,
        20 => max_entries: U32,
        24 => value_size: U32,
        28 => padding: U32,
    }
}

on_disk! {
    /// Head of a block of an array, `struct array_block`.
    struct ArrayBlock of 24 bytes {
        0 => csum: U32,
        4 => max_entries: U32,
        8 => nr_entries: U32,
        12 => value_size: U32,
        16 => blocknr: U64,
    }
}

/// Blocks of a metadata volume, each read and checked once.
pub(super) struct Blocks<'a> {
    /// Probe of another provider of the same disks.
    probe: &'a Probe<'a>,
    route: Route,
    read: RefCell<HashMap<u64, Rc<[u8]>>>,
    left: Cell<u64>,
}

/// A callback for every key of a tree and its value, in ascending order.
type Visit<'v> = dyn FnMut(u64, &[u8]) -> Result<(), MapFault> + 'v;

impl<'a> Blocks<'a> {
    /// The blocks of the volume that `route` leads to, on the disks of `probe`.
    pub(super) fn new(probe: &'a Probe<'a>, route: Route) -> Blocks<'a> {
        Blocks { probe, route, read: RefCell::default(), left: Cell::new(MOST_WALKED) }
    }

    /// Block `at`, whose checksum differs by `xor`, and which has its own number at byte `number`.
    pub(super) fn get(&self, at: u64, xor: u32, number: usize) -> Result<Rc<[u8]>, MapFault> {
        if let Some(known) = self.read.borrow().get(&at) {
            return Ok(known.clone());
        }
        let mut raw = vec![0; BLOCK];
        let outside = || MapFault::Past(at);
        let byte = at.checked_mul(BLOCK as u64).ok_or_else(outside)?;
        self.probe.over(&self.route).map(byte, &mut raw).map_err(|blind| match blind {
            Blind::Budget => MapFault::TooLarge,
            Blind::Unreadable(_, Errno::Range) => outside(),
            Blind::Unreadable(_, errno) => MapFault::Block(at, errno),
        })?;
        let found = raw.get(..4).map_or(0, little);
        if u64::from(checksum(&raw) ^ xor) != found {
            return Err(MapFault::Sum(at));
        }
        if raw.get(number..number + 8).map(little) != Some(at) {
            return Err(MapFault::Elsewhere(at));
        }
        let raw: Rc<[u8]> = raw.into();
        self.read.borrow_mut().insert(at, raw.clone());
        Ok(raw)
    }

    /// The value of `key`, of `size` bytes, in the tree at `root`; `None` if it has none.
    pub(super) fn find(
        &self,
        root: u64,
        key: u64,
        size: usize,
    ) -> Result<Option<Vec<u8>>, MapFault> {
        let mut at = root;
        for depth in 0.. {
            let node = self.node(at, size, depth)?;
            let below = (0..node.entries).take_while(|&nth| node.key(nth) <= key).last();
            let Some(nth) = below else { return Ok(None) };
            if node.is_leaf {
                return Ok((node.key(nth) == key).then(|| node.value(nth).to_vec()));
            }
            at = little(node.value(nth));
        }
        Ok(None)
    }

    /// Visits every key of the tree at `root`, whose values have `size` bytes.
    pub(super) fn walk(
        &self,
        root: u64,
        size: usize,
        visit: &mut Visit<'_>,
    ) -> Result<(), MapFault> {
        let mut open = vec![(root, 0)];
        let mut last = None;
        while let Some((at, depth)) = open.pop() {
            let node = self.node(at, size, depth)?;
            if !node.is_leaf {
                let below = (0..node.entries).map(|nth| (little(node.value(nth)), depth + 1));
                open.extend(below.rev());
                continue;
            }
            for nth in 0..node.entries {
                let key = node.key(nth);
                if last.is_some_and(|last| last >= key) {
                    return Err(MapFault::Order(at));
                }
                last = Some(key);
                visit(key, node.value(nth))?;
            }
        }
        Ok(())
    }

    /// Visits every value of the array at `root`, of `size` bytes each, with its index.
    pub(super) fn array(
        &self,
        root: u64,
        size: usize,
        visit: &mut Visit<'_>,
    ) -> Result<(), MapFault> {
        let most = (BLOCK - VALUES) / size.max(1);
        self.walk(root, 8, &mut |nth, at| {
            let raw = self.get(little(at), ARRAY_XOR, 16)?;
            let (head, _) = ArrayBlock::read_from_prefix(&raw)
                .map_err(|_| MapFault::Contradiction(little(at)))?;
            let count = usize::try_from(head.nr_entries.get()).unwrap_or(usize::MAX);
            if usize::try_from(head.value_size.get()) != Ok(size) || count > most {
                return Err(MapFault::Contradiction(little(at)));
            }
            let first = nth.checked_mul(most as u64).ok_or(MapFault::Pieces)?;
            for (index, value) in (first..).zip(raw[VALUES..].chunks_exact(size).take(count)) {
                visit(index, value)?;
            }
            Ok(())
        })
    }

    /// The node at block `at`, `depth` nodes below the root; its leaves have values of `size`
    /// bytes.
    fn node(&self, at: u64, size: usize, depth: usize) -> Result<Node, MapFault> {
        if depth > DEEPEST {
            return Err(MapFault::Circle);
        }
        let left = self.left.get().checked_sub(1);
        self.left.set(left.ok_or(MapFault::Nodes)?);
        let raw = self.get(at, NODE_XOR, 8)?;
        let (header, _) =
            NodeHeader::read_from_prefix(&raw).map_err(|_| MapFault::Contradiction(at))?;
        let index = |n: &U32| usize::try_from(n.get()).unwrap_or(usize::MAX);
        let is_leaf = header.flags.get() & 2 != 0;
        let is_one = matches!(header.flags.get() & 3, 1 | 2);
        let size = if is_leaf { size } else { 8 };
        let (entries, most) = (index(&header.nr_entries), index(&header.max_entries));
        let fits = most.checked_mul(8 + size).is_some_and(|bytes| bytes <= BLOCK - KEYS);
        if !is_one || index(&header.value_size) != size || entries > most || !fits {
            return Err(MapFault::Contradiction(at));
        }
        Ok(Node { raw, is_leaf, entries, most, size })
    }
}

/// Node of a tree; its keys and values lie inside the block.
struct Node {
    raw: Rc<[u8]>,
    is_leaf: bool,
    entries: usize,
    most: usize,
    size: usize,
}

impl Node {
    fn key(&self, nth: usize) -> u64 {
        let at = KEYS + nth * 8;
        self.raw.get(at..at + 8).map_or(0, little)
    }

    fn value(&self, nth: usize) -> &[u8] {
        let at = KEYS + self.most * 8 + nth * self.size;
        self.raw.get(at..at + self.size).unwrap_or_default()
    }
}

/// CRC-32C of what follows the checksum, without its last complement.
pub(super) fn checksum(block: &[u8]) -> u32 {
    !SUM.checksum(block.get(4..).unwrap_or_default())
}

static SUM: crc::Crc<u32, crc::Table<16>> =
    crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);

/// A little-endian number of up to eight bytes.
pub(super) fn little(raw: &[u8]) -> u64 {
    raw.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::store::{Sparse, Store};
    use crate::probe::{Budget, Limits};

    /// Block `at` with a node that has these entries; its checksum is right.
    fn node(disk: &mut Sparse, at: u64, flags: u32, entries: &[(u64, u64)]) {
        let mut raw = vec![0; BLOCK];
        raw[4..8].copy_from_slice(&flags.to_le_bytes());
        raw[8..16].copy_from_slice(&at.to_le_bytes());
        let count = u32::try_from(entries.len()).unwrap();
        for (at, number) in [(16, count), (20, 252), (24, 8)] {
            raw[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        for (nth, (key, value)) in entries.iter().enumerate() {
            raw[32 + nth * 8..][..8].copy_from_slice(&key.to_le_bytes());
            raw[32 + 252 * 8 + nth * 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        let sum = checksum(&raw) ^ NODE_XOR;
        raw[..4].copy_from_slice(&sum.to_le_bytes());
        disk.put(at * BLOCK as u64, &raw);
    }

    /// The keys and values of the tree at block 1 of a disk, and those of what is found there.
    fn walked(disk: Sparse, maps: u64) -> Result<Vec<(u64, u64)>, MapFault> {
        let (route, limits) =
            (Route::store(0, disk.length()), Limits { maps, ..Limits::default() });
        let (budget, stores): (_, Vec<Box<dyn Store>>) =
            (Budget::new(limits), vec![Box::new(disk)]);
        let probe = Probe::new(&route, &stores, &budget, 512, Some(0), None);
        let blocks = Blocks::new(&probe, route.clone());
        let mut found = Vec::new();
        blocks.walk(1, 8, &mut |key, value| {
            found.push((key, little(value)));
            Ok(())
        })?;
        for (key, value) in &found {
            let own = blocks.find(1, *key, 8)?.map(|raw| little(&raw));
            assert_eq!(own, Some(*value));
        }
        assert_eq!(blocks.find(1, 3, 8), Ok(None));
        Ok(found)
    }

    /// A tree of a root and two leaves.
    fn tree() -> Sparse {
        let mut disk = Sparse::new(64 << 10);
        node(&mut disk, 1, 1, &[(1, 2), (4, 3)]);
        node(&mut disk, 2, 2, &[(1, 10), (2, 20)]);
        node(&mut disk, 3, 2, &[(4, 40), (9, 90)]);
        disk
    }

    #[test]
    fn a_tree_has_its_keys_in_order() {
        let found = walked(tree(), 1 << 20).unwrap();
        assert_eq!(found, [(1, 10), (2, 20), (4, 40), (9, 90)]);
    }

    #[test]
    fn a_tree_that_is_none_is_refused_with_the_reason() {
        let refused = |change: &dyn Fn(&mut Sparse)| {
            let mut disk = tree();
            change(&mut disk);
            walked(disk, 1 << 20).unwrap_err().to_string()
        };
        let circle = refused(&|disk| node(disk, 2, 1, &[(1, 1)]));
        assert!(circle.contains("circle"), "{circle}");
        let many = refused(&|disk| node(disk, 2, 1, &[(1, 1); 252]));
        assert!(many.contains("circle") || many.contains("more nodes"), "{many}");
        let order = refused(&|disk| node(disk, 3, 2, &[(2, 1)]));
        assert!(order.contains("out of order in block 3"), "{order}");
        let past = refused(&|disk| node(disk, 1, 1, &[(1, 99)]));
        assert!(past.contains("block 99 is pointed to, past the end"), "{past}");
        let sum = refused(&|disk| disk.put(3 * 4096 + 100, &[1]));
        assert!(sum.contains("checksum of block 3"), "{sum}");
        let place = refused(&|disk| node(disk, 1, 1, &[(1, 2), (4, 4)]));
        assert!(place.contains("block 4 is wrong"), "{place}");
        let spent = walked(tree(), 8192).unwrap_err().to_string();
        assert!(spent.contains("larger than what is read"), "{spent}");
    }
}
