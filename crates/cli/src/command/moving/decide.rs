//! Decision of a move: what is read of a partition and its disk before the first byte is written.

use super::bad;
use crate::command::moving::args::Move as Options;
use crate::failure::{Failure, complain};
use crate::placed::absolute_label;
use crate::target::Target;
use crate::write_target::{WriteTarget, refuse};
use std::collections::BTreeSet;
use std::ops::Range;
use trueline_geom::base::error::Errno;
use trueline_geom::base::patch::{self, Patch};
use trueline_geom::format::{Moved, extlinux, grub};
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::relocate::bad::BadSectors;
use trueline_geom::relocate::gaps::{Gaps, holes};
use trueline_geom::relocate::unused::{Unused, unused as find_unused};
use trueline_geom::relocate::{MEMORY, Move, SIZES, Sizes};
use trueline_geom::table::{Entry, Refusal};
use trueline_host::random;

/// Ranges that partition `id` does not use, with `--used-only`; none without. A file system whose
/// bitmap is not believed is refused, and what is copied whole is named, unless `named` has it.
pub(super) fn unused(
    args: &Options,
    typed: &Target,
    target: &WriteTarget,
    id: Id,
    named: &mut BTreeSet<Id>,
) -> Result<Unused, Failure> {
    if !args.used_only {
        return Ok(Unused::default());
    }
    let name = |id: Id| &target.graph.providers[id].name;
    let unused = find_unused(&target.graph, id).map_err(|doubtful| {
        let found = format!(
            "what the {} of {} uses is not known: {}",
            doubtful.kind,
            name(doubtful.id),
            doubtful.why
        );
        let checker = doubtful.kind.format.checker();
        let checker = checker.map_or(String::new(), |command| format!(" ({command})"));
        let advice = format!("have it checked{checker} and unmounted, or move without --used-only");
        refuse("move", typed, &Refusal::new(found, advice))
    })?;
    for &id in unused.whole.iter().filter(|&&id| named.insert(id)) {
        complain(&format!(
            "note: nothing of {} is known to be free: all of it is copied",
            name(id)
        ));
    }
    Ok(unused)
}

/// The move of `entry` to `start`, and a note for every field that keeps its old start. Errors: a
/// failed read.
pub(super) fn decide(
    target: &WriteTarget,
    (on, entry): (Id, &Entry),
    start: u64,
    table: Vec<Patch>,
    (unused, bad): (&Unused, &[Range<u64>]),
) -> Result<(Move, Vec<String>), Errno> {
    let graph = &target.graph;
    let disk = &graph.providers[on].topology;
    let bytes = |at: u64, length: u64| {
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Errno::Range)?];
        graph.read_at(on, &mut bytes, at).map(|()| bytes)
    };
    // A scheme makes a chain for an extended partition that is new to it; this one brings its own.
    let own_chain = |patch: &Patch| {
        entry.partition.kind.is_extended()
            && (patch.offset, patch.bytes.len() as u64) == (start, disk.sector)
    };
    let table = table.into_iter().filter(|patch| !own_chain(patch)).collect();
    let table = with_boot(graph, on, &entry.partition.range(), start, table)?;
    let table = patch::changes(table, &mut |at, out| graph.read_at(on, out, at))?;
    let was = table.iter().map(|patch| {
        Ok(Patch { bytes: bytes(patch.offset, patch.bytes.len() as u64)?, ..patch.clone() })
    });
    let was = was.collect::<Result<_, Errno>>()?;
    let sizes = sizes(graph);
    let mut bad = BadSectors::new(bad::inside(bad, &entry.partition.range()));
    let (front, back) =
        bad.ends(entry.partition.length, (sizes.end, disk.sector), &mut |inner, out| {
            graph.read_at(on, out, entry.partition.start + inner)
        })?;
    let (rebased, left) = rebased(graph, target.id, entry.partition.start, start)?;
    let at = entry.partition.start;
    let holes = holes(&Through::new(graph, on), at, entry.partition.length, disk.sector)?;
    let gaps = Gaps::plan(&holes, &unused.free, &rebased, disk.sector);
    let id = random::bytes().map_err(|_| Errno::Io)?;
    let (medium, sector, from, length) =
        (disk.length, disk.sector, entry.partition.start, entry.partition.length);
    Ok((
        Move {
            id,
            medium,
            sector,
            from,
            to: start,
            length,
            sizes,
            front,
            back,
            rebased,
            table,
            was,
            gaps,
            bad,
        },
        left,
    ))
}

/// The sizes by which moves on the disks of `graph` are divided.
pub(super) fn sizes(graph: &Graph) -> Sizes {
    let in_memory = graph.stores().iter().all(|store| store.properties().non_blocking);
    if in_memory { MEMORY } else { SIZES }
}

