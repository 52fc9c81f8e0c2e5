//! Nodes of the trees of Btrfs, each held to what points at it.
//!
//! # On disk
//! A node begins with its checksum, the identity of the file system, its own logical address, the
//! generation in which it was written, its tree, the number of its items and its level. Above level
//! 0 follow pointers: first key, address, generation. A leaf has items: key, place and length of
//! the data, which fill it from its end.
//!
//! # Limits
//! All keys of a tree are met in ascending order, each once: so no pointer is followed twice. The
//! number of nodes is bounded. Of two copies the first that is right counts.
//!
//! # Sources
//! btrfs documentation, "On-disk Format", section "Header"; Linux
//! `include/uapi/linux/btrfs_tree.h` (`struct btrfs_header`, `btrfs_item`, `btrfs_key_ptr`),
//! `fs/btrfs/tree-checker.c`.

use super::chunks::Chunks;
use super::superblock::{Root, Volume};
use crate::base::ondisk::on_disk;
use crate::base::patch::Read;
use crate::base::topology::is_whole;
use crate::format::free_space::{Unsure, damaged};
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

on_disk! {
    /// `struct btrfs_disk_key`, which sorts items.
    #[derive(Clone, Copy)]
    pub(super) struct DiskKey of 17 bytes {
        0 => objectid: U64,
        8 => kind: u8,
        9 => offset: U64,
    }
    /// `struct btrfs_header`, in front of a node.
    struct Header of 101 bytes {
          0 => csum: [u8; 32],
         32 => fsid: [u8; 16],
         48 => bytenr: U64,
         56 => flags: U64,
         64 => chunk_tree_uuid: [u8; 16],
         80 => generation: U64,
         88 => owner: U64,
         96 => nritems: U32,
        100 => level: u8,
    }
    /// `struct btrfs_key_ptr`, in a node above level 0.
    struct Pointer of 33 bytes {
         0 => key: DiskKey,
        17 => blockptr: U64,
        25 => generation: U64,
    }
    /// `struct btrfs_item`, in a leaf; its place counts from behind the header.
    struct Item of 25 bytes {
         0 => key: DiskKey,
        17 => offset: U32,
        21 => size: U32,
    }
}

/// Flag of a node that was written.
const WRITTEN: u64 = 1;
/// Levels of a tree.
const LEVELS: u8 = 8;
/// Largest number of nodes that are read: 64 GiB of nodes of 16 KiB.
const MOST: usize = 1 << 22;

/// A key, in the order of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) object: u64,
    pub(super) kind: u8,
    pub(super) offset: u64,
}

impl From<DiskKey> for Key {
    fn from(key: DiskKey) -> Key {
        Key { object: key.objectid.get(), kind: key.kind, offset: key.offset.get() }
    }
}

/// A taker of items, in the order of their keys.
pub(super) type Each<'a> = dyn FnMut(Key, &[u8]) -> Result<(), Unsure> + 'a;

/// Adds a node to `nodes`, which are bounded.
pub(super) fn push(nodes: &mut Vec<u64>, at: u64) -> Result<(), Unsure> {
    if nodes.len() >= MOST {
        return Err(Unsure::Unknown(format!("it has more than {MOST} nodes")));
    }
    nodes.push(at);
    Ok(())
}

/// A node as its parent describes it: its first key, and the key that all of its are below.
struct Wanted {
    root: Root,
    first: Option<Key>,
    end: Option<Key>,
}

/// Reader of the nodes of all trees.
pub(super) struct Nodes<'a, 'r> {
    pub(super) volume: &'a Volume,
    read: &'a mut Read<'r>,
    /// Identity of the chunk tree, the same in all nodes.
    chunk_tree: Option<[u8; 16]>,
    /// Logical addresses of nodes that are in use.
    pub(super) met: Vec<u64>,
}

impl<'a, 'r> Nodes<'a, 'r> {
    pub(super) fn new(volume: &'a Volume, read: &'a mut Read<'r>) -> Nodes<'a, 'r> {
        Nodes { volume, read, chunk_tree: None, met: Vec::new() }
    }

    /// Calls `each` with all items of a tree, whose nodes are in `chunks`.
    pub(super) fn walk(
        &mut self,
        chunks: &Chunks,
        root: Root,
        each: &mut Each<'_>,
    ) -> Result<(), Unsure> {
        match root.level < LEVELS {
            true => self.visit(chunks, &Wanted { root, first: None, end: None }, each),
            false => damaged(format!("the height of its tree {}", root.owner)),
        }
    }

    /// Notes a node that is in use although it is not read.
    pub(super) fn note(&mut self, at: u64) -> Result<(), Unsure> {
        push(&mut self.met, at)
    }

