//! NTFS: sector and cluster.
//!
//! # Sources
//! mkntfs(8): `-s` (256 to 4096), `-c` (powers of two up to 2 MiB; above 4096 nothing is
//! compressed), `-p`. Clusters above 64 KiB need Windows 10 1709 or later.

use super::{
    Above, Choice, Files, Layer, LayerBase, PAGE, Plan, Price, Value, describe_unit, powers,
    unit_size, written,
};
use crate::base::topology::Topology;

/// Largest cluster in bytes that every Windows reads.
const MOST: u64 = 65536;

/// Parameters of mkntfs, as `-s` and `-c` take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Logical sector in bytes, 512 to 4096.
    pub sector: u64,
    /// Cluster size in bytes, a power of two.
    pub cluster: u64,
}

impl Parameters {
    /// Sectors of the device, which Windows asks for, and clusters of at least the unit.
    pub fn for_topology(topology: &Topology) -> Parameters {
        let unit = unit_size(topology);
        let cluster = powers(PAGE, MOST).find(|&cluster| cluster >= unit).unwrap_or(MOST);
        Parameters { sector: topology.sector.clamp(512, 4096), cluster }
    }

    /// Arguments of mkntfs: `-s` and `-c`, in bytes.
    pub fn options(&self) -> Vec<String> {
        ["-s".to_owned(), self.sector.to_string(), "-c".to_owned(), self.cluster.to_string()].into()
    }
}

pub(super) struct Ntfs;

impl Layer for Ntfs {
    fn in_image(&self, _disk: &Topology) -> bool {
        true
    }

    fn lay(&self, base: &LayerBase, above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let p = Parameters::for_topology(t);
        let p = Parameters {
            cluster: above.extent.map_or(p.cluster, |extent| p.cluster.max(extent)),
            ..p
        };
        plan.choose(
            Choice::new("ntfs", "sector", Value::Bytes(p.sector), "the device's logical sector")
                .typed(format!("-s {}", p.sector)),
        );
        let price = |cluster| Price::amplified(written(t, cluster, cluster)).tail(cluster);
        let mut cluster = Choice::new(
            "ntfs",
            "cluster",
            Value::Bytes(p.cluster),
            match above.extent.zip(above.name) {
                Some((extent, name)) => format!(
                    "{name} hands out {extent} bytes at a time; at least the {}",
                    describe_unit(t)
                ),
                None => format!(
                    "at least the {}; counted from byte 0 of the partition",
                    describe_unit(t)
                ),
            },
        )
        .typed(format!("-c {}", p.cluster))
        .costing(price(p.cluster));
        for other in powers(PAGE, MOST)
            .filter(|&other| other != p.cluster && other <= unit_size(t).max(16384))
        {
            cluster = cluster.or(
                Value::Bytes(other),
                price(other),
                if other > PAGE {
                    "no compression"
                } else {
                    "the default; files can be compressed"
                },
            );
        }
        plan.choose(cluster);
        if unit_size(t) > MOST {
            plan.note(format!(
                "ntfs: clusters above {MOST} bytes are not read by every Windows: the unit of {} is not reached",
                unit_size(t)
            ));
        }
        base.make("ntfs", "mkntfs -Q", &p.options(), plan);
        base.mount(plan);
        base.with_files("/mnt", Files { system: "ntfs", grid: p.cluster, whole_blocks: false })
    }
}
