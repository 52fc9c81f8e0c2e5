//! Reports of `part`, in gpart(8)'s words, and the warning about a start that was asked for.

use crate::render::gpart::Shown;
use crate::words;
pub(super) use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::{Fact, Trust};
use trueline_geom::mapping::slices::{PartitionType, place};
use trueline_geom::plan::card;
use trueline_geom::table::scheme::TableSite;
use trueline_geom::table::{Entry, Rules};

/// A change to a table or to one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartEdit<'a> {
    Created,
    Destroyed,
    Added,
    Deleted,
    Modified,
    Resized,
    Set(&'a str),
    Unset(&'a str),
    Recovered,
    Restored,
    /// No change, as nothing was damaged.
    Whole,
}

/// The line that reports the change to `name`.
pub(crate) fn report_line(done: PartEdit<'_>, name: &str) -> String {
    let name = words::name(name);
    match done {
        PartEdit::Created => format!("{name} created"),
        PartEdit::Destroyed => format!("{name} destroyed"),
        PartEdit::Added => format!("{name} added"),
        PartEdit::Deleted => format!("{name} deleted"),
        PartEdit::Modified => format!("{name} modified"),
        PartEdit::Resized => format!("{name} resized"),
        PartEdit::Set(attribute) => format!("{attribute} set on {name}"),
        PartEdit::Unset(attribute) => format!("{attribute} unset on {name}"),
        PartEdit::Recovered => format!("{name} recovered"),
        PartEdit::Restored => format!("{name} restored"),
        PartEdit::Whole => format!("{name} recovering is not needed"),
    }
}

/// The line that reports a new `entry`; under gpart's rules with its warning.
pub(crate) fn added(shown: Shown<'_>, site: &TableSite<'_>, entry: &Entry, rules: Rules) -> String {
    let (name, (stripe, _)) = (shown.partition(entry), site.topology.stripesize_and_offset());
    let (_, offset) =
        site.topology.shift(entry.partition.start, entry.partition.length).stripesize_and_offset();
    if rules != Rules::Aligned && stripe > 0 && offset != 0 {
        format!("{name} added, but partition is not aligned on {stripe} bytes")
    } else {
        report_line(PartEdit::Added, &name)
    }
}

/// The place of byte `at` of the provider as `check` counts it, on its disk or set. In a table that
/// begins further in, also the place as `-b` counts it.
pub(crate) fn spot(shown: Shown<'_>, site: &TableSite<'_>, at: u64) -> String {
    let sector = shown.table.sector;
    let inner = place(at, sector);
    match site.base {
        0 => inner,
        base => format!(
            "{} of the disk, {inner} of {}",
            place(base.saturating_add(at), sector),
            words::name(shown.name.text())
        ),
    }
}

/// True if I/O may begin at the start of `entry` and that is off a boundary. An extended partition
/// has I/O to its links alone, when a table is written. On an SD card a partition for a FAT12 or
/// FAT16 begins where the clusters come out on a boundary.
pub(crate) fn is_off_grain(site: &TableSite<'_>, entry: &Entry) -> bool {
    let inside = site.topology.shift(entry.partition.start, entry.partition.length);
    let is_fat = matches!(entry.partition.kind, PartitionType::Mbr(0x01 | 0x04 | 0x06 | 0x0e));
    let is_right = entry.partition.kind.is_extended()
        || is_fat && card::is_start(site.topology, entry.partition.start);
    !is_right && !inside.missed(PAGE).is_empty()
}

/// A warning about a start of `entry` off the grain: its distance past which unit, the cost for a
/// layer that writes pages, and better starts.
pub(crate) fn off_grain(shown: Shown<'_>, site: &TableSite<'_>, entry: &Entry) -> Option<String> {
    let (table, sector) = (shown.table, shown.table.sector);
    let missed = site.topology.shift(entry.partition.start, entry.partition.length).missed(PAGE);
    let (fact, cost) = missed.first().filter(|_| is_off_grain(site, entry))?;
    let past = words::bytes(fact.grain.remainder(0));
    let cost = cost.filter(|c| c.rmw_factor > 1.0).map_or(String::new(), |c| {
        format!(
            ": writes of {PAGE} bytes take {} the device operations",
            words::factor(c.rmw_factor)
        )
    });
    let taken = |x: u64| {
        table.entries.iter().any(|e| {
            e.partition.index != entry.partition.index && (e.partition.range()).contains(&x)
        })
    };
    let (below, above) = site.topology.nearest(entry.partition.start);
    let good =
        [below, above].into_iter().flatten().filter(|x| table.usable.contains(x) && !taken(*x));
    let of = if site.base == 0 { "" } else { " of the disk" };
    let good: Vec<String> = good
        .map(|x| format!("-b {} (byte {}{of})", x / sector.max(1), site.base.saturating_add(x)))
        .collect();
    let good = if good.is_empty() {
        "no free start near it is on every boundary".into()
    } else {
        format!("on the boundary: {}", good.join(" or "))
    };
    Some(format!(
        "{} starts at {}, {past} past a {}{cost}; {good}",
        shown.partition(entry),
        spot(shown, site, entry.partition.start),
        unit(fact)
    ))
}

/// `4096-byte physical unit (assumed)`.
fn unit(fact: &Fact) -> String {
    let assumed = if fact.trust == Trust::Assumed { " (assumed)" } else { "" };
    format!("{}-byte {}{assumed}", fact.grain.size(), words::unit(fact.why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::part::tables::{Bench, SECTOR};
    use trueline_geom::table::Request;

    #[test]
    fn a_start_off_the_grain_is_said_with_its_cost_and_better_ones() {
        let mut disk = Bench::disk("ada1", 1 << 21, 4096, (34, 2_097_111));
        let off = Request { align: Some(574 * SECTOR), ..Request::default() };
        let index = disk.add("freebsd", off, Rules::Gpart);
        let entry = &disk.table.entry(index).unwrap().clone();
        let warning = |disk: &Bench| off_grain(disk.shown(), &disk.site(), entry);
        let want = "ada1s1 starts at byte 293888 (LBA 574), 3072 bytes past a 4096-byte physical \
            unit: writes of 4096 bytes take 4.0 x the device operations; on the boundary: -b 568 \
            (byte 290816) or -b 576 (byte 294912)";
        assert_eq!(warning(&disk).as_deref(), Some(want));
        assert_eq!(added(disk.shown(), &disk.site(), entry, Rules::Aligned), "ada1s1 added");
        // Starts in another partition or outside the usable range are not offered.
        let mut beside = entry.clone();
        (beside.partition.index, beside.partition.start, beside.partition.length) =
            (2, 290_816, 3072);
        disk.table.entries.push(beside);
        disk.table.usable.start = 290_816;
        assert!(warning(&disk).unwrap().ends_with("; on the boundary: -b 576 (byte 294912)"));
        // On the grain there is no warning.
        let mut good = entry.clone();
        good.partition.start = 294_912;
        assert_eq!(off_grain(disk.shown(), &disk.site(), &good), None);
    }
}
