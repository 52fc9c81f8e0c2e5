//! Chunks in several copies (RAID10): near, far and offset.

use crate::base::topology::{Rows, gcd};
use crate::mapping::raid::fault::Fault;

/// Chunks in several copies: near ones side by side, far ones further back (RAID10).
#[derive(Clone, Debug)]
pub struct Copies {
    near: u64,
    far: u64,
    /// True if far copies follow in the next row, not in the next part of the member.
    offset: bool,
    /// Members among which far copies move on.
    far_set: u64,
    disks: u64,
    pub(super) chunk: u64,
    /// Bytes of a member from one far copy to the next.
    stride: u64,
    pub(super) length: u64,
}

impl Copies {
    /// A set of `disks` members of `size` bytes each, with RAID10's number of a layout.
    pub fn new(layout: u32, disks: u64, chunk: u64, size: u64) -> Result<Copies, Fault> {
        let (near, far) = (u64::from(layout & 0xff), u64::from(layout >> 8 & 0xff));
        let offset = layout & 1 << 16 != 0;
        let copies = near * far;
        let far_set = match layout >> 17 {
            0 => disks,
            1 => disks.checked_div(far).unwrap_or(0),
            2 => copies,
            _ => 0,
        };
        if copies < 2 || copies > disks || far_set == 0 || far_set > disks {
            return Err(Fault::Copies(layout));
        }
        if offset && !disks.is_multiple_of(near) && near > 1 {
            // mdadm makes no such set; Linux would write one copy over another.
            return Err(Fault::Overlapping(layout));
        }
        // As many chunks as fit, and what they take of each member.
        let chunks = size / chunk / far;
        let chunks = chunks.checked_mul(disks).ok_or(Fault::TooLarge)? / near;
        let used = chunks.checked_mul(copies).ok_or(Fault::TooLarge)?.div_ceil(disks);
        let stride = if offset { chunk } else { used / far * chunk };
        let length = chunks.checked_mul(chunk).ok_or(Fault::TooLarge)?;
        Ok(Copies { near, far, offset, far_set, disks, chunk, stride, length })
    }

    pub(super) fn count(&self) -> usize {
        usize::try_from(self.near * self.far).unwrap_or(usize::MAX)
    }

    pub(super) fn place(&self, x: u64, nth: usize) -> (usize, u64) {
        let nth = nth as u64;
        let (near, far) = (nth / self.far, nth % self.far);
        let first = x / self.chunk * self.near + near;
        let (mut row, mut disk) = (first / self.disks, first % self.disks);
        if self.offset {
            row *= self.far;
        }
        let mut at = row * self.chunk + x % self.chunk;
        for _ in 0..far {
            disk = self.next_far(disk);
            at += self.stride;
        }
        (usize::try_from(disk).unwrap_or(usize::MAX), at)
    }

    /// The member of the next far copy of what is on `disk`.
    fn next_far(&self, disk: u64) -> u64 {
        let (size, rest) = (self.far_set, self.disks % self.far_set);
        let last = (self.disks / size - 1) * size;
        let next = disk + self.near;
        if rest != 0 && next > last {
            (next - last) % (size + rest) + last
        } else {
            next % size + disk / size * size
        }
    }

    /// True if every byte has a copy on a member for which `here` is true.
    pub fn has_all(&self, here: impl Fn(usize) -> bool) -> bool {
        (0..self.disks)
            .all(|n| (0..self.count()).any(|nth| here(self.place(n * self.chunk, nth).0)))
    }

    pub(super) fn rows(&self) -> Rows {
        let common = gcd(self.near, self.disks);
        let (data, rows) = (self.disks / common, self.near / common);
        let together = if self.offset { self.far } else { 1 };
        Rows {
            chunk: self.chunk,
            row: self.chunk * data,
            span: self.chunk * rows * together,
            places: if self.offset { 1 } else { self.far },
            stride: self.stride,
        }
    }
}
