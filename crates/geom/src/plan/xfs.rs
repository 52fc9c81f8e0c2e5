//! XFS: sector, block, stripe unit and width, log stripe unit.
//!
//! # Sources
//! mkfs.xfs(8): `-s size=` (512 to 32768, not above the block), `-d su=` (whole blocks), `sw=`, `-l
//! su=` (whole blocks). The log's is at most 256 KiB; for a larger stripe unit mkfs itself takes 32
//! KiB (mkfs.xfs 6.1: "log stripe unit adjusted to 32KiB").

use super::ext4::untold;
use super::{
    Above, Choice, Files, Layer, LayerBase, PAGE, Plan, Price, Value, describe_unit, powers,
    stripe, unit_size, written,
};
use crate::base::topology::{Topology, is_whole};

/// Largest stripe unit of the log, in bytes.
const LOG_MOST: u64 = 256 << 10;
/// Stripe unit of the log that mkfs takes where the data's is above that, in bytes.
const LOG_USUAL: u64 = 32 << 10;

/// Parameters of mkfs.xfs, as `-b`, `-s`, `-d` and `-l` take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Block size in bytes, a power of two.
    pub block: u64,
    /// Sector in bytes: the unit of its superblocks and of the log's writes.
    pub sector: u64,
    /// Stripe unit of the data in bytes; `None` without a set that fits.
    pub su: Option<u64>,
    /// Number of stripe units in a row; `None` without a set that fits.
    pub sw: Option<u64>,
    /// Stripe unit of the log in bytes; `None` for the default.
    pub log_su: Option<u64>,
}

impl Parameters {
    /// Parameters for a device. A sector is never below the physical one, even where the device
    /// takes less (512e), nor above the block.
    pub fn for_topology(topology: &Topology) -> Parameters {
        let block = topology.sector.clamp(PAGE, 65536);
        let unit = unit_size(topology);
        let sector = unit.clamp(512, block.min(32768));
        let set =
            stripe(topology).filter(|s| s.off == 0 && is_whole(s.chunk, block) && s.row.is_some());
        let su = set.map(|s| s.chunk);
        let sw = set.and_then(|s| Some(s.row? / s.chunk));
        let usual = LOG_USUAL.max(unit);
        let whole = |size: &u64| *size <= LOG_MOST && is_whole(*size, block);
        let log_su = match su {
            Some(su) => Some(su).filter(whole).or(Some(usual).filter(whole)),
            // Small log writes are filled up to a whole unit, which would be read first otherwise.
            None => Some(unit).filter(|&unit| unit > block).filter(whole),
        };
        Parameters { block, sector, su, sw, log_su }
    }

    /// Arguments of mkfs.xfs, without the device.
    pub fn options(&self) -> Vec<String> {
        let mut options = vec![
            "-b".to_owned(),
            format!("size={}", self.block),
            "-s".to_owned(),
            format!("size={}", self.sector),
        ];
        if let Some((su, sw)) = self.su.zip(self.sw) {
            options.extend(["-d".to_owned(), format!("su={su},sw={sw}")]);
        }
        if let Some(su) = self.log_su {
            options.extend(["-l".to_owned(), format!("su={su}")]);
        }
        options
    }
}

pub(super) struct Xfs;

impl Layer for Xfs {
    fn in_image(&self, _disk: &Topology) -> bool {
        true
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let p = Parameters::for_topology(t);
        let price = |block| Price::amplified(written(t, block, block)).tail(block);
        let mut block = Choice::new(
            "xfs",
            "block",
            Value::Bytes(p.block),
            format!("the page of every kernel; {}", describe_unit(t)),
        )
        .typed(format!("-b size={}", p.block))
        .costing(price(p.block));
        for larger in powers(p.block * 2, unit_size(t).min(65536)) {
            block = block.or(
                Value::Bytes(larger),
                price(larger),
                "needs Linux 6.12 or later, which mounts blocks above the page",
            );
        }
        plan.choose(block);
        let mut sector = Choice::new(
            "xfs",
            "sector",
            Value::Bytes(p.sector),
            format!("no log or superblock write below the {}", describe_unit(t)),
        )
        .typed(format!("-s size={}", p.sector))
        .costing(Price::amplified(written(t, p.sector, p.sector)));
        if p.sector > 512 && t.sector == 512 {
            sector = sector.or(
                Value::Bytes(512),
                Price::amplified(written(t, 512, 512)),
                "what mkfs takes from a 512-byte logical sector in an image",
            );
        }
        plan.choose(sector);
        set(&p, t, plan);
        untold(t, p.su.is_some(), "xfs", p.block, plan);
        base.make("xfs", "mkfs.xfs", &p.options(), plan);
        base.mount(plan);
        base.with_files("/mnt", Files { system: "xfs", grid: p.block, whole_blocks: false })
    }
}

/// Adds the choices of stripe units and widths for the set beneath.
fn set(p: &Parameters, t: &Topology, plan: &mut Plan) {
    if let Some((su, sw)) = p.su.zip(p.sw) {
        let why = format!("the set's chunk of {su} bytes, whole blocks of {}", p.block);
        plan.choose(Choice::new("xfs", "su", Value::Bytes(su), why).typed(format!("-d su={su}")));
        let why = format!("a row holds {sw} chunks of data");
        plan.choose(
            Choice::new("xfs", "sw", Value::Count(sw, "stripe units"), why)
                .typed(format!("-d sw={sw}")),
        );
    }
    let Some(log) = p.log_su else { return };
    let why = match p.su {
        Some(su) if su > LOG_MOST => {
            format!(
                "the stripe unit of the log is at most {LOG_MOST} bytes, less than the chunk of {su}; a small log write is filled up to it"
            )
        }
        Some(_) => "the log in whole chunks; a small log write is filled up to it".to_owned(),
        None => {
            format!("whole log writes on the {}; a small one is filled up to it", describe_unit(t))
        }
    };
    let price = |su: u64| {
        Price::amplified(written(t, su, su)).losing(su / 2, "an average log write, filled up")
    };
    let mut choice = Choice::new("xfs", "log su", Value::Bytes(log), why)
        .typed(format!("-l su={log}"))
        .costing(price(log));
    for su in [p.block, LOG_USUAL, LOG_MOST] {
        if su != log && su >= p.block {
            choice = choice.or(
                Value::Bytes(su),
                price(su),
                "smaller for many small fsyncs, larger for bulk",
            );
        }
    }
    plan.choose(choice);
    if let Some(su) = p.su.filter(|&su| su > LOG_MOST) {
        plan.note(format!(
            "xfs: a log stripe unit of {su} bytes, the data's, is above the largest of {LOG_MOST}"
        ));
    }
}
