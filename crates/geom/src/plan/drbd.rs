//! DRBD: metadata at the end, so that its device begins where the one below does.
//!
//! # Sources
//! drbd.conf(5): `meta-disk internal`; DRBD 9 user's guide, "DRBD internals": internal metadata lie
//! in the last part of the device, a bit for 4 KiB and peer, an activity log of 4 KiB transactions;
//! drbdadm(8).

use super::{
    Above, Choice, Layer, LayerBase, PAGE, Plan, Price, Value, describe_unit, up, written,
};
use crate::base::topology::round_down;

/// Bytes of data that one byte of bitmap covers: a bit for 4 KiB.
const MAPPED: u64 = 8 * 4096;
/// Bytes of the activity log and the superblock.
const FIXED: u64 = 72 << 10;

pub(super) struct Drbd;

impl Layer for Drbd {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let meta = up((t.length / MAPPED).saturating_add(FIXED), PAGE);
        let why = "at the end: data begin with the device below, so whatever is on the grain there \
            is on it here";
        let choice = Choice::new("drbd", "metadata", Value::word("internal"), why)
            .typed("meta-disk internal");
        let log = Price::amplified(written(t, PAGE, PAGE))
            .losing(meta, "bitmap for one peer, activity log");
        plan.choose(choice.costing(log).or(
            Value::word("external"),
            Price::amplified(1.0),
            "on a device of small units: each change of what is active writes 4 KiB",
        ));
        let why = format!(
            "extents of 4 MiB that may be written without a note in the log: more are fewer writes of {PAGE} bytes; {}",
            describe_unit(t)
        );
        let extents = Choice::new("drbd", "activity log", Value::Count(6433, "extents"), why)
            .typed("al-extents 6433");
        plan.choose(extents.or(
            Value::Count(1237, "extents"),
            Price::amplified(1.0),
            "drbd's own: less to copy after a crash",
        ));
        // In double quotes: the device may be a shell variable.
        let device = base.arguments();
        plan.run("mkdir -p /etc/drbd.d");
        plan.run(format!(
            "printf '%s\\n' 'resource data {{' \"device /dev/drbd0; disk {device}; meta-disk internal;\" 'disk {{ al-extents 6433; }}' 'on HOST1 {{ address 192.0.2.1:7789; }}' 'on HOST2 {{ address 192.0.2.2:7789; }}' '}}' > /etc/drbd.d/data.res"
        ));
        plan.note(
            "drbd: HOST1, HOST2 and their addresses are for you to fill in; the rest on \
            both, and primary on one alone",
        );
        plan.run("drbdadm create-md data");
        plan.run("drbdadm up data");
        plan.run("drbdadm primary --force data");
        let length = round_down(t.length.saturating_sub(meta), PAGE);
        LayerBase::device(t.shift(0, length), "/dev/drbd0")
    }
}
