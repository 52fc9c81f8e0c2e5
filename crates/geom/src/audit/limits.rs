//! Limits that a device reports, the boundaries they come to, and doubts about those that cannot be
//! true.
//!
//! [`Limits`] are Linux's queue limits, from sysfs or from `lsblk`; [`nvme::Namespace`] is NVMe's
//! Identify Namespace.
//!
//! # Topology
//! | attribute | boundary | phase |
//! |---|---|---|
//! | `logical_block_size` | logical | 0 |
//! | `physical_block_size` | physical | `alignment_offset` |
//! | `minimum_io_size` above it | preferred, or chunk of a stripe | `alignment_offset`, or 0 |
//! | `optimal_io_size` | optimal, or the row of a striped set | `alignment_offset`, or 0 |
//! | `chunk_sectors` of a drive that is not zoned | chunk: an I/O across it is split | 0 |
//! | `atomic_write_unit_max_bytes` | atomic | 0 |
//! | `discard_granularity` | discard | `discard_alignment` |
//!
//! A partition has its disk's limits: make the disk's topology and shift it. The partition's own
//! `alignment_offset` equals the result, but only modulo the larger of `physical_block_size` and
//! `minimum_io_size`.
//!
//! # Limits
//! A limit that cannot be true is kept, untrusted, and a finding gives the reason. The usual one is
//! `optimal_io_size`: USB bridges report their largest transfer there, 65535 blocks, and 65535 is
//! odd, so that every boundary but the first is off the grain. Newer kernels round it down to whole
//! physical blocks, which does not make it true.
//!
//! # Sources
//! Linux `Documentation/ABI/stable/sysfs-block`; `block/blk-settings.c` (`blk_stack_limits`,
//! `queue_limit_alignment_offset`: the kernel keeps `alignment_offset` modulo
//! `max(physical_block_size, io_min)`); `drivers/scsi/sd.c` (`alignment_offset` is the lowest
//! aligned LBA, `discard_alignment` the first LBA of a whole unmap granule: both are phases).

pub mod nvme;

use crate::base::finding::{self, Finding, Fix, Severity, Statement};
use crate::base::size::PAGE;
use crate::base::topology::{
    Clash, Fact, Grain, Source, Topology, Trust, Why, is_whole, round_down,
};

/// Block size in bytes where none is reported or believed.
const SECTOR: u64 = 512;
/// Queue limits of a block device, under sysfs's own names; 0 (or `None`) is "not reported".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Meaning of the sizes on this kind of device.
    pub shape: Stacking,
    /// Logical block in bytes.
    pub logical_block_size: u64,
    /// Physical block in bytes.
    pub physical_block_size: u64,
    /// Minimum or preferred I/O in bytes.
    pub minimum_io_size: u64,
    /// Optimal I/O in bytes.
    pub optimal_io_size: u64,
    /// Bytes to the first physical boundary; −1 if the members beneath have none in common.
    pub alignment_offset: i64,
    /// Discard unit in bytes.
    pub discard_granularity: u64,
    /// Bytes to the first whole discard unit.
    pub discard_alignment: u64,
    /// Largest discard in bytes; 0 if the device does not discard, whatever its granularity.
    pub discard_max_bytes: Option<u64>,
    /// Boundary that splits I/O, in sectors of 512 bytes; of a zoned device, its zone.
    pub chunk_sectors: u64,
    /// Smallest atomic write in bytes.
    pub atomic_write_unit_min_bytes: u64,
    /// Largest atomic write in bytes.
    pub atomic_write_unit_max_bytes: u64,
    /// Boundary that an atomic write must not cross, in bytes.
    pub atomic_write_boundary_bytes: u64,
    /// Mask of address bits: memory for direct I/O lies on multiples of the mask plus one.
    pub dma_alignment: Option<u64>,
    /// Largest request in KiB.
    pub max_sectors_kb: Option<u64>,
    /// True if it is a disk that turns.
    pub rotational: Option<bool>,
    /// Zone model: `none`, `host-aware` or `host-managed`.
    pub zoned: Option<String>,
}

