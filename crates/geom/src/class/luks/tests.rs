//! Volumes of a cipher that needs no key: what tasting makes of them.

use super::*;
use crate::base::store::{Sparse, Store};
use crate::graph::{Disk, Graph};
use crate::probe::Limits;
use crate::probe::unlock::{ReadHeader, Unlock};

/// A header of LUKS1 whose payload begins at 8192.
fn header() -> Vec<u8> {
    let mut header = vec![0; 592];
    header[..8].copy_from_slice(b"LUKS\xba\xbe\0\x01");
    header[104..108].copy_from_slice(&16u32.to_be_bytes());
    header[168..177].copy_from_slice(b"1234-abcd");
    header
}

/// The byte of the payload at `offset`, in the clear.
fn plain(offset: u64) -> u8 {
    offset.wrapping_mul(2_654_435_761).to_le_bytes()[2]
}

/// Cipher by which a byte is mixed with the number of its sector.
struct Mixed(u64);

impl Decrypt for Mixed {
    fn decrypt(&self, offset: u64, sectors: &mut [u8]) {
        assert!(offset.is_multiple_of(self.0) && (sectors.len() as u64).is_multiple_of(self.0));
        for (byte, at) in sectors.iter_mut().zip(offset..) {
            *byte ^= (at / self.0).to_le_bytes()[0] ^ 0x5a;
        }
    }
}

/// Opens everything, and says this of it.
struct Open {
    offset: u64,
    length: Option<u64>,
    sector: u64,
    tagged: bool,
}

impl Unlock for Open {
    fn luks(&self, _length: u64, read: &mut ReadHeader<'_>) -> Result<Payload, Locked> {
        let mut magic = [0; 4];
        read(&mut magic, 0).map_err(|blind| Locked(format!("{blind:?}")))?;
        assert_eq!(&magic, b"LUKS");
        let Open { offset, length, sector, tagged } = *self;
        Ok(Payload { offset, length, sector, tagged, cipher: Arc::new(Mixed(sector)) })
    }
}

/// A volume of `length` bytes whose payload from 8192 on is [`plain`], mixed.
fn volume(length: u64, sector: u64) -> Sparse {
    let mut disk = Sparse::new(length);
    disk.put(0, &header());
    let mut payload: Vec<u8> = (0..length - 8192).map(plain).collect();
    // The cipher is its own inverse.
    let whole = payload.len() - payload.len() % usize::try_from(sector).unwrap();
    Mixed(sector).decrypt(0, &mut payload[..whole]);
    disk.put(8192, &payload);
    disk
}

fn tasted(disks: Vec<Sparse>, keys: Option<Open>) -> Graph {
    let named = disks.into_iter().enumerate().map(|(number, disk)| {
        let topology = Topology::new(512, disk.length());
        Disk::new(format!("d{number}"), Box::new(disk), topology)
    });
    let keys = keys.map(|keys| Arc::new(keys) as Arc<dyn Unlock>);
    Graph::taste_with(named.collect(), Limits::default(), keys)
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.providers.iter().map(|provider| provider.name.as_str()).collect()
}

#[test]
fn requests_begin_and_end_anywhere() {
    for sector in [512, 2048, 4096] {
        let keys = Open { offset: 8192, length: None, sector, tagged: false };
        // The last sector is not whole, and is not there.
        let graph = tasted(vec![volume(8192 + 40960 + 511, sector)], Some(keys));
        let id = graph.find("luks/1234-abcd").unwrap();
        let provider = &graph.providers[id];
        assert_eq!((provider.topology.length, provider.topology.sector), (40960, sector));
        for (from, length) in [
            (0, 40960),
            (0, 1),
            (511, 2),
            (1, 4094),
            (4095, 4098),
            (513, 12_000),
            (40_959, 1),
            (4096, 8192),
            (100, 0),
        ] {
            let mut buffer = vec![0; length];
            graph.read_at(id, &mut buffer, from).unwrap();
            assert!(buffer.iter().zip(from..).all(|(byte, at)| *byte == plain(at)), "{from}");
        }
        assert_eq!(graph.read_at(id, &mut [0; 2], 40_959), Err(Errno::Range));
        for offset in [0, 100, 4096] {
            assert_eq!(graph.write_at(id, &[0; 512], offset), Err(Errno::ReadOnly));
        }
        assert!(graph.zero(id, 0, 4096).is_err() && provider.route().read_only().is_some());
    }
}

