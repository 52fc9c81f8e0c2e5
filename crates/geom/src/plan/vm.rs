//! Images of virtual machines: the format, its clusters, and the limits that the guest's disk
//! reports, so that the guest aligns by itself.
//!
//! # Sources
//! QEMU `docs/interop/qcow2.rst`: a cluster of 512 bytes to 2 MiB, an entry of 8 bytes for each, 16
//! with `extended_l2`, which divides it into 32 subclusters and takes 16 KiB or more;
//! `docs/qcow2-cache.txt`. virtio-blk's `logical_block_size`, `physical_block_size` (512 bytes to 2
//! MiB), `min_io_size`, `opt_io_size`, `discard_granularity`: `qemu-system-x86_64 -device
//! virtio-blk-pci,help`.

use super::{
    Above, Choice, Layer, LayerBase, PAGE, Plan, Price, Value, describe_unit, fact, power, short,
    unit_size,
};
use crate::base::topology::{Fact, Grain, Source, Topology, Trust, Why, round_down};

/// Default cluster of qemu-img, in bytes.
const CLUSTER: u64 = 65536;
const MOST: u64 = 2 << 20;
const SUBCLUSTERS: u64 = 32;

pub(super) struct Images;

impl Layer for Images {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let physical = power(unit_size(t), MOST).max(PAGE);
        let length = round_down(t.length / 2, 1 << 30).max(1 << 30);
        let cluster = match &base.files {
            Some(_) => {
                let cluster = clusters(t, physical, length, plan);
                let directory = base.arguments();
                plan.run(format!(
                    "qemu-img create -f qcow2 -o cluster_size={},extended_l2=on,preallocation=metadata {directory}/guest.qcow2 {length}",
                    short(cluster)
                ));
                Some(cluster)
            }
            None => {
                let why =
                    "a device of its own needs no format: what is aligned in it is aligned beneath";
                plan.choose(
                    Choice::new("vm-images", "format", Value::word("raw"), why).typed("format=raw"),
                );
                None
            }
        };
        if base.files.as_ref().is_some_and(|f| f.system == "btrfs") {
            plan.run(format!("chattr +C {}", base.arguments()));
            plan.note(
                "vm-images: chattr +C keeps Btrfs from copying every block written (and from \
                checksumming it); only for files made after it",
            );
        }
        guest(t, physical, cluster, length, base, plan)
    }
}

/// Adds the choice of qcow2's cluster, in bytes, with subclusters of a unit: the first write to one
/// copies no more.
fn clusters(t: &Topology, physical: u64, length: u64, plan: &mut Plan) -> u64 {
    let cluster = (SUBCLUSTERS * physical).clamp(16 << 10, MOST);
    let first = |piece: u64| f64::from(u32::try_from(piece.max(PAGE) / PAGE).unwrap_or(u32::MAX));
    let tables = |cluster: u64, entry: u64, piece: u64| {
        Price::amplified(first(piece))
            .losing((length / cluster).saturating_mul(entry), "tables that map the whole image")
    };
    let why = format!(
        "32 subclusters of {}: the first 4096-byte write over a backing file copies one; {}",
        cluster / SUBCLUSTERS,
        describe_unit(t)
    );
    let choice = Choice::new("vm-images", "cluster", Value::Bytes(cluster), why)
        .typed(format!("cluster_size={},extended_l2=on", short(cluster)))
        .costing(tables(cluster, 16, cluster / SUBCLUSTERS))
        .or(
            Value::Bytes(CLUSTER),
            tables(CLUSTER, 8, CLUSTER),
            "the default, without extended_l2: copies a whole cluster",
        )
        .or(
            Value::Bytes(MOST),
            tables(MOST, 8, MOST),
            "without extended_l2: the smallest tables, the largest copies",
        );
    plan.choose(choice.or(
        Value::word("raw"),
        Price::amplified(1.0),
        "qemu-img create -f raw -o preallocation=falloc: no tables, no copies, no snapshots",
    ));
    let why = "tables are written beforehand, so a write in place touches nothing else";
    let preallocation = Choice::new("vm-images", "preallocation", Value::word("metadata"), why)
        .typed("preallocation=metadata");
    plan.choose(preallocation.costing(tables(cluster, 16, PAGE)).or(
        Value::word("falloc"),
        Price::amplified(1.0).losing(length, "taken at once"),
        "also keeps the file in one piece",
    ));
    cluster
}

/// Adds the choices of the limits that the guest's disk reports; returns that disk as a base.
fn guest(
    t: &Topology,
    physical: u64,
    cluster: Option<u64>,
    length: u64,
    base: &LayerBase,
    plan: &mut Plan,
) -> LayerBase {
    let sector = t.sector.min(physical);
    let why = format!("the guest aligns to what its disk says: the {}", describe_unit(t));
    let choice = Choice::new("vm-images", "guest physical block", Value::Bytes(physical), why)
        .typed(format!("physical_block_size={physical}"));
    // A guest that sees 512-byte sectors may write them.
    let told = super::amplification(512, 512, physical, 0).unwrap_or(1.0);
    plan.choose(choice.or(
        Value::Bytes(512),
        Price::amplified(told),
        "QEMU's own: the guest may write single sectors",
    ));
    let why = "what the image lies on; 4096 would keep a guest from ever writing less, but not \
        every one boots from it";
    plan.choose(
        Choice::new("vm-images", "guest logical block", Value::Bytes(sector), why)
            .typed(format!("logical_block_size={sector}")),
    );
    let mut device = format!(
        "virtio-blk-pci,drive=guest,logical_block_size={sector},physical_block_size={physical}"
    );
    let row = fact(t, Why::FullStripe)
        .or_else(|| fact(t, Why::Row))
        .map(|f| f.grain.size())
        .filter(|&row| u32::try_from(row).is_ok());
    if let Some((chunk, row)) =
        fact(t, Why::Chunk).map(|f| f.grain.size()).zip(row).filter(|_| base.files.is_none())
    {
        device += &format!(",min_io_size={chunk},opt_io_size={row}");
    }
    if let Some(cluster) = cluster {
        device += &format!(",discard_granularity={cluster}");
    }
    let of = |size, why| {
        Grain::new(size, 0).map(|grain| Fact {
            grain,
            why,
            source: Source::Image,
            trust: Trust::Trusted,
        })
    };
    let mut top = Topology::new(sector, length);
    top.facts.extend(
        of(physical, Why::Physical).into_iter().chain(cluster.and_then(|c| of(c, Why::Cluster))),
    );
    if let Some(start) = super::partition::grain(&top).0.and_then(|g| g.next(1 << 20)) {
        let why = "in the guest, on whole clusters of the image";
        plan.choose(
            Choice::new("vm-images", "guest start", Value::Bytes(start), why)
                .typed(format!("start={}", start / sector)),
        );
    }
    let (file, format) = match &base.files {
        Some(_) => (format!("{}/guest.qcow2", base.arguments()), "qcow2"),
        None => (base.arguments(), "raw"),
    };
    plan.run(format!(
        "qemu-system-x86_64 -drive \
        if=none,id=guest,file={file},format={format},cache=none,discard=unmap -device {device}"
    ));
    LayerBase::disk(top, vec!["/dev/vda".into()])
}
