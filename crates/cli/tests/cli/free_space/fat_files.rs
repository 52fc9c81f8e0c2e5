//! Files in a FAT, written by its own arithmetic where no system here mounts one.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Puts 24 files, whose clusters lie apart, into the root directory of an empty FAT. Returns the
/// bytes that they take.
pub(super) fn fill(image: &Path) -> Vec<Range<u64>> {
    let file = File::options().read(true).write(true).open(image).expect("an image");
    let mut boot = [0; 512];
    file.read_exact_at(&mut boot, 0).expect("a boot sector");
    let word = |at: usize| u64::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
    let wide = |at: usize| word(at) | word(at + 2) << 16;
    let (sector, cluster) = (word(11), word(11) * u64::from(boot[13]));
    let fat = if word(22) > 0 { word(22) } else { wide(36) } * sector;
    let total = if word(19) > 0 { word(19) } else { wide(32) } * sector;
    let (first, count) = (word(14) * sector, u64::from(boot[16]));
    let root = first + count * fat;
    let data = root + (word(17) * 32).div_ceil(sector) * sector;
    let clusters = (total - data) / cluster;
    let bits = match clusters {
        _ if word(22) == 0 => 32,
        0..=4084 => 12,
        _ => 16,
    };
    let put = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).expect("a write");
    let link = |from: u64, to: u64| {
        for copy in 0..count {
            let at = first + copy * fat + from * bits / 8;
            let mut old = [0; 4];
            file.read_exact_at(&mut old, at).expect("an entry");
            let shift = from * bits % 8;
            let mask = ((1_u64 << bits) - 1) << shift;
            let new = u64::from(u32::from_le_bytes(old)) & !mask | to << shift & mask;
            put(at, &new.to_le_bytes()[..4]);
        }
    };
    let end = (1 << bits.min(28)) - 1;
    let mut next = if bits == 32 { 3 } else { 2 };
    let mut taken = Vec::new();
    for n in 0..24_u64 {
        let length = 1 + n % 5;
        let mut own = Vec::new();
        for _ in 0..length {
            own.push(next);
            next += 1 + n % 3 + u64::from(n == 11 && own.len() == 1) * (clusters / 2);
        }
        own.windows(2).for_each(|two| link(two[0], two[1]));
        link(own[own.len() - 1], end);
        let mut entry = [0; 32];
        entry[..11].copy_from_slice(format!("FILE{n:02}  TXT").as_bytes());
        entry[11] = 0x20;
        entry[20..22].copy_from_slice(&own[0].to_le_bytes()[2..4]);
        entry[26..28].copy_from_slice(&own[0].to_le_bytes()[..2]);
        entry[28..].copy_from_slice(&(length * cluster - 7).to_le_bytes()[..4]);
        put(if bits == 32 { data } else { root } + n * 32, &entry);
        for at in own.iter().map(|number| data + (number - 2) * cluster) {
            put(
                at,
                &vec![n.to_le_bytes()[0] | 0x80; usize::try_from(cluster).expect("it is small")],
            );
            taken.push(at..at + cluster);
        }
    }
    // The hint of how many are free, and its copy, are not known now.
    if bits == 32 {
        [1, 7].iter().for_each(|at| put(at * sector + 488, &[0xff; 8]));
    }
    taken
}