/// The patches that adapt what is in partition `id` of `graph` to a move from byte `start` to `to`
/// of the provider with its table, in addresses of the partition, and a note for every field that
/// keeps its old start. Errors: a failed read.
pub(super) fn rebased(
    graph: &Graph,
    id: Id,
    start: u64,
    to: u64,
) -> Result<(Vec<Patch>, Vec<String>), Errno> {
    let own = &graph.providers[id];
    let (mut rebased, mut left, length) = (Vec::new(), Vec::new(), own.topology.length);
    if let Some(boot) = boot_sector(graph, id)? {
        let old = own.base()..own.base().saturating_add(own.topology.length);
        let to = (own.base() - start.min(own.base())).saturating_add(to);
        let mut first = vec![0; boot.len()];
        graph.read_at(id, &mut first, 0)?;
        // Of a disk within a partition, what starts it counts from that.
        let mut disks = vec![(0, boot)];
        for disk in disks_around(graph, id) {
            let mut boot = vec![0; first.len()];
            graph.read_at(disk, &mut boot, 0)?;
            disks.push((graph.providers[disk].base(), boot));
        }
        let around: Vec<_> =
            disks.iter().map(|(base, boot)| grub::Around { base: *base, boot }).collect();
        rebased = grub::rebase(&around, &old, to, &mut |at, out| graph.read_at(id, out, at))?;
        let mut starts = disks.iter().filter_map(|(base, _)| {
            let (from, to) = (old.start - base, to.saturating_sub(*base));
            extlinux::rebase(&first, Moved { from, to, length })
        });
        rebased.extend(starts.next());
    }
    for (inner, p) in
        graph.providers.iter().enumerate().filter(|(inner, _)| graph.is_within(id, *inner))
    {
        // In a set, all of it counts from the set.
        let from = p.base();
        let to = from.saturating_sub(start).saturating_add(to);
        if let Some(table) = absolute_label(graph, inner) {
            let at = p.base().saturating_sub(own.base());
            let patches = table.scheme.follow(&table, to).ok_or(Errno::Range)?;
            let along =
                patches.into_iter().map(|patch| Patch { offset: patch.offset + at, ..patch });
            rebased.extend(along);
        }
        for sign in p.in_use() {
            let rebase = |from: u64, to: u64| {
                let moved = Moved { from, to, length: p.topology.length };
                sign.kind.format.rebase(moved, &mut |at, out| graph.read_at(inner, out, at))
            };
            let mut found = rebase(from, to)?;
            for disk in disks_around(graph, inner) {
                // In a disk within the partition, it may count from that, which moves along.
                let base = graph.providers[disk].base();
                let goes = if graph.is_within(id, disk) { from } else { to };
                let nearer = rebase(from - base, goes.saturating_sub(base))?;
                if found.left.is_some() && nearer.left.is_none() {
                    found = nearer;
                }
            }
            let at = p.base().saturating_sub(own.base());
            rebased.extend(
                found.patches.into_iter().map(|patch| Patch { offset: patch.offset + at, ..patch }),
            );
            if let Some(says) = found.left {
                left.push(format!(
                    "the {} of {} says that it begins at byte {says}, where it does \
                    not: left as it is",
                    sign.kind, p.name
                ));
            }
        }
    }
    Ok((rebased, left))
}

/// The ranges of a disk around provider `id` that have an MBR or a GPT of their own: disks within a
/// partition.
fn disks_around(graph: &Graph, id: Id) -> impl Iterator<Item = Id> {
    let base = graph.providers[id].base();
    (0..id).filter(move |&disk| {
        let p = &graph.providers[disk];
        let is_disk = p.table.as_ref().is_some_and(|(class, _)| matches!(*class, "mbr" | "gpt"));
        is_disk && !p.parents.is_empty() && p.base() <= base && graph.is_within(disk, id)
    })
}

/// The first sector of the disk that provider `id` is a range of; `None` if that is a set.
pub(super) fn boot_sector(graph: &Graph, id: Id) -> Result<Option<Vec<u8>>, Errno> {
    let root = graph.root(id);
    let p = &graph.providers[root];
    if !p.parents.is_empty() || !graph.is_within(root, id) {
        return Ok(None);
    }
    let mut boot = vec![0; usize::try_from(p.topology.sector).map_err(|_| Errno::Range)?];
    graph.read_at(root, &mut boot, 0).map(|()| Some(boot))
}

/// The writes `table` to the table on provider `on`, and with them what GRUB notes in the first
/// sector of the disk of the bytes `old` of it, which go to `to`.
fn with_boot(
    graph: &Graph,
    on: Id,
    old: &Range<u64>,
    to: u64,
    mut table: Vec<Patch>,
) -> Result<Vec<Patch>, Errno> {
    let Some(mut boot) = boot_sector(graph, on)?.filter(|_| graph.providers[on].parents.is_empty())
    else {
        return Ok(table);
    };
    patch::lay_over(&table, 0, &mut boot);
    if grub::follow(&mut boot, old, to) {
        table.push(Patch::new(0, boot, "boot sector"));
    }
    Ok(table)
}
