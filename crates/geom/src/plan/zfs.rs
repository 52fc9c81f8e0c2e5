//! ZFS: ashift, and the record of files or the block of a volume. `zfs` is one disk, `raidz2x6` six
//! with two of parity, `raidz2x6x2` two such vdevs, `zmirror2x3` three mirrors of two. A record
//! lies in one vdev, so it costs the same on several.
//!
//! # Space
//! RAID-Z writes each record as a row of its own: its sectors, a parity sector for every row of
//! `disks - parity` of them, and padding to whole groups of `parity + 1`, so that no hole is too
//! small to be used ([`allocated`]). With large sectors a small record is nearly all parity.
//!
//! # Sources
//! OpenZFS `module/zfs/vdev_raidz.c` (`vdev_raidz_asize`) and pull request 5931; zpoolprops(7)
//! `ashift` (9 to 16), zfsprops(7) `recordsize` (128K by default), `volblocksize` (16K since 2.2).
//! OpenZFS takes no more than ashift 14 by itself (`zfs_vdev_max_auto_ashift`, commit 44cec45f7: 64
//! KiB sectors and RAID-Z lose too much space).

use super::{
    Above, Choice, Files, Layer, LayerBase, Plan, Price, Value, describe_unit, power, powers,
    short, unit_size, up, written,
};
use crate::base::topology::{Fact, Grain, Source, Topology, Trust, Why, round_down};

/// Least ashift of new pools: a drive of 4096-byte sectors may come to replace one of 512.
const LEAST: u64 = 12;
/// Largest ashift that OpenZFS takes by itself.
const USUAL: u64 = 14;
const MOST: u64 = 16;
const RECORD: u64 = 128 << 10;
const VOLUME: u64 = 16 << 10;

/// Pool of vdevs that are alike.
pub(super) struct Zfs {
    /// Number of disks in a vdev.
    disks: u64,
    parity: u64,
    /// True if the disks of a vdev are copies of each other.
    mirror: bool,
    vdevs: u64,
}

/// The pool of one device that `zfs` names.
pub(super) fn single() -> Box<dyn Layer> {
    Box::new(Zfs { disks: 1, parity: 0, mirror: false, vdevs: 1 })
}

/// Largest number of disks in a pool that is planned.
const DISKS: u64 = 384;

/// The pool of mirrors that `zmirror2` or `zmirror2x3` names (copies, vdevs); `None` for another
/// word.
pub(super) fn mirror(word: &str) -> Option<Box<dyn Layer>> {
    let rest = word.strip_prefix("zmirror")?;
    let (disks, vdevs) =
        rest.strip_prefix('x').unwrap_or(rest).split_once('x').unwrap_or((rest, "1"));
    let (disks, vdevs): (u64, u64) =
        (disks.trim_start_matches('x').parse().ok()?, vdevs.parse().ok()?);
    let fits = (2..=8).contains(&disks) && vdevs >= 1 && disks.checked_mul(vdevs)? <= DISKS;
    fits.then(|| Box::new(Zfs { disks, parity: 0, mirror: true, vdevs }) as Box<dyn Layer>)
}

/// The pool that `raidz1x4` or, with two vdevs, `raidz2x6x2` names; `None` for another word.
pub(super) fn parse(word: &str) -> Option<Box<dyn Layer>> {
    let (parity, disks) = word.strip_prefix("raidz")?.split_once('x')?;
    let (disks, vdevs) = disks.split_once('x').unwrap_or((disks, "1"));
    let (disks, vdevs): (u64, u64) = (disks.parse().ok()?, vdevs.parse().ok()?);
    let parity: u64 = if parity.is_empty() { 1 } else { parity.parse().ok()? };
    let fits = (1..=3).contains(&parity)
        && (parity + 1..=255).contains(&disks)
        && vdevs >= 1
        && disks.checked_mul(vdevs)? <= DISKS;
    fits.then(|| Box::new(Zfs { disks, parity, mirror: false, vdevs }) as Box<dyn Layer>)
}

/// Bytes that a record of `size` bytes takes on all disks together, in sectors of `1 << ashift`
/// bytes.
pub fn allocated(size: u64, ashift: u64, disks: u64, parity: u64) -> u64 {
    let sector = 1 << ashift.min(MOST);
    let data = size.div_ceil(sector);
    let sectors = data
        .saturating_add(parity.saturating_mul(data.div_ceil(disks.saturating_sub(parity).max(1))));
    up(sectors, parity + 1).saturating_mul(sector)
}

impl Zfs {
    /// Number of disks' worth of data in a vdev.
    fn data(&self) -> u64 {
        if self.mirror { 1 } else { self.disks - self.parity }
    }

