//! The result of a probe as a document.

use super::ground::Origin;
use serde::Serialize;
use trueline_geom::base::topology::{Source, Topology, Why};
use trueline_lab::probe::{MeasuredUnit, ProbeReport, ProbeVerdict};
use trueline_lab::rig::Op;

/// The document of `--json`, and what the text is written from.
#[derive(Debug, Serialize)]
pub(crate) struct Probed {
    pub(crate) format: &'static str,
    pub(crate) target: String,
    /// Kind of its time: `real` or `virtual`.
    pub(crate) time: &'static str,
    /// Kind of its requests: `read` or `write`.
    pub(crate) mode: &'static str,
    /// Place that phases count from.
    pub(crate) origin: Origin,
    /// Outcome: `found`, `nothing`, `alike` or `unsure`.
    pub(crate) verdict: &'static str,
    pub(crate) units: Vec<UnitDocument>,
    /// Ratio that a unit of up to `searched` bytes costs at most, where none was found.
    pub(crate) most_ratio: Option<f64>,
    /// The largest unit in bytes that the verdict is about.
    pub(crate) searched: u64,
    pub(crate) claimed: Claimed,
    /// The distance between places that requests could be made at.
    pub(crate) step: u64,
    /// Median latencies of 4 KiB.
    pub(crate) latency_ns: Latencies,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) duration_ns: u64,
    pub(crate) note: Option<String>,
    /// The file that the unit is remembered in, from which `check` takes it.
    pub(crate) remembered: Option<String>,
    /// True if it was interrupted.
    pub(crate) interrupted: bool,
    /// True of a set: writes to it are refused, and its disks' units are not looked for.
    #[serde(skip)]
    pub(crate) is_set: bool,
    /// True if its time is over.
    #[serde(skip)]
    pub(crate) is_spent: bool,
}

/// A unit that was found. Sizes in bytes.
#[derive(Debug, Serialize)]
pub(crate) struct UnitDocument {
    pub(crate) size: u64,
    pub(crate) phase: u64,
    pub(crate) why: &'static str,
    pub(crate) confidence: f64,
    /// The time of a request that cuts a unit, relative to one that does not.
    pub(crate) ratio: f64,
    /// The length of the requests that showed it.
    pub(crate) length: u64,
    /// Bytes by which the phase may be off.
    pub(crate) within: u64,
}

/// Units that the target says it has, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Claimed {
    pub(crate) logical: u64,
    pub(crate) physical: Option<u64>,
    pub(crate) phase: Option<u64>,
    /// The chunk of a set.
    pub(crate) chunk: Option<u64>,
    pub(crate) chunk_phase: Option<u64>,
}

impl Claimed {
    /// Claims of a device, a drive or a set in a topology: its physical boundary and its chunk.
    pub(super) fn of(topology: &Topology) -> Claimed {
        let says = [Source::Ioctl, Source::Sysfs, Source::Nvme, Source::Model];
        let mut own = topology.counting().filter(|fact| says.contains(&fact.source));
        let physical = own.find(|fact| fact.why == Why::Physical);
        let chunk = topology.counting().find(|fact| fact.why == Why::Chunk);
        Claimed {
            logical: topology.sector,
            physical: physical.map(|fact| fact.grain.size()),
            phase: physical.map(|fact| fact.grain.phase()),
            chunk: chunk.map(|fact| fact.grain.size()),
            chunk_phase: chunk.map(|fact| fact.grain.phase()),
        }
    }
}

/// Median times of single requests.
#[derive(Debug, Serialize)]
pub(crate) struct Latencies {
    pub(crate) durable: u64,
    pub(crate) plain: u64,
}

impl Probed {
    pub(super) fn new(
        target: String,
        is_virtual: bool,
        (op, origin): (Op, Origin),
        claimed: Claimed,
        note: Option<String>,
        (report, budget_ns): (&ProbeReport, u64),
    ) -> Probed {
        let (verdict, most_ratio) = match report.verdict {
            ProbeVerdict::Found => ("found", None),
            ProbeVerdict::Nothing { ratio, .. } => ("nothing", Some(ratio)),
            ProbeVerdict::Alike => ("alike", None),
            ProbeVerdict::Unsure => ("unsure", None),
        };
        Probed {
            format: "trueline/probe/1",
            target,
            time: if is_virtual { "virtual" } else { "real" },
            mode: if op == Op::Read { "read" } else { "write" },
            origin,
            verdict,
            units: report.units.iter().map(UnitDocument::of).collect(),
            most_ratio,
            searched: report.searched,
            claimed,
            step: report.step,
            latency_ns: Latencies { durable: report.single_ns[0], plain: report.single_ns[1] },
            requests: report.requests,
            bytes: report.bytes,
            duration_ns: report.spent_ns,
            note,
            remembered: None,
            interrupted: report.interrupted,
            is_set: false,
            is_spent: report.spent_ns >= budget_ns,
        }
    }
}

impl UnitDocument {
    fn of(unit: &MeasuredUnit) -> UnitDocument {
        UnitDocument {
            size: unit.grain.size(),
            phase: unit.grain.phase(),
            why: unit.why.name(),
            confidence: unit.confidence,
            ratio: unit.ratio,
            length: unit.length,
            within: unit.blur,
        }
    }
}
