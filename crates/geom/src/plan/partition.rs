//! The partition beneath every other layer: its start, and the step of its size.
//!
//! A start is on every boundary that counts and, where possible, on a whole MiB, as today's tools
//! make them. Boundaries with a phase (a drive with the XP jumper: 4096 at 3584) put the start
//! there, off the MiB.

use super::{Choice, Command, Host, LayerBase, Note, Plan, Price, Value, describe, unit_size};
use crate::base::topology::{
    Fact, Grain, Topology, Trust, Why, amplification, gcd, is_whole, round_down,
};

/// Usual step of starts, in bytes.
const STEP: u64 = 1 << 20;
/// Start of the first partition under DOS, in bytes: 63 sectors of 512.
const DOS: u64 = 63 * 512;
/// Bytes that a GPT keeps at the end of the disk for its entries, besides a sector.
const TAIL: u64 = 16384;

/// The boundary that partitions begin on, and those that had to be left out of it; `None` on a disk
/// smaller than its sector.
pub fn grain(topology: &Topology) -> (Option<Grain>, Vec<Fact>) {
    let (mut kept, mut left) = (Topology::new(topology.sector, topology.length), Vec::new());
    // The smallest first: missing those costs the most I/O.
    let mut facts: Vec<&Fact> = topology.counting().collect();
    facts.sort_by_key(|f| f.grain.size());
    for fact in facts {
        let with = kept.clone().with(*fact);
        match with.common().filter(|g| g.size() <= topology.length) {
            Some(_) => kept = with,
            None => left.push(*fact),
        }
    }
    let all = kept.common();
    // A round number is not worth a step of more than an eighth of the disk.
    let usual = all
        .zip(Grain::new(STEP, 0))
        .and_then(|(g, step)| g.intersect(step))
        .filter(|g| g.size() <= topology.length / 8);
    (usual.or(all), left)
}

/// The table that a layer's own specification asks for, with one partition up to the end of the
/// disk.
pub struct Own {
    /// Scheme by its name in [`crate::registry`].
    pub scheme: &'static str,
    /// Partition type by its name in [`crate::table::types`].
    pub kind: &'static str,
    /// First byte of the partition.
    pub start: u64,
    /// Reason for that start, in words.
    pub why: String,
    /// Part of the specification that this disk cannot have; `None` if it can have all.
    pub note: Option<String>,
}

/// Adds the partition that `own` describes, over the rest of every disk of `base`; returns the base
/// it offers.
pub(super) fn lay_own(base: &LayerBase, own: &Own, plan: &mut Plan) -> LayerBase {
    let t = &base.topology;
    let table = Choice::new(
        "partition",
        "table",
        Value::word("MBR"),
        "the SD specification's: cameras read nothing else",
    );
    plan.choose(table.typed(format!("-s {}", own.scheme)).or(
        Value::word("GPT"),
        Price::amplified(1.0),
        "computers read it, cameras do not",
    ));
    let choice = Choice::new("partition", "start", Value::Bytes(own.start), own.why.clone())
        .typed(format!("-b {}", own.start / t.sector));
    plan.choose(choice.costing(Price::amplified(1.0).losing(own.start, "before the partition")));
    plan.choose(
        Choice::new(
            "partition",
            "type",
            Value::word(own.kind),
            "as the specification has it for this size",
        )
        .typed(format!("-t {}", own.kind)),
    );
    plan.notes.extend(own.note.clone().map(Note::Text));
    let end = round_down(t.length, t.sector).min(u64::from(u32::MAX) * t.sector);
    let length = end.saturating_sub(own.start);
    make(base, own.scheme, own.kind, (own.start, length), plan)
}

/// Adds the commands for a partition at `place` (first byte, bytes) of every disk; returns the base
/// it offers.
fn make(
    base: &LayerBase,
    scheme: &'static str,
    kind: &'static str,
    place: (u64, u64),
    plan: &mut Plan,
) -> LayerBase {
    let (t, (start, length)) = (&base.topology, place);
    for disk in base.names.iter().filter(|_| base.host == Host::FreeBsd) {
        plan.run(format!("gpart create -s {scheme} {disk}"));
        plan.run(format!(
            "gpart add -t {kind} -b {} -s {} {disk}",
            start / t.sector,
            length / t.sector
        ));
    }
    for disk in base.names.iter().filter(|_| base.host != Host::FreeBsd) {
        plan.commands.push(Command::CreateTable { scheme, disk: base.operand(disk) });
        plan.commands.push(Command::AddPartition {
            kind,
            start: start / t.sector,
            sectors: length / t.sector,
            disk: base.operand(disk),
        });
    }
    let suffix = if scheme == "mbr" { "s1" } else { "p1" };
    let names = base.names.iter().map(|disk| partition_of(disk, base.host, suffix)).collect();
    if base.names.iter().any(|disk| disk.starts_with('$')) && base.host == Host::Linux {
        // Links below /dev/disk are made by udev, which may not have finished; while it looks at a
        // new partition, of a loop device too, mdadm finds that busy.
        plan.run("udevadm settle");
    }
    LayerBase { topology: t.shift(start, length), names, whole: false, ..base.clone() }
}

