//! `convert`: a disk for logical sectors of another size.

pub(crate) mod args;
mod shown;

use crate::command::converting::args::Convert as Options;
use crate::command::moving::absolute;
use crate::command::moving::resume::in_sectors;
use crate::failure::{Failure, complain};
use crate::move_journal::named::{Going as Named, named};
use crate::move_journal::{self, unreadable};
use crate::placed::require_one_table;
use crate::progress::of_bytes;
use crate::target::Target;
use crate::words::{self, say};
use crate::write_target::{WriteTarget, refuse, tell_kernel};
use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;
use trueline_geom::base::error::Errno;
use trueline_geom::base::finding;
use trueline_geom::base::resize::Aim;
use trueline_geom::base::store::{Content, Run, Store};
use trueline_geom::convert::owned::Owned;
use trueline_geom::convert::rewrite::{Rewrite, Standing, Toward};
use trueline_geom::convert::{Conversion, Kept, Obstacle, plan};
use trueline_geom::graph::provider_store::Through;
use trueline_geom::registry;
use trueline_geom::relocate::Unreadable;
use trueline_geom::table::Refusal;
use trueline_host::disk::file::{self, Access};
use trueline_host::process::signal;
use trueline_host::random;

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;

pub(crate) fn run(args: &Options) -> Result<ExitCode, Failure> {
    match (&args.resume, &args.rollback) {
        (Some(journal), _) => resume(args, journal.as_deref(), Toward::New),
        (None, Some(journal)) => resume(args, journal.as_deref(), Toward::Old),
        (None, None) => begin(args, args.target.as_ref().unwrap_or(&Target::parse(""))),
    }
}

/// The access to open the target with.
fn access(args: &Options) -> Access {
    match (args.dry_run || args.output.is_some(), args.allow_busy) {
        (true, _) => Access::Read,
        (false, true) => Access::WriteInUse,
        (false, false) => Access::Write,
    }
}

