//! Sparse images of macOS: a file that grows by bands as they are written.
//!
//! # On disk
//! A node of 4096 bytes at byte 0, and the bands that it lists behind it, one after another: its
//! entry `n` is the number, from 1, of the band of the disk that is in place `n`. When a node is
//! full, another one follows its last band, and has its own bands behind it. All numbers are
//! big-endian. A band that no node lists is zero.
//!
//! # Topology
//! The bands of a node lie behind its 4096 bytes, so that units of up to 4096 bytes are kept, and a
//! larger one is missed: by 4096 bytes behind the first node, by 8192 behind the next.
//!
//! # Limits
//! 128 nodes are read: 126 GiB in bands of 1 MiB, which macOS makes. Encrypted images have another
//! header, and are not read; sparse bundles are directories, and joined elsewhere. Of a band that
//! is listed twice the later place counts, as for other readers. A first write is counted without
//! filling the band: no source tells what macOS writes.
//!
//! # Sources
//! libmodi "Mac OS disk image types", Sparse disk image format, for the header and for what an
//! entry means ("band data offset = 4096 + array index x band", "band index where the band should
//! be located in the non-sparse image"); apfs-fuse `DeviceSparseImage.cpp` and mac_apt
//! `apple_sparse_image.py`, which agree, for further nodes and the size of 64 bits.

use super::Taste;
use super::container::{BlockTable, Container, Contents, Home, NotFollowed, Parent, Place};
use crate::base::ondisk::on_disk;
use crate::base::topology::{FirstWrite, Translation, is_whole};
use crate::format::{Format, FormatKind, Inside, Sign};
use crate::mapping::geom::Extent;
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use std::collections::BTreeMap;
use std::sync::Arc;
use zerocopy::FromBytes;
use zerocopy::big_endian::{U32, U64};

/// The class and format, for the registry.
pub struct SparseImage;

/// The kind that macOS calls `SPARSE`, by the ending of its files.
pub const KIND: FormatKind = FormatKind::new("sparseimage", &SparseImage);

on_disk! {
    /// The begin of the first node.
    struct Header of 64 bytes {
         0 => signature: [u8; 4],
         4 => version: U32,
         8 => sectors_per_band: U32,
        12 => flags: U32,
        16 => total_sectors_low: U32,
        20 => next_node_offset: U64,
        28 => total_sectors: U64,
        36 => padding: [u8; 28],
    }

    /// The begin of every other node.
    struct Node of 56 bytes {
         0 => signature: [u8; 4],
         4 => index_node_number: U32,
         8 => flags: U32,
        12 => next_node_offset: U64,
        20 => padding: [u8; 36],
    }
}

const SIGNATURE: &[u8] = b"sprs";
const SECTOR: u64 = 512;
/// Bytes of a node.
const NODE: usize = 4096;
/// Nodes that are read.
const MOST_NODES: u64 = 128;

/// The header on a provider.
fn found(probe: &Probe<'_>) -> Option<Header> {
    probe.has(0, SIGNATURE).then(|| probe.read(0))?
}

impl Header {
    /// Size of a band in bytes.
    fn band(&self) -> u64 {
        u64::from(self.sectors_per_band.get()) * SECTOR
    }

    /// Length of the disk in bytes.
    ///
    /// Errors: two sizes that are not the same, or more than can be counted.
    fn length(&self) -> Result<u64, NotFollowed> {
        let (all, low) = (self.total_sectors.get(), self.total_sectors_low.get());
        // An image of the time before the second size has zeros there.
        let sectors = if all == 0 { low.into() } else { all };
        let length = sectors.checked_mul(SECTOR).filter(|_| sectors & 0xffff_ffff == low.into());
        length.ok_or(NotFollowed("its size cannot be true"))
    }

