//! `move`: a partition with its contents, to another place.

pub(crate) mod args;
mod bad;
mod decide;
mod freed;
mod loaders;
pub(in crate::command) mod resume;
mod whole;

use crate::command::moving::args::Move as Options;
use crate::failure::{Failure, complain};
use crate::move_journal;
use crate::placed::{Placed, lands_on_grain};
use crate::progress::of_bytes;
use crate::remembered::Remembered;
use crate::style::Style;
use crate::survey::cure::Cures;
use crate::target::{DiskOverrides, Source, Target};
use crate::words::{columns, escape, say, size};
use crate::write_target::{WriteTarget, refuse, tell_kernel};
use crate::writing::{self, Job, WriteOptions};

use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::slices::place;
use trueline_geom::relocate::bad::BadSectors;
use trueline_geom::relocate::named;
use trueline_geom::relocate::sequence::{Goal, Movement};
use trueline_geom::relocate::{Interrupted, Journal, Move, Start, carry};
use trueline_geom::table::Refusal;
use trueline_geom::table::scheme::Scheme;
use trueline_host::disk::file::Access;
use trueline_host::process::signal;

pub(crate) fn run(args: &Options) -> Result<ExitCode, Failure> {
    match (&args.resume, &args.rollback) {
        (Some(journal), _) => resume::run(args, journal.as_deref(), Goal::Forward),
        (None, Some(journal)) => resume::run(args, journal.as_deref(), Goal::Back),
        (None, None) => begin(args, args.target.as_ref().unwrap_or(&Target::parse(""))),
    }
}

/// The access to open the target with.
fn access(args: &Options) -> Access {
    WriteOptions { dry_run: args.dry_run, save: None, allow_busy: args.allow_busy }.access()
}

