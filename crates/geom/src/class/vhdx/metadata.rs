//! Metadata region of a VHDX: items by GUID.

use super::super::container::{NotFollowed, from_somewhere};
use super::layout::{Region, guid};
use super::log::Overlay;
use super::{KIND, MIB};
use crate::base::ondisk::{self, Guid, on_disk};
use crate::base::topology::is_whole;
use crate::format::Reference;
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32};

/// Bytes of the table, before which no item stands (2.6.1).
pub(super) const ITEMS: u32 = 64 << 10;
/// Items that are looked at: an image has 5 or 6, the table has room for 2047.
const MOST_ITEMS: u16 = 64;
/// Largest disk (2.6.2.2): 64 TiB.
const MOST: u64 = 64 << 40;
/// Sectors of which one bitmap block tells (2.4.3).
const SECTORS_OF_CHUNK: u64 = 1 << 23;
/// Bytes of a parent locator that are looked at.
const MOST_LOCATOR: u32 = 16 << 10;

on_disk! {
    /// 2.6.1.1 Metadata Table Header.
    struct Table of 32 bytes {
         0 => signature: [u8; 8],
         8 => reserved: U16,
        10 => entry_count: U16,
        12 => reserved2: [u8; 20],
    }
}

on_disk! {
    /// 2.6.1.2 Metadata Table Entry.
    struct Item of 32 bytes {
         0 => item_id: Guid,
        16 => offset: U32,
        20 => length: U32,
        24 => flags: U32,
        28 => reserved2: U32,
    }
}

on_disk! {
    /// 2.6.2.6.1 Parent Locator Header.
    struct Locator of 20 bytes {
         0 => locator_type: Guid,
        16 => reserved: U16,
        18 => key_value_count: U16,
    }
}

on_disk! {
    /// 2.6.2.6.2 Parent Locator Entry.
    struct Pair of 12 bytes {
        0 => key_offset: U32,
        4 => value_offset: U32,
        8 => key_length: U16,
        10 => value_length: U16,
    }
}

/// Item File Parameters: CAA16737-FA36-4D43-B3B6-33F0AA44E76B.
const FILE_PARAMETERS: Guid = guid(0xcaa1_6737, 0xfa36, 0x4d43, 0xb3b6_33f0_aa44_e76b);
/// Item Virtual Disk Size: 2FA54224-CD1B-4876-B211-5DBED83BF4B8.
const VIRTUAL_DISK_SIZE: Guid = guid(0x2fa5_4224, 0xcd1b, 0x4876, 0xb211_5dbe_d83b_f4b8);
/// Item Virtual Disk ID: BECA12AB-B2E6-4523-93EF-C309E000C746.
const PAGE_83: Guid = guid(0xbeca_12ab, 0xb2e6, 0x4523, 0x93ef_c309_e000_c746);
/// Item Logical Sector Size: 8141BF1D-A96F-4709-BA47-F233A8FAAB5F.
const LOGICAL_SECTOR_SIZE: Guid = guid(0x8141_bf1d, 0xa96f, 0x4709, 0xba47_f233_a8fa_ab5f);
/// Item Physical Sector Size: CDA348C7-445D-4471-9CC9-E9885251C556.
const PHYSICAL_SECTOR_SIZE: Guid = guid(0xcda3_48c7, 0x445d, 0x4471, 0x9cc9_e988_5251_c556);
/// Item Parent Locator: A8D35F2D-B30B-454D-ABF7-D3D84834AB0C.
const PARENT_LOCATOR: Guid = guid(0xa8d3_5f2d, 0xb30b, 0x454d, 0xabf7_d3d8_4834_ab0c);

/// Flag of an item without which the file is not to be opened.
const IS_REQUIRED: u32 = 4;
/// Flags of the file parameters.
const LEAVE_BLOCKS_ALLOCATED: u32 = 1;
const HAS_PARENT: u32 = 2;

/// The disk that the metadata describe.
pub(super) struct Disk {
    /// Size of the guest's disk in bytes.
    pub(super) size: u64,
    /// Bytes of a block.
    pub(super) block: u64,
    /// Logical and physical sector that the guest is told, in bytes.
    pub(super) logical: u64,
    pub(super) physical: u64,
    pub(super) page83: Option<Guid>,
    pub(super) is_fixed: bool,
    /// Parent of a differencing disk.
    pub(super) parent: Option<Reference>,
}

impl Disk {
    /// The disk of a metadata region, as the log has it.
    ///
    /// Errors: the reason for which its places are not followed.
    pub(super) fn read(
        probe: &Probe<'_>,
        region: &Region,
        overlay: &Overlay,
    ) -> Result<Disk, NotFollowed> {
        let items = Items::read(probe, region, overlay)?;
        let number = |id| items.bytes(id).map(u32::from_le_bytes).map(u64::from);
        let size = items.bytes(VIRTUAL_DISK_SIZE).map(u64::from_le_bytes);
        let parameters = items.bytes(FILE_PARAMETERS).map(u64::from_le_bytes);
        let (Some(size), Some(parameters), Some(logical), Some(physical)) =
            (size, parameters, number(LOGICAL_SECTOR_SIZE), number(PHYSICAL_SECTOR_SIZE))
        else {
            return Err(NotFollowed("metadata that every VHDX has are missing"));
        };
        let [block, flags] = [parameters, parameters >> 32].map(|half| half & 0xffff_ffff);
        let flags = u32::try_from(flags).unwrap_or_default();
        let is_sector = |size| matches!(size, 512 | 4096);
        if !is_sector(logical) || !is_sector(physical) {
            return Err(NotFollowed("its sectors have a size that no VHDX has"));
        }
        if !block.is_power_of_two() || !(MIB..=256 * MIB).contains(&block) {
            return Err(NotFollowed("the size of its blocks is not one"));
        }
        if size == 0 || size > MOST || !is_whole(size, logical) {
            return Err(NotFollowed("its size is not one that a VHDX can have"));
        }
        let parent = (flags & HAS_PARENT != 0).then(|| items.parent());
        Ok(Disk {
            size,
            block,
            logical,
            physical,
            page83: items.bytes(PAGE_83).map(Guid),
            is_fixed: flags & LEAVE_BLOCKS_ALLOCATED != 0,
            parent,
        })
    }

