//! Volume groups of LVM whose text and maps are anything: a physical volume around them that is
//! right, so that both are read.

use crate::repair::repair;
use trueline_geom::base::store::Sparse;

/// Length of the disk in bytes.
const LENGTH: u64 = 16 << 20;
/// First byte of extent 0, at which the blocks of a map are put.
const EXTENTS: u64 = 1 << 20;
/// Size of a block of a map in bytes.
const BLOCK: usize = 4096;

/// A group with a volume of every kind: a thin pool whose metadata are extent 0, a snapshot whose
/// store is extent 1, caches whose metadata are extents 2 and 3, RAID volumes with those in 4 and 5.
pub const TEXT: &str = r#"vg {
id = "g" seqno = 4 extent_size = 128 physical_volumes {
 pv0 { id = "012345-6789-abcd-ef01-2345-6789-abcdef" pe_start = 2048 pe_count = 200 } }
logical_volumes {
 pool { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 8 type = "thin-pool"
  metadata = "tmeta" pool = "tdata" transaction_id = 1 chunk_size = 128 } }
 one { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 9 type = "thin"
  thin_pool = "pool" device_id = 1 external_origin = "base" } }
 snap { status = [] segment1 { start_extent = 0 extent_count = 1 type = "striped"
  stripes = ["pv0", 1] } }
 snapshot0 { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 4
  type = "snapshot" chunk_size = 8 origin = "base" cow_store = "snap" } }
 cached { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 4 type = "cache"
  cache_pool = "fast" origin = "base2" metadata_start = 0 metadata_len = 128 data_start = 128
  data_len = 128 chunk_size = 64 cache_mode = "writeback" } }
 written { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 4
  type = "writecache" writecache = "fast2" origin = "base3" } }
 r5 { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 2 type = "raid5"
  stripe_size = 128 raids = ["m0", "i0", "m1", "i1", "m2", "i2"] } }
 tmeta { segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv0", 0] } }
 tdata { segment1 { start_extent = 0 extent_count = 8 type = "striped" stripes = ["pv0", 8] } }
 base { segment1 { start_extent = 0 extent_count = 4 type = "striped" stripes = ["pv0", 16] } }
 base2 { segment1 { start_extent = 0 extent_count = 4 type = "striped" stripes = ["pv0", 20] } }
 base3 { segment1 { start_extent = 0 extent_count = 4 type = "striped" stripes = ["pv0", 24] } }
 fast { segment1 { start_extent = 0 extent_count = 2 type = "striped" stripes = ["pv0", 2] } }
 fast2 { segment1 { start_extent = 0 extent_count = 2 type = "striped" stripes = ["pv0", 3] } }
 m0 { segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv0", 4] } }
 m1 { segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv0", 5] } }
 m2 { segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv0", 6] } }
 i0 { segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv0", 28] } }
 i1 { segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv0", 29] } }
 i2 { segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv0", 30] } }
} }
"#;

/// Blocks of a thin pool's metadata, from the first block of extent 0 on: a superblock, the devices,
/// their details, and the blocks of device 1.
pub fn thin_pool() -> Vec<u8> {
    let mut blocks = vec![0; 4 * BLOCK];
    let mut put = |block: usize, at: usize, bytes: &[u8]| {
        blocks[block * BLOCK + at..][..bytes.len()].copy_from_slice(bytes);
    };
    put(0, 32, &27_022_010_u64.to_le_bytes());
    put(0, 40, &2_u32.to_le_bytes());
    put(0, 48, &1_u64.to_le_bytes());
    put(0, 320, &1_u64.to_le_bytes());
    put(0, 328, &2_u64.to_le_bytes());
    put(0, 336, &128_u32.to_le_bytes());
    put(0, 340, &8_u32.to_le_bytes());
    for (block, most, size) in [(1, 252_u32, 8_u32), (2, 126, 24), (3, 252, 8)] {
        put(block, 4, &2_u32.to_le_bytes());
        put(block, 8, &(block as u64).to_le_bytes());
        put(block, 16, &(if block == 3 { 3_u32 } else { 1 }).to_le_bytes());
        put(block, 20, &most.to_le_bytes());
        put(block, 24, &size.to_le_bytes());
    }
    put(1, 32, &1_u64.to_le_bytes());
    put(1, 32 + 252 * 8, &3_u64.to_le_bytes());
    put(2, 32, &1_u64.to_le_bytes());
    for (nth, (key, data)) in [(0_u64, 5_u64), (1, 2), (7, 3)].into_iter().enumerate() {
        put(3, 32 + nth * 8, &key.to_le_bytes());
        put(3, 32 + 252 * 8 + nth * 8, &(data << 24).to_le_bytes());
    }
    blocks
}

/// A disk with the group that `text` describes, and with `maps` from extent 0 on; every checksum is
/// right.
pub fn group(text: &[u8], maps: &[u8]) -> Sparse {
    let mut disk = Sparse::new(LENGTH);
    let mut label = [0; 512];
    label[..8].copy_from_slice(b"LABELONE");
    label[8] = 1;
    label[20] = 32;
    label[24..32].copy_from_slice(b"LVM2 001");
    label[32..64].copy_from_slice(b"0123456789abcdef0123456789abcdef");
    label[64..72].copy_from_slice(&LENGTH.to_le_bytes());
    label[72..80].copy_from_slice(&EXTENTS.to_le_bytes());
    label[104..112].copy_from_slice(&4096_u64.to_le_bytes());
    label[112..120].copy_from_slice(&(EXTENTS - 4096).to_le_bytes());
    disk.put(512, &label);
    let mut area = [0; 512];
    area[4..20].copy_from_slice(b" LVM2 x[5A%r0N*>");
    area[20] = 1;
    area[24..32].copy_from_slice(&4096_u64.to_le_bytes());
    area[32..40].copy_from_slice(&(EXTENTS - 4096).to_le_bytes());
    area[40..48].copy_from_slice(&512_u64.to_le_bytes());
    let text = &text[..text.len().min(512 << 10)];
    area[48..56].copy_from_slice(&(text.len() as u64 + 1).to_le_bytes());
    disk.put(4096, &area);
    disk.put(4096 + 512, text);
    disk.put(EXTENTS, &maps[..maps.len().min(4 << 20)]);
    repair(&mut disk, 512);
    disk
}
