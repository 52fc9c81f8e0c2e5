//! FAT: sector, cluster, and reserved sectors so many that the data area begins on a boundary.
//!
//! mkfs.fat makes the reserved sectors and each table whole clusters, so the data area comes out on a cluster, which on flash is
//! not the erase unit. The tables' length is known beforehand, so the reserved sectors can make up for it.
//!
//! # Limits
//! Reserved sectors are a 16-bit number: boundaries above 16 MiB are not reached.
//!
//! # Sources
//! mkfs.fat(8), `-F -S -s -R`; Microsoft FAT specification 1.03, section 3.5 (FAT32 from 65525 clusters on) and the cluster sizes of
//! section 3.3; SD Physical Layer, part 2 (clusters of 32 KiB on SDHC). The tables' length was read off mkfs.fat 4.2 and is tested
//! against it.

use super::{Above, Choice, Files, Ground, Layer, PAGE, Plan, Price, Value, fact, powers, said, said_unit, unit_size, up, written};
use crate::topology::{Topology, Why, is_whole, round_down};

/// The largest cluster of 512-byte sectors.
const MOST: u64 = 65536;
/// The largest boundary that 16 bits of reserved sectors reach from any table length.
const REACH: u64 = 16 << 20;
/// Below this a volume has too few 4 KiB clusters for FAT32.
const FAT32_LEAST: u64 = 512 << 20;
const TABLES: u64 = 2;

/// What mkfs.fat is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Bits of a table's entry: 16 or 32.
    pub bits: u64,
    /// Bytes.
    pub sector: u64,
    /// Bytes.
    pub cluster: u64,
    /// Sectors before the tables.
    pub reserved: u64,
    /// The boundary of the data area in bytes.
    pub align: u64,
    /// Where the data area comes out, in bytes.
    pub data: u64,
}

impl Parameters {
    /// Clusters of at least the unit, and the data area on the erase unit if there is one.
    pub fn for_topology(topology: &Topology) -> Parameters {
        let (length, unit) = (topology.length, unit_size(topology));
        let sector = topology.sector.clamp(512, 4096);
        let usual = match length >> 30 {
            0..8 => PAGE,
            8..16 => 2 * PAGE,
            16..32 => 4 * PAGE,
            _ => 8 * PAGE,
        };
        // A card's own is 32 KiB; small cards have fewer clusters than FAT32 needs, and stay with the usual.
        let flash = fact(topology, Why::Erase).is_some() && length > 2 << 30;
        let least = unit.max(if flash { 8 * PAGE } else { usual });
        let cluster = powers(PAGE, MOST).find(|&cluster| cluster >= least).unwrap_or(MOST);
        let (bits, first) = if length < FAT32_LEAST { (16, 1) } else { (32, 32) };
        let erase = fact(topology, Why::Erase).map_or(0, |f| f.grain.size());
        let wanted = [erase, cluster].into_iter().find(|&a| a <= REACH && a <= length / 8 && is_whole(a, cluster));
        let align = wanted.unwrap_or(cluster);
        // As mkfs rounds: the reserved sectors and each table are whole clusters.
        let tables = TABLES * table(bits, sector, cluster, up(first * sector, cluster), length) + root(bits, cluster);
        let data = up(up(first * sector, cluster) + tables, align);
        Parameters { bits, sector, cluster, reserved: (data - tables) / sector, align, data }
    }

    /// Arguments of mkfs.fat.
    pub fn options(&self) -> Vec<String> {
        let pairs = [("-F", self.bits), ("-S", self.sector), ("-s", self.cluster / self.sector), ("-R", self.reserved)];
        pairs.into_iter().flat_map(|(option, n)| [option.to_owned(), n.to_string()]).collect()
    }
}

/// Bytes of the root directory before the clusters, which FAT32 has not: 512 entries of 32 bytes, in whole clusters.
fn root(bits: u64, cluster: u64) -> u64 {
    if bits == 32 { 0 } else { up(512 * 32, cluster) }
}

/// Bytes of one table.
fn table(bits: u64, sector: u64, cluster: u64, reserved: u64, length: u64) -> u64 {
    let entry = bits / 8;
    let room = round_down(length, sector).saturating_sub(reserved + root(bits, cluster));
    // Every cluster costs its bytes and an entry in each table; two entries stand for no cluster.
    let clusters = room.saturating_add(TABLES * 2 * entry) / (cluster + TABLES * entry);
    up(up((clusters + 2) * entry, sector), cluster)
}

pub(super) struct Fat;

impl Layer for Fat {
    fn lay(&self, ground: &Ground, _above: Above, plan: &mut Plan) -> Ground {
        let t = &ground.topology;
        let p = Parameters::for_topology(t);
        plan.choose(Choice::new("vfat", "sector", Value::Bytes(p.sector), "the device's logical sector").typed(format!("-S {}", p.sector)));
        let price = |cluster| Price::of(written(t, cluster, cluster)).tail(cluster);
        let why = format!("at least the {}; what cameras and firmware expect of a volume of this size", said_unit(t));
        let sectors = p.cluster / p.sector;
        let mut cluster =
            Choice::new("vfat", "cluster", Value::Bytes(p.cluster), why).typed(format!("-s {sectors}")).costing(price(p.cluster));
        for other in powers(PAGE, MOST).filter(|&other| other != p.cluster) {
            cluster = cluster.or(
                Value::Bytes(other),
                price(other),
                if other < p.cluster { "less lost at the ends of files" } else { "smaller tables" },
            );
        }
        plan.choose(cluster);
        let erase = fact(t, Why::Erase);
        let why = match erase.filter(|f| f.grain.size() == p.align) {
            Some(f) => format!("the data area, behind two tables, begins at {} on the {}", p.data, said(f)),
            None => format!("the data area, behind two tables, begins at {} on a whole cluster", p.data),
        };
        let reserved = Choice::new("vfat", "reserved", Value::Count(p.reserved, "sectors"), why).typed(format!("-R {}", p.reserved));
        plan.choose(reserved.costing(Price::of(1.0).losing(p.reserved * p.sector, "reserved sectors")));
        if let Some(f) = erase.filter(|f| f.grain.size() != p.align) {
            plan.note(format!(
                "vfat: the data area is not on the {}: 16 bits of reserved sectors, or the volume, do not reach it",
                said(f)
            ));
        }
        if t.length / p.sector > u64::from(u32::MAX) {
            plan.note(format!("vfat: it counts sectors in 32 bits: a volume of {} bytes is too large", t.length));
        }
        if unit_size(t) > MOST {
            plan.note(format!("vfat: a cluster is at most {MOST} bytes: the unit of {} is not reached", unit_size(t)));
        }
        plan.run(format!("mkfs.vfat {} {}", p.options().join(" "), ground.arguments()));
        plan.run(format!("mount {} /mnt", ground.arguments()));
        ground.with_files("/mnt", Files { system: "vfat", grid: p.cluster, whole_blocks: false })
    }
}
