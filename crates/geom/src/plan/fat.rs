//! FAT: sector, cluster, and as many reserved sectors as put the data area on a boundary.
//!
//! mkfs.fat makes the reserved sectors and each table whole clusters, so the data area comes out on
//! a cluster, which on flash is not the erase unit. The tables' length is known beforehand, so the
//! reserved sectors can make up for it. Where the partition itself begins off a boundary by less
//! than clusters, mkfs.fat is told to round nothing (`-a`): the clusters are on it all the same.
//!
//! # Limits
//! Reserved sectors are a 16-bit number: boundaries above 16 MiB are not reached.
//!
//! # Sources
//! mkfs.fat(8), `-F -S -s -R -g`; Microsoft FAT specification 1.03, section 3.5 (FAT32 from 65525
//! clusters on) and the cluster sizes of section 3.3; SD Physical Layer, part 2 (clusters of 32 KiB
//! on SDHC). The tables' length was read off mkfs.fat 4.2 and is tested against it.

use super::{
    Above, Choice, Files, Layer, LayerBase, PAGE, Plan, Price, Value, describe, describe_unit,
    fact, powers, unit_size, up, written,
};
use crate::base::topology::{Grain, Topology, Why, is_whole, round_down};

/// Largest cluster of 512-byte sectors, in bytes.
const MOST: u64 = 65536;
/// Largest boundary in bytes that 16 bits of reserved sectors reach from any table length.
const REACH: u64 = 16 << 20;
/// Purposes of boundaries larger than a cluster that the data area is put on; the first that can be
/// reached is taken.
const FAR: [Why; 4] = [Why::Erase, Why::FullStripe, Why::Row, Why::Chunk];
/// Least number of clusters of a FAT16, and, below, of a FAT32; tables and reserved sectors take
/// some of a volume's.
const FAT16_LEAST: u64 = 4085;
const FAT32_LEAST: u64 = 65525;
/// Clusters' worth of tables of the smallest FAT32, rounded up generously.
const MARGIN: u64 = 160;
const TABLES: u64 = 2;
/// Number of boundaries that are tried.
const TRIES: u64 = 8;
/// Sectors of a track, to whole numbers of which mkfs.fat rounds the volume. It is given as an
/// option, since the default depends on the device.
const TRACK: u64 = 63;

/// Parameters of mkfs.fat, and the data area that follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Bits of a table's entry: 12, 16 or 32.
    pub bits: u64,
    /// Logical sector in bytes, a power of two.
    pub sector: u64,
    /// Cluster size in bytes, a power of two.
    pub cluster: u64,
    /// Number of sectors before the tables.
    pub reserved: u64,
    /// Size of the boundary of the data area, in bytes.
    pub align: u64,
    /// Address of the first such boundary on the volume, in bytes.
    pub phase: u64,
    /// True if reserved sectors and tables are whole clusters, the default of mkfs.fat.
    pub rounded: bool,
    /// First byte of the data area on the volume.
    pub data: u64,
}

impl Parameters {
    /// Clusters of at least the unit; the data area on the erase unit or a row of the set if there
    /// is one.
    pub fn for_topology(topology: &Topology) -> Parameters {
        // Where the kind depends on the size of the tables, a larger cluster makes it the smaller
        // kind.
        let kinds = powers(usual(topology), MOST)
            .find_map(|cluster| Some((kind(topology, cluster)?, cluster)));
        Parameters::laid(topology, kinds.unwrap_or((16, usual(topology))))
    }

    /// A FAT of `bits`, with the usual cluster or the nearest that makes such a FAT, the larger
    /// first; none below `least` bytes. `None` where no cluster does.
    pub fn of_bits(topology: &Topology, bits: u64, least: u64) -> Option<Parameters> {
        let usual = usual(topology);
        let smaller = powers(topology.sector.clamp(512, 4096).max(least), usual / 2)
            .collect::<Vec<_>>()
            .into_iter()
            .rev();
        let fits = |cluster| {
            let volume = Some(Parameters::laid(topology, (bits, cluster)))
                .filter(|_| kind(topology, cluster) == Some(bits))?;
            // A reader takes the kind from the number of clusters.
            let clusters = topology.length.saturating_sub(volume.data) / cluster;
            let (least, most) = match bits {
                32 => (FAT32_LEAST, u64::MAX),
                16 => (FAT16_LEAST, FAT32_LEAST),
                _ => (1, FAT16_LEAST),
            };
            (least..most).contains(&clusters).then_some(volume)
        };
        powers(usual, MOST).chain(smaller).find_map(fits)
    }

