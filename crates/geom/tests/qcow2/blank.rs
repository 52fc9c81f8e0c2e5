//! Images as `qemu-img create` makes them, in memory.

use super::guest::of_base;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;

/// Shape of an image that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) version: u32,
    pub(crate) bits: u32,
    /// Width of a refcount, as a power of two of bits.
    pub(crate) order: u32,
    /// Size of the guest's disk in bytes.
    pub(crate) size: usize,
    /// True if the file names `base` as its backing file.
    pub(crate) backed: bool,
    /// Clusters at the begin of the disk that are compressed, each of one byte repeated.
    pub(crate) packed: u8,
}

impl Shape {
    pub(crate) fn new(version: u32, bits: u32, size: usize) -> Shape {
        Shape { version, bits, order: 4, size, backed: false, packed: 0 }
    }

    pub(crate) fn cluster(self) -> usize {
        1 << self.bits
    }
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Makes refcount `nth` of a block one more.
fn count(block: &mut [u8], order: u32, nth: usize) {
    let bits = 1 << order;
    if order >= 3 {
        let bytes = bits / 8;
        block[nth * bytes + bytes - 1] += 1;
    } else {
        let at = nth * bits;
        block[at / 8] += 1 << (at % 8);
    }
}

/// The bytes of an image.
pub(crate) fn image(shape: Shape) -> Vec<u8> {
    let (cluster, size) = (shape.cluster(), shape.size);
    let tables = size.div_ceil(cluster * (cluster / 8));
    let l1_clusters = (tables * 8).div_ceil(cluster).max(1);
    let (table, l1) = (cluster, 3 * cluster);
    let l2 = l1 + l1_clusters * cluster;
    // One block: what is in use from the begin lies in it.
    let block = 2 * cluster;
    let used = l2 / cluster + usize::from(shape.packed > 0);
    let mut file = vec![0; used * cluster];
    put(&mut file, 0, b"QFI\xfb");
    put(&mut file, 4, &shape.version.to_be_bytes());
    put(&mut file, 20, &shape.bits.to_be_bytes());
    put(&mut file, 24, &(size as u64).to_be_bytes());
    put(&mut file, 36, &u32::try_from(tables).unwrap().to_be_bytes());
    put(&mut file, 40, &(l1 as u64).to_be_bytes());
    put(&mut file, 48, &(table as u64).to_be_bytes());
    put(&mut file, 56, &1_u32.to_be_bytes());
    if shape.version == 3 {
        put(&mut file, 96, &shape.order.to_be_bytes());
        put(&mut file, 100, &104_u32.to_be_bytes());
    }
    if shape.backed {
        put(&mut file, 8, &400_u64.to_be_bytes());
        put(&mut file, 16, &4_u32.to_be_bytes());
        put(&mut file, 400, b"base");
    }
    put(&mut file, table, &(block as u64).to_be_bytes());
    let mut counts = vec![0; cluster];
    (0..used).for_each(|nth| count(&mut counts, shape.order, nth));
    if shape.packed > 0 {
        put(&mut file, l1, &(l2 as u64 | 1 << 63).to_be_bytes());
    }
    for nth in 0..shape.packed {
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&vec![nth + 1; cluster]).unwrap();
        let stored = packer.finish().unwrap();
        let at = file.len();
        let sectors = (at % 512 + stored.len()).div_ceil(512) - 1;
        let split = 62 - (shape.bits - 8);
        let entry = at as u64 | (sectors as u64) << split | 1 << 62;
        put(&mut file, l2 + usize::from(nth) * 8, &entry.to_be_bytes());
        file.extend(stored);
        // As QEMU counts: each cluster that the sectors touch.
        let end = at / 512 * 512 + (sectors + 1) * 512;
        for touched in at / cluster..end.div_ceil(cluster) {
            count(&mut counts, shape.order, touched);
        }
    }
    // The last sector is there whole.
    file.resize(file.len().next_multiple_of(512), 0);
    put(&mut file, block, &counts);
    file
}

/// The bytes of a new disk.
pub(crate) fn first(shape: Shape, base: usize) -> Vec<u8> {
    let mut bytes = vec![0; shape.size];
    let here = base.min(shape.size);
    bytes[..here].iter_mut().enumerate().for_each(|(at, byte)| *byte = of_base(at));
    for nth in 0..shape.packed {
        let from = usize::from(nth) * shape.cluster();
        let to = (from + shape.cluster()).min(shape.size);
        bytes[from.min(to)..to].fill(nth + 1);
    }
    bytes
}
