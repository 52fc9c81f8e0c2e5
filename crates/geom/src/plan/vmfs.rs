//! VMFS: ESXi's file system for images. Its blocks are 1 MiB, so the partition's start is the only
//! choice.
//!
//! # Sources
//! VMware vSphere Storage, "Understanding VMFS datastores": VMFS6 has blocks of 1 MiB, and needs
//! 512n or 512e (4Kn as 512e by software since ESXi 6.7); partitions begin at LBA 2048;
//! vmkfstools(1) `-C vmfs6 -S`.

use super::{
    Above, Choice, Files, Layer, LayerBase, Plan, Price, Value, describe_all, unit_size, written,
};

const BLOCK: u64 = 1 << 20;

pub(super) struct Vmfs;

impl Layer for Vmfs {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let why = format!("VMFS6's only one; whole units of the {}", describe_all(t));
        let choice = Choice::new("vmfs", "block", Value::Bytes(BLOCK), why).typed("-C vmfs6");
        plan.choose(choice.costing(Price::amplified(written(t, BLOCK, BLOCK)).tail(BLOCK)));
        if unit_size(t) > 4096 {
            plan.note(format!(
                "vmfs: a guest writes 4096 bytes in the middle of a block: parts of the unit of {}",
                unit_size(t)
            ));
        }
        if t.sector > 512 {
            plan.note(format!(
                "vmfs: sectors of {} bytes need ESXi 6.7 or later, which shows them as 512",
                t.sector
            ));
        }
        plan.run("DEVICE=/vmfs/devices/disks/...  # on the ESXi host: the same disk");
        plan.run("vmkfstools -C vmfs6 -S data $DEVICE:1");
        base.with_files(
            "/vmfs/volumes/data",
            Files { system: "vmfs", grid: BLOCK, whole_blocks: false },
        )
    }
}
