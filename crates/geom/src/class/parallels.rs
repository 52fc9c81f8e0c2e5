//! Parallels: a disk image of Parallels Desktop and Virtuozzo.
//!
//! # On disk
//! Little-endian header at byte 0: `WithoutFreeSpace`, or `WithouFreSpacExt` of larger disks. The
//! virtual disk is cut into clusters. A table (BAT) behind the header has the place of each, in
//! sectors for the first magic and in clusters for the second; 0 is none.
//!
//! # Topology
//! By the first magic a cluster lies on any sector: the table says, as far as it was looked at. By
//! the second all lie at multiples of their size. Old versions have clusters of 63 sectors, which
//! break every unit above 512 bytes.
//!
//! # Limits
//! An image that was not closed is `unknown`. Of a `.hdd` directory the `.hds` files are images;
//! `DiskDescriptor.xml` lists them, and its disk is told of in `parallels/bundle.rs`.
//!
//! # Sources
//! QEMU `docs/interop/parallels.txt`; `block/parallels.c`, `parallels_open`, for what is refused,
//! `allocate_clusters` for a first write.

use super::Taste;
use super::container::{
    BlockTable, Container, Contents, FILE, Home, NotFollowed, Parent, Place, looked_at,
};
use crate::base::ondisk::on_disk;
use crate::base::topology::{FirstWrite, Translation};
use crate::format::{Format, FormatKind, Inside, Sign};
use crate::mapping::geom::Extent;
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use bundle::Bundle;
use std::sync::Arc;
use zerocopy::little_endian::{U32, U64};

mod bundle;

/// The class and format, for the registry.
pub struct Parallels;

/// The kind that QEMU calls `parallels`.
pub const KIND: FormatKind = FormatKind::new("parallels", &Parallels);

const SECTOR: u64 = 512;

on_disk! {
    /// Header of both magics, `ParallelsHeader`.
    struct Header of 64 bytes {
         0 => magic: [u8; 16],
        16 => version: U32,
        20 => heads: U32,
        24 => cylinders: U32,
        28 => tracks: U32,
        32 => bat_entries: U32,
        36 => nb_sectors: U64,
        44 => inuse: U32,
        48 => data_off: U32,
        52 => flags: U32,
        56 => ext_off: U64,
    }
}

/// Magics by which entries count sectors, and clusters.
const BY_SECTORS: &[u8; 16] = b"WithoutFreeSpace";
const BY_CLUSTERS: &[u8; 16] = b"WithouFreSpacExt";
/// `HEADER_INUSE_MAGIC`: open, or not closed.
const IN_USE: u32 = 0x746f_6e59;
/// First byte of the table.
const BAT: u64 = 64;
/// Most sectors of a cluster, and most entries, that QEMU takes.
const MOST_TRACKS: u32 = 0x7fff_ffff / 513;
const MOST_ENTRIES: u32 = 0x7fff_ffff / 4;

impl Header {
    /// True if entries count clusters.
    fn by_clusters(&self) -> bool {
        self.magic == *BY_CLUSTERS
    }

    /// Size of the guest's disk in sectors: of the first magic, the low half of the field.
    fn sectors(&self) -> u64 {
        let sectors = self.nb_sectors.get();
        if self.by_clusters() { sectors } else { sectors & 0xffff_ffff }
    }

    /// Size of a cluster in bytes.
    fn cluster(&self) -> u64 {
        u64::from(self.tracks.get()) * SECTOR
    }
}

/// The header on a provider.
fn found(probe: &Probe<'_>) -> Option<Header> {
    let is_known = |header: &Header| [BY_SECTORS, BY_CLUSTERS].contains(&&header.magic);
    probe.read(0).filter(is_known)
}