fn begin(args: &Options, typed: &Target) -> Result<ExitCode, Failure> {
    let refused = |refusal: Refusal| refuse("move", typed, &refusal);
    let target = WriteTarget::open(typed, &args.disk, access(args))?;
    target.require_settled("move")?;
    if let Some(table) =
        target.table().filter(|_| args.align && !is_partition(&target.graph, target.id))
    {
        return whole::begin(args, typed, target, &table);
    }
    let placed = Placed::find(&target.graph, target.id).map_err(refused)?;
    // The table is part of what a journal compares: a second move would make the first one's
    // useless.
    move_journal::require_settled(
        &format!("move {} on", target.graph.providers[target.id].name),
        typed,
        &target.graph,
        placed.on,
    )?;
    let site = placed.site(&target.graph);
    let Placed { on, mut table, entry } = placed;
    let p = &target.graph.providers[on];
    if args.align && (entry.partition.kind.is_extended() || target.table().is_some()) {
        return align_container(args, target, typed);
    }
    let is_aligned = p.topology.common().is_some_and(|grain| grain.contains(entry.partition.start));
    if args.align && is_aligned {
        let own = entry.partition;
        if args.json {
            let stays = Moved { from: own.start, to: own.start, length: own.length, copied: 0 };
            return print(typed, target.judged.as_ref(), &stays, &[]);
        }
        let at = place(own.start, table.sector);
        say(&format!("{typed}: begins on the grain, at {at}; nothing was moved"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let to = args.to.as_deref().map(|text| offset(text, table.sector)).transpose()?;
    if to.is_none() {
        table.taken.extend(named::taken(&target.graph, on, &table));
    }
    let mut after = table.clone();
    let start = after.relocate(&site, entry.partition.index, to);
    let start = start.map_err(|refusal| {
        refused(if to.is_none() { with_room(args, typed, &target, refusal) } else { refusal })
    })?;
    if start == entry.partition.start {
        return Err(refused(Refusal::new(
            format!("it begins at {} already", place(start, table.sector)),
            "",
        )));
    }
    let bad = bad::list(args, table.sector)?;
    let unused = decide::unused(args, typed, &target, target.id, &mut BTreeSet::new())?;
    let mut changes = table.scheme.render(&table, &after);
    changes.extend(named::along(&target.graph, on, target.id, start).map_err(refused)?);
    let (plan, left) = decide::decide(&target, (on, &entry), start, changes, (&unused, &bad))
        .map_err(|errno| Failure::Message(format!("read {typed}: {errno}: nothing was written")))?;
    plan.check().map_err(refused)?;
    let loaders = loaders::notes(&target.graph, &[target.id])
        .map_err(|errno| Failure::Message(format!("read {typed}: {errno}: nothing was written")))?;
    let notes: Vec<String> = left.into_iter().chain(bad::listed(&plan)).chain(loaders).collect();
    for line in &notes {
        complain(&format!("note: {line}"));
    }
    match (args.dry_run, args.json) {
        (true, true) => {
            let jobs = vec![Job { id: on, patches: plan.table.clone() }];
            writing::print(&typed.disks(), &target.graph, jobs, true)?;
            return print(typed, target.judged.as_ref(), &Moved::of(&plan), &notes);
        }
        (true, false) => return show(&target, on, &plan, typed),
        (false, _) => {}
    }
    // A copy to another place leaves the old one whole until the table changes, so it needs no
    // journal.
    let path = plan
        .overlaps()
        .then(|| args.journal.clone().unwrap_or_else(|| move_journal::beside(typed)));
    let words = absolute(typed, &p.name);
    let journal =
        path.as_deref().map(|path| move_journal::create(path, &plan, &words)).transpose()?;
    let store =
        journal.as_ref().map(|opened| Journal::create(&opened.store, &plan, &words)).transpose();
    let store = store.map_err(|errno| {
        // Half a journal would stop the next attempt; if it cannot be removed, that attempt says
        // so.
        let _ = path.as_deref().map(fs::remove_file);
        Failure::Message(format!("write {}: {errno}: nothing was moved", shown(path.as_deref())))
    })?;
    if let Some((path, journal)) = path.as_deref().zip(journal.as_ref()) {
        move_journal::warn_of_memory(path, journal);
    }
    if !lands_on_grain(&target.graph, on, target.id, start) {
        complain(&format!(
            "warning: {} is off the grain: trueline check says what that costs",
            place(start, table.sector)
        ));
    }
    let (journal_path, discard) = (path.as_deref(), args.discard);
    let moving = Moving { typed, on, plan: &plan, journal: journal_path, discard, notes: &notes };
    let done = moving.carry(&target, store.as_ref(), Start::default());
    moving.finish(target, table.scheme, done, args.json)
}

/// A refusal to align for want of room, with the commands that make room and then move it, as
/// `check` prints them.
fn with_room(args: &Options, typed: &Target, target: &WriteTarget, refusal: Refusal) -> Refusal {
    let overrides = DiskOverrides::for_target(&args.disk, typed).ok();
    let commands = Cures::new(typed, overrides.as_ref(), &target.graph).moves(target.id);
    match commands.is_empty() {
        true => refusal,
        false => Refusal::new(
            refusal.found,
            format!("these commands make room and move it: {}", commands.join(" && ")),
        ),
    }
}

/// Aligns a partition that only carries others: nothing to do if they are on the grain, else they
/// move inside of it. Logical ones move with the whole disk, for the extended partition has no room
/// of its own.
fn align_container(
    args: &Options,
    target: WriteTarget,
    typed: &Target,
) -> Result<ExitCode, Failure> {
    let graph = &target.graph;
    let mut inner = (0..graph.providers.len())
        .filter(|&id| id != target.id && graph.is_within(target.id, id))
        .map(|id| &graph.providers[id]);
    let off = inner
        .find(|p| !p.is_extended() && p.slices().is_none() && !p.topology.missed(1).is_empty());
    let Some(off) = off else {
        say(&format!("{typed}: what it carries begins on the grain; nothing was moved"))?;
        return Ok(ExitCode::SUCCESS);
    };
    let is_extended = graph.providers[target.id].is_extended();
    if let Some(table) = target.table().filter(|_| !is_extended) {
        return whole::begin(args, typed, target, &table);
    }
    let found = format!("it carries partitions, and {} is off the grain", off.name);
    let advice = format!("all of the disk is put right by trueline move --align {}", typed.disks());
    Err(refuse("move", typed, &Refusal::new(found, advice)))
}

/// The offset of `--to` in bytes: bytes, a size with a unit, or sectors with an `s` behind them.
fn offset(text: &str, sector: u64) -> Result<u64, Failure> {
    let sectors = |text: &str| text.strip_suffix('s')?.parse::<u64>().ok()?.checked_mul(sector);
    let bytes = sectors(text).or_else(|| trueline_geom::base::size::bytes(text));
    bytes.ok_or_else(|| {
        Failure::Message(format!("move --to {text}: not an offset: 1048576, 1MiB, 2048s"))
    })
}

/// True if provider `id` is a partition, whose own place can be changed.
fn is_partition(graph: &Graph, id: Id) -> bool {
    let p = &graph.providers[id];
    p.kind.is_some()
        && matches!(p.parents.as_slice(), [parent] if graph.providers[*parent].slices().is_some())
}

/// Prints the move as `--dry-run` does.
fn show(target: &WriteTarget, on: Id, plan: &Move, typed: &Target) -> Result<ExitCode, Failure> {
    let (mut out, width) = (BufWriter::new(anstream::stdout().lock()), Style::of_stdout().width);
    let (from, to) = (place(plan.from, plan.sector), place(plan.to, plan.sector));
    columns::comment(
        &format!("{}: {} bytes from {from} to {to}", escape::plain(typed.typed()), plan.length),
        width,
        &mut out,
    )?;
    let how = match (plan.overlaps(), plan.saves()) {
        (false, _) => "copied; the old place is left as it is",
        (true, false) => "copied piece by piece, with a journal",
        (true, true) if plan.is_interlaced() => {
            "copied in passes, a quarter saved in the journal first"
        }
        (true, true) => "copied piece by piece, each saved in the journal first",
    };
    columns::comment(&format!("{how}{}; then", left_out(plan)), width, &mut out)?;
    out.flush()?;
    drop(out);
    let jobs = vec![Job { id: on, patches: plan.table.clone() }];
    writing::print(&typed.disks(), &target.graph, jobs, false)?;
    Ok(ExitCode::SUCCESS)
}

/// The bytes of `plan` that are copied, in words, if there are others.
fn left_out(plan: &Move) -> String {
    match plan.amount() {
        all if all == plan.length => String::new(),
        some => format!(", {} of it: the rest is free or holes", size::human(some)),
    }
}

/// The provider with the table as a target with absolute paths, which also resumes from another
/// directory.
pub(in crate::command) fn absolute(typed: &Target, on: &str) -> String {
    let disks = typed.sources().iter().map(|disk: &Source| {
        let path = disk.path().and_then(|path| fs::canonicalize(path).ok());
        path.and_then(|path| path.into_os_string().into_string().ok())
            .unwrap_or_else(|| disk.typed().to_owned())
    });
    let disks = disks.collect::<Vec<_>>().join(",");
    if on.is_empty() { disks } else { format!("{disks}#{on}") }
}

fn shown(path: Option<&Path>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// The reason why a move ended before its end, in words; `is_listed` is true for bytes of the list
/// of sectors that may be unreadable.
fn interrupted(why: Interrupted, sector: u64, is_listed: &dyn Fn(u64) -> bool) -> String {
    match why {
        Interrupted::Asked => "it was interrupted".into(),
        Interrupted::Disk(at, errno) => format!("{errno} at {}", place(at, sector)),
        Interrupted::Unread(at, errno @ Errno::Io) if is_listed(at) => format!(
            "{errno} at {}, which was read before the interruption: try again, for it may be read \
             at another attempt, or bring back a copy of the disk (ddrescue)",
            place(at, sector)
        ),
        Interrupted::Unread(at, errno) => {
            format!(
                "{errno} at {}, which --skip-bad {} passes over",
                place(at, sector),
                at / sector
            )
        }
        Interrupted::Journal(errno) => format!("the journal: {errno}"),
    }
}

/// A move in progress.
struct Moving<'a> {
    typed: &'a Target,
    on: Id,
    plan: &'a Move,
    journal: Option<&'a Path>,
    /// True if the old place is discarded when the move is done.
    discard: bool,
    /// Notes that were printed before it began, for the document.
    notes: &'a [String],
}

/// The document of `move --json`.
#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    target: &'a str,
    #[serde(rename = "for")]
    judged: Option<&'a Remembered>,
    #[serde(flatten)]
    moved: &'a Moved,
    /// Sentences on what the move leaves as it is (boot loaders, starts that were wrong), and on
    /// sectors that could not be read.
    notes: &'a [String],
}

/// Places of a partition before and after, in bytes of its provider, and its bytes.
#[derive(Serialize)]
struct Moved {
    from: u64,
    to: u64,
    length: u64,
    copied: u64,
}

impl Moved {
    fn of(plan: &Move) -> Moved {
        Moved { from: plan.from, to: plan.to, length: plan.length, copied: plan.amount() }
    }
}

/// Prints the document of what was moved, or would be.
fn print(
    typed: &Target,
    judged: Option<&Remembered>,
    moved: &Moved,
    notes: &[String],
) -> Result<ExitCode, Failure> {
    let target = typed.typed();
    let report = Report { format: "trueline/move/1", target, judged, moved, notes };
    let mut out = BufWriter::new(anstream::stdout().lock());
    serde_json::to_writer_pretty(&mut out, &report).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

impl Moving<'_> {
    fn carry(
        &self,
        target: &WriteTarget,
        journal: Option<&Journal<'_>>,
        start: Start,
    ) -> Result<BadSectors, Failure> {
        let bar = of_bytes("move", self.plan.length);
        signal::remember_first();
        let disk = Through::new(&target.graph, self.on);
        let mut copied = 0;
        let done = carry(self.plan, &disk, journal, start, &mut |bytes| {
            copied = bytes;
            bar.set_position(bytes);
            !signal::happened()
        });
        bar.finish_and_clear();
        done.map_err(|why| {
            let found = interrupted(why, self.plan.sector, &bad::of_plan(self.plan));
            let next = match self.journal {
                Some(path) => format!("go on with: trueline move --resume {}", path.display()),
                None => "nothing has changed: begin again".into(),
            };
            Failure::Message(format!(
                "move {}: {found}: {copied} of {} bytes are copied: {next}",
                self.typed, self.plan.length
            ))
        })
    }

    /// Reads the table back, flushes, removes the journal and reports.
    fn finish(
        &self,
        target: WriteTarget,
        scheme: &'static dyn Scheme,
        done: Result<BadSectors, Failure>,
        json: bool,
    ) -> Result<ExitCode, Failure> {
        let plan = self.plan;
        let bad = match done {
            Ok(bad) => bad,
            Err(why) => {
                drop(target);
                // The table may be the new one already.
                tell_kernel(self.typed);
                return Err(why);
            }
        };
        let read =
            scheme.read(&target.graph.probe(self.on)).filter(|table| table.damage.is_empty());
        let is_there = read.is_some_and(|table| {
            table.entries.iter().any(|entry| {
                (entry.partition.start, entry.partition.length) == (plan.to, plan.length)
            })
        });
        if !is_there {
            let message = format!(
                "write {}: the table does not read back as it should: check the disk; the journal is kept",
                self.typed
            );
            return Err(Failure::Message(message));
        }
        // The journal is removed last: writes of an earlier run that are still in a cache are
        // flushed first.
        Through::new(&target.graph, self.on).flush().map_err(|errno| {
            let kept = self.journal.map_or(String::new(), |path| {
                format!("; go on with: trueline move --resume {}", path.display())
            });
            Failure::Message(format!(
                "flush {}: {errno}: all is copied, and may not be on the medium{kept}",
                self.typed
            ))
        })?;
        if self.discard {
            let moved = Movement { from: plan.from, to: plan.to, length: plan.length };
            freed::discard(&target.graph, self.on, &[moved], &[]);
        }
        let tried = bad::lines(&bad::tried(plan, &bad), plan.sector);
        for line in &tried {
            complain(&format!("note: {line}"));
        }
        let judged = target.judged.clone();
        drop(target);
        self.journal.map_or(Ok(()), move_journal::remove)?;
        tell_kernel(self.typed);
        if json {
            let notes = [self.notes, &tried].concat();
            print(self.typed, judged.as_ref(), &Moved::of(plan), &notes)?;
        } else {
            let (from, to) = (place(plan.from, plan.sector), place(plan.to, plan.sector));
            say(&format!(
                "{}: {} moved from {from} to {to}",
                self.typed,
                size::human(plan.length)
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