    /// A FAT of those bits and clusters of so many bytes.
    fn laid(topology: &Topology, (bits, cluster): (u64, u64)) -> Parameters {
        let (length, sector) = (topology.length, topology.sector.clamp(512, 4096));
        let boundary = boundary(topology, cluster);
        let (align, phase) =
            (boundary.map_or(cluster, |g| g.size()), boundary.map_or(0, |g| g.phase()));
        let rounded = is_whole(phase, cluster);
        let (step, whole) = if rounded { (cluster, sector * TRACK) } else { (sector, sector) };
        let (first, root) = (up(if bits == 32 { 32 } else { 1 } * sector, step), root(bits, step));
        let room =
            |reserved: u64| round_down(length, whole).saturating_sub(reserved.saturating_add(root));
        let tables = |reserved| TABLES * table(bits, sector, cluster, step, room(reserved));
        let (reserved, data) = place(first, (align, phase), root, tables);
        Parameters {
            bits,
            sector,
            cluster,
            reserved: reserved / sector,
            align,
            phase,
            rounded,
            data,
        }
    }

    /// The FAT12 or FAT16 of a card of `capacity` bytes, and the first byte of its partition. There
    /// is one reserved sector, and the partition begins where the clusters come out on a `unit`.
    /// `None` where none of the starts that are tried fits.
    pub fn of_card(capacity: u64, cluster: u64, unit: u64) -> Option<(Parameters, u64)> {
        let grain = Grain::new(unit, 0)?;
        let mut start = unit.checked_mul(2)?;
        // The tables get shorter as the partition does.
        for _ in 0..TRIES {
            let volume = Parameters::small(capacity.checked_sub(start)?, cluster, grain)?;
            let wanted = grain.shift(volume.data).next(unit)?;
            if wanted == start {
                return Some((Parameters { phase: grain.remainder(volume.data), ..volume }, start));
            }
            start = wanted;
        }
        None
    }

    /// The FAT12 or FAT16 of a volume of `length` bytes; `None` unless its clusters come out on
    /// `unit`.
    pub fn of_volume(length: u64, cluster: u64, unit: Grain) -> Option<Parameters> {
        Parameters::small(length, cluster, unit).filter(|p| unit.contains(p.data))
    }

    /// A FAT12 or FAT16 with one reserved sector, of sectors of 512 bytes; `None` if `length` bytes
    /// are too many or too few.
    fn small(length: u64, cluster: u64, unit: Grain) -> Option<Parameters> {
        let (sector, root) = (512, 512 * 32);
        [12, 16].into_iter().find_map(|bits| {
            let tables = TABLES
                * table(
                    bits,
                    sector,
                    cluster,
                    sector,
                    round_down(length, sector).checked_sub(sector + root)?,
                );
            let data = sector + tables + root;
            let clusters = length.checked_sub(data)? / cluster;
            let fits = if bits == 12 { 1..FAT16_LEAST } else { FAT16_LEAST..FAT32_LEAST };
            let p = Parameters {
                bits,
                sector,
                cluster,
                reserved: 1,
                align: unit.size(),
                phase: unit.phase(),
                rounded: false,
                data,
            };
            fits.contains(&clusters).then_some(p)
        })
    }

    /// Arguments of mkfs.fat, without the device.
    pub fn options(&self) -> Vec<String> {
        let pairs = [
            ("-F", self.bits),
            ("-S", self.sector),
            ("-s", self.cluster / self.sector),
            ("-R", self.reserved),
        ];
        let track = ["-g".to_owned(), format!("255/{TRACK}")];
        let as_said = (!self.rounded).then(|| "-a".to_owned());
        pairs
            .into_iter()
            .flat_map(|(option, n)| [option.to_owned(), n.to_string()])
            .chain(track)
            .chain(as_said)
            .collect()
    }
}