/// Meaning of `minimum_io_size` and `optimal_io_size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stacking {
    /// Drive, with sizes of its own.
    #[default]
    Drive,
    /// Device over others that does not stripe (dm-crypt, a linear volume, md RAID1): it inherits
    /// their sizes, but the kernel passes their phase on only modulo the larger of
    /// `physical_block_size` and `minimum_io_size`.
    Stacked,
    /// Striped set, with its own chunk and row, from its byte 0.
    Striped {
        /// Chunk on one member, in bytes.
        chunk: u64,
        /// Bytes of data in one row; 0 if unknown.
        row: u64,
        /// True if a write of less than a row makes the set read first.
        parity: bool,
    },
}

impl Limits {
    /// The topology of a device of `length` bytes with these limits, in its own addresses, and
    /// findings about limits that cannot be true.
    pub fn topology(&self, length: u64) -> (Topology, Vec<Finding>) {
        let logical = self.logical_block_size;
        // The kernel takes block sizes that are powers of two, from 512 bytes; 64 KiB is beyond any
        // device in use.
        let sane =
            logical == 0 || (logical.is_power_of_two() && (SECTOR..=64 << 10).contains(&logical));
        let sector = if sane && logical > 0 { logical } else { SECTOR };
        let mut gathered = Gathered::new(Source::Sysfs, sector, length);
        let doubt = (!sane).then(|| "a block is a power of two from 512 to 65536 bytes".to_owned());
        gathered.add(
            Claim { name: "logical_block_size", why: Why::Logical, size: logical, phase: Some(0) },
            doubt,
        );
        self.add_physical(&mut gathered);
        self.add_sizes(&mut gathered);
        self.add_atomic(&mut gathered);
        if self.discard_max_bytes != Some(0) {
            let (size, phase) = (self.discard_granularity, Some(self.discard_alignment));
            // Drives of 4096-byte blocks take discards of 512 bytes; only a part of a logical block
            // is impossible.
            let doubt = (!is_whole(size, sector))
                .then(|| format!("not a whole number of logical blocks of {sector} bytes"));
            gathered.add(
                Claim { name: "discard_granularity", why: Why::Discard, size, phase },
                doubt.or_else(|| gathered.too_large(size)),
            );
        }
        gathered.done()
    }

    fn add_physical(&self, gathered: &mut Gathered) {
        let (size, sector) = (self.physical_block_size, gathered.sector());
        let doubt = if size == 0 || size == sector {
            None
        } else if size < sector {
            Some(format!("smaller than the logical block of {sector} bytes"))
        } else if !size.is_power_of_two() {
            Some("not a power of two".to_owned())
        } else {
            gathered.too_large(size)
        };
        gathered.physical = if doubt.is_none() && size > 0 { size } else { sector };
        gathered.phase = self.phase(gathered);
        if self.shape == Stacking::Drive && size > 0 && size == sector && sector < PAGE {
            // Drives with 4096-byte sectors have claimed 512 (the first WD10EARS did).
            let grain = Grain::new(PAGE, 0);
            let hint = |grain| Fact {
                grain,
                why: Why::Convention,
                source: Source::Assumed,
                trust: Trust::Assumed,
            };
            gathered.topology.facts.extend(grain.map(hint));
        }
        gathered.add(
            Claim { name: "physical_block_size", why: Why::Physical, size, phase: gathered.phase },
            doubt,
        );
    }

    /// The unit in bytes modulo which `alignment_offset` is known.
    fn granularity(&self, physical: u64) -> u64 {
        self.minimum_io_size.max(physical)
    }

    /// The first physical boundary in bytes; `None` if it is not known.
    fn phase(&self, gathered: &mut Gathered) -> Option<u64> {
        let (granularity, offset) = (self.granularity(gathered.physical), self.alignment_offset);
        let Ok(phase) = u64::try_from(offset) else {
            let message = format!(
                "alignment_offset is {offset}: what this stands on has no {granularity}-byte boundary in common"
            );
            let fix =
                "lay every member out from a multiple of the largest physical block among them";
            gathered.findings.push(
                Finding::new(&finding::CLASH, Severity::Warning, 0, message)
                    .against(granularity, 0, None)
                    .fix(fix),
            );
            // The kernel does not report which member is off, nor by how much.
            gathered.topology.clashes.push(Clash {
                why: Why::Physical,
                unit: granularity,
                member: 0,
                remainder: 0,
            });
            return None;
        };
        let doubt = if phase >= granularity && phase > 0 {
            format!("not below the {granularity} bytes it is counted in")
        } else if !is_whole(phase, gathered.sector()) {
            format!("not a whole number of logical blocks of {} bytes", gathered.sector())
        } else {
            return Some(phase);
        };
        gathered.find(
            Severity::Warning,
            granularity,
            format!("alignment_offset is {phase}, which cannot be: {doubt}"),
        );
        None
    }

