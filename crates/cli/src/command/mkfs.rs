//! `mkfs`: a file system on a provider, laid out for the grains beneath it.

use crate::command::mkfs::args::{FileSystemKind, Mkfs};
use crate::failure::{Failure, complain};
use crate::typed;
use crate::write_target::{WriteTarget, contents, shared};

use std::process::ExitCode;
use trueline_geom::base::patch::Patch;
use trueline_geom::base::topology::round_down;
use trueline_host::disk::file::Access;

pub(crate) mod args;
mod arguments;
mod system;
mod ufs;
mod width;

pub(crate) fn run(args: &Mkfs) -> Result<ExitCode, Failure> {
    let only_print = args.print || args.kind == FileSystemKind::Ufs && ufs::only_prints(&args.own);
    let access = match (only_print || args.dry_run, args.allow_busy) {
        (true, _) => Access::Read,
        (false, true) => Access::WriteInUse,
        (false, false) => Access::Write,
    };
    let target = WriteTarget::open(&args.target, &args.disk, access)?;
    if !only_print {
        target.require_settled(&format!("make {} on", args.kind.name()))?;
    }
    // UFS leaves the first sectors alone; the others write or clear them.
    let around = || {
        shared(&target)
            .filter(|_| args.kind != FileSystemKind::Ufs)
            .map(|found| found + ": begin it behind that, as with part add -b 16, or ")
    };
    let found = contents(&target).map(|found| found + ": ").or_else(around);
    if let Some(found) = found.filter(|_| !args.overwrite && !only_print) {
        let (what, again) = (args.kind.name(), typed::with_option("--overwrite"));
        let message = format!(
            "make {what} on {}: {found}say --overwrite to lose it: {again}: nothing was written",
            args.target
        );
        return Err(Failure::Message(message));
    }
    if !args.kind.maker().is_some_and(|maker| maker.clusters_follow) {
        off_grain(&target);
    }
    match args.kind {
        FileSystemKind::Ufs => ufs::run(args, target),
        _ => system::run(args, target),
    }
}

/// Warns of a start off the grain: no option of a file system mends it.
fn off_grain(target: &WriteTarget) {
    let p = &target.graph.providers[target.id];
    if let Some((fact, _)) = p.topology.missed(4096).first() {
        let (size, past) = (fact.grain.size(), fact.grain.remainder(0));
        let (typed, why) = (&target.typed, fact.why.name());
        complain(&format!(
            "warning: {typed} starts {past} bytes past a {size}-byte {why} unit, and so will every block: trueline check says what that costs"
        ));
    }
}

/// The writes that remove magic numbers and tables of earlier contents, which would be found beside
/// the new file system.
fn wipe(target: &WriteTarget) -> Vec<Patch> {
    let p = &target.graph.providers[target.id];
    let (sector, length) = (p.topology.sector, p.topology.length);
    let size = usize::try_from(sector).unwrap_or(512);
    let of_sign = |magic: u64| Patch::new(round_down(magic, sector), vec![0; size], "old magic");
    let table = target
        .table()
        .filter(|table| !table.is_bare_chain())
        .map(|table| table.scheme.erase(&table))
        .unwrap_or_default();
    let signs = p.signs.iter().map(|s| of_sign(s.magic));
    let mut patches: Vec<Patch> =
        signs.chain(table).filter(|patch| patch.end() <= length).collect();
    patches.dedup_by_key(|patch| patch.offset);
    patches
}
