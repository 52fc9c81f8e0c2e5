//! `move --resume`: finds the journal, compares the disk with it, and goes on with the move or
//! refuses.

use super::{Moving, access, bad, interrupted, show, whole};
use crate::command::moving::args::Move as Options;
use crate::disk_options::DiskOptions;
use crate::failure::{Failure, complain};
use crate::move_journal::named::{Going, named};
use crate::move_journal::{remove_draft, unreadable};
use crate::target::Target;
use crate::words::say;
use crate::write_target::WriteTarget;
use std::path::Path;
use std::process::ExitCode;
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::provider_store::Through;
use trueline_geom::mapping::slices::place;
use trueline_geom::relocate::sequence::Goal;
use trueline_geom::relocate::{Journal, Mismatch, Move, Standing};
use trueline_host::disk::file;

pub(super) fn run(args: &Options, journal: Option<&Path>, goal: Goal) -> Result<ExitCode, Failure> {
    let option = if goal == Goal::Forward { "--resume" } else { "--rollback" };
    let going = Going { command: "move", option, nothing: "nothing was moved" };
    let named = named(going, journal, args.target.as_ref(), &args.disk)?;
    let path = named.journal.clone();
    let failed = |found: &str| {
        Failure::Message(format!("resume {}: {found}: nothing was moved", path.display()))
    };
    if let Some(found) = remove_draft(&path, args.dry_run)? {
        return match goal {
            Goal::Back => say(&found).map(|()| ExitCode::SUCCESS).map_err(Failure::from),
            Goal::Forward => Err(Failure::Message(format!("{found}: begin again"))),
        };
    }
    let typed = |words: &str| named.target(words);
    if let Some(code) = whole::resume(args, &path, &typed, goal)? {
        return Ok(code);
    }
    if goal == Goal::Back {
        return Err(failed(
            "it is the journal of one partition: go on with --resume, then move it back with --to",
        ));
    }
    let opened =
        file::open_for(&path, access(args)).map_err(|e| Failure::Message(e.to_string()))?;
    let (journal, mut plan, words) =
        Journal::open(&opened.store).map_err(|why| failed(&unreadable(why)))?;
    let typed = typed(&words);
    let disk = in_sectors(&args.disk, plan.sector, &typed);
    let target = WriteTarget::open(&typed, &disk, access(args))?;
    let on = target.id;
    require_disk(&path, &target, plan.medium, plan.sector)?;
    let moved = plan.from..plan.from.saturating_add(plan.length);
    let more = bad::inside(&bad::list(args, plan.sector)?, &moved);
    match args.dry_run {
        true => drop(plan.bad.list(&more)),
        false => {
            let listed = journal.list(&mut plan, &more);
            listed.map_err(|errno| failed(&format!("write {}: {errno}", path.display())))?;
        }
    }
    let notes: Vec<String> = bad::listed(&plan).into_iter().collect();
    for line in &notes {
        complain(&format!("note: {line}"));
    }
    let standing = plan.standing(&journal, &Through::new(&target.graph, on));
    let standing = standing.map_err(|why| {
        let found = interrupted(why, plan.sector, &bad::of_plan(&plan));
        failed(&format!("{typed}: {found}"))
    })?;
    let start = match standing {
        Standing::Half(start) => Some(start),
        Standing::Done => None,
        Standing::Untouched => {
            return Err(failed(&format!(
                "{typed} was not changed yet: remove the journal and begin again"
            )));
        }
        Standing::Other(why) => {
            return Err(failed(&mismatch(&typed, Some(&plan), plan.sector, why)));
        }
    };
    if args.dry_run {
        return show(&target, on, &plan, &typed);
    }
    // A move that was done before may have been written to since.
    let discard = args.discard && start.is_some();
    let moving =
        Moving { typed: &typed, on, plan: &plan, journal: Some(&path), discard, notes: &notes };
    // The disk may have been used since the steps that are done: none of them is written again.
    let done =
        start.map_or(Ok(plan.bad.clone()), |start| moving.carry(&target, Some(&journal), start));
    let Some(table) = target.table() else {
        // The first error is the one to report.
        done?;
        return Err(Failure::Message(format!(
            "write {typed}: its table does not read back as it should: check the disk; the journal is kept"
        )));
    };
    moving.finish(target, table.scheme, done, args.json)
}

/// The options of a disk whose journal counts in sectors of that size: an image does not say how
/// long its own are.
pub(in crate::command) fn in_sectors(
    disk: &DiskOptions,
    sector: u64,
    typed: &Target,
) -> DiskOptions {
    let of_file = Some(sector).filter(|_| typed.paths().iter().all(|p| p.is_file()));
    DiskOptions { logical: disk.logical.or(of_file), ..disk.clone() }
}

/// Refuses a target that has not the length and the sectors of the journal at `path`.
pub(super) fn require_disk(
    path: &Path,
    target: &WriteTarget,
    medium: u64,
    wanted: u64,
) -> Result<(), Failure> {
    let Topology { length, sector, .. } = target.graph.providers[target.id].topology;
    if (length, sector) == (medium, wanted) {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "resume {}: {} has {length} bytes in sectors of {sector}, the table of the move is on \
         {medium} in sectors of {wanted}: name that disk: nothing was moved",
        path.display(),
        target.typed
    )))
}

/// The reason why the move cannot go on with a disk, with advice.
pub(super) fn mismatch(typed: &Target, plan: Option<&Move>, sector: u64, why: Mismatch) -> String {
    let not = format!("{typed} is not as the move left it");
    let steps = plan.map_or(String::new(), |plan| format!(" of {}", plan.steps()));
    match why {
        Mismatch::Unmarked => format!(
            "{not}: it does not begin with the mark of the move: it is another disk, a copy from \
                before or after the move, or something was written to it: name the disk that was \
                being moved"
        ),
        Mismatch::Trace => {
            let at = plan.map_or(String::new(), |plan| {
                format!(" at {}", place(plan.from.min(plan.to), plan.sector))
            });
            format!("{not}: the mark{at} is damaged: bring back a copy of the disk as it was left")
        }
        Mismatch::Table => format!(
            "{not}: its table is not that of this step of the move: put back the table, or the \
                disk as it was left. Boot code in a sector of the table counts as well: if a boot \
                loader was installed meanwhile, put back the bytes that it replaced, and install \
                it after the move"
        ),
        Mismatch::Apart { disk, journal } => {
            let at = journal.map_or(
                "before its first \
                step"
                    .into(),
                |step| format!("at step {step}"),
            );
            let older = if journal.is_some_and(|journal| journal > disk) {
                typed.typed()
            } else {
                "the journal"
            };
            format!(
                "{not}: it is at step {disk}{steps} and the journal {at}: {older} is an older \
                    copy: bring back the disk and the journal as the interruption left them, both \
                    of one moment"
            )
        }
        Mismatch::Seal(step) => format!(
            "{not}: it is at step {step} of another history of this move: bring back the disk and \
                the journal as the interruption left them, both of one moment"
        ),
        Mismatch::Notes => "its notes are of two moments: it is put together of two copies: bring \
            back one whole copy"
            .into(),
        Mismatch::Bytes(at) => format!(
            "{not}: what is at {} is not what the journal knows of it: the disk or the journal is \
                an older copy, or is damaged: bring back both as the interruption left them",
            place(at, sector)
        ),
    }
}
