//! exFAT on sectors of another size: a FAT that has to move, code in extended boot sectors.

use super::{TO_LARGE, TO_SMALL, converted, golden, graph, shown};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::convert::plan;

/// Byte of the field `FatOffset` and of the two behind it.
const FAT_OFFSET: usize = 80;
/// Byte of the clusters of the frozen volume.
const HEAP: u64 = 2 << 20;

fn read(disk: &Sparse, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    disk.read_at(&mut bytes, at).unwrap();
    bytes
}

fn field(disk: &Sparse, at: usize) -> u64 {
    u64::from(u32::from_le_bytes(*read(disk, at as u64, 4).first_chunk().unwrap()))
}

/// The frozen volume, whose FAT begins at byte `fat`, with other fields and code.
fn volume(fat: u64, fields: &[(usize, u32)], code: &[(usize, u8)]) -> Sparse {
    let (_, mut disk) = golden().into_iter().find(|(name, _)| name == "exfat-default").unwrap();
    assert_eq!(field(&disk, FAT_OFFSET + 8) * 512, HEAP);
    let old = field(&disk, FAT_OFFSET) * 512;
    let table = read(&disk, old, 65536);
    disk.put(old, &[0; 65536]);
    disk.put(fat, &table);
    let mut region = read(&disk, 0, 12 * 512);
    let start = u32::try_from(fat / 512).unwrap();
    for (at, number) in [(FAT_OFFSET, start)].iter().chain(fields) {
        region[*at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    code.iter().for_each(|&(at, byte)| region[at] = byte);
    let sum = sum(&region[..11 * 512]).to_le_bytes();
    region[11 * 512..].chunks_mut(4).for_each(|word| word.copy_from_slice(&sum));
    disk.put(0, &region);
    disk.put(12 * 512, &region);
    disk
}

/// The sum of a boot region, as the specification has it.
fn sum(bytes: &[u8]) -> u32 {
    let mut sum = 0_u32;
    for (at, &byte) in bytes.iter().enumerate() {
        if ![106, 107, 112].contains(&at) {
            sum = sum.rotate_right(1).wrapping_add(u32::from(byte));
        }
    }
    sum
}

fn to(disk: &Sparse, aim: trueline_geom::base::resize::Aim) -> Result<Sparse, String> {
    let first = graph(disk.clone(), aim.from);
    let plan = plan(&first, first.disk(0), aim, true);
    let conversion = plan.map_err(|found| found[0].refusal.found.clone())?;
    let after = converted(disk, &conversion);
    assert_eq!(shown(&first), shown(&graph(after.clone(), aim.to)));
    Ok(after)
}

/// The FAT and both boot regions are right, and those of the way back.
#[test]
fn a_fat_before_96_kib_moves_behind_the_boot_regions() {
    // The last one is longer than there is room for, and needs less.
    let long = u32::try_from((HEAP - 65536) / 512).unwrap();
    for (at, fields, wanted, length) in [
        (65536, vec![], 98304, None),
        (12288 + 512, vec![], 98304, None),
        (98304 + 512, vec![], 98304 + 4096, None),
        (65536, vec![(FAT_OFFSET + 4, long)], 98304, Some(HEAP - 98304)),
    ] {
        let before = volume(at, &fields, &[]);
        let size = field(&before, FAT_OFFSET + 4) * 512;
        let after = to(&before, TO_LARGE).unwrap();
        assert_eq!(field(&after, FAT_OFFSET) * 4096, wanted, "{at}");
        assert_eq!(field(&after, FAT_OFFSET + 8) * 4096, HEAP);
        let now = field(&after, FAT_OFFSET + 4) * 4096;
        assert_eq!(now, length.unwrap_or(size.next_multiple_of(4096)));
        assert!(read(&before, at, 65536) == read(&after, wanted, 65536), "{at}");
        for region in [0, 12] {
            let bytes = read(&after, region * 4096, 12 * 4096);
            assert_eq!(bytes[11 * 4096..][..4], sum(&bytes[..11 * 4096]).to_le_bytes());
        }
        // It stays there on the way back.
        let back = to(&after, TO_SMALL).unwrap();
        assert_eq!(field(&back, FAT_OFFSET) * 512, wanted);
        assert_eq!(field(&back, FAT_OFFSET + 8) * 512, HEAP);
        assert!(read(&before, at, 65536) == read(&back, wanted, 65536), "{at}");
        assert!(read(&before, HEAP, 1 << 20) == read(&back, HEAP, 1 << 20));
    }
}

/// A FAT without room before the clusters, and clusters off the larger sector.
#[test]
fn clusters_that_begin_too_early_are_refused() {
    let heap = |at: u32| vec![(FAT_OFFSET + 8, at / 512)];
    let found = to(&volume(65536, &heap(102_400), &[]), TO_LARGE).unwrap_err();
    assert!(found.contains("its FAT would begin at byte 98304 and take 8192"), "{found}");
    assert!(found.contains("its clusters begin at byte 102400"), "{found}");
    let found = to(&volume(65536, &heap((2 << 20) + 512), &[]), TO_LARGE).unwrap_err();
    assert!(found.contains("its clusters begin at byte 2097664, off whole sectors"), "{found}");
}

/// Code in the extended boot sectors keeps its sectors, or is refused where they are too small.
#[test]
fn code_in_extended_boot_sectors_stays() {
    let code = [(512, 0xfa), (512 + 507, 0x90), (8 * 512, 0xc3)];
    let before = volume(1 << 20, &[], &code);
    let after = to(&before, TO_LARGE).unwrap();
    for region in [0, 12] {
        let byte = |sector: u64, at: u64| read(&after, (region + sector) * 4096 + at, 1)[0];
        assert_eq!([byte(1, 0), byte(1, 507), byte(8, 0)], [0xfa, 0x90, 0xc3]);
        let last = read(&after, (region + 1) * 4096 + 4092, 4);
        assert_eq!(last, [0, 0, 0x55, 0xaa]);
    }
    let back = to(&after, TO_SMALL).unwrap();
    for region in [0, 12] {
        let extended = |disk: &Sparse| read(disk, (region + 1) * 512, 8 * 512);
        assert!(extended(&back) == extended(&before));
    }
    let mut long = after;
    long.put(4096 + 508, &[1]);
    let found = to(&long, TO_SMALL).unwrap_err();
    assert!(found.contains("its boot sector 1 has more code than 508 bytes"), "{found}");
}
