//! VDI: a disk image of VirtualBox.
//!
//! # On disk
//! A line of text, then a little-endian header at byte 64. The virtual disk is cut into blocks of 1
//! MiB, as a rule. A map has a 32-bit number for each: the block of the file that holds it, or that
//! it is zero or absent. A block of the file may begin with extra bytes, which are not the guest's.
//!
//! # Topology
//! All blocks lie at one distance from where the data begin, so the header alone decides: the
//! offset of the data and the extra bytes are the phase. qemu-img puts the data behind a map of
//! whole sectors, which for a disk of 1 to 127 GiB in whole GiB is 512 bytes past a 4096-byte unit;
//! VirtualBox begins them on a MiB.
//!
//! # Limits
//! A differencing image knows its parent by a UUID, not by a name: it is found among the disks of
//! the target alone. Versions before 1.0 are not read. QEMU takes blocks of 1 MiB alone and passes
//! over extra bytes.
//!
//! # Sources
//! VirtualBox `src/VBox/Storage/VDICore.h` (`VDIPREHEADER`, `VDIHEADER1`), `VDI.cpp`; QEMU
//! `block/vdi.c`, `vdi_open`, for what is refused, `vdi_co_pwritev` for a first write.

use super::Taste;
use super::container::{BlockTable, Container, Contents, FILE, Home, PARENT, Parent, Place};
use crate::base::ondisk::{Guid, on_disk};
use crate::base::topology::{FirstWrite, Grain, Translation, is_whole};
use crate::format::{Format, FormatKind, Inside, Reference, Sign};
use crate::mapping::geom::Extent;
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::little_endian::{U32, U64};

/// The class and format, for the registry.
pub struct Vdi;

/// The kind that QEMU calls `vdi`.
pub const KIND: FormatKind = FormatKind::new("vdi", &Vdi);

const AT: u64 = 64;
const SECTOR: u64 = 512;

on_disk! {
    /// `VDIHEADER1PLUS` from the signature of the pre-header on.
    #[derive(Clone)]
    struct Header of 392 bytes {
          0 => signature: U32,
          4 => version: U32,
          8 => header_size: U32,
         12 => image_type: U32,
         16 => image_flags: U32,
         20 => description: [u8; 256],
        276 => offset_bmap: U32,
        280 => offset_data: U32,
        284 => cylinders: U32,
        288 => heads: U32,
        292 => sectors: U32,
        296 => sector_size: U32,
        300 => unused1: U32,
        304 => disk_size: U64,
        312 => block_size: U32,
        316 => block_extra: U32,
        320 => blocks_in_image: U32,
        324 => blocks_allocated: U32,
        328 => uuid_create: Guid,
        344 => uuid_modify: Guid,
        360 => uuid_linkage: Guid,
        376 => uuid_parent_modify: Guid,
    }
}

/// Image types: dynamic, fixed, differencing.
const FIXED: u32 = 2;
const DIFFERENCING: u32 = 4;
const TYPES: [u32; 3] = [1, FIXED, DIFFERENCING];
/// Byte of `blocks_allocated` in the file.
const ALLOCATED: u64 = AT + 324;
/// Entries of the map: a block without a place, and one that is zero.
const FREE: u32 = 0xffff_ffff;
const ZERO: u32 = 0xffff_fffe;

/// The header on a provider.
fn found(probe: &Probe<'_>) -> Option<Header> {
    let signature: U32 = probe.read(AT)?;
    probe.read(AT).filter(|_| signature.get() == 0xbeda_107f)
}

/// The reason for which the places that a header leads to are not followed.
fn refusal(header: &Header) -> Option<&'static str> {
    let (block, blocks) = (u64::from(header.block_size.get()), header.blocks_in_image.get());
    let (map, data) = (header.offset_bmap.get(), header.offset_data.get());
    let reasons = [
        (header.version.get() >> 16 != 1, "its version is not known here"),
        (header.header_size.get() < 384, "its header is too short"),
        (!TYPES.contains(&header.image_type.get()), "its type is not known here"),
        (
            header.image_type.get() == DIFFERENCING && header.uuid_linkage.is_nil(),
            "it does not say which parent it has",
        ),
        (header.sector_size.get() != 512, "its sectors are not of 512 bytes"),
        (!block.is_power_of_two() || block < SECTOR, "the size of its blocks is no power of two"),
        (!is_whole(map.into(), SECTOR), "its map does not begin on a sector"),
        (!is_whole(data.into(), SECTOR), "its data do not begin on a sector"),
        (
            block.saturating_mul(blocks.into()) < header.disk_size.get(),
            "its map is too small for its size",
        ),
    ];
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