    /// Blocks of a chunk, which share one bitmap.
    pub(super) fn chunk(&self) -> u64 {
        SECTORS_OF_CHUNK * self.logical / self.block
    }

    /// Entries of the block allocation table (2.5).
    pub(super) fn entries(&self) -> u64 {
        let (blocks, chunk) = (self.size.div_ceil(self.block), self.chunk());
        match self.parent {
            Some(_) => blocks.div_ceil(chunk) * (chunk + 1),
            None => blocks + (blocks - 1) / chunk,
        }
    }
}

/// The table of a metadata region.
struct Items<'a> {
    probe: &'a Probe<'a>,
    overlay: &'a Overlay,
    region: &'a Region,
    items: Vec<Item>,
}

impl<'a> Items<'a> {
    fn read(
        probe: &'a Probe<'a>,
        region: &'a Region,
        overlay: &'a Overlay,
    ) -> Result<Items<'a>, NotFollowed> {
        let at = region.file_offset.get();
        let mut found = Items { probe, overlay, region, items: Vec::new() };
        let header: Option<[u8; 32]> = found.exactly(at);
        let header: Option<Table> =
            header.and_then(|bytes| zerocopy::FromBytes::read_from_bytes(&bytes).ok());
        let count = match header {
            Some(header) if header.signature == *b"metadata" => header.entry_count.get(),
            _ => return Err(NotFollowed("its metadata are damaged")),
        };
        if count > MOST_ITEMS {
            return Err(NotFollowed("it has more metadata than are looked at"));
        }
        for nth in 0..u64::from(count) {
            let item = found.exactly::<32>(at + 32 + nth * 32);
            found
                .items
                .extend(item.and_then(|bytes| zerocopy::FromBytes::read_from_bytes(&bytes).ok()));
        }
        let known = [
            FILE_PARAMETERS,
            VIRTUAL_DISK_SIZE,
            PAGE_83,
            LOGICAL_SECTOR_SIZE,
            PHYSICAL_SECTOR_SIZE,
            PARENT_LOCATOR,
        ];
        let is_strange =
            |item: &Item| item.flags.get() & IS_REQUIRED != 0 && !known.contains(&item.item_id);
        if found.items.iter().any(is_strange) {
            return Err(NotFollowed("it needs metadata that are not known here"));
        }
        Ok(found)
    }

    /// The item `id`, and its place in the file; none that reaches out of the region.
    fn item(&self, id: Guid) -> Option<(u64, u32)> {
        let item = self.items.iter().find(|item| item.item_id == id)?;
        let (offset, length) = (item.offset.get(), item.length.get());
        let end = offset.checked_add(length)?;
        let is_inside = offset >= ITEMS && end <= self.region.length.get();
        is_inside.then_some((self.region.file_offset.get() + u64::from(offset), length))
    }

    /// The first `N` bytes of item `id`.
    fn bytes<const N: usize>(&self, id: Guid) -> Option<[u8; N]> {
        let (at, length) = self.item(id)?;
        (usize::try_from(length).ok()? >= N).then(|| self.exactly(at))?
    }

    fn exactly<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        self.some(at, N)?.try_into().ok()
    }

    fn some(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = self.probe.bytes(at, length)?;
        self.overlay.lay_over(at, &mut bytes);
        Some(bytes)
    }

    /// The parent, by the first of the paths that the locator has.
    fn parent(&self) -> Reference {
        let pairs = self.locator().unwrap_or_default();
        let of = |key: &&str| pairs.iter().find(|(own, _)| own == key).map(|(_, value)| value);
        let name = ["relative_path", "absolute_win32_path", "volume_path"].iter().find_map(of);
        Reference {
            role: "parent",
            name: name.map_or_else(|| "unnamed".into(), |path| from_somewhere(path)),
            format: Some(KIND.name.into()),
            identity: of(&"parent_linkage")
                .map(|id| id.trim_matches(['{', '}']).to_ascii_lowercase()),
        }
    }

    /// Keys and values of the parent locator (2.6.2.6.2).
    fn locator(&self) -> Option<Vec<(String, String)>> {
        let (at, length) = self.item(PARENT_LOCATOR)?;
        let bytes = self.some(at, usize::try_from(length.min(MOST_LOCATOR)).ok()?)?;
        let (header, pairs) = <Locator as zerocopy::FromBytes>::ref_from_prefix(&bytes).ok()?;
        let pairs = pairs.chunks_exact(12).take(usize::from(header.key_value_count.get()));
        let found = pairs.filter_map(|pair| {
            let pair: Pair = zerocopy::FromBytes::read_from_bytes(pair).ok()?;
            let text = |from: U32, length: U16| {
                let from = usize::try_from(from.get()).ok()?;
                let end = from.checked_add(usize::from(length.get()))?;
                ondisk::text_utf16(bytes.get(from..end)?)
            };
            let key = text(pair.key_offset, pair.key_length)?;
            Some((key, text(pair.value_offset, pair.value_length)?))
        });
        Some(found.collect())
    }
}