/// The reason for which the places that a header leads to are not followed.
fn refusal(header: &Header) -> Option<&'static str> {
    let (tracks, entries) = (header.tracks.get(), header.bat_entries.get());
    let reasons = [
        (header.version.get() != 2, "its version is not known here"),
        (tracks == 0, "its clusters have no sectors"),
        (tracks > MOST_TRACKS, "its clusters are larger than QEMU takes"),
        (entries > MOST_ENTRIES, "its table is larger than QEMU takes"),
        (header.sectors() > u64::MAX / SECTOR, "its size is larger than QEMU takes"),
        (
            u64::from(entries).saturating_mul(tracks.into()) < header.sectors(),
            "its table is too small for its size",
        ),
        (header.inuse.get() == IN_USE, "it is in use, or was not closed"),
    ];
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

/// The sign of the descriptor of a directory.
fn sign_of(bundle: Result<Bundle, NotFollowed>) -> Sign {
    let mut sign = Sign::new(KIND, 0);
    match bundle {
        Ok(Bundle { references, size, .. }) => {
            sign.inside = Inside::Container;
            sign.details.push(("virtual size", size.to_string()));
            sign.references = references;
        }
        Err(NotFollowed(reason)) => sign.inside = Inside::Unknown(reason),
    }
    sign
}

impl Format for Parallels {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        if let Some(bundle) = bundle::found(probe) {
            return Some(sign_of(bundle));
        }
        let header = found(probe)?;
        let mut sign = Sign::new(KIND, 0);
        sign.version = Some(header.version.get().to_string());
        sign.inside = refusal(&header).map_or(Inside::Container, Inside::Unknown);
        let size = header.sectors().checked_mul(SECTOR);
        sign.details.extend(size.map(|bytes| ("virtual size", bytes.to_string())));
        sign.details.push(("cluster size", header.cluster().to_string()));
        Some(sign)
    }
}

impl Container for Parallels {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        if let Some(Ok(Bundle { disk, .. })) = bundle::found(probe) {
            return Taste::Geom(Arc::new(disk), Vec::new());
        }
        let Some(header) = found(probe).filter(|header| refusal(header).is_none()) else {
            return Taste::No;
        };
        let (cluster, length) = (header.cluster(), header.sectors() * SECTOR);
        let unit = if header.by_clusters() { cluster } else { SECTOR };
        let table = Bat { cluster, unit };
        let data = u64::from(header.data_off.get()) * SECTOR;
        let blocks =
            if header.by_clusters() { Vec::new() } else { looked_at(&table, length, probe) };
        let contents = Contents {
            length,
            home: Home::File(probe.length()),
            parent: Parent::None,
            sector: None,
            translation: match blocks {
                // The first cluster of an empty image will be where its data begin.
                blocks if blocks.is_empty() => {
                    Translation::by_format(cluster, if header.by_clusters() { 0 } else { data })
                }
                blocks => Translation::by_table(cluster, blocks),
            }
            .first_writing(|known| FirstWrite::plain(known).entry("BAT entry", 4)),
            table,
        };
        Taste::Geom(Arc::new(contents), Vec::new())
    }
}

/// The table of an image.
#[derive(Clone)]
struct Bat {
    /// Size of a cluster in bytes.
    cluster: u64,
    /// Bytes that an entry counts.
    unit: u64,
}