#[test]
fn keys_are_kept_and_nothing_is_there_without_them() {
    let keys = || Some(Open { offset: 8192, length: None, sector: 512, tagged: false });
    let graph = tasted(vec![volume(65536, 512), volume(65536, 512)], keys());
    let all = ["d0", "d1", "d0.data", "luks/1234-abcd", "d1.data", "luks/1234-abcd_1"];
    let sorted = |graph: &Graph| {
        let mut names: Vec<String> = names(graph).into_iter().map(str::to_owned).collect();
        names.sort();
        names
    };
    let mut want: Vec<String> = all.map(str::to_owned).into();
    want.sort();
    assert_eq!(sorted(&graph), want);
    assert_eq!(sorted(&graph.again()), want);
    assert_eq!(sorted(&graph.clone().bare().again()), want);
    let closed = tasted(vec![volume(65536, 512)], None);
    assert_eq!(names(&closed), ["d0", "d0.data"]);
}

#[test]
fn a_volume_in_a_volume_is_opened_as_deep_as_any() {
    let mut disk = volume(1 << 18, 512);
    // Volumes of the same offset, each in the one before.
    for depth in 1..20u64 {
        let mut inner = header();
        inner.resize(1024, 0);
        for around in 0..depth {
            Mixed(512).decrypt(8192 * around, &mut inner);
        }
        disk.put(8192 * depth, &inner);
    }
    let keys = Open { offset: 8192, length: None, sector: 512, tagged: false };
    let graph = tasted(vec![disk], Some(keys));
    assert!((10..60).contains(&graph.providers.len()), "{}", graph.providers.len());
}

#[test]
fn numbers_that_cannot_be_leave_it_closed() {
    for (offset, length, sector) in [
        (0, None, 512),
        (8192, None, 0),
        (8193, None, 512),
        (65_536, None, 512),
        (8192, Some(0), 512),
        (8192, None, 500),
        (8192, None, 8192),
        (65_537, None, 512),
        (u64::MAX, None, 512),
        (8192, Some(u64::MAX), 512),
        (8192, Some(57_345), 512),
        (8192, Some(1000), 512),
    ] {
        let keys = Open { offset, length, sector, tagged: false };
        let graph = tasted(vec![volume(65536, 512)], Some(keys));
        assert_eq!(names(&graph), ["d0", "d0.data"]);
        let said = &graph.providers[0].findings;
        assert!(said.iter().any(|f| f.message.contains("stays closed")), "{said:?}");
    }
}

#[test]
fn what_another_format_or_set_shows_is_opened_there() {
    // DRBD's metadata in the last 4 KiB: its data are the first 51,200 bytes.
    let mut disk = volume(65536, 512);
    let mut metadata = vec![0; 68];
    metadata[..8].copy_from_slice(&100_u64.to_be_bytes());
    metadata[60..64].copy_from_slice(&(0x8374_0267_u32 + 4).to_be_bytes());
    metadata[64..].copy_from_slice(&8_u32.to_be_bytes());
    disk.put(61440, &metadata);
    let keys = || Some(Open { offset: 8192, length: None, sector: 512, tagged: false });
    let graph = tasted(vec![disk], keys());
    let opened = graph.find("luks/1234-abcd").unwrap();
    assert_eq!(graph.providers[opened].topology.length, 51_200 - 8192);
    assert_eq!(names(&graph)[..2], ["d0", "d0.data"]);
    assert_eq!(graph.providers[0].signs[0].kind.name, "drbd");
}