/// A UUID as VirtualBox prints it.
fn text(uuid: Guid) -> String {
    uuid.to_string().to_ascii_lowercase()
}

/// The parent of a differencing image, which has no name in it.
fn parent(header: &Header) -> Option<Reference> {
    let name = text(header.uuid_linkage);
    let modified = header.uuid_parent_modify;
    // The state of the parent, where it is known.
    let identity =
        if modified.is_nil() { name.clone() } else { format!("{name}/{}", text(modified)) };
    (!header.uuid_linkage.is_nil()).then(|| Reference {
        role: "parent",
        name,
        format: Some(KIND.name.into()),
        identity: Some(identity),
    })
}

/// The program that made the image, by the line of text in front.
fn creator(probe: &Probe<'_>) -> Option<&'static str> {
    let line = probe.bytes(0, 64)?;
    let says = |name: &&str| line.windows(name.len()).any(|part| part == name.as_bytes());
    ["QEMU", "VirtualBox"].into_iter().find(says)
}

impl Format for Vdi {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let header = found(probe)?;
        let mut sign = Sign::new(KIND, AT);
        let version = header.version.get();
        sign.version = Some(format!("{}.{}", version >> 16, version & 0xffff));
        sign.inside = refusal(&header).map_or(Inside::Container, Inside::Unknown);
        sign.details.push(("virtual size", header.disk_size.get().to_string()));
        sign.details.push(("cluster size", header.block_size.get().to_string()));
        sign.details.push(("data offset", header.offset_data.get().to_string()));
        sign.identity = Some(format!("{}/{}", text(header.uuid_create), text(header.uuid_modify)));
        sign.references.extend(parent(&header));
        sign.details.extend(creator(probe).map(|creator| ("creator", creator.into())));
        Some(sign)
    }

    fn remake(&self) -> &'static str {
        "copy it with the machine shut down: VBoxManage clonemedium, or qemu-img convert -O qcow2"
    }
}

impl Container for Vdi {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        let Some(header) = found(probe).filter(|header| refusal(header).is_none()) else {
            return Taste::No;
        };
        let block = u64::from(header.block_size.get());
        let extra = u64::from(header.block_extra.get());
        let table = Map {
            block,
            stride: block + extra,
            map: header.offset_bmap.get().into(),
            data: u64::from(header.offset_data.get()) + extra,
            blocks: header.blocks_in_image.get(),
        };
        let contents = Contents {
            length: header.disk_size.get(),
            home: Home::File(probe.length()),
            parent: if header.uuid_linkage.is_nil() { Parent::None } else { Parent::Missing },
            sector: None,
            translation: {
                let known = Translation::by_stride(block, table.stride, table.data);
                let is_fixed = header.image_type.get() == FIXED;
                if is_fixed {
                    known
                } else {
                    known.first_writing(|known| first_write(known, &header))
                }
            },
            table,
        };
        Taste::Geom(Arc::new(contents), Vec::new())
    }
}

/// The ranges that a first write to a block touches: QEMU and VirtualBox fill the block, with zeros
/// or from the parent, and count it in the header.
fn first_write(known: &Translation, header: &Header) -> FirstWrite {
    let parent = (!header.uuid_linkage.is_nil()).then_some(PARENT);
    FirstWrite::filled(known, known.allocation, parent)
        .range("header", Grain::only(ALLOCATED), 4)
        .entry("map entry", 4)
}

/// The map of an image.
#[derive(Clone)]
struct Map {
    block: u64,
    /// Bytes of the file from one block to the next.
    stride: u64,
    /// First byte of the map.
    map: u64,
    /// First byte of the guest's in block 0 of the file.
    data: u64,
    blocks: u32,
}