    /// Adds preferred and optimal sizes, chunk and row.
    fn add_sizes(&self, gathered: &mut Gathered) {
        let (min, opt, phase) = (self.minimum_io_size, self.optimal_io_size, gathered.phase);
        let (chunk, row, why) = match self.shape {
            Stacking::Striped { chunk, row, parity } => {
                (chunk, row, if parity { Why::FullStripe } else { Why::Row })
            }
            Stacking::Drive | Stacking::Stacked => (0, 0, Why::Row),
        };
        gathered.add_whole(Claim {
            name: "the chunk",
            why: Why::Chunk,
            size: chunk,
            phase: Some(0),
        });
        gathered.add_whole(Claim { name: "the row", why, size: row, phase: Some(0) });
        if min > gathered.physical && min != chunk {
            gathered.add_whole(Claim {
                name: "minimum_io_size",
                why: Why::Preferred,
                size: min,
                phase,
            });
        }
        if opt > 0 && opt != row {
            self.add_optimal(gathered, row);
        }
        // On a zoned device this is the zone. Above other devices it is theirs, from an unknown
        // phase.
        if self.shape == Stacking::Drive && self.zoned.as_deref().is_none_or(|z| z == "none") {
            let size = self.chunk_sectors.saturating_mul(512);
            gathered.add_whole(Claim {
                name: "chunk_sectors × 512",
                why: Why::Chunk,
                size,
                phase: Some(0),
            });
        }
    }

    fn add_optimal(&self, gathered: &mut Gathered, row: u64) {
        let (min, opt) = (self.minimum_io_size, self.optimal_io_size);
        let claim =
            Claim { name: "optimal_io_size", why: Why::Optimal, size: opt, phase: gathered.phase };
        let multiple_of = |unit: u64, what: &str| {
            (unit > 0 && !is_whole(opt, unit)).then(|| format!("not a multiple of {what} {unit}"))
        };
        let doubt = gathered
            .doubt(opt)
            .or_else(|| multiple_of(min, "minimum_io_size"))
            .or_else(|| multiple_of(row, "the row of"));
        let phase_known =
            self.shape != Stacking::Stacked || is_whole(self.granularity(gathered.physical), opt);
        if doubt.is_some() || phase_known {
            gathered.add(claim, doubt);
        } else {
            let message = format!(
                "optimal_io_size is {opt}: taken from what this stands on, and where it begins here is not known"
            );
            gathered.findings.push(
                Finding::new(&finding::BLIND, Severity::Note, 0, message).against(opt, 0, None),
            );
            gathered.add_fact(Claim { phase: None, ..claim }, Trust::Untrusted);
        }
    }

    fn add_atomic(&self, gathered: &mut Gathered) {
        let (min, max, boundary) = (
            self.atomic_write_unit_min_bytes,
            self.atomic_write_unit_max_bytes,
            self.atomic_write_boundary_bytes,
        );
        let doubt = if max < min {
            Some(format!("smaller than atomic_write_unit_min_bytes {min}"))
        } else if max > 0 && !max.is_power_of_two() {
            Some("not a power of two".to_owned())
        } else if boundary > 0 && !is_whole(boundary, max) {
            Some(format!("does not divide atomic_write_boundary_bytes {boundary}"))
        } else {
            (!is_whole(max, gathered.sector())).then(|| {
                format!("not a whole number of logical blocks of {} bytes", gathered.sector())
            })
        };
        gathered.add(
            Claim {
                name: "atomic_write_unit_max_bytes",
                why: Why::Atomic,
                size: max,
                phase: Some(0),
            },
            doubt,
        );
    }
}

