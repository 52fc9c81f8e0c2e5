//! Disks a little damaged, the same ones at every run.

use crate::repair::repair;
use trueline_geom::base::store::{Sparse, Store};

/// Marsaglia's xorshift64: a test that fails must fail again.
pub struct Random(u64);

impl Random {
    /// A sequence of its own for every seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`; 0 if `n` is.
    pub fn below(&mut self, n: u64) -> u64 {
        // The upper bits are the better ones.
        (self.draw() >> 16) % n.max(1)
    }

    /// One of `all`, which is not empty.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap_or(0)]
    }
}

/// Numbers at which arithmetic goes wrong.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    1 << 31,
    (1 << 31) - 1,
    (1 << 32) - 1,
    1 << 32,
    1 << 52,
    1 << 55,
    1 << 63,
    (1 << 63) - 1,
    u64::MAX,
];

/// `disk` with one to four changes; three in four have their checksums made right again.
pub fn mutate(disk: &Sparse, sector: u64, random: &mut Random) -> Sparse {
    let mut mutant = disk.clone();
    for _ in 0..=random.below(4) {
        mutant = change(mutant, random);
    }
    if random.below(4) > 0 {
        repair(&mut mutant, sector);
    }
    mutant
}

/// The same bytes on a disk of another length.
pub fn resized(disk: &Sparse, length: u64) -> Sparse {
    let mut other = Sparse::new(length);
    for (at, bytes) in disk.runs() {
        other.put(at, bytes);
    }
    other
}

fn change(mut disk: Sparse, random: &mut Random) -> Sparse {
    let at = somewhere(&disk, random);
    match random.below(10) {
        0 | 1 => {
            let byte = bytes(&disk, at, 1).first().map_or(0, |byte| byte ^ (1 << random.below(8)));
            disk.put(at, &[byte]);
        }
        2 => disk.put(
            at,
            &vec![random.pick(&[0x00, 0xff]); usize::try_from(1 + random.below(64)).unwrap_or(1)],
        ),
        3..=5 => {
            let width = random.pick(&[2, 4, 8]);
            let near = random.below(3).wrapping_sub(1);
            let number = random.pick(&NUMBERS).wrapping_add(near).to_le_bytes();
            let mut field = number[..width].to_vec();
            if random.below(4) == 0 {
                field.reverse();
            }
            disk.put(at - at % width as u64, &field);
        }
        6 => {
            // A table, a label or a superblock where another one stood: it may now lead to itself.
            let length = random.pick(&[8, 16, 128, 512, 1024, 4096]);
            let from = bytes(&disk, at - at % length, length);
            let to = if random.below(3) == 0 {
                random.below(disk.length())
            } else {
                somewhere(&disk, random)
            };
            disk.put(to - to % length, &from);
        }
        7 => {
            // The end of the disk is where sets and backup tables have theirs.
            let from = bytes(&disk, at - at % 512, 512);
            let back = 512 * (1 + random.below(3));
            disk.put(disk.length().saturating_sub(back), &from);
        }
        8 => disk = resized(&disk, (at - at % 512).saturating_add(random.pick(&[0, 1, 511, 512]))),
        _ => {
            let length = random.pick(&NUMBERS).wrapping_mul(random.pick(&[1, 512]));
            disk = resized(&disk, length);
        }
    }
    disk
}

/// A byte of the disk, most often one in the first sector of something that is not zero.
fn somewhere(disk: &Sparse, random: &mut Random) -> u64 {
    let runs: Vec<(u64, u64)> = disk.runs().map(|(at, bytes)| (at, bytes.len() as u64)).collect();
    if runs.is_empty() {
        return random.below(disk.length());
    }
    let (at, length) = random.pick(&runs);
    let reach = random.pick(&[128, 512, 4096, u64::MAX]);
    let sector = if random.below(2) == 0 { random.below(length) / 512 * 512 } else { 0 };
    at + sector + random.below(reach.min(length - sector))
}

/// `length` bytes at `at`, or what there is of them.
fn bytes(disk: &Sparse, at: u64, length: u64) -> Vec<u8> {
    let length = length.min(disk.length().saturating_sub(at));
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    if disk.read_at(&mut bytes, at).is_err() {
        bytes.clear();
    }
    bytes
}
