//! GELI, FreeBSD's encryption: its sector. Metadata are in the last sector, so its device begins
//! with the one below.
//!
//! # Sources
//! geli(8): `init -s` (the device's by default; more is faster, and 4096 is advised), metadata in
//! the last sector; `-l 256`.

use super::{
    Above, Choice, Host, Layer, LayerBase, PAGE, Plan, Price, Value, describe_unit, unit_size,
    written,
};
use crate::base::topology::{Topology, round_down};

pub(super) struct Geli;

impl Layer for Geli {
    fn host(&self) -> Host {
        Host::FreeBsd
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let sector = unit_size(t).clamp(t.sector.max(512), PAGE.max(t.sector));
        let sector = if sector.is_power_of_two() { sector } else { PAGE };
        let price = |size| Price::amplified(written(t, size, size));
        let why = format!("no write below the {}, and fewer keys to set up", describe_unit(t));
        let mut choice = Choice::new("geli", "sector", Value::Bytes(sector), why)
            .typed(format!("-s {sector}"))
            .costing(price(sector));
        if sector != t.sector {
            choice = choice.or(
                Value::Bytes(t.sector),
                price(t.sector),
                "the device's own, geli's default",
            );
        }
        plan.choose(choice);
        let device = base.arguments();
        plan.run(format!("geli init -s {sector} {device}"));
        plan.run(format!("geli attach {device}"));
        let length = round_down(t.length.saturating_sub(sector), sector);
        let below = Topology { sector, ..t.shift(0, length) };
        LayerBase {
            topology: below,
            names: vec![format!("{device}.eli")],
            whole: false,
            ..base.clone()
        }
    }
}
