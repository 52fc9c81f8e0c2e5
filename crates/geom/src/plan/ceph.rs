//! A Ceph OSD: BlueStore's smallest allocation, at least the unit.
//!
//! # Sources
//! Ceph, BlueStore configuration reference: `bluestore_min_alloc_size_ssd` and `_hdd` (4096 since
//! Pacific, fixed when an OSD is made), `bluestore_prefer_deferred_size` (smaller writes go to the
//! log first); ceph-volume(8), `lvm create`.

use super::{
    Above, Choice, Layer, LayerBase, PAGE, Plan, Price, Value, describe_unit, power, powers,
    unit_size, written,
};

/// Largest useful allocation in bytes: above it small objects are mostly padding.
const MOST: u64 = 64 << 10;

pub(super) struct Osd;

impl Layer for Osd {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let size = power(unit_size(t), MOST).max(PAGE);
        let price = |size| {
            Price::amplified(written(t, size, size))
                .losing(size / 2, "the end of an average object")
        };
        let why = format!(
            "the smallest piece that is written in place of none; fixed once the OSD is made; {}",
            describe_unit(t)
        );
        let typed = |size| format!("bluestore_min_alloc_size={size}");
        let mut choice = Choice::new("ceph-osd", "smallest allocation", Value::Bytes(size), why)
            .typed(typed(size))
            .costing(price(size));
        for other in powers(PAGE, MOST).filter(|&other| other != size && other <= 4 * size) {
            choice = choice.or(
                Value::Bytes(other),
                price(other),
                if other < size { "Ceph's own; parts of a unit" } else { "large objects alone" },
            );
        }
        plan.choose(choice);
        plan.run(format!("ceph config set osd bluestore_min_alloc_size {size}"));
        plan.run(format!("ceph-volume lvm create --bluestore --data {}", base.arguments()));
        plan.note(
            "ceph-osd: a device is best given whole or as a logical volume; erasure coding \
            cuts objects again, by stripe_unit, which is to be whole allocations",
        );
        LayerBase::device(t.clone(), "osd")
    }
}
