//! `move --align` of a whole disk: everything on it comes out on the grain, by one plan with one
//! journal.

mod shown;

use super::args::Move as Options;
use super::decide::{rebased, sizes, unused};
use super::{absolute, access, bad, freed, interrupted, loaders};
use crate::command::moving::resume::mismatch;
use crate::failure::{Failure, complain};
use crate::move_journal::{self, unreadable};
use crate::placed::{bound, require_one_table};
use crate::progress::of_bytes;
use crate::target::Target;
use crate::words::{say, size};
use crate::write_target::{WriteTarget, refuse, tell_kernel};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::graph::provider_store::Through;
use trueline_geom::relocate::Unreadable;
use trueline_geom::relocate::bad::BadSectors;
use trueline_geom::relocate::draft::write_head;
use trueline_geom::relocate::gaps::{Gaps, holes};
use trueline_geom::relocate::sequence::{
    Adapted, Goal, Movement, Reached, Sequence, Stop, Tried, run,
};
use trueline_geom::relocate::unused::unused as find_unused;
use trueline_geom::relocate::whole::{Answers, Obstacle, Planned, Room, Whole, plan};
use trueline_geom::table::{Refusal, Table};
use trueline_host::disk::file;
use trueline_host::process::signal;
use trueline_host::random;

/// Plans for all partitions of `table` on the target, shows the plan and carries it out.
pub(super) fn begin(
    args: &Options,
    typed: &Target,
    target: WriteTarget,
    table: &Table,
) -> Result<ExitCode, Failure> {
    let refused = |refusal: Refusal| refuse("move", typed, &refusal);
    let on = target.id;
    let bad = bad::list(args, table.sector)?;
    require_one_table(&target.graph, on).map_err(refused)?;
    let graph = &target.graph;
    let answers = Answers {
        fixed: &|id| Some(bound(graph, id)?.found),
        closed: &|id| Some(require_one_table(graph, id).err()?.found),
        adapted: &|id, from, to| rebased(graph, id, from, to).map(|(patches, _)| patches),
    };
    let wanting = |room: &Room| refused(shown::want_of_room(typed, &target, table, room));
    let whole = match plan(graph, on, table, target.site(), answers) {
        Ok(whole) => whole,
        Err(Obstacle::Refused(refusal)) => return Err(refused(refusal)),
        Err(Obstacle::Room(room)) => return Err(wanting(&room)),
    };
    if whole.stages.is_empty()
        && let Some(room) = whole.partitions.iter().find_map(|p| p.room.as_deref())
    {
        return Err(wanting(room));
    }
    for partition in &whole.partitions {
        if let Some(why) = &partition.stays {
            let name = &graph.providers[partition.id].name;
            let room = partition.room.as_deref().map_or(String::new(), |room| {
                format!(": {}", shown::making_room(typed, &target, table, room))
            });
            complain(&format!("note: {name} stays off the grain: {why}{room}"));
        }
    }
    // Before the first byte is written: no stage may be refused half-way.
    let (mut gaps, mut whole_ones) = (BTreeMap::new(), BTreeSet::new());
    for (partition, own) in whole.partitions.iter().filter_map(|p| Some((p, p.own?))) {
        let unused = unused(args, typed, &target, partition.id, &mut whole_ones)?;
        let left = left_out(&target, partition, &unused.free)
            .map_err(|e| Failure::Message(format!("read {typed}: {e}: nothing was written")))?;
        gaps.insert(own.from, left);
    }
    if whole.stages.is_empty() {
        if args.json {
            shown::print(&match args.dry_run {
                true => shown::planned(&target, &whole, &[]),
                false => shown::nothing(&target),
            })?;
            return Ok(ExitCode::SUCCESS);
        }
        let all = whole.partitions.iter().all(|partition| partition.stays.is_none());
        let rest = if all { "all" } else { "all others" };
        say(&format!("{typed}: {rest} on it begin on the grain; nothing was moved"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let moved = whole.partitions.iter().filter(|p| p.to != p.now.start).map(|p| p.id);
    let loaders = loaders::notes(&target.graph, &moved.collect::<Vec<_>>())
        .map_err(|errno| Failure::Message(format!("read {typed}: {errno}: nothing was written")))?;
    let sequence = sequence(&target, &whole, bad)?;
    let notes: Vec<String> = bad::listed_in(&sequence).into_iter().chain(loaders).collect();
    for note in &notes {
        complain(&format!("note: {note}"));
    }
    match (args.json, args.dry_run) {
        (true, true) => shown::print(&shown::planned(&target, &whole, &notes))?,
        (true, false) => {}
        (false, _) => shown::plan(typed, &target, table, (&whole, gaps))?,
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    sequence.check().map_err(refused)?;
    let path = args.journal.clone().unwrap_or_else(|| move_journal::beside(typed));
    let words = absolute(typed, &target.graph.providers[on].name);
    let (head, length) = sequence
        .head(&words)
        .ok_or_else(|| refused(Refusal::new("the tables are too large for a journal", "")))?;
    let journal = move_journal::reserve(&path, length, &sequence.id)?;
    let room = sequence.room(head.len() as u64).unwrap_or(u64::MAX);
    let listed = sequence.keep_list(&journal.store, room);
    listed.and_then(|_| write_head(&journal.store, &head)).map_err(|errno| {
        // Half a journal would stop the next attempt.
        let _ = std::fs::remove_file(&path);
        Failure::Message(format!("write {}: {errno}: nothing was moved", path.display()))
    })?;
    move_journal::warn_of_memory(&path, &journal);
    let (goal, used_only, discard) = (Goal::Forward, args.used_only, args.discard);
    let (path, sequence, notes) = (&path, &sequence, &notes);
    let moving = Moving { typed, path, sequence, goal, used_only, discard, notes };
    moving.complete(target, &journal.store, args.json)
}

/// Goes on with the sequence in the journal at `path`, forward or back. `None` if the file is no
/// journal of a whole disk.
pub(super) fn resume(
    args: &Options,
    path: &Path,
    typed: &dyn Fn(&str) -> Target,
    goal: Goal,
) -> Result<Option<ExitCode>, Failure> {
    let failed = |found: &str| {
        Failure::Message(format!("resume {}: {found}: nothing was moved", path.display()))
    };
    let opened = file::open_for(path, access(args)).map_err(|e| Failure::Message(e.to_string()))?;
    let (mut sequence, words, room) = match Sequence::open(&opened.store) {
        Ok(opened) => opened,
        Err(Unreadable::Other) => return Ok(None),
        Err(why) => return Err(failed(&unreadable(why))),
    };
    let typed = typed(&words);
    let disk = super::resume::in_sectors(&args.disk, sequence.sector, &typed);
    let target = WriteTarget::open(&typed, &disk, access(args))?;
    super::resume::require_disk(path, &target, sequence.medium, sequence.sector)?;
    if args.dry_run {
        let ends = if goal == Goal::Forward { "done" } else { "taken back" };
        say(&format!(
            "{typed}: {} moves of {} would be {ends}, as far as they are not",
            sequence.moves().count(),
            size::human(sequence.bytes())
        ))?;
        return Ok(Some(ExitCode::SUCCESS));
    }
    let mut listed = BadSectors::new(std::mem::take(&mut sequence.listed));
    listed.list(&bad::list(args, sequence.sector)?);
    sequence.listed = listed.listed;
    // An older journal has no room for the list: it is given again.
    sequence
        .keep_list(&opened.store, room)
        .map_err(|errno| failed(&format!("write {}: {errno}", path.display())))?;
    let notes: Vec<String> = match goal {
        Goal::Forward => bad::listed_in(&sequence).into_iter().collect(),
        Goal::Back => Vec::new(),
    };
    for note in &notes {
        complain(&format!("note: {note}"));
    }
    let (used_only, discard) = (args.used_only, args.discard);
    let (typed, sequence, notes) = (&typed, &sequence, notes.as_slice());
    let moving = Moving { typed, path, sequence, goal, used_only, discard, notes };
    moving.complete(target, &opened.store, args.json).map(Some)
}

/// Bytes of a partition that are not copied: holes, and what of it is `free`.
fn left_out(target: &WriteTarget, p: &Planned, free: &[Range<u64>]) -> Result<u64, Errno> {
    let sector = target.graph.providers[target.id].topology.sector;
    let disk = Through::new(&target.graph, target.id);
    let holes = holes(&disk, p.now.start, p.now.end.saturating_sub(p.now.start), sector)?;
    Ok(Gaps::plan(&holes, free, &[], sector).bytes())
}

fn sequence(
    target: &WriteTarget,
    whole: &Whole,
    listed: Vec<Range<u64>>,
) -> Result<Sequence, Failure> {
    let topology = &target.graph.providers[target.id].topology;
    let id = random::bytes().map_err(|e| Failure::Message(format!("random numbers: {e}")))?;
    let (medium, sector) = (topology.length, topology.sector);
    let sizes = sizes(&target.graph);
    Ok(Sequence { id, medium, sector, sizes, stages: whole.stages.clone(), listed })
}

/// Sequence that is in progress.
struct Moving<'a> {
    typed: &'a Target,
    path: &'a Path,
    sequence: &'a Sequence,
    goal: Goal,
    used_only: bool,
    discard: bool,
    /// Notes that were printed before it began, for the document.
    notes: &'a [String],
}

impl Moving<'_> {
    /// Carries the sequence to its goal, and reports.
    fn complete(
        &self,
        target: WriteTarget,
        journal: &dyn Store,
        json: bool,
    ) -> Result<ExitCode, Failure> {
        match self.carry(&target, journal) {
            Ok(tried) => self.finish(target, &tried, json),
            Err(why) => {
                drop(target);
                // The table may be another one already.
                tell_kernel(self.typed);
                Err(why)
            }
        }
    }

    fn carry(&self, target: &WriteTarget, journal: &dyn Store) -> Result<Tried, Failure> {
        let sequence = self.sequence;
        let (_, _, room) = Sequence::open(journal).map_err(|why| {
            Failure::Message(format!("read {}: {}", self.path.display(), unreadable(why)))
        })?;
        let bar = of_bytes("move", sequence.bytes());
        signal::remember_first();
        let disk = Through::new(&target.graph, target.id);
        let (mut left, mut at) = (Vec::new(), Reached { stages: 0, bytes: 0 });
        let mut contents = |moved: Movement| notes(target, moved, self.used_only, &mut left);
        let mut progress = |done: Reached| {
            let before = sequence.stages.iter().take(done.stages).filter_map(|stage| stage.moved);
            let whole = before.fold(0, |sum: u64, moved| sum.saturating_add(moved.length));
            bar.set_position(match self.goal {
                Goal::Forward => whole.saturating_add(done.bytes),
                Goal::Back => sequence.bytes().saturating_sub(whole).saturating_add(done.bytes),
            });
            at = done;
            !signal::happened()
        };
        let done = run(sequence, &disk, (journal, room), self.goal, &mut contents, &mut progress);
        bar.finish_and_clear();
        for line in left {
            complain(&format!("note: {line}"));
        }
        let sector = sequence.sector;
        done.map_err(|why| match why {
            Stop::Interrupted(why) => {
                let found = interrupted(why, sector, &|at| bad::has(&sequence.listed, at));
                let path = self.path.display();
                Failure::Message(format!(
                    "move {}: {found}: {} of {} stages are done: go on with: trueline move \
                     --resume {path}, or go back with: trueline move --rollback {path}",
                    self.typed,
                    at.stages,
                    sequence.stages.len()
                ))
            }
            Stop::Other(why) => Failure::Message(format!(
                "resume {}: {}: nothing was moved",
                self.path.display(),
                mismatch(self.typed, None, sector, why)
            )),
            Stop::Refused(refusal) => refuse("move", self.typed, &refusal),
        })
    }

    /// Reads the table back, flushes, removes the journal and reports.
    fn finish(&self, target: WriteTarget, tried: &Tried, json: bool) -> Result<ExitCode, Failure> {
        let disk = Through::new(&target.graph, target.id);
        let kept = |found: String| {
            Failure::Message(format!(
                "{found}: the journal is kept: go on with: trueline move --resume {}",
                self.path.display()
            ))
        };
        let is_there = self.sequence.is_at(self.goal, &disk);
        if !is_there.map_err(|errno| kept(format!("read {}: {errno}", self.typed)))? {
            return Err(kept(format!(
                "write {}: the table does not read back as it should: check the disk",
                self.typed
            )));
        }
        disk.flush().map_err(|errno| {
            kept(format!(
                "flush {}: {errno}: all is copied, and may not be on the medium",
                self.typed
            ))
        })?;
        // On the way back all but the first moves may not have begun.
        if self.discard && self.goal == Goal::Forward {
            let moves: Vec<Movement> = self.sequence.moves().collect();
            freed::discard(&target.graph, target.id, &moves, &self.sequence.tables());
        }
        let tried = bad::lines(tried, self.sequence.sector);
        for line in &tried {
            complain(&format!("note: {line}"));
        }
        let notes = [self.notes, &tried].concat();
        let done = json.then(|| shown::moved(&target, self.sequence, self.goal, &notes));
        drop(target);
        move_journal::remove(self.path)?;
        tell_kernel(self.typed);
        match done {
            Some(document) => shown::print(&document)?,
            None => {
                let (moves, bytes) = (self.sequence.moves().count(), self.sequence.bytes());
                let partitions = crate::write_target::partitions(moves);
                say(&match self.goal {
                    Goal::Forward => {
                        format!("{}: {partitions} moved, {}", self.typed, size::human(bytes))
                    }
                    Goal::Back => format!("{}: everything is where it was before", self.typed),
                })?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The patches that adapt what is in the range `moved` to its new place, and what is free in it;
/// adds to `left` what stays as it is.
fn notes(
    target: &WriteTarget,
    moved: Movement,
    used_only: bool,
    left: &mut Vec<String>,
) -> Result<Adapted, Errno> {
    // Partitions that moved before are seen where they are now.
    let graph = target.graph.again();
    let id = graph.partition_at(target.id, moved.from, moved.length).ok_or(Errno::Io)?;
    let (rebased, lines) = rebased(&graph, id, moved.from, moved.to)?;
    left.extend(lines);
    // What is in doubt now was not when the plan began: all of it is copied.
    let unused = used_only.then(|| find_unused(&graph, id).ok()).flatten();
    Ok(Adapted { rebased, free: unused.unwrap_or_default().free })
}