impl BlockTable for Bat {
    fn block(&self) -> u64 {
        self.cluster
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let at = nth.checked_mul(4).and_then(|entry| BAT.checked_add(entry));
        let entry = tables.bytes(FILE, at.ok_or(Extent::Fail { length })?, length)?;
        Ok(match u32::from_le_bytes(entry) {
            0 => Place::Absent,
            // A cluster of less than 2 GiB by a number of 32 bits.
            entry => Place::At(u64::from(entry) * self.unit),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::container::tests::{opened, read, reason, survives};
    use super::{BY_CLUSTERS, BY_SECTORS};
    use crate::base::error::Errno;
    use crate::base::topology::Translation;
    use crate::format::tests::disk;

    /// An image of three clusters of `tracks` sectors: the first by `entry`, none, and one that
    /// follows it.
    pub(super) fn image(magic: &[u8; 16], tracks: u32, entry: u32) -> Vec<u8> {
        let mut file = vec![0; 512];
        file[..16].copy_from_slice(magic);
        let next = if magic == BY_CLUSTERS { 1 } else { tracks };
        for (at, number) in [
            (16, 2),
            (28, tracks),
            (32, 3),
            (36, 3 * tracks),
            (44, 0x312e_3276),
            (48, 8),
            (64, entry),
            (72, entry.saturating_add(next)),
        ] {
            file[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        file
    }

    fn translation(file: &[u8], runs: &[(u64, &[u8])]) -> (Vec<u8>, Translation) {
        let runs = [&[(0, file)], runs].concat();
        let it = opened(disk(1 << 20, &runs));
        let contents = &it.0.providers[it.1.expect("a disk in it")];
        let translation = contents.route().set().unwrap().geom.translation().unwrap().clone();
        (read(&it, 0, 1024).unwrap(), translation)
    }

    #[test]
    fn entries_count_sectors_or_clusters() {
        let (bytes, known) = translation(&image(BY_SECTORS, 8, 9), &[(9 * 512, &[b'p'; 512])]);
        assert!(bytes[..512] == [b'p'; 512] && bytes[512..] == [0; 512]);
        // One at 512 past a page, and the other one page nearer than it should be.
        assert_eq!((known.grain().size(), known.grain().phase()), (4096, 512));
        assert_eq!(
            (known.looked_at(), known.off(crate::base::topology::Grain::new(4096, 0).unwrap())),
            (Some(2), Some(2))
        );
        let (bytes, known) = translation(&image(BY_CLUSTERS, 8, 3), &[(3 * 4096, &[b'p'; 512])]);
        assert!(bytes[..512] == [b'p'; 512]);
        assert_eq!((known.grain().size(), known.grain().phase()), (4096, 0));
    }

    #[test]
    fn clusters_of_63_sectors_break_a_page() {
        for magic in [BY_SECTORS, BY_CLUSTERS] {
            let (_, known) = translation(&image(magic, 63, 9), &[]);
            assert!(known.grain().size() % 4096 != 0, "{:?}", known.grain());
        }
    }

    #[test]
    fn an_empty_image_says_where_its_data_will_begin() {
        let mut file = image(BY_SECTORS, 8, 0);
        file[72] = 0;
        file[48] = 9;
        let (_, known) = translation(&file, &[]);
        assert_eq!(
            (known.grain().size(), known.grain().phase(), known.looked_at()),
            (4096, 512, None)
        );
    }

    #[test]
    fn what_qemu_refuses_is_unknown() {
        for (at, number, part) in [
            (16, 3, "version"),
            (28, 0, "no sectors"),
            (28, 1 << 23, "clusters are larger"),
            (32, 1 << 30, "table is larger"),
            (32, 2, "too small"),
            (44, 0x746f_6e59, "in use"),
        ] {
            let mut file = image(BY_SECTORS, 8, 9);
            file[at..at + 4].copy_from_slice(&u32::to_le_bytes(number));
            let why = reason(disk(1 << 20, &[(0, &file)]));
            assert!(why.is_some_and(|why| why.contains(part)), "{at} {number}: {why:?}");
        }
        let mut huge = image(BY_CLUSTERS, 8, 9);
        huge[36..44].fill(0xff);
        assert!(reason(disk(1 << 20, &[(0, &huge)])).is_some_and(|why| why.contains("size is")));
        // The high half of the size is not read by the first magic.
        let mut low = image(BY_SECTORS, 8, 9);
        low[40..44].fill(0xff);
        assert_eq!(reason(disk(1 << 20, &[(0, &low)])), None);
    }

    #[test]
    fn what_is_not_there_fails_and_nothing_panics() {
        let file = image(BY_SECTORS, 8, 4096);
        assert_eq!(read(&opened(disk(1 << 20, &[(0, &file)])), 0, 512), Err(Errno::Io));
        for magic in [BY_SECTORS, BY_CLUSTERS] {
            survives(&image(magic, 63, 63), 0..80);
        }
    }
}
