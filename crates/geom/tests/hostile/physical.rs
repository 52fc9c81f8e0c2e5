//! Physical volumes of LVM and metadata of thin pools, as they are on a disk but for their
//! checksums.

use trueline_geom::base::store::Sparse;

/// First byte of extent 0.
pub const EXTENTS: u64 = 1 << 20;
/// First byte of the metadata area.
pub const AREA: u64 = 4096;
/// First byte of the text in it.
pub const TEXT_AT: u64 = AREA + 512;
/// Size of a block of a pool's metadata in bytes.
const BLOCK: usize = 4096;

/// A disk of `length` bytes that is the physical volume `uuid`, with the text of its group.
pub fn volume(length: u64, uuid: &[u8; 32], text: &[u8]) -> Sparse {
    let mut disk = Sparse::new(length);
    let mut label = [0; 512];
    label[..8].copy_from_slice(b"LABELONE");
    label[8] = 1;
    label[20] = 32;
    label[24..32].copy_from_slice(b"LVM2 001");
    label[32..64].copy_from_slice(uuid);
    label[64..72].copy_from_slice(&length.to_le_bytes());
    label[72..80].copy_from_slice(&EXTENTS.to_le_bytes());
    label[104..112].copy_from_slice(&AREA.to_le_bytes());
    label[112..120].copy_from_slice(&(EXTENTS - AREA).to_le_bytes());
    disk.put(512, &label);
    let mut area = [0; 512];
    area[4..20].copy_from_slice(b" LVM2 x[5A%r0N*>");
    area[20] = 1;
    area[24..32].copy_from_slice(&AREA.to_le_bytes());
    area[32..40].copy_from_slice(&(EXTENTS - AREA).to_le_bytes());
    area[40..48].copy_from_slice(&(TEXT_AT - AREA).to_le_bytes());
    area[48..56].copy_from_slice(&(text.len() as u64 + 1).to_le_bytes());
    disk.put(AREA, &area);
    disk.put(TEXT_AT, text);
    disk
}

/// Blocks of a thin pool's metadata: a superblock, the devices, their details, and the map of
/// device 1, whose `chunks` are at most 252 pairs of a number on the device and one in the pool.
pub fn thin_pool(chunks: &[(u64, u64)]) -> Vec<u8> {
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
        let entries = if block == 3 { chunks.len() as u64 } else { 1 };
        put(block, 4, &2_u32.to_le_bytes());
        put(block, 8, &(block as u64).to_le_bytes());
        put(block, 16, &entries.to_le_bytes()[..4]);
        put(block, 20, &most.to_le_bytes());
        put(block, 24, &size.to_le_bytes());
    }
    put(1, 32, &1_u64.to_le_bytes());
    put(1, 32 + 252 * 8, &3_u64.to_le_bytes());
    put(2, 32, &1_u64.to_le_bytes());
    for (nth, (key, data)) in chunks.iter().enumerate() {
        put(3, 32 + nth * 8, &key.to_le_bytes());
        put(3, 32 + 252 * 8 + nth * 8, &(data << 24).to_le_bytes());
    }
    blocks
}
