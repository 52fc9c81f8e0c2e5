//! LUKS: its sector, and the offset of its data.
//!
//! # Sources
//! cryptsetup-luksFormat(8): `--sector-size` (512 to 4096, LUKS2), `--offset` (in sectors of 512
//! bytes, a multiple of 8), `--align-payload` (deprecated; LUKS2 rounds it in its own way). The
//! header of LUKS2 is 16 MiB, that of LUKS1 with a 512-bit key ends before 2 MiB, by default
//! (cryptsetup 2.6).

use super::{
    Above, Choice, Layer, LayerBase, Plan, Price, Value, describe_all, describe_unit, unit_size,
    written,
};
use crate::base::topology::{Grain, Why, is_whole};

/// Unit in bytes that `--offset` counts in; it takes multiples of eight.
const SECTOR: u64 = 512;
const STEP: u64 = 4096;

pub(super) struct Luks {
    version: u64,
}

/// The layer that `luks`, `luks2` or `luks1` names; `None` for another word.
pub(super) fn parse(word: &str) -> Option<Box<dyn Layer>> {
    let version = match word {
        "luks" | "luks2" => 2,
        "luks1" => 1,
        _ => return None,
    };
    Some(Box::new(Luks { version }))
}

impl Layer for Luks {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let header = if self.version == 2 { 16 << 20 } else { 2 << 20 };
        // The offset is in whole pages, so that a boundary between pages cannot be expressed.
        let grain = super::partition::grain(t).0.and_then(|g| g.intersect(Grain::new(STEP, 0)?));
        if grain.is_none() {
            plan.note(format!(
                "luks: the data can begin on whole {STEP} bytes only, and no boundary beneath is on one: begin the partition on the grain"
            ));
        }
        let offset = grain.and_then(|g| g.next(header)).filter(|&o| o < t.length).unwrap_or(header);
        let sector = if self.version == 2 { unit_size(t).clamp(512, 4096) } else { 512 };
        let price = |sector: u64| Price::amplified(written(t, sector, sector));
        let mut choice = Choice::new(
            "luks",
            "sector",
            Value::Bytes(sector),
            format!("no write below the {}", describe_unit(t)),
        );
        if self.version == 2 {
            choice = choice.typed(format!("--sector-size {sector}"));
            if sector > 512 && t.sector == 512 {
                choice = choice.or(
                    Value::Bytes(512),
                    price(512),
                    "only if something above needs 512-byte sectors",
                );
            }
            if sector < STEP {
                choice = choice.or(
                    Value::Bytes(STEP),
                    price(STEP),
                    "fewer, larger pieces for the cipher; needs 4096-byte I/O above",
                );
            }
        } else {
            plan.note("luks1: it encrypts in sectors of 512 bytes; LUKS2 has larger ones");
        }
        plan.choose(choice.costing(price(sector)));
        let whose = if offset == header {
            format!("LUKS{}'s own, on every boundary beneath", self.version)
        } else {
            "behind the header, on every boundary beneath".to_owned()
        };
        let mut data = Choice::new(
            "luks",
            "data offset",
            Value::Bytes(offset),
            format!("{whose}: {}", describe_all(t)),
        )
        .typed(format!("--offset {}", offset / SECTOR))
        .costing(Price::amplified(1.0).losing(offset, "header"));
        if offset != header {
            let off = t.shift(header, 1);
            data = data.or(
                Value::Bytes(header),
                Price::amplified(written(&off, STEP, STEP)).losing(header, "header"),
                format!("cryptsetup's own{}", super::partition::missing(t, header)),
            );
        }
        plan.choose(data);
        let kind = self.version;
        let size = if kind == 2 { format!(" --sector-size {sector}") } else { String::new() };
        let device = base.arguments();
        plan.run(format!(
            "cryptsetup luksFormat --type luks{kind}{size} --offset {} {device}",
            offset / SECTOR
        ));
        plan.run(format!("cryptsetup open {device} crypt"));
        let mut top = t.shift(offset, t.length.saturating_sub(offset));
        top.sector = top.sector.max(sector);
        // dm-crypt does not pass atomic writes on.
        top.facts.retain(|f| f.why != Why::Atomic);
        if !is_whole(offset, STEP) {
            plan.note(format!(
                "luks: {offset} is not whole {STEP} bytes: cryptsetup will refuse it"
            ));
        }
        LayerBase::device(top, "/dev/mapper/crypt")
    }
}