    /// Bands of the disk that are in the file, by their numbers from 0.
    ///
    /// Errors: a node that cannot be one, or is not there.
    fn bands(&self, probe: &Probe<'_>) -> Result<Bands, NotFollowed> {
        let (band, length) = (self.band(), self.length()?);
        if self.version.get() != 3 {
            return Err(NotFollowed("its version is not known here"));
        }
        if band == 0 {
            return Err(NotFollowed("its bands are empty"));
        }
        let count = length.div_ceil(band);
        let mut places = BTreeMap::new();
        let (mut at, mut next) = (0, self.next_node_offset.get());
        let mut begin = size_of::<Header>();
        for _ in 0..MOST_NODES {
            let mut node = [0; NODE];
            probe.map(at, &mut node).map_err(|_| NotFollowed("it is cut off"))?;
            let (head, entries) = node.split_at(begin);
            if at > 0 {
                let head = Node::read_from_bytes(head);
                let head = head.ok().filter(|head| head.signature == *SIGNATURE);
                let head = head.ok_or(NotFollowed("a node of its bands is damaged"))?;
                next = head.next_node_offset.get();
            }
            let first = at.checked_add(NODE as u64);
            for (nth, number) in (0..).zip(entries.chunks_exact(4)) {
                let number = U32::read_from_bytes(number).map_or(0, U32::get);
                let number = u64::from(number).checked_sub(1).filter(|&number| number < count);
                let place = first.and_then(|first| first.checked_add(band.checked_mul(nth)?));
                places.extend(number.zip(place));
            }
            if next == 0 {
                return Ok(Bands { band, places: places.into_iter().collect() });
            }
            // Nodes follow each other, so that a list of them ends.
            if next <= at || !is_whole(next, SECTOR) {
                return Err(NotFollowed("a node of its bands is damaged"));
            }
            (at, begin) = (next, size_of::<Node>());
        }
        Err(NotFollowed("it has more bands than are looked at"))
    }
}

impl Format for SparseImage {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let header = found(probe)?;
        let mut sign = Sign::new(KIND, 0);
        sign.version = Some(header.version.to_string());
        sign.inside = match header.bands(probe) {
            Ok(_) => Inside::Container,
            Err(NotFollowed(reason)) => Inside::Unknown(reason),
        };
        sign.details.extend(header.length().ok().map(|size| ("virtual size", size.to_string())));
        sign.details.push(("cluster size", header.band().to_string()));
        Some(sign)
    }

    fn remake(&self) -> &'static str {
        "detach it, and copy it: hdiutil convert -format UDSP"
    }
}

impl Container for SparseImage {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        let Some(header) = found(probe) else { return Taste::No };
        let (Ok(length), Ok(table)) = (header.length(), header.bands(probe)) else {
            return Taste::No;
        };
        let band = table.band;
        let translation = if table.places.is_empty() {
            // The first band will lie behind the first node.
            Translation::by_format(band, NODE as u64)
        } else {
            let places = table.places.iter();
            Translation::by_table(band, places.map(|&(nth, at)| (nth.saturating_mul(band), at)))
        };
        let translation = translation
            .first_writing(|known| FirstWrite::plain(known).entry("entry of the node", 4));
        let (home, parent) = (Home::File(probe.length()), Parent::None);
        let contents = Contents { table, length, home, parent, sector: None, translation };
        Taste::Geom(Arc::new(contents), Vec::new())
    }
}

/// Bands that are in a file.
#[derive(Clone)]
struct Bands {
    band: u64,
    /// Number and first byte in the file of each, in order of their numbers.
    places: Arc<[(u64, u64)]>,
}

impl BlockTable for Bands {
    fn block(&self) -> u64 {
        self.band
    }