#[test]
fn a_second_header_that_was_left_is_not_asked() {
    let mut disk = Sparse::new(1 << 20);
    let mut second = vec![0; 4096];
    second[..8].copy_from_slice(b"SKUL\xba\xbe\0\x02");
    second[8..16].copy_from_slice(&0x4000_u64.to_be_bytes());
    second[256..264].copy_from_slice(&0x4000_u64.to_be_bytes());
    disk.put(0x4000, &second);
    let keys = || Some(Open { offset: 8192, length: None, sector: 512, tagged: false });
    // Alone it is, and the one here that opens everything finds that it is no first one.
    let alone = std::panic::catch_unwind(|| tasted(vec![disk.clone()], keys()));
    assert!(alone.is_err());
    let mut table = [0; 512];
    table[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 64, 0, 0, 0, 0, 4, 0, 0]);
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    disk.put(0, &table);
    let graph = tasted(vec![disk], keys());
    assert_eq!(names(&graph), ["d0", "d0s1"]);
}

/// A volume of sectors of 512 bytes with tags, in areas of 4096 bytes; its journal has one section
/// with an entry that names the sector whose high half is `entry`.
fn tagged(entry: u32) -> Sparse {
    let mut disk = Sparse::new(1 << 20);
    disk.put(0, &header());
    let mut sb = vec![0; 48];
    sb[..8].copy_from_slice(b"integrt\0");
    (sb[8], sb[9], sb[10], sb[12], sb[24]) = (5, 3, 32, 1, 8);
    sb[16..24].copy_from_slice(&80_u64.to_le_bytes());
    disk.put(8192, &sb);
    let mut block = [0; 4096];
    // Entries of 48 bytes, ten in a sector.
    for nth in 0..80 {
        block[nth / 10 * 512 + nth % 10 * 48 + 4..][..4].fill(0xff);
    }
    block[3 * 512 + 7 * 48 + 4..][..4].copy_from_slice(&entry.to_le_bytes());
    disk.put(8192 + 4096, &block);
    let mut payload: Vec<u8> = (0..40960).map(plain).collect();
    Mixed(512).decrypt(0, &mut payload);
    // Behind the journal of 88 sectors, each area follows 4 KiB of tags.
    for (nth, area) in (0..).zip(payload.chunks(4096)) {
        disk.put(8192 + 4096 + 88 * 512 + 4096 + nth * 8192, area);
    }
    disk
}

#[test]
fn sectors_with_tags_are_read_between_them() {
    let keys = || Some(Open { offset: 8192, length: None, sector: 512, tagged: true });
    let graph = tasted(vec![tagged(u32::MAX)], keys());
    let id = graph.find("luks/1234-abcd").unwrap();
    let (mut buffer, provider) = (vec![0; 40960 - 700], &graph.providers[id]);
    graph.read_at(id, &mut buffer, 700).unwrap();
    assert!(buffer.iter().zip(700..).all(|(byte, at)| *byte == plain(at)));
    assert_eq!((provider.topology.length, provider.findings.len()), (40960, 0));

    // A journal that holds writes is named.
    let graph = tasted(vec![tagged(0)], keys());
    let findings = &graph.providers[graph.find("luks/1234-abcd").unwrap()].findings;
    assert!(findings.iter().any(|f| f.message.contains("journal holds writes")), "{findings:?}");

    // Without its superblock, or with one for other sectors, it stays closed.
    let mut other = tagged(u32::MAX);
    other.put(8192 + 28, &[3]);
    for (disk, why) in [(volume(1 << 20, 512), "is not there"), (other, "sectors of 512 bytes")] {
        let graph = tasted(vec![disk], keys());
        let said: Vec<&str> =
            graph.providers.iter().flat_map(|p| &p.findings).map(|f| f.message.as_str()).collect();
        assert!(said.iter().any(|said| said.contains(why)), "{said:?}");
        assert_eq!(graph.find("luks/1234-abcd"), None);
    }
}
