//! Volume groups of LVM whose text and maps are anything: a physical volume around them that is
//! right, so that both are read.

use crate::physical::{self, EXTENTS};
use crate::repair::repair;
use trueline_geom::base::store::Sparse;

/// Length of the disk in bytes.
const LENGTH: u64 = 16 << 20;

/// A group with a volume of every kind: a thin pool whose metadata are extent 0, a snapshot whose
/// store is extent 1, caches whose metadata are extents 2 and 3, RAID volumes with those in 4 and
/// 5.
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

/// Metadata of the pool, from the first block of extent 0 on.
pub fn thin_pool() -> Vec<u8> {
    physical::thin_pool(&[(0, 5), (1, 2), (7, 3)])
}

/// A disk with the group that `text` describes, and with `maps` from extent 0 on; every checksum is
/// right.
pub fn group(text: &[u8], maps: &[u8]) -> Sparse {
    let text = &text[..text.len().min(512 << 10)];
    let mut disk = physical::volume(LENGTH, b"0123456789abcdef0123456789abcdef", text);
    disk.put(EXTENTS, &maps[..maps.len().min(4 << 20)]);
    repair(&mut disk, 512);
    disk
}