    fn visit(
        &mut self,
        chunks: &Chunks,
        wanted: &Wanted,
        each: &mut Each<'_>,
    ) -> Result<(), Unsure> {
        let root = wanted.root;
        let wrong = || damaged(format!("the keys of node {} of its tree {}", root.at, root.owner));
        let bytes = self.node(chunks, root)?;
        let Ok((header, body)) = Header::read_from_prefix(&bytes) else { return wrong() };
        let count = usize::try_from(header.nritems.get()).unwrap_or(usize::MAX);
        // Only the root of an empty tree has nothing in it.
        if count == 0 && (root.level > 0 || wanted.first.is_some()) {
            return wrong();
        }
        if root.level == 0 {
            return leaf(body, count, wanted, each).unwrap_or_else(wrong);
        }
        let Ok((pointers, _)) = <[Pointer]>::ref_from_prefix_with_elems(body, count) else {
            return wrong();
        };
        let mut keys = Keys::new(wanted);
        for (nth, pointer) in pointers.iter().enumerate() {
            let key = Key::from(pointer.key);
            if !keys.take(key) {
                return wrong();
            }
            let next = Root {
                at: pointer.blockptr.get(),
                generation: pointer.generation.get(),
                level: root.level - 1,
                owner: root.owner,
            };
            let end = pointers.get(nth + 1).map(|next| next.key.into()).or(wanted.end);
            self.visit(chunks, &Wanted { root: next, first: Some(key), end }, each)?;
        }
        Ok(())
    }

    /// The bytes of a node, of its first copy that is right.
    fn node(&mut self, chunks: &Chunks, root: Root) -> Result<Vec<u8>, Unsure> {
        let (at, volume) = (root.at, self.volume);
        self.note(at)?;
        let mut doubt = Unsure::Damaged(format!("node {at} of its tree {}", root.owner));
        let Some(chunk) = chunks.of(at, volume.node).filter(|_| is_whole(at, volume.sector)) else {
            return Err(doubt);
        };
        let mut bytes = vec![0; usize::try_from(volume.node).unwrap_or(0)];
        for place in chunk.places() {
            let place = place + (at - chunk.start);
            match (self.read)(place, &mut bytes) {
                Err(errno) => doubt = Unsure::Failed(place, errno),
                Ok(()) if self.is_right(&bytes, root) => return Ok(bytes),
                Ok(()) => {}
            }
        }
        Err(doubt)
    }

    fn is_right(&mut self, bytes: &[u8], root: Root) -> bool {
        let Ok((header, _)) = Header::read_from_prefix(bytes) else { return false };
        let volume = self.volume;
        let is_right = volume.is_summed(bytes)
            && header.fsid == volume.fsid
            && header.bytenr.get() == root.at
            && header.flags.get() & WRITTEN != 0
            && header.generation.get() == root.generation
            && root.generation <= volume.generation
            && header.owner.get() == root.owner
            && header.level == root.level
            && self.chunk_tree.is_none_or(|uuid| uuid == header.chunk_tree_uuid);
        if is_right {
            self.chunk_tree = Some(header.chunk_tree_uuid);
        }
        is_right
    }
}

/// Keys of a node, which ascend within what its parent says of them.
struct Keys<'a> {
    wanted: &'a Wanted,
    last: Option<Key>,
}

impl Keys<'_> {
    fn new(wanted: &Wanted) -> Keys<'_> {
        Keys { wanted, last: None }
    }

    /// True if `key` may follow.
    fn take(&mut self, key: Key) -> bool {
        let follows = match self.last {
            Some(last) => last < key,
            None => self.wanted.first.is_none_or(|first| first == key),
        };
        self.last = Some(key);
        follows && self.wanted.end.is_none_or(|end| key < end)
    }
}

/// Calls `each` with the `count` items of a leaf; `None` if they contradict each other.
fn leaf(
    body: &[u8],
    count: usize,
    wanted: &Wanted,
    each: &mut Each<'_>,
) -> Option<Result<(), Unsure>> {
    let (items, _) = <[Item]>::ref_from_prefix_with_elems(body, count).ok()?;
    let (mut keys, mut end) = (Keys::new(wanted), body.len());
    for item in items {
        let size = usize::try_from(item.size.get()).ok()?;
        let start = usize::try_from(item.offset.get()).ok()?;
        let is_last = start.checked_add(size) == Some(end) && start >= size_of_val(items);
        let key = Key::from(item.key);
        if !is_last || !keys.take(key) {
            return None;
        }
        if let Err(why) = each(key, &body[start..end]) {
            return Some(Err(why));
        }
        end = start;
    }
    Some(Ok(()))
}