/// Bytes of reserved sectors, from `first` on, with which the data area begins on the boundary, and
/// its first byte. More reserved sectors make the `tables` shorter, so it takes a few tries, a
/// boundary further each.
fn place(
    first: u64,
    (align, phase): (u64, u64),
    root: u64,
    tables: impl Fn(u64) -> u64,
) -> (u64, u64) {
    let most = tables(first);
    let least = first.saturating_add(most).saturating_add(root);
    let least = Grain::new(align, phase).and_then(|g| g.next(least)).unwrap_or(least);
    for data in (0..TRIES).map(|n| least.saturating_add(n * align)) {
        let with = |tables: u64| data.saturating_sub(tables).saturating_sub(root);
        let shorter = tables(with(most));
        if let Some(taken) = [most, shorter].into_iter().find(|&taken| tables(with(taken)) == taken)
        {
            return (with(taken), data);
        }
    }
    (first, first.saturating_add(most).saturating_add(root))
}

/// The cluster in bytes that a volume of this length gets if nothing else is said: at least the
/// unit.
fn usual(topology: &Topology) -> u64 {
    let usual = match topology.length >> 30 {
        0..8 => PAGE,
        8..16 => 2 * PAGE,
        16..32 => 4 * PAGE,
        _ => 8 * PAGE,
    };
    // A card's own cluster is 32 KiB; small cards have fewer clusters than FAT32 needs, and stay
    // with the usual size.
    let flash = fact(topology, Why::Erase).is_some() && topology.length > 2 << 30;
    let least = unit_size(topology).max(if flash { 8 * PAGE } else { usual });
    powers(PAGE, MOST).find(|&cluster| cluster >= least).unwrap_or(MOST)
}

/// Boundary of the data area for such clusters: the first of [`FAR`] that can be reached, else the
/// cluster, and the unit where that is larger.
fn boundary(topology: &Topology, cluster: u64) -> Option<Grain> {
    let (length, sector) = (topology.length, topology.sector.clamp(512, 4096));
    let whole = |grain: &Grain| is_whole(grain.phase(), sector);
    let mut far = FAR.iter().filter_map(|&why| fact(topology, why).map(|f| f.grain)).filter(whole);
    let near = super::unit(topology).map(|f| f.grain).filter(whole);
    let beyond =
        near.filter(|g| g.size() > cluster && g.size() <= MOST && is_whole(g.size(), cluster));
    let far =
        far.find(|g| g.size() <= REACH && g.size() <= length / 8 && is_whole(g.size(), cluster));
    far.or(beyond).or_else(|| Grain::new(cluster, near.map_or(0, |g| g.phase())))
}

/// Bits of an entry of the FAT that such clusters come to; `None` if that depends on the tables.
fn kind(topology: &Topology, cluster: u64) -> Option<u64> {
    bits(topology.length, cluster, boundary(topology, cluster).map_or(cluster, |g| g.size()))
}

/// Bits of an entry of the FAT that a volume of `length` bytes gets, whatever its tables take;
/// `None` if that depends.
fn bits(length: u64, cluster: u64, align: u64) -> Option<u64> {
    let (most, least) =
        (length / cluster, (length / cluster).saturating_sub(MARGIN + align / cluster));
    match () {
        () if least >= FAT32_LEAST => Some(32),
        () if most < FAT32_LEAST && least >= FAT16_LEAST => Some(16),
        () if most < FAT16_LEAST => Some(12),
        () => None,
    }
}

/// Bytes of the root directory before the clusters, which FAT32 lacks: 512 entries of 32 bytes, in
/// whole steps.
fn root(bits: u64, step: u64) -> u64 {
    if bits == 32 { 0 } else { up(512 * 32, step) }
}

