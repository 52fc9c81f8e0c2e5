//! Oracle ASM: the allocation unit and the sector of a disk group, and the block of its redo log.
//!
//! # Sources
//! Oracle Database 19c, Automatic Storage Management guide: `AU_SIZE` (1 to 64 MiB, a power of two;
//! 4 MiB advised), `SECTOR_SIZE` (512, 4096); SQL Language Reference, ALTER DATABASE, `BLOCKSIZE`
//! of log files (512, 1024, 4096); blocks of data are 8 KiB by default.

use super::{
    Above, Choice, Layer, LayerBase, Plan, Price, Value, describe_all, describe_unit, unit_size,
    written,
};
use crate::base::topology::{is_whole, round_down};

/// Allocation unit in bytes that Oracle advises.
const UNIT: u64 = 4 << 20;
const MOST: u64 = 64 << 20;
/// Block of a data file, in bytes.
const BLOCK: u64 = 8192;

pub(super) struct Asm;

impl Layer for Asm {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let whole = |unit: &u64| t.counting().all(|f| is_whole(*unit, f.grain.size()));
        let unit = super::powers(UNIT, MOST).find(whole);
        if unit.is_none() {
            plan.note(format!(
                "oracle-asm: no allocation unit is whole units of the {}: files \
                begin off some of them",
                describe_all(t)
            ));
        }
        let unit = unit.unwrap_or(UNIT);
        let why = format!("every file begins on one: whole units of the {}", describe_all(t));
        plan.choose(
            Choice::new("oracle-asm", "allocation unit", Value::Bytes(unit), why)
                .typed(format!("'au_size'='{}M'", unit >> 20)),
        );
        let sector = if unit_size(t) >= 4096 { 4096 } else { 512 };
        let why = format!("no write of ASM's own is below it; {}", describe_unit(t));
        let choice = Choice::new("oracle-asm", "sector", Value::Bytes(sector), why)
            .typed(format!("'sector_size'='{sector}'"));
        plan.choose(choice.costing(Price::amplified(written(t, sector, sector))));
        let why = "a commit writes whole ones; the drive's 512-byte sectors would be read before \
            they are written";
        let mut redo = Choice::new("oracle-asm", "redo block", Value::Bytes(sector), why)
            .typed(format!("BLOCKSIZE {sector}"));
        redo = redo.costing(Price::amplified(written(t, sector, sector)));
        if sector > 512 {
            redo = redo.or(
                Value::Bytes(512),
                Price::amplified(written(t, 512, 512)),
                "less padding, parts of a unit",
            );
        }
        plan.choose(redo);
        let why = "blocks of data, on whole ones of themselves, as files begin on allocation units";
        plan.choose(
            Choice::new("oracle-asm", "data block", Value::Bytes(BLOCK), why)
                .typed("db_block_size=8192")
                .costing(Price::amplified(written(t, BLOCK, BLOCK))),
        );
        let device = base.arguments();
        plan.run(format!(
            "echo \"CREATE DISKGROUP data EXTERNAL REDUNDANCY DISK '{device}' ATTRIBUTE 'au_size'='{}M', 'sector_size'='{sector}';\" | sqlplus -S / as sysasm",
            unit >> 20
        ));
        let offered = t.shift(0, round_down(t.length, unit));
        LayerBase::device(offered, "+DATA")
    }
}
