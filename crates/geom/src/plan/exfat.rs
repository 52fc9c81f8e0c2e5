//! exFAT: cluster, and the boundary on which its table and its clusters begin.
//!
//! # Sources
//! mkfs.exfat(8) (exfatprogs 1.2): `-c`, `-b`, and its table of the SD Card Association's clusters
//! and boundary units by capacity.

use super::card::card;
use super::{
    Above, Choice, Files, Layer, LayerBase, PAGE, Plan, Price, Value, describe, describe_unit,
    fact, powers, unit_size, written,
};
use crate::base::topology::{Topology, Why};

/// Largest cluster of the format, in bytes.
const MOST: u64 = 32 << 20;
/// Default boundary of mkfs.exfat, in bytes.
const BOUNDARY: u64 = 1 << 20;

/// Parameters of mkfs.exfat, as `-c` and `-b` take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Cluster size in bytes, a power of two.
    pub cluster: u64,
    /// Boundary on which the table and the clusters begin, in bytes.
    pub boundary: u64,
}

impl Parameters {
    /// A card's own sizes on flash that names its erase unit; else the defaults of mkfs.exfat, and
    /// at least the unit.
    pub fn for_topology(topology: &Topology) -> Parameters {
        let (length, unit) = (topology.length, unit_size(topology));
        let erase = fact(topology, Why::Erase)
            .map(|f| f.grain.size())
            .filter(|size| size.is_power_of_two());
        let usual = match (erase, length) {
            (Some(_), _) => card(length).0,
            (None, 0..=0x1000_0000) => PAGE,
            (None, 0x1000_0001..=0x8_0000_0000) => 8 * PAGE,
            (None, _) => 32 * PAGE,
        };
        let cluster =
            powers(PAGE, MOST).find(|&cluster| cluster >= usual.max(unit)).unwrap_or(MOST);
        let boundary = erase.unwrap_or(BOUNDARY).max(cluster);
        // The table and the clusters each begin on one, so a small volume cannot have it.
        let boundary = if boundary <= length / 8 { boundary } else { cluster };
        Parameters { cluster, boundary }
    }

    /// Arguments of mkfs.exfat: `-c` and `-b`, in bytes.
    pub fn options(&self) -> Vec<String> {
        ["-c".to_owned(), self.cluster.to_string(), "-b".to_owned(), self.boundary.to_string()]
            .into()
    }
}

pub(super) struct Exfat;

impl Layer for Exfat {
    /// True for sectors of 512 bytes: mkfs.exfat takes others from a device alone.
    fn in_image(&self, disk: &Topology) -> bool {
        disk.sector == 512
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let p = Parameters::for_topology(t);
        let price = |cluster| Price::amplified(written(t, cluster, cluster)).tail(cluster);
        let erase = fact(t, Why::Erase);
        let why = match erase {
            Some(_) => format!(
                "what the SD Card Association has for this capacity; at least the {}",
                describe_unit(t)
            ),
            None => format!("mkfs.exfat's for this size; at least the {}", describe_unit(t)),
        };
        let mut cluster = Choice::new("exfat", "cluster", Value::Bytes(p.cluster), why)
            .typed(format!("-c {}", p.cluster))
            .costing(price(p.cluster));
        for other in [PAGE, 8 * PAGE, 32 * PAGE].into_iter().filter(|&other| other != p.cluster) {
            cluster = cluster.or(
                Value::Bytes(other),
                price(other),
                if other < p.cluster { "less lost at the ends of files" } else { "smaller table" },
            );
        }
        plan.choose(cluster);
        let why = match erase.filter(|f| f.grain.size() == p.boundary) {
            Some(f) => format!("the table and the clusters begin on the {}", describe(f)),
            None => "the table and the clusters begin on it".to_owned(),
        };
        let space = Price::amplified(1.0).losing(2 * p.boundary, "before and behind the table");
        let mut boundary = Choice::new("exfat", "boundary", Value::Bytes(p.boundary), why)
            .typed(format!("-b {}", p.boundary))
            .costing(space);
        let unit = card(t.length).1;
        if erase.is_some() && unit != p.boundary {
            let price = Price::amplified(1.0).losing(2 * unit, "before and behind the table");
            boundary = boundary.or(
                Value::Bytes(unit),
                price,
                "the SD Card Association's boundary unit for this capacity",
            );
        }
        plan.choose(boundary);
        if let Some(f) = erase.filter(|f| f.grain.size() > p.boundary) {
            plan.note(format!(
                "exfat: on a volume this small the clusters do not begin on the {}",
                describe(f)
            ));
        }
        if super::unit(t).is_some_and(|f| f.grain.phase() != 0) {
            plan.note(
                "exfat: mkfs.exfat counts its boundary from byte 0 of the disk, so it cannot \
                follow a phase: check the result",
            );
        }
        base.make("exfat", "mkfs.exfat", &p.options(), plan);
        base.mount(plan);
        base.with_files("/mnt", Files { system: "exfat", grid: p.cluster, whole_blocks: false })
    }
}