    fn find(&self, nth: u64, _length: u64, _tables: &Tables<'_>) -> Result<Place, Extent> {
        let at = self.places.binary_search_by_key(&nth, |(number, _)| *number);
        let place = at.ok().and_then(|at| self.places.get(at));
        Ok(place.map_or(Place::Absent, |(_, at)| Place::At(*at)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::container::tests::{opened, read, reason, survives};
    use crate::base::error::Errno;
    use crate::format::tests::disk;

    /// An image of a disk of four bands of 1 KiB, with these entries in its first node.
    fn image(entries: &[u32]) -> Vec<u8> {
        let mut file = vec![0; 4096];
        let mut put = |at: usize, number: u32| {
            file[at..at + 4].copy_from_slice(&number.to_be_bytes());
        };
        for (at, number) in [(0, 0x7370_7273), (4, 3), (8, 2), (12, 1), (16, 8), (32, 8)] {
            put(at, number);
        }
        for (nth, entry) in entries.iter().enumerate() {
            put(64 + nth * 4, *entry);
        }
        for fill in b'a'..b'a' + u8::try_from(entries.len()).expect("few bands") {
            file.extend([fill; 1024]);
        }
        file
    }

    fn file(bytes: &[u8]) -> crate::base::store::Sparse {
        disk(bytes.len() as u64, &[(0, bytes)])
    }

    /// The same image, with a second node at its end, whose one band is `number`.
    fn with_node(mut image: Vec<u8>, number: u32) -> Vec<u8> {
        let at = u32::try_from(image.len()).expect("a small image");
        image[24..28].copy_from_slice(&at.to_be_bytes());
        let mut node = vec![0; 4096];
        node[..4].copy_from_slice(b"sprs");
        node[56..60].copy_from_slice(&number.to_be_bytes());
        image.extend(node);
        image.extend([b'z'; 1024]);
        image
    }

    /// The entry is the band, and its place in the list that in the file.
    #[test]
    fn entries_are_bands_in_the_order_of_the_file() {
        let it = opened(file(&image(&[4, 0, 1])));
        let expected = [[b'c'; 1024], [0; 1024], [0; 1024], [b'a'; 1024]].concat();
        assert!(read(&it, 0, 4096).unwrap() == expected);
        // One that is past the end of the disk is passed over.
        let it = opened(file(&image(&[5, u32::MAX, 2])));
        let expected = [[0; 1024], [b'c'; 1024], [0; 1024], [0; 1024]].concat();
        assert!(read(&it, 0, 4096).unwrap() == expected);
    }

    #[test]
    fn bands_of_a_further_node_lie_behind_it() {
        let it = opened(file(&with_node(image(&[4, 1]), 3)));
        let expected = [[b'b'; 1024], [0; 1024], [b'z'; 1024], [b'a'; 1024]].concat();
        assert!(read(&it, 0, 4096).unwrap() == expected);
    }

    #[test]
    fn a_node_shifts_the_bands_behind_it() {
        let mut apart = image(&[2]);
        apart.extend([0; 512]);
        for (bytes, size) in [(image(&[2, 1]), 1024), (with_node(apart, 3), 512)] {
            let (graph, contents) = opened(file(&bytes));
            let set = graph.providers[contents.unwrap()].route().set().unwrap();
            let grain = set.geom.translation().unwrap().grain();
            assert_eq!((grain.size(), grain.phase()), (size, 0));
        }
    }

    #[test]
    fn what_cannot_be_true_is_unknown() {
        let whole = with_node(image(&[4, 0, 1]), 3);
        for (at, number, part) in [
            (4, 2, "version"),
            (8, 0, "empty"),
            (16, 9, "size cannot"),
            (32, 9, "size cannot"),
            (28, u32::MAX, "size cannot"),
            (24, 513, "damaged"),
            (24, 512, "damaged"),
            (20, 1, "cut off"),
            (20, u32::MAX, "cut off"),
            (4096 + 3072, 1, "damaged"),
            (4096 + 3072 + 16, 4096, "damaged"),
        ] {
            let mut bad = whole.clone();
            bad[at..at + 4].copy_from_slice(&u32::to_be_bytes(number));
            let why = reason(file(&bad));
            assert!(why.is_some_and(|why| why.contains(part)), "{at} {number}: {why:?}");
        }
        // An older image has the small size alone.
        let mut old = whole.clone();
        old[32..36].fill(0);
        assert_eq!(reason(file(&old)), None);
        assert!(reason(file(&whole[..4000])).is_some());
        survives(&whole, 4..80);
        survives(&whole, 7168..7240);
    }

    #[test]
    fn a_list_of_nodes_ends() {
        let mut file = Vec::new();
        for nth in 0..130_u32 {
            let mut node = image(&[]);
            let next = (nth + 1) * 4096;
            let at = if nth == 0 { 24 } else { 16 };
            node[at..at + 4].copy_from_slice(&next.to_be_bytes());
            if nth > 0 {
                node[12..16].fill(0);
            }
            file.extend(node);
        }
        let length = file.len() as u64;
        let why = reason(disk(length, &[(0, &file)]));
        assert!(why.is_some_and(|why| why.contains("more bands")), "{why:?}");
    }

    #[test]
    fn a_band_that_was_cut_off_is_an_error() {
        let whole = image(&[1, 2]);
        let it = opened(file(&whole[..whole.len() - 1024]));
        assert_eq!(read(&it, 0, 1024), Ok(vec![b'a'; 1024]));
        assert_eq!(read(&it, 1024, 512), Err(Errno::Io));
        assert_eq!(read(&it, 2048, 1024), Ok(vec![0; 1024]));
    }
}