fn begin(args: &Options, typed: &Target) -> Result<ExitCode, Failure> {
    let refused = |refusal: Refusal| refuse("convert", typed, &refusal);
    let target = WriteTarget::open(typed, &args.disk, access(args))?;
    target.require_settled("convert")?;
    let disk = &target.graph.providers[target.id];
    let is_contained = registry::shows_a_disk(disk.class);
    if !disk.parents.is_empty() && !is_contained {
        let found = "it is a part of a disk, and sectors are those of all of it";
        return Err(refused(Refusal::new(found, "name the disk")));
    }
    if disk.findings.iter().any(|finding| *finding.rule == finding::SECTOR) {
        let found = "its table was written for other sectors than it has here";
        let advice = "say which those are: --logical 512, or 4096";
        return Err(refused(Refusal::new(found, advice)));
    }
    require_one_table(&target.graph, target.id).or_else(|refusal| {
        // A disk without a table is the file system that it holds.
        if disk.table.is_none() { Ok(()) } else { Err(refused(refusal)) }
    })?;
    let from = disk.topology.sector;
    let aim = Aim { from, to: args.sector_size.unwrap_or(from), universal: args.universal };
    if ![512, 4096].contains(&from) {
        let found = format!("its sectors are of {from} bytes");
        return Err(refused(Refusal::new(found, "those of 512 and of 4096 are converted")));
    }
    if let Some(output) = args.output.as_deref().filter(|output| output.exists()) {
        let found = format!("{} is there already", output.display());
        return Err(refused(Refusal::new(found, "name a file that is not")));
    }
    if aim.from == aim.to && !aim.universal && !is_universal(&target, from) {
        if args.output.is_some() {
            let found = format!("it is for sectors of {from} bytes already");
            return Err(refused(Refusal::new(found, "copy it")));
        }
        say(&format!("{typed}: it is for sectors of {from} bytes already; nothing was written"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_file = typed.only_path().is_some_and(Path::is_file);
    let is_plain = is_file && !is_contained;
    if args.output.is_none() && is_contained {
        let found = "a container is only read";
        return Err(refused(Refusal::new(found, "write a new image: -o FILE")));
    }
    let grows = args.output.is_some() || is_plain;
    let conversion = plan(&target.graph, target.id, aim, grows)
        .map_err(|obstacles| in_the_way(typed, &target, &obstacles))?;
    for (id, note) in &conversion.notes {
        complain(&format!("note: {}: {note}", shown::name(&target, *id)));
    }
    if !args.json {
        shown::plan(&target, &conversion)?;
    }
    if args.dry_run {
        if args.json {
            shown::print(&shown::report(&target, &conversion))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let document = args.json.then(|| shown::report(&target, &conversion));
    match &args.output {
        Some(output) => into(typed, &target, &conversion, output)?,
        None => in_place(args, typed, target, &conversion)?,
    }
    match document {
        Some(document) => shown::print(&document)?,
        None => say(&shown::done(typed, &conversion, args.output.as_deref()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// True if a GPT for sectors of the other size is on the disk besides.
fn is_universal(target: &WriteTarget, sector: u64) -> bool {
    let mut signature = [0; 8];
    let at = if sector == 512 { 4096 } else { 512 };
    let is_gpt = target.table().is_some_and(|table| table.scheme.name() == "GPT");
    let read = target.graph.read_at(target.id, &mut signature, at);
    is_gpt && read.is_ok() && signature == *b"EFI PART"
}

/// The refusal of a disk that cannot be converted as it is; a line on stderr for each reason.
fn in_the_way(typed: &Target, target: &WriteTarget, obstacles: &[Obstacle]) -> Failure {
    if let [obstacle] = obstacles {
        let name = shown::name(target, obstacle.id);
        let found = format!("{name}: {}", obstacle.refusal.found);
        return refuse("convert", typed, &Refusal::new(found, obstacle.refusal.advice.clone()));
    }
    for obstacle in obstacles {
        let name = shown::name(target, obstacle.id);
        complain(&format!("{name}: {}", words::refusal::text(&obstacle.refusal)));
    }
    let found = format!("{} things stand in the way", obstacles.len());
    Failure::Message(format!("convert {typed}: {found}: nothing was written"))
}

/// Writes the converted disk into a new file.
fn into(
    typed: &Target,
    target: &WriteTarget,
    conversion: &Conversion,
    output: &Path,
) -> Result<(), Failure> {
    let failed = |what: &str| Failure::Message(format!("write {}: {what}", output.display()));
    let made = File::options().write(true).create_new(true).open(output);
    let made = made.and_then(|made| made.set_len(conversion.after));
    made.map_err(|e| failed(&words::os(&e)))?;
    let done = copy(target, conversion, output).and_then(|()| verify(output, target, conversion));
    done.map_err(|why| {
        // Half an image looks like one.
        let _ = fs::remove_file(output);
        match why {
            Failure::Message(message) => failed(&format!("{message}: {typed} is as it was")),
            other => other,
        }
    })
}

fn copy(target: &WriteTarget, conversion: &Conversion, output: &Path) -> Result<(), Failure> {
    let errno = |errno: Errno| Failure::Message(errno.to_string());
    let opened =
        file::open_for(output, Access::Write).map_err(|e| Failure::Message(e.to_string()))?;
    let source = Through::new(&target.graph, target.id);
    let bar = of_bytes("convert", conversion.before.saturating_add(conversion.bytes()));
    signal::remember_first();
    let end = conversion.before.min(conversion.after);
    let mut buffer = vec![0; PIECE];
    // Of a set a run is made of many pieces: it is asked for once, and copied in several steps.
    let (mut at, mut run) = (0, Run { content: Content::Data, length: 0 });
    while at < end {
        if signal::happened() {
            return Err(Failure::Message("interrupted".into()));
        }
        if run.length == 0 {
            run = source.extent(at, end - at).map_err(errno)?;
            run.length = run.length.max(1);
        }
        let mut length = run.length;
        if run.content == Content::Data {
            let step = usize::try_from(length).unwrap_or(PIECE).min(PIECE);
            source.read_at(&mut buffer[..step], at).map_err(errno)?;
            opened.store.write_at(&buffer[..step], at).map_err(errno)?;
            length = step as u64;
        }
        at += length;
        run.length -= length;
        bar.set_position(at);
    }
    let mut read = |at: u64, out: &mut [u8]| source.read_at(out, at);
    for write in &conversion.writes {
        let mut done = 0;
        while done < write.length() {
            let length = usize::try_from(write.length() - done).unwrap_or(PIECE).min(PIECE);
            write.fill(done, &mut buffer[..length], &mut read).map_err(errno)?;
            opened.store.write_at(&buffer[..length], write.at + done).map_err(errno)?;
            done += length as u64;
            bar.inc(length as u64);
        }
    }
    bar.finish_and_clear();
    opened.store.flush().map_err(errno)
}

/// Reads the disk at `path` in its new sectors, and compares its partitions and contents with the
/// plan.
fn verify(path: &Path, before: &WriteTarget, conversion: &Conversion) -> Result<(), Failure> {
    for &sector in conversion.aim.sizes() {
        let disk = crate::disk_options::DiskOptions {
            logical: Some(sector),
            ..crate::disk_options::DiskOptions::default()
        };
        let typed = Target::parse(&path.to_string_lossy());
        let after = WriteTarget::open(&typed, &disk, Access::Read)?;
        let is_there = |kept: &Kept| {
            after.graph.providers.iter().any(|p| {
                let was = &before.graph.providers[kept.id];
                p.base() == kept.after.start
                    && p.topology.length == kept.after.end - kept.after.start
                    && p.start.is_some()
                    && p.signs.iter().map(|sign| sign.kind).eq(was.signs.iter().map(|s| s.kind))
            })
        };
        if let Some(lost) = conversion.partitions.iter().find(|kept| !is_there(kept)) {
            return Err(Failure::Message(format!(
                "{} does not read back as it should in sectors of {sector} bytes",
                shown::name(before, lost.id)
            )));
        }
    }
    Ok(())
}

/// Converts the disk itself, with a journal.
fn in_place(
    args: &Options,
    typed: &Target,
    target: WriteTarget,
    conversion: &Conversion,
) -> Result<(), Failure> {
    let path = args.journal.clone().unwrap_or_else(|| move_journal::beside(typed));
    let id = random::bytes().map_err(|e| Failure::Message(format!("random numbers: {e}")))?;
    let words = absolute(typed, &target.graph.providers[target.id].name);
    let mut rewrite = Rewrite::new(id, conversion, &words);
    let size = rewrite.size().ok_or_else(|| {
        refuse("convert", typed, &Refusal::new("too much would be written for a journal", "use -o"))
    })?;
    let journal = move_journal::reserve(&path, size, &id)?;
    move_journal::warn_of_memory(&path, &journal);
    let disk = Through::new(&target.graph, target.id);
    let bar = of_bytes("convert", rewrite.bytes().saturating_mul(2));
    let recorded =
        rewrite.record(&journal.store, &disk, &conversion.writes, &mut |bytes| bar.inc(bytes));
    recorded.map_err(|errno| {
        // Without its head the journal is of no use, and would stop the next attempt.
        let _ = fs::remove_file(&path);
        Failure::Message(format!("write {}: {errno}: nothing was converted", path.display()))
    })?;
    let going = Going { typed, path: &path, rewrite: &rewrite, toward: Toward::New };
    going.complete(target, &journal.store, &|bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    Ok(())
}

/// Goes on with the conversion in the journal that is named, or found by the disk.
fn resume(args: &Options, journal: Option<&Path>, toward: Toward) -> Result<ExitCode, Failure> {
    let option = if toward == Toward::New { "--resume" } else { "--rollback" };
    let going = Named { command: "convert", option, nothing: "nothing was written" };
    let named = named(going, journal, args.target.as_ref(), &args.disk)?;
    let path = named.journal.as_path();
    let failed = |found: &str| {
        Failure::Message(format!("resume {}: {found}: nothing was written", path.display()))
    };
    if let Some(found) = move_journal::remove_draft(path, args.dry_run)? {
        if toward == Toward::New {
            return Err(Failure::Message(format!("{found}: begin again")));
        }
        say(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    let opened = file::open_for(path, access(args)).map_err(|e| Failure::Message(e.to_string()))?;
    let rewrite = Rewrite::open(&opened.store).map_err(|why| {
        failed(&match (why, Owned::open(&opened.store)) {
            (Unreadable::Other, Ok((owned, _))) => format!(
                "it is the journal of a {0}: go on with that: trueline {0} {option} {1}",
                owned.kind().command(),
                path.display()
            ),
            (Unreadable::Other, Err(_)) => {
                "it is no journal of a conversion: name the file that was named when it began"
                    .into()
            }
            (why, _) => unreadable(why),
        })
    })?;
    let typed = named.target(&rewrite.words);
    let disk = in_sectors(&args.disk, rewrite.from, &typed);
    let target = WriteTarget::open(&typed, &disk, access(args))?;
    let length = target.graph.providers[target.id].topology.length;
    let store = Through::new(&target.graph, target.id);
    if ![rewrite.before, rewrite.after].contains(&length) {
        return Err(failed(&format!("{typed} has {length} bytes: it is another disk")));
    }
    match rewrite.standing(&opened.store, &store).map_err(|e| failed(&e.to_string()))? {
        Standing::Other => {
            return Err(failed(&format!("{typed} is another disk, or was written to since")));
        }
        Standing::Damaged => return Err(failed("it is damaged")),
        Standing::Old | Standing::New | Standing::Between => {}
    }
    if args.dry_run {
        let end = if toward == Toward::New { "done" } else { "taken back" };
        say(&format!("{typed}: its conversion would be {end}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let bar = of_bytes("convert", rewrite.bytes());
    let rest = Going { typed: &typed, path, rewrite: &rewrite, toward };
    rest.complete(target, &opened.store, &|bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    say(&match toward {
        Toward::New => format!("{typed}: converted"),
        Toward::Old => format!("{typed}: every byte is as it was"),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Conversion in place that is in progress.
struct Going<'a> {
    typed: &'a Target,
    path: &'a Path,
    rewrite: &'a Rewrite,
    toward: Toward,
}

impl Going<'_> {
    /// Carries it out, compares, and removes the journal.
    fn complete(
        &self,
        target: WriteTarget,
        journal: &dyn Store,
        told: &dyn Fn(u64),
    ) -> Result<(), Failure> {
        let kept = |found: String| {
            let path = self.path.display();
            Failure::Message(format!(
                "convert {}: {found}: the journal is kept: go on with: trueline convert --resume \
                 {path}, or go back with: trueline convert --rollback {path}",
                self.typed
            ))
        };
        let file = self.typed.only_path().filter(|path| path.is_file());
        let sized = |length: u64| {
            let Some(path) = file else { return Ok(()) };
            let file = File::options().write(true).open(path);
            file.and_then(|file| file.set_len(length).and_then(|()| file.sync_all()))
                .map_err(|e| kept(words::os(&e)))
        };
        let disk = Through::new(&target.graph, target.id);
        // A file grows before anything is written past its end, and shrinks when nothing is there.
        let longest = self.rewrite.before.max(self.rewrite.after);
        let disk: Box<dyn Store> = match file.filter(|_| disk.length() < longest) {
            Some(path) => {
                sized(longest)?;
                let opened = file::open_for(path, Access::WriteInUse);
                Box::new(opened.map_err(|e| kept(e.to_string()))?.store)
            }
            None => Box::new(disk),
        };
        let done = self.rewrite.run(journal, &*disk, self.toward, &mut |bytes| told(bytes));
        done.map_err(|errno| kept(errno.to_string()))?;
        let wanted = if self.toward == Toward::New { Standing::New } else { Standing::Old };
        let stands = self.rewrite.standing(journal, &*disk).map_err(|e| kept(e.to_string()))?;
        // Where no byte changes the old is the new.
        if stands != wanted && stands != Standing::New {
            return Err(kept("what was written does not read back: check the disk".into()));
        }
        drop(disk);
        drop(target);
        let length =
            if self.toward == Toward::New { self.rewrite.after } else { self.rewrite.before };
        sized(length)?;
        move_journal::remove(self.path)?;
        tell_kernel(self.typed);
        Ok(())
    }
}