    /// The vdevs made of `names`, as zpool takes them.
    fn arguments(&self, names: &[String]) -> String {
        let kind = match (self.mirror, self.parity) {
            (true, _) => "mirror ".to_owned(),
            (false, 0) => String::new(),
            (false, parity) => format!("raidz{parity} "),
        };
        let size = usize::try_from(self.disks).unwrap_or(1);
        names
            .chunks(size)
            .map(|vdev| format!("{kind}{}", vdev.join(" ")))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Price of a record of `size` bytes: its parity and padding in space, and the sectors written
    /// for it.
    fn price(&self, t: &Topology, size: u64, ashift: u64) -> Price {
        let sector = 1 << ashift;
        let share = |a: u64, b: u64| {
            f64::from(u32::try_from(a).unwrap_or(u32::MAX))
                / f64::from(u32::try_from(b.max(1)).unwrap_or(u32::MAX))
        };
        let data = size.div_ceil(sector);
        // One piece on every disk, on any sector of it. Padding takes space, but is not written.
        let column = data.div_ceil(self.data());
        let sectors = data.saturating_add(self.parity.saturating_mul(column));
        let amplification = share(sectors.saturating_mul(sector), size)
            * written(t, column.saturating_mul(sector), sector);
        if self.mirror {
            let copies = Price::amplified(amplification * share(self.disks, 1));
            return copies.losing(size.saturating_mul(self.disks - 1), "copies of a record");
        }
        if self.parity == 0 {
            return Price::amplified(amplification)
                .losing(sector / 2, "the last sector of an average compressed record");
        }
        let taken = allocated(size, ashift, self.disks, self.parity);
        Price::amplified(amplification)
            .losing(taken.saturating_sub(size), "parity and padding of a record")
    }

    fn ashift(&self, t: &Topology, record: u64, plan: &mut Plan) -> u64 {
        let log = u64::from(power(unit_size(t), 1 << 20).trailing_zeros());
        let least = u64::from(power(t.sector, 1 << MOST).trailing_zeros()).clamp(LEAST, MOST);
        let ashift = log.clamp(least, USUAL.max(least));
        if log > USUAL {
            plan.note(format!(
                "zfs: the unit of {} bytes is above ashift {USUAL}, the most that OpenZFS takes by itself, for the space it costs",
                unit_size(t)
            ));
        }
        let size = record;
        let why = format!(
            "sectors of {}, on the {}; it can never be changed",
            1_u64 << ashift,
            describe_unit(t)
        );
        let price = |ashift| {
            let p = self.price(t, size, ashift);
            Price {
                what: if self.parity > 0 || self.mirror {
                    format!("{} of {size} bytes", p.what)
                } else {
                    p.what
                },
                ..p
            }
        };
        let mut choice = Choice::new("zfs", "ashift", Value::Count(ashift, ""), why)
            .typed(format!("-o ashift={ashift}"))
            .costing(price(ashift));
        for other in [9, 12, 13, 14, 16].into_iter().filter(|&a| {
            a != ashift && (a < ashift || a <= log.max(USUAL)) && 1_u64 << a >= t.sector
        }) {
            choice = choice.or(
                Value::Count(other, ""),
                price(other),
                if other < ashift {
                    "less space, sectors below the unit"
                } else {
                    "whole units, more space"
                },
            );
        }
        plan.choose(choice);
        ashift
    }
}

impl Layer for Zfs {
    fn disks(&self) -> u64 {
        self.disks * self.vdevs
    }

    fn lay(&self, base: &LayerBase, above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        // A record is never smaller than a sector, and a volume is written in its blocks.
        let usual = if above.device { VOLUME } else { above.page.unwrap_or(RECORD) };
        let ashift = self.ashift(t, usual, plan);
        let sector = 1 << ashift;
        plan.run(format!("zpool create -o ashift={ashift} tank {}", self.arguments(&base.names)));
        let data = t.length.saturating_mul(self.data()).saturating_mul(self.vdevs);
        if above.device {
            let size = VOLUME.max(sector);
            let mut choice = Choice::new(
                "zfs",
                "volblocksize",
                Value::Bytes(size),
                "the default since OpenZFS 2.2, or a sector; a smaller write reads and writes a whole block",
            )
            .typed(format!("-b {}", short(size)))
            .costing(self.price(t, size, ashift));
            for other in powers(sector.max(8192), 128 << 10).filter(|&other| other != size) {
                choice = choice.or(
                    Value::Bytes(other),
                    self.price(t, other, ashift),
                    if other < size {
                        "small random writes"
                    } else {
                        "less parity and padding; large writes"
                    },
                );
            }
            plan.choose(choice);
            let length = round_down(data / 5 * 4, size.max(1 << 20));
            plan.run(format!("zfs create -s -V {length} -b {} tank/data", short(size)));
            return LayerBase::device(of_records(512, length, size), "/dev/zvol/tank/data");
        }
        let record = above.page.map_or(RECORD, |page| page.max(sector));
        let why = match (above.name, above.page) {
            (Some(name), Some(page)) => {
                format!(
                    "{name} overwrites {page} bytes at a time; a larger record is read and written whole for each"
                )
            }
            _ => "the default; files below it are one record of their own size".to_owned(),
        };
        let page = above.page.unwrap_or(RECORD);
        let whole = |record: u64| {
            let p = self.price(t, record, ashift);
            let copies = f64::from(u32::try_from(record.max(page) / page).unwrap_or(u32::MAX));
            Price { amplification: p.amplification * copies, ..p }
        };
        let mut choice = Choice::new("zfs", "recordsize", Value::Bytes(record), why)
            .typed(format!("-o recordsize={}", short(record)))
            .costing(whole(record));
        for other in powers(sector.max(8192), above.page.map_or(1 << 20, |_| RECORD))
            .filter(|&other| other != record && (above.page.is_some() || other >= 32768))
        {
            choice = choice.or(
                Value::Bytes(other),
                whole(other),
                if other < record {
                    "small random writes"
                } else {
                    "sequential reads, compression, less padding"
                },
            );
        }
        plan.choose(choice);
        plan.run(format!("zfs create -o recordsize={} tank/data", short(record)));
        let files = Files { system: "zfs", grid: record, whole_blocks: true };
        LayerBase {
            topology: of_records(512, data, record),
            names: vec!["/tank/data".into()],
            whole: false,
            files: Some(files),
            ..base.clone()
        }
    }
}

/// Topology above records: part of one is never written alone, wherever on the disks the next one
/// goes.
fn of_records(sector: u64, length: u64, record: u64) -> Topology {
    let fact =
        |grain| Fact { grain, why: Why::Physical, source: Source::Label, trust: Trust::Trusted };
    let mut topology = Topology::new(sector, length);
    topology.facts.extend(Grain::new(record, 0).map(fact));
    topology
}
