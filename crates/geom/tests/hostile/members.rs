//! Members of md sets whose superblocks say anything: a right set first, then a few bytes of some
//! of its members changed, with every checksum right.

use crate::repair::repair;
use trueline_geom::base::store::Sparse;

/// Length of each member in bytes.
const LENGTH: u64 = 4 << 20;
/// Bytes before the changes: members, version, level, layout and chunk.
pub const HEAD: usize = 5;
/// Bytes of a change: the member, two of the place, and four that are put there.
pub const CHANGE: usize = 7;
/// Levels of which a set is made first.
const LEVELS: [i32; 7] = [-1, 0, 1, 4, 5, 6, 10];
/// Places of the superblock: versions 1.0, 1.1 and 1.2.
const PLACES: [u64; 3] = [LENGTH - 8192, 0, 4096];

/// The members that `data` describes: at least one, at most eight.
pub fn members(data: &[u8]) -> Vec<Sparse> {
    let (head, changes) = data.split_at(data.len().min(HEAD));
    let head = |at: usize| head.get(at).copied().unwrap_or_default();
    let count = head(0) % 8 + 1;
    let at = PLACES[usize::from(head(1)) % PLACES.len()];
    let level = LEVELS[usize::from(head(2)) % LEVELS.len()];
    let superblock = |role| superblock((count, role), at, level, (head(3), head(4)));
    let mut superblocks: Vec<Vec<u8>> = (0..count).map(superblock).collect();
    for change in changes.chunks_exact(CHANGE) {
        let member = usize::from(change[0]) % superblocks.len();
        // Most fields are in the first 256 bytes; the rest are roles.
        let place = usize::from(u16::from_le_bytes([change[1], change[2]])) % 320;
        superblocks[member][place..place + 4].copy_from_slice(&change[3..]);
    }
    let disk = |superblock: &Vec<u8>| {
        let mut disk = Sparse::new(LENGTH);
        disk.put(at, superblock);
        repair(&mut disk, 512);
        disk
    };
    superblocks.iter().map(disk).collect()
}

/// The superblock of one of the members of a set, at byte `at`: `member` is their count and its
/// role, `shape` the layout and the chunk in units of 4 KiB.
fn superblock(member: (u8, u8), at: u64, level: i32, shape: (u8, u8)) -> Vec<u8> {
    let ((count, role), (layout, chunk)) = (member, shape);
    let mut sb = vec![0; 512];
    let mut put = |at: usize, bytes: &[u8]| sb[at..at + bytes.len()].copy_from_slice(bytes);
    let layout = if level == 10 { u32::from(layout % 4) << 8 | 0x102 } else { (layout % 6).into() };
    let offset = if at == 0 || at == 4096 { 2048_u64 } else { 0 };
    let size = (LENGTH - (1 << 20)) / 512;
    put(0, &0xa92b_4efc_u32.to_le_bytes());
    put(4, &1_u32.to_le_bytes());
    put(8, &(if level == 0 { 4096_u32 } else { 0 }).to_le_bytes());
    put(16, b"0123456789abcdef");
    put(32, b"host:r");
    put(72, &level.to_le_bytes());
    put(76, &layout.to_le_bytes());
    put(80, &size.to_le_bytes());
    put(88, &(u32::from(chunk % 16 + 1) * 8).to_le_bytes());
    put(92, &u32::from(count).to_le_bytes());
    put(128, &offset.to_le_bytes());
    put(136, &size.to_le_bytes());
    put(144, &(at / 512).to_le_bytes());
    put(160, &u32::from(role).to_le_bytes());
    put(168, &[role; 16]);
    put(200, &10_u64.to_le_bytes());
    put(208, &u64::MAX.to_le_bytes());
    put(220, &u32::from(count).to_le_bytes());
    for role in 0..count {
        put(256 + usize::from(role) * 2, &u16::from(role).to_le_bytes());
    }
    sb
}