/// Bytes of one table, in whole steps, where there is `room` for all of them and the clusters.
fn table(bits: u64, sector: u64, cluster: u64, step: u64, room: u64) -> u64 {
    // Every cluster costs its bits and an entry in each table; two entries stand for no cluster.
    let clusters =
        room.saturating_mul(8).saturating_add(TABLES * 2 * bits) / (8 * cluster + TABLES * bits);
    up(up(((clusters + 2) * bits).div_ceil(8), sector), step)
}

pub(super) struct Fat;

impl Layer for Fat {
    fn in_image(&self, _disk: &Topology) -> bool {
        true
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        lay_with(Parameters::for_topology(&base.topology), base, plan)
    }
}

/// Adds the choices of a FAT with the parameters `p`.
pub(super) fn lay_with(p: Parameters, base: &LayerBase, plan: &mut Plan) -> LayerBase {
    let t = &base.topology;
    plan.choose(
        Choice::new("vfat", "sector", Value::Bytes(p.sector), "the device's logical sector")
            .typed(format!("-S {}", p.sector)),
    );
    // The clusters lie behind the tables, on a boundary wherever the volume itself begins.
    let clusters = t.shift(p.data, t.length.saturating_sub(p.data));
    let price = |cluster| Price::amplified(written(&clusters, cluster, cluster)).tail(cluster);
    let why = format!(
        "at least the {}; what cameras and firmware expect of a volume of this size",
        describe_unit(t)
    );
    let sectors = p.cluster / p.sector;
    let mut cluster = Choice::new("vfat", "cluster", Value::Bytes(p.cluster), why)
        .typed(format!("-s {sectors}"))
        .costing(price(p.cluster));
    for other in powers(PAGE, MOST).filter(|&other| other != p.cluster) {
        cluster = cluster.or(
            Value::Bytes(other),
            price(other),
            if other < p.cluster { "less lost at the ends of files" } else { "smaller tables" },
        );
    }
    plan.choose(cluster);
    let erase = fact(t, Why::Erase);
    let far = FAR
        .iter()
        .filter_map(|&why| fact(t, why))
        .find(|f| f.grain.size() == p.align && f.grain.phase() == p.phase);
    let why = match far {
        Some(f) => {
            format!("the data area, behind two tables, begins at {} on the {}", p.data, describe(f))
        }
        None => {
            format!("the data area, behind two tables, begins at {} on a whole cluster", p.data)
        }
    };
    let reserved = Choice::new("vfat", "reserved", Value::Count(p.reserved, "sectors"), why)
        .typed(format!("-R {}", p.reserved));
    plan.choose(
        reserved.costing(Price::amplified(1.0).losing(p.reserved * p.sector, "reserved sectors")),
    );
    if let Some(f) = erase.filter(|f| f.grain.size() != p.align) {
        plan.note(format!(
            "vfat: the data area is not on the {}: 16 bits of reserved sectors, or the volume, do not reach it",
            describe(f)
        ));
    }
    if t.length / p.sector > u64::from(u32::MAX) {
        plan.note(format!(
            "vfat: it counts sectors in 32 bits: a volume of {} bytes is too large",
            t.length
        ));
    }
    if unit_size(t) > MOST {
        plan.note(format!(
            "vfat: a cluster is at most {MOST} bytes: the unit of {} is not reached",
            unit_size(t)
        ));
    }
    base.make("vfat", "mkfs.vfat", &p.options(), plan);
    base.mount(plan);
    base.with_files("/mnt", Files { system: "vfat", grid: p.cluster, whole_blocks: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fat_that_is_asked_for_has_the_clusters_of_its_kind() {
        let mut made = 0;
        for kib in (8 << 10..300 << 10).step_by(64) {
            let topology = Topology::new(512, kib << 10);
            for (bits, clusters) in [(32, FAT32_LEAST..u64::MAX), (16, FAT16_LEAST..FAT32_LEAST)] {
                let Some(volume) = Parameters::of_bits(&topology, bits, 0) else { continue };
                let count = (topology.length - volume.data) / volume.cluster;
                assert!(
                    clusters.contains(&count),
                    "{kib} KiB, FAT{bits}: {count} clusters of {}",
                    volume.cluster
                );
                made += 1;
            }
        }
        assert!(made > 1000, "{made}");
    }
}
