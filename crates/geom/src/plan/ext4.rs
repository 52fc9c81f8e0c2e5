//! ext4: blocks, and the set beneath as stride and stripe width.
//!
//! # Sources
//! mke2fs(8): `-b` (powers of two from 1024; the kernel mounts no more than its page), `-E
//! stride=`, `stripe_width=` in blocks, `-C` (bigalloc).

use super::{
    Above, Choice, Files, Layer, LayerBase, PAGE, Plan, Price, Value, describe_unit, powers,
    stripe, unit_size, written,
};
use crate::base::topology::{Topology, is_whole};

/// Parameters of mke2fs for ext4, as `-b`, `-E` and `-C` take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Block size in bytes, a power of two.
    pub block: u64,
    /// Blocks in a chunk of the set beneath; `None` without one that fits.
    pub stride: Option<u64>,
    /// Blocks in a row of that set; `None` without one that fits.
    pub stripe_width: Option<u64>,
    /// Cluster size in bytes, where space is allocated in more than blocks (bigalloc).
    pub cluster: Option<u64>,
}

impl Parameters {
    /// Blocks of the page, or of the sector if that is larger; the set, if the file system begins
    /// on one of its chunks.
    pub fn for_topology(topology: &Topology) -> Parameters {
        let block = topology.sector.clamp(PAGE, 65536);
        let set = stripe(topology).filter(|s| s.off == 0 && is_whole(s.chunk, block));
        let stripe_width = set.and_then(|s| s.row).map(|row| row / block);
        Parameters { block, stride: set.map(|s| s.chunk / block), stripe_width, cluster: None }
    }

    /// Arguments of mke2fs, without the device.
    pub fn options(&self) -> Vec<String> {
        let mut options = vec!["-b".to_owned(), self.block.to_string()];
        let pairs = [("stride", self.stride), ("stripe_width", self.stripe_width)];
        let extended: Vec<String> =
            pairs.into_iter().filter_map(|(name, n)| Some(format!("{name}={}", n?))).collect();
        if !extended.is_empty() {
            options.extend(["-E".to_owned(), extended.join(",")]);
        }
        if let Some(cluster) = self.cluster {
            options.extend([
                "-O".to_owned(),
                "bigalloc".to_owned(),
                "-C".to_owned(),
                cluster.to_string(),
            ]);
        }
        options
    }
}

pub(super) struct Ext4;

impl Layer for Ext4 {
    fn in_image(&self, _disk: &Topology) -> bool {
        true
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let p = Parameters::for_topology(t);
        // Writes are of blocks, whatever size is allocated; a cluster only costs space.
        let price = |cluster| Price::amplified(written(t, p.block, p.block)).tail(cluster);
        let mut block = Choice::new(
            "ext4",
            "block",
            Value::Bytes(p.block),
            format!("the largest that every kernel mounts; {}", describe_unit(t)),
        )
        .typed(format!("-b {}", p.block))
        .costing(price(p.block));
        for cluster in powers(p.block * 2, unit_size(t).min(1 << 20)) {
            let (now, then) = (written(t, cluster, p.block), written(t, cluster, cluster));
            let why = format!(
                "-O bigalloc -C {cluster}: space in clusters, blocks as before; {cluster} bytes written at once cost {then:.2}, not {now:.2}"
            );
            block = block.or(Value::Bytes(cluster), price(cluster), why);
        }
        if p.block > PAGE {
            plan.note(format!(
                "ext4: blocks of {} bytes, the device's sector, need a kernel with \
                pages or block sizes as large",
                p.block
            ));
        }
        plan.choose(block);
        if let Some((stride, s)) = p.stride.zip(stripe(t)) {
            let why = format!(
                "the set's chunk of {} bytes: bitmaps are spread over all members",
                s.chunk
            );
            plan.choose(
                Choice::new("ext4", "stride", Value::Count(stride, "blocks"), why)
                    .typed(format!("-E stride={stride}")),
            );
        }
        if let Some((width, row)) = p.stripe_width.zip(stripe(t).and_then(|s| s.row)) {
            let why = format!("a row of {row} bytes of data: large files are placed in whole rows");
            plan.choose(
                Choice::new("ext4", "stripe width", Value::Count(width, "blocks"), why)
                    .typed(format!("-E stripe_width={width}")),
            );
        }
        untold(t, p.stride.is_some(), "ext4", p.block, plan);
        base.make("ext4", "mkfs.ext4", &p.options(), plan);
        base.mount(plan);
        base.with_files("/mnt", Files { system: "ext4", grid: p.block, whole_blocks: false })
    }
}

/// Adds a note with the reason for which a file system is not told of the set beneath it.
pub(super) fn untold(topology: &Topology, told: bool, layer: &str, block: u64, plan: &mut Plan) {
    let Some(set) = stripe(topology).filter(|_| !told) else { return };
    if set.off > 0 {
        plan.note(format!(
            "{layer}: it begins {} bytes into a chunk of {} and counts chunks from its own byte \
                0, so it is not given the set's chunk",
            set.off, set.chunk
        ));
    } else {
        plan.note(format!(
            "{layer}: a chunk of {} bytes is not whole blocks of {block}, so it is \
            not given the set's chunk",
            set.chunk
        ));
    }
}
