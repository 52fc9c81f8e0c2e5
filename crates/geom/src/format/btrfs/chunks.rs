//! Chunks of Btrfs: where on a device a logical address is.
//!
//! # On disk
//! A chunk is a range of logical addresses and has a stripe for each of its places. With one device
//! and the profiles `single` and `DUP` a stripe is as long as its chunk. The chunks of kind
//! `SYSTEM`, in which the chunk tree is, are in the superblock as well.
//!
//! # Sources
//! btrfs documentation, "On-disk Format", section "CHUNK_ITEM"; Linux
//! `include/uapi/linux/btrfs_tree.h` (`struct btrfs_chunk`).

use super::nodes::{DiskKey, Key};
use super::superblock::Volume;
use crate::base::ondisk::on_disk;
use crate::base::topology::is_whole;
use crate::format::free_space::{Unsure, damaged};
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

on_disk! {
    /// `struct btrfs_chunk` without its stripes.
    struct ChunkItem of 48 bytes {
         0 => length: U64,
         8 => owner: U64,
        16 => stripe_len: U64,
        24 => kind: U64,
        32 => io_align: U32,
        36 => io_width: U32,
        40 => sector_size: U32,
        44 => num_stripes: U16,
        46 => sub_stripes: U16,
    }
    /// `struct btrfs_stripe`, a place of a chunk.
    struct Stripe of 32 bytes {
         0 => devid: U64,
         8 => offset: U64,
        16 => dev_uuid: [u8; 16],
    }
}

/// Object and kind of the keys of chunks.
pub(super) const CHUNK_OBJECT: u64 = 256;
pub(super) const CHUNK_ITEM: u8 = 228;
/// Kinds of chunks: data, metadata, both, or the chunk tree.
pub(super) const DATA: u64 = 1;
pub(super) const SYSTEM: u64 = 2;
pub(super) const METADATA: u64 = 4;
const DUP: u64 = 0x20;
/// Largest number of chunks: of 1 GiB each, 256 TiB.
const MOST: usize = 1 << 18;

/// A chunk whose numbers were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// First logical address, and number of bytes.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) kind: u64,
    /// Its places on the device: one, or two of the same contents.
    places: [Option<u64>; 2],
}

impl Chunk {
    /// The chunk at logical address `start` that `bytes` describe.
    fn parse(start: u64, bytes: &[u8], volume: &Volume) -> Result<Chunk, Unsure> {
        let wrong = || damaged(format!("the chunk at {start}"));
        let Ok((item, stripes)) = ChunkItem::read_from_prefix(bytes) else { return wrong() };
        let (length, kind) = (item.length.get(), item.kind.get());
        if kind & !(DATA | SYSTEM | METADATA | DUP) != 0 {
            return Err(Unsure::Unknown(format!("its chunk at {start} has the profile {kind:#x}")));
        }
        let copies = if kind & DUP != 0 { 2 } else { 1 };
        let is_sound = kind & !DUP != 0
            && length > 0
            && is_whole(start, volume.sector)
            && is_whole(length, volume.sector)
            && start.checked_add(length).is_some()
            && usize::from(item.num_stripes.get()) == copies
            && stripes.len() == copies * size_of::<Stripe>();
        if !is_sound {
            return wrong();
        }
        let mut places = [None; 2];
        for (place, bytes) in places.iter_mut().zip(stripes.chunks_exact(size_of::<Stripe>())) {
            let Ok(stripe) = Stripe::read_from_bytes(bytes) else { return wrong() };
            let (at, device) = (stripe.offset.get(), &volume.device);
            if stripe.devid != device.devid || stripe.dev_uuid != device.uuid {
                return Err(Unsure::Unknown(format!("its chunk at {start} is on another device")));
            }
            let end = at.checked_add(length).filter(|&end| end <= device.total_bytes.get());
            if end.is_none() || !is_whole(at, volume.sector) {
                return wrong();
            }
            *place = Some(at);
        }
        Ok(Chunk { start, length, kind, places })
    }

    /// Logical address behind it.
    pub(super) fn end(&self) -> u64 {
        self.start + self.length
    }

    /// The bytes of the device at which it begins.
    pub(super) fn places(&self) -> impl Iterator<Item = u64> + use<> {
        self.places.into_iter().flatten()
    }
}

/// All chunks in the order of their logical addresses.
pub(super) struct Chunks {
    list: Vec<Chunk>,
}

impl Chunks {
    /// The chunks of the superblock.
    pub(super) fn of_array(volume: &Volume) -> Result<Chunks, Unsure> {
        let wrong = || damaged("the chunks in its superblock");
        let mut chunks = Chunks { list: Vec::new() };
        let mut rest = volume.array.as_slice();
        while !rest.is_empty() {
            let Ok((key, behind)) = DiskKey::read_from_prefix(rest) else { return wrong() };
            let Ok((item, _)) = ChunkItem::read_from_prefix(behind) else { return wrong() };
            let stripes = usize::from(item.num_stripes.get()) * size_of::<Stripe>();
            let Some((bytes, behind)) = behind.split_at_checked(48 + stripes) else {
                return wrong();
            };
            chunks.add(key.into(), bytes, volume)?;
            rest = behind;
        }
        match chunks.list.iter().all(|chunk| chunk.kind & SYSTEM != 0) {
            true => Ok(chunks),
            false => wrong(),
        }
    }

    /// No chunks, to be added one by one.
    pub(super) fn empty() -> Chunks {
        Chunks { list: Vec::new() }
    }

    /// Adds the chunk of an item; its key is larger than those before.
    pub(super) fn add(&mut self, key: Key, bytes: &[u8], volume: &Volume) -> Result<(), Unsure> {
        let start = key.offset;
        let end = self.list.last().map_or(0, Chunk::end);
        if key.object != CHUNK_OBJECT || key.kind != CHUNK_ITEM || start < end {
            return damaged(format!("the key of the chunk at {start}"));
        }
        if self.list.len() >= MOST {
            return Err(Unsure::Unknown(format!("it has more than {MOST} chunks")));
        }
        self.list.push(Chunk::parse(start, bytes, volume)?);
        Ok(())
    }

    /// The chunks, in order.
    pub(super) fn list(&self) -> &[Chunk] {
        &self.list
    }

    /// True if the chunks of kind `SYSTEM` are those of `array`.
    pub(super) fn has_system(&self, array: &Chunks) -> bool {
        let is_system = |chunk: &&Chunk| chunk.kind & SYSTEM != 0;
        self.list.iter().filter(is_system).eq(&array.list)
    }

    /// The chunk that has the `length` bytes at logical address `at`.
    pub(super) fn of(&self, at: u64, length: u64) -> Option<&Chunk> {
        let behind = self.list.partition_point(|chunk| chunk.start <= at);
        let chunk = self.list.get(behind.checked_sub(1)?)?;
        (at.checked_add(length)? <= chunk.end()).then_some(chunk)
    }

    /// All stripes in the order of the device: where each begins, and its chunk. Refused where two
    /// have a byte.
    pub(super) fn stripes(&self) -> Result<Vec<(u64, &Chunk)>, Unsure> {
        let mut all: Vec<(u64, &Chunk)> = self
            .list
            .iter()
            .flat_map(|chunk| chunk.places().map(move |place| (place, chunk)))
            .collect();
        all.sort_by_key(|&(place, _)| place);
        match all.windows(2).find(|two| two[0].0 + two[0].1.length > two[1].0) {
            Some(two) => damaged(format!("two chunks have byte {}", two[1].0)),
            None => Ok(all),
        }
    }
}