/// Adds one partition over the rest of every disk of `base`; returns the base it offers.
pub(super) fn lay(base: &LayerBase, kind: &'static str, plan: &mut Plan) -> LayerBase {
    let t = &base.topology;
    let (grain, left) = grain(t);
    let Some(grain) = grain else { return base.clone() };
    for fact in &left {
        plan.note(format!(
            "no start is on the {} as well as on the others: it is left out",
            describe(fact)
        ));
    }
    for clash in &t.clashes {
        let (why, unit) = (clash.why.name(), clash.unit);
        if unit == 0 {
            plan.note(format!(
                "members beneath it have no {why} unit in common: nothing above can mend it"
            ));
            continue;
        }
        plan.note(format!(
            "member {} is {} bytes off its {unit}-byte {why} unit whatever begins where: nothing above can mend it",
            clash.member, clash.remainder
        ));
    }
    for hint in t.facts.iter().filter(|f| f.why == Why::Optimal && f.trust == Trust::Claimed) {
        plan.note(Note::OnlyClaimed(hint.grain.size()));
    }
    let start = grain.next(STEP.min(t.length / 8)).or(grain.next(1)).unwrap_or(0);
    let end = grain
        .shift(start)
        .previous(t.length.saturating_sub(start).saturating_sub(TAIL + t.sector))
        .unwrap_or(0);
    if end == 0 {
        plan.note(format!("{} bytes have no room for a partition at {start}", t.length));
    }
    let why: Vec<String> = t.counting().filter(|f| !left.contains(f)).map(describe).collect();
    let round =
        if grain.phase() == 0 { " and a whole MiB" } else { "; a whole MiB would be off it" };
    let why = if why.is_empty() {
        "a whole MiB: no boundary is known".into()
    } else {
        format!("on the {}{round}", why.join(", the "))
    };
    let unit = unit_size(t);
    let price = |at: u64| {
        let off = super::unit(t).map_or(0, |f| f.grain.shift(at).remainder(0));
        Price::amplified(amplification(unit, unit, unit, off).unwrap_or(1.0))
    };
    let mut choice = Choice::new("partition", "start", Value::Bytes(start), why)
        .typed(format!("-b {}", start / t.sector))
        .costing(price(start).losing(start, "before the first partition"));
    for (at, note) in
        [(DOS, "LBA 63, as DOS had it"), (STEP, "1 MiB, what tools take by themselves")]
    {
        if at != start && at < t.length && is_whole(at, t.sector) {
            choice = choice.or(
                Value::Bytes(at),
                price(at).losing(at, "before the first partition"),
                format!("{note}{}", missing(t, at)),
            );
        }
    }
    plan.choose(choice);
    let step = grain.size();
    let why = "so that the next partition begins on the same boundaries";
    plan.choose(Choice::new("partition", "size step", Value::Bytes(step), why));
    make(base, "gpt", kind, (start, end), plan)
}

/// The name of the first partition of a disk. `$DISK` stands for a link below `/dev/disk`,
/// `${LOOP}` for a loop device, and an image is no device at all.
fn partition_of(disk: &str, host: Host, suffix: &str) -> String {
    match host {
        Host::Image => match disk.strip_suffix('\'') {
            Some(open) => format!("{open}#{suffix}'"),
            None => format!("'{disk}#{suffix}'"),
        },
        // GEOM's names.
        Host::FreeBsd if disk.starts_with('$') && !disk.starts_with("${") => {
            format!("${{{}}}{suffix}", &disk[1..])
        }
        Host::FreeBsd => format!("{disk}{suffix}"),
        Host::Linux
            if disk.starts_with("${")
                || disk.ends_with(|c: char| c.is_ascii_digit()) && !disk.starts_with('$') =>
        {
            format!("{disk}p1")
        }
        Host::Linux if disk.starts_with('$') => format!("{disk}-part1"),
        Host::Linux => format!("{disk}1"),
    }
}

/// Boundaries that address `at` misses, in words for an alternative: `; 65536 past the 196608-byte
/// full-stripe unit (label)`. Empty if it misses none.
pub(super) fn missing(topology: &Topology, at: u64) -> String {
    let off = topology.counting().map(|f| (f.grain.remainder(at), f)).filter(|(off, _)| *off > 0);
    off.map(|(off, f)| format!("; {off} past the {}", describe(f))).collect()
}

/// Adds notes about the boundaries that byte 0 of a given device misses.
pub(super) fn given(base: &LayerBase, plan: &mut Plan) {
    let t = &base.topology;
    for (fact, cost) in t.missed(unit_size(t)) {
        let g = gcd(fact.grain.size(), fact.grain.remainder(0));
        let (off, factor) = (fact.grain.remainder(0), cost.map_or(1.0, |c| c.rmw_factor));
        plan.note(format!(
            "{} begins {off} bytes past a boundary of the {} (it is on {g}): {factor:.2} operations for one; make it again on the boundary",
            base.arguments(),
            describe(&fact)
        ));
    }
}