/// One size that a device reports.
#[derive(Clone, Copy)]
struct Claim {
    name: &'static str,
    why: Why,
    size: u64,
    /// First boundary in bytes; `None` if unknown, so that nothing is judged by it.
    phase: Option<u64>,
}

/// Topology and findings of one device while they are gathered.
struct Gathered {
    source: Source,
    topology: Topology,
    physical: u64,
    phase: Option<u64>,
    findings: Vec<Finding>,
}

impl Gathered {
    fn new(source: Source, sector: u64, length: u64) -> Gathered {
        Gathered {
            source,
            topology: Topology::new(sector, length),
            physical: sector,
            phase: Some(0),
            findings: Vec::new(),
        }
    }

    fn sector(&self) -> u64 {
        self.topology.sector
    }

    fn done(self) -> (Topology, Vec<Finding>) {
        (self.topology, self.findings)
    }

    /// Adds a claim that must be a whole number of blocks.
    fn add_whole(&mut self, claim: Claim) {
        self.add(claim, self.doubt(claim.size));
    }

    /// Adds a claim, and a finding with the reason for which it cannot be true, if there is one. A
    /// size of 0 claims nothing.
    fn add(&mut self, claim: Claim, doubt: Option<String>) {
        self.add_trusting(claim, doubt, Trust::Claimed);
    }

    /// Adds a claim as [`Gathered::add`] does, with that trust if there is no doubt.
    fn add_trusting(&mut self, claim: Claim, doubt: Option<String>, trust: Trust) {
        if claim.size == 0 {
            return;
        }
        // Where every block is a boundary the phase does not matter.
        let anywhere = is_whole(self.sector(), claim.size);
        let believed = doubt.is_none() && (anywhere || claim.phase.is_some());
        let claim = if anywhere { Claim { phase: Some(0), ..claim } } else { claim };
        self.add_fact(claim, if believed { trust } else { Trust::Untrusted });
        if let Some(doubt) = doubt {
            // These two alone decide the boundaries that everything else is judged by.
            let severity = if matches!(claim.why, Why::Logical | Why::Physical) {
                Severity::Warning
            } else {
                Severity::Note
            };
            self.find(
                severity,
                claim.size,
                format!("{} is {} bytes, which cannot be: {doubt}", claim.name, claim.size),
            );
        }
    }

    fn add_fact(&mut self, claim: Claim, trust: Trust) {
        let grain = Grain::new(claim.size, claim.phase.unwrap_or(0));
        self.topology.facts.extend(grain.map(|grain| Fact {
            grain,
            why: claim.why,
            source: self.source,
            trust,
        }));
    }

    fn find(&mut self, severity: Severity, unit: u64, message: String) {
        self.findings.push(
            Finding::new(&finding::LIMITS, severity, 0, message)
                .against(unit, 0, None)
                .fix(Fix::State(Statement::Boundary)),
        );
    }

    /// The reason for which a size other than a block's cannot be a boundary; `None` if it can.
    fn doubt(&self, size: u64) -> Option<String> {
        let (sector, physical) = (self.sector(), self.physical);
        if let Some(block) = largest_transfer(size, physical) {
            Some(format!("65535 blocks of {block} bytes are the largest transfer, not a unit"))
        } else if !is_whole(size, sector) {
            Some(format!("not a whole number of logical blocks of {sector} bytes"))
        } else if !is_whole(size, physical) {
            Some(format!("not a whole number of physical blocks of {physical} bytes"))
        } else {
            self.too_large(size)
        }
    }

    fn too_large(&self, size: u64) -> Option<String> {
        let length = self.topology.length;
        (length > 0 && size > length).then(|| format!("larger than the device, {length} bytes"))
    }
}

/// The block of which `size` is 65535, or 65535 rounded down to whole physical blocks or (a
/// proposed kernel change) to 4 KiB.
fn largest_transfer(size: u64, physical: u64) -> Option<u64> {
    (9..=16).map(|shift| 1 << shift).find(|block| {
        let largest = 65535 * block;
        [1, physical, 4096].iter().any(|&unit| size == round_down(largest, unit))
    })
}

#[cfg(test)]
#[path = "limits/tests.rs"]
mod tests;