impl BlockTable for Map {
    fn block(&self) -> u64 {
        self.block
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let at = nth.checked_mul(4).and_then(|entry| self.map.checked_add(entry));
        let entry = tables.bytes(FILE, at.ok_or(Extent::Fail { length })?, length)?;
        Ok(match u32::from_le_bytes(entry) {
            FREE => Place::Absent,
            ZERO => Place::Zero,
            index if index < self.blocks => {
                let behind = self.stride.checked_mul(index.into());
                let place = behind.and_then(|behind| self.data.checked_add(behind));
                place.map_or(Place::Broken, Place::At)
            }
            _ => Place::Broken,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::container::tests::{findings, opened, opened_on, read, reason, survives};
    use crate::base::error::Errno;
    use crate::format::tests::disk;

    /// An image of four blocks of 1 KiB: the second of the file, none, zero, and the first. Each
    /// block is behind `extra` bytes.
    fn image(extra: u32) -> Vec<u8> {
        let mut file = vec![0; 1024];
        let mut put = |at: usize, number: u32| {
            file[at..at + 4].copy_from_slice(&number.to_le_bytes());
        };
        for (at, number) in [
            (64, 0xbeda_107f),
            (68, 0x0001_0001),
            (72, 400),
            (76, 1),
            (0x154, 512),
            (0x158, 1024),
            (0x168, 512),
            (0x170, 4096),
            (0x178, 1024),
            (0x17c, extra),
            (0x180, 4),
        ] {
            put(at, number);
        }
        for (nth, entry) in [1, u32::MAX, u32::MAX - 1, 0].into_iter().enumerate() {
            put(512 + nth * 4, entry);
        }
        let extra = usize::try_from(extra).expect("a small number");
        for fill in [b'a', b'b'] {
            file.extend(vec![b'x'; extra]);
            file.extend([fill; 1024]);
        }
        file
    }

    #[test]
    fn blocks_are_where_the_map_has_them_behind_their_extra_bytes() {
        for extra in [0, 512] {
            let file = image(extra);
            let it = opened(disk(file.len() as u64, &[(0, &file)]));
            let bytes = read(&it, 0, 4096).unwrap();
            let expected = [[b'b'; 1024], [0; 1024], [0; 1024], [b'a'; 1024]].concat();
            assert!(bytes == expected, "{extra}");
            let at = 1024 + u64::from(extra) * 2 + 1024;
            assert_eq!(
                it.0.providers[it.1.unwrap()].route().extents(
                    0,
                    1024,
                    crate::mapping::geom::Op::Read,
                    &mut |_, piece| match piece {
                        crate::mapping::route::Piece::Store { offset, .. } if offset != at => {
                            Err(Errno::Range)
                        }
                        _ => Ok(()),
                    }
                ),
                Ok(())
            );
        }
    }

    #[test]
    fn what_virtualbox_or_qemu_refuses_is_unknown() {
        for (at, number, part) in [
            (68, 0x0000_0001, "version"),
            (72, 348, "header"),
            (76, 4, "which parent"),
            (76, 3, "type"),
            (76, 5, "type"),
            (0x154, 513, "map does not"),
            (0x158, 1025, "data do not"),
            (0x168, 4096, "sectors"),
            (0x174, 1, "too small"),
            (0x178, 1025, "power of two"),
            (0x178, 0, "power of two"),
            (0x180, 3, "too small"),
        ] {
            let mut file = image(0);
            file[at..at + 4].copy_from_slice(&u32::to_le_bytes(number));
            let why = reason(disk(file.len() as u64, &[(0, &file)]));
            assert!(why.is_some_and(|why| why.contains(part)), "{at:#x} {number}: {why:?}");
        }
        assert_eq!(reason(disk(4096, &[(0, &image(0))])), None);
    }

    /// Zeros are its own, absent blocks its parent's.
    #[test]
    fn a_differencing_image_is_read_over_its_parent() {
        let of = |file: &[u8]| disk(file.len() as u64, &[(0, file)]);
        let (mut base, mut child) = (image(0), image(0));
        base[0x188] = 5;
        base[512..528].copy_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
        (child[76], child[0x1a8]) = (4, 5);
        let name = "00000005-0000-0000-0000-000000000000";
        let it = opened_on(of(&child), name, of(&base));
        let expected = [[b'b'; 1024], [b'b'; 1024], [0; 1024], [b'a'; 1024]].concat();
        assert!(read(&it, 0, 4096).unwrap() == expected);
        assert_eq!(findings(&it), [] as [&str; 0]);
        // A parent that was written since, one that the child was not made on, and one that is not
        // here.
        child[0x1b8] = 7;
        assert_eq!(findings(&opened_on(of(&child), name, of(&base))), ["TL0019"]);
        base[0x198] = 7;
        assert_eq!(findings(&opened_on(of(&child), name, of(&base))), [] as [&str; 0]);
        base[0x188] = 6;
        assert_eq!(findings(&opened_on(of(&child), name, of(&base))), ["TL0019"]);
        assert_eq!(findings(&opened(of(&child))), ["TL0019"]);
    }

    #[test]
    fn a_block_that_is_not_there_fails_and_nothing_panics() {
        let mut file = image(0);
        file[512] = 4;
        let it = opened(disk(file.len() as u64, &[(0, &file)]));
        assert_eq!(read(&it, 0, 512), Err(Errno::Io));
        assert!(read(&it, 1024, 512).is_ok());
        survives(&image(512), 64..0x1c8);
        survives(&image(512), 512..528);
    }
}
