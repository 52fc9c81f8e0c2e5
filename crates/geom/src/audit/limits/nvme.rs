//! NVMe Identify Namespace: its limits and the boundaries they come to.
//!
//! # Topology
//! The formatted LBA is the logical block. NPWA and NPWG are the preferred write unit (the
//! indirection unit of a drive that reports one): starts lie on NPWA, sizes are multiples of NPWG.
//! Where NPWG is the larger (Samsung's 980: 16 KiB over 4 KiB), the specification does not place
//! its units on multiples of it, so that boundary is assumed; Linux's `minimum_io_size` claims it.
//! NOWS is the optimal size, NOIOB a boundary that I/O should not cross, NPDG and NPDA the discard
//! unit. A write that is to survive a power failure whole keeps within the boundaries of NABSPF
//! from NABO; without boundaries it is at most NAWUPF long, wherever it begins, which Linux uses
//! only where it is naturally aligned. NVMe has no physical block.
//!
//! # Limits
//! NPWG, NPWA, NPDG, NPDA and NOWS count only if NSFEAT's OPTPERF says so, NAWUN, NAWUPF and NACWU
//! only with NSFEAT bit 1: else the controller's own hold, which Identify Namespace does not give.
//! A size of one block is the logical block again, and left out. An NOIOB that is no power of two
//! is untrusted: Linux ignores it.
//!
//! # Sources
//! NVM Command Set Specification 1.0, sections 4.1.5.1 (Identify Namespace and LBA Format data
//! structures) and 5.8.2 (size and alignment for performance), and 1.1 for the second bit of
//! OPTPERF (only the first makes NPDG valid); NVMe 1.4 sections 6.4 (atomic operations) and 8.25
//! (as 5.8.2).

use super::{Claim, Gathered};
use crate::base::finding::Finding;
use crate::base::topology::{Source, Topology, Trust, Why, is_whole};

/// Limits of a namespace, under the specification's names. Sizes are in logical blocks; those
/// marked so are 0's based.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Namespace size in logical blocks.
    pub nsze: u64,
    /// Namespace features, a bit mask.
    pub nsfeat: u8,
    /// Formatted LBA size: the index of the format, and a bit for metadata that extends the block.
    pub flbas: u8,
    /// LBA data size of that format, as a power of two.
    pub lbads: u8,
    /// Metadata size of that format, in bytes per block.
    pub ms: u16,
    /// Preferred write granularity in blocks; 0's based.
    pub npwg: u16,
    /// Preferred write alignment in blocks; 0's based.
    pub npwa: u16,
    /// Preferred deallocate granularity in blocks; 0's based.
    pub npdg: u16,
    /// Preferred deallocate alignment in blocks; 0's based.
    pub npda: u16,
    /// Optimal write size in blocks; 0's based.
    pub nows: u16,
    /// Optimal I/O boundary in blocks; 0 for none.
    pub noiob: u16,
    /// Atomic write unit over a power failure, in blocks; 0's based.
    pub nawupf: u16,
    /// First atomic boundary, in blocks.
    pub nabo: u16,
    /// Atomic boundary size over a power failure, in blocks; 0 for none, else 0's based.
    pub nabspf: u16,
}

impl Namespace {
    /// The index of the LBA format in use: FLBAS bits 3:0, and bits 6:5 above them.
    pub fn format(flbas: u8) -> usize {
        usize::from(flbas & 0xf | (flbas & 0x60) >> 1)
    }

    /// The logical block in bytes; `None` if the format is unknown (LBADS below 9 is reserved, or
    /// means "not available").
    pub fn block(&self) -> Option<u64> {
        (9..=16).contains(&self.lbads).then(|| 1 << self.lbads)
    }

    /// The length in bytes; `None` as [`Namespace::block`], or past 2^64.
    pub fn length(&self) -> Option<u64> {
        self.block()?.checked_mul(self.nsze)
    }

    /// The topology of the namespace, and findings about limits that cannot be true; `None` as
    /// [`Namespace::length`].
    pub fn topology(&self) -> Option<(Topology, Vec<Finding>)> {
        let (block, length) = (self.block()?, self.length()?);
        // Both factors are small: 65536 blocks of 64 KiB.
        let bytes = |blocks: u64| blocks * block;
        let zeros_based = |field: u16| bytes(u64::from(field) + 1);
        let above_one = |size: u64| if size > block { size } else { 0 };
        let mut gathered = Gathered::new(Source::Nvme, block, length);
        let claim = |name, why, size, phase| Claim { name, why, size, phase: Some(phase) };
        gathered.add(claim("the LBA data size", Why::Logical, block, 0), None);
        let optperf = self.nsfeat >> 4 & 3;
        if optperf != 0 {
            let (npwg, npwa, nows) =
                (zeros_based(self.npwg), zeros_based(self.npwa), zeros_based(self.nows));
            let doubt = pair_doubt("NPWA", npwg, npwa).or_else(|| gathered.doubt(npwa));
            gathered.add(claim("NPWA", Why::Preferred, above_one(npwa), 0), doubt);
            if npwg > npwa {
                let doubt = pair_doubt("NPWA", npwg, npwa).or_else(|| gathered.doubt(npwg));
                gathered.add_trusting(
                    claim("NPWG", Why::Preferred, npwg, 0),
                    doubt,
                    Trust::Assumed,
                );
            }
            let doubt = (!is_whole(nows, npwg))
                .then(|| format!("not a multiple of NPWG, {npwg} bytes"))
                .or_else(|| gathered.doubt(nows));
            gathered.add(claim("NOWS", Why::Optimal, above_one(nows), 0), doubt);
        }
        if optperf & 1 != 0 {
            let (npdg, npda) = (zeros_based(self.npdg), zeros_based(self.npda));
            let doubt = pair_doubt("NPDA", npdg, npda).or_else(|| gathered.doubt(npdg.max(npda)));
            gathered.add(claim("NPDG", Why::Discard, above_one(npdg.max(npda)), 0), doubt);
        }
        let boundary = bytes(u64::from(self.noiob));
        let odd = (boundary > 0 && !boundary.is_power_of_two())
            .then(|| "not a power of two: Linux ignores it".to_owned());
        let doubt = odd.or_else(|| gathered.doubt(boundary));
        gathered.add(claim("NOIOB", Why::Chunk, boundary, 0), doubt);
        let atomic = if self.nabspf > 0 {
            let doubt = (self.nabo > self.nabspf)
                .then(|| format!("NABO, {} blocks, is past it", self.nabo));
            (
                claim("NABSPF", Why::Atomic, zeros_based(self.nabspf), bytes(u64::from(self.nabo))),
                doubt,
            )
        } else if self.nsfeat & 2 != 0 {
            (claim("NAWUPF", Why::Atomic, above_one(zeros_based(self.nawupf)), 0), None)
        } else {
            return Some(gathered.done());
        };
        gathered.add(atomic.0, atomic.1);
        Some(gathered.done())
    }
}

/// The reason for which a granularity and its alignment cannot both be true: neither is a multiple
/// of the other. `None` if one is.
fn pair_doubt(name: &str, granularity: u64, alignment: u64) -> Option<String> {
    let fits = is_whole(granularity, alignment) || is_whole(alignment, granularity);
    (!fits).then(|| {
        format!("{granularity} bytes and {name}, {alignment} bytes, do not go into each other")
    })
}
