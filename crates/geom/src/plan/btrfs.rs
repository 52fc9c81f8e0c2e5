//! Btrfs: sector and node.
//!
//! # Sources
//! mkfs.btrfs(8): `-s` (the page, or the kernel may not mount it), `-n` (a power of two, 64 KiB at
//! most, 16 KiB by default).

use super::{
    Above, Choice, Files, Layer, LayerBase, PAGE, Plan, Price, Value, describe_unit, powers,
    unit_size, written,
};
use crate::base::topology::Topology;

/// Parameters of mkfs.btrfs, for one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Smallest piece of data, in bytes.
    pub sector: u64,
    /// Block of a tree, in bytes.
    pub node: u64,
}

impl Parameters {
    /// Sectors of the page; nodes of at least the unit, up to 64 KiB.
    pub fn for_topology(topology: &Topology) -> Parameters {
        let sector = topology.sector.clamp(PAGE, 65536);
        let unit = unit_size(topology);
        let node = powers(16384, 65536).find(|&node| node >= unit).unwrap_or(65536);
        Parameters { sector, node: node.max(sector) }
    }

    /// Arguments of mkfs.btrfs: `-s` and `-n`, in bytes.
    pub fn options(&self) -> Vec<String> {
        ["-s".to_owned(), self.sector.to_string(), "-n".to_owned(), self.node.to_string()].into()
    }
}

pub(super) struct Btrfs;

impl Layer for Btrfs {
    fn in_image(&self, _disk: &Topology) -> bool {
        true
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let p = Parameters::for_topology(&base.topology);
        choices(p, base, plan);
        base.make("btrfs", "mkfs.btrfs", &p.options(), plan);
        base.mount(plan);
        base.with_files("/mnt", Files { system: "btrfs", grid: p.sector, whole_blocks: false })
    }
}

/// Adds the choices that every profile has.
pub(super) fn choices(p: Parameters, base: &LayerBase, plan: &mut Plan) {
    let t = &base.topology;
    let sector = Choice::new(
        "btrfs",
        "sector",
        Value::Bytes(p.sector),
        format!("the page: other kernels may not mount another; {}", describe_unit(t)),
    )
    .typed(format!("-s {}", p.sector))
    .costing(Price::amplified(written(t, p.sector, p.sector)).tail(p.sector));
    plan.choose(sector);
    let price = |node: u64| {
        Price::amplified(written(t, node, node))
            .losing(node / 4, "an average node, three quarters full")
    };
    let why = format!("trees are written in whole nodes, on the {}", describe_unit(t));
    let mut node = Choice::new("btrfs", "node", Value::Bytes(p.node), why)
        .typed(format!("-n {}", p.node))
        .costing(price(p.node));
    for other in powers(p.sector, 65536).filter(|&other| other != p.node) {
        node = node.or(
            Value::Bytes(other),
            price(other),
            if other < p.node {
                "less to copy on a small change"
            } else {
                "flatter trees, more to copy"
            },
        );
    }
    plan.choose(node);
    if super::stripe(t).is_some() {
        plan.note(
            "btrfs: it takes no parameters of the set beneath it; its own chunks of data \
            begin on multiples of 64 KiB",
        );
    }
}
