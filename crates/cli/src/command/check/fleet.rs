//! Targets one after another: each is written as soon as those before it are, so that a fleet of
//! any size takes the same memory.

use super::args::{Check, Form};
use super::in_order::in_order;
use super::into::{self, Done};
use super::names::Item;
use super::{shard, survey_one, walk};
use crate::failure::{Failure, Reason, complain};
use crate::page_file::write_file;
use crate::progress;
use crate::render::made::Made;
use crate::render::report::rows::{self, State};
use crate::render::report::{json, page};
use crate::report::{CHECK, Report, Target};
use crate::tally::{Seen, Tally};
use crate::target::{self, DiskOverrides, Named};
use crate::words;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;

/// Targets up to which a page has all of each; with more it is that of a fleet.
pub(super) const PAGE: usize = 100;

/// Fate of a target.
enum Outcome {
    /// Its lines, and what is counted of it.
    Checked(Vec<u8>, Box<Target>),
    /// The name, the class of the error, and the error.
    Unread(String, &'static str, String),
    /// A file that holds nothing known.
    Other(String),
    /// Lines of it are there already.
    Done,
}

/// Checks what `names` has, and writes the lines of each in that order.
pub(super) fn run(
    args: &Check,
    overrides: &DiskOverrides,
    names: impl Iterator<Item = Item> + Send,
    total: Option<u64>,
) -> Result<Tally, Failure> {
    let (out, mut done) = match &args.into {
        Some(path) => {
            let is_rows = args.output.form() == Form::Rows;
            if is_rows && args.output.html.is_some() {
                return Err(Failure::Message(
                    "--html of --into needs --jsonl: rows have no messages".into(),
                ));
            }
            let (file, done) =
                into::open(path, is_rows, |name| state(&target::Target::parse(name), args).etag)?;
            (Some(file), done)
        }
        None => (None, Done::nothing()),
    };
    let counted = std::mem::take(&mut done.tally);
    let bar = progress::of_fleet(total, args.quiet);
    let mut sink = Sink::new(args, out, counted);
    let mut failed = None;
    let work = |item| check(item, args, overrides, &done);
    in_order(names, work, |outcome, is_more| {
        // Where nothing follows at once, a reader gets what is there.
        let written = sink.take(outcome).and_then(|()| match is_more {
            true => Ok(()),
            false => sink.out.flush().map_err(Failure::from),
        });
        failed = written.err();
        bar.inc(1);
        bar.set_message(sink.shown());
        failed.is_none()
    });
    bar.finish_and_clear();
    match failed {
        // The reader has read what it wanted; the status is of what was checked until then.
        Some(Failure::Pipe) => Ok(sink.tally),
        Some(failure) => Err(failure),
        None => sink.end(args),
    }
}

/// Checks one target, unless it is done with.
fn check(item: Item, args: &Check, overrides: &DiskOverrides, done: &Done) -> Outcome {
    let (name, is_found) = match item {
        Item::Named(name) => (name, false),
        Item::Found(name) => (name, true),
        Item::Unread(why) => return Outcome::Unread(String::new(), "unreadable", why),
    };
    let state = name.as_ref().map(|name| state(name, args)).unwrap_or_default();
    if name.as_ref().is_ok_and(|name| done.has(name.typed(), &state.etag)) {
        return Outcome::Done;
    }
    match survey_one(&name, overrides) {
        Ok(target) if is_found && !walk::is_image(&target) => Outcome::Other(target.target),
        Ok(target) => {
            let mut lines = Vec::new();
            let written = match args.output.form() {
                Form::Rows => rows::write(&target, &state, &mut lines),
                _ => json::write_line(CHECK, &target, &state, &mut lines),
            };
            match written {
                Ok(()) => Outcome::Checked(lines, Box::new(target)),
                Err(e) => Outcome::Unread(target.target, "unreadable", words::os(&e)),
            }
        }
        Err(Reason(why)) => {
            let typed = name.as_ref().map_or(String::new(), |name| name.typed().to_owned());
            Outcome::Unread(typed, class(&name), why)
        }
    }
}

/// The state of a target that is one file, as it is judged: by the file, and by what was said of
/// the disk.
fn state(name: &target::Target, args: &Check) -> State {
    let known = name.only_path().and_then(|path| fs::metadata(path).ok());
    known.filter(fs::Metadata::is_file).map_or_else(State::default, |file| {
        let words = args.disk.words().join(" ");
        let said = if words.is_empty() { 0 } else { shard::fnv1a(words.as_bytes()) };
        let times = (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
        State {
            size: file.len(),
            etag: format!(
                "{:x}-{:x}-{:x}-{:x}-{:x}-{:x}-{said:x}",
                times.0,
                times.1,
                times.2,
                times.3,
                file.ino(),
                file.len()
            ),
        }
    })
}

/// The class of the error of a target that could not be read. Only a regular file is opened again:
/// a pipe would wait for a writer.
fn class(name: &Named) -> &'static str {
    let Ok(name) = name else { return "name" };
    if name.is_remote() {
        return "remote";
    }
    let opened = |path| match fs::metadata(path) {
        Ok(found) if found.is_file() => File::open(path).err(),
        found => found.err(),
    };
    match name.paths().into_iter().find_map(opened).map(|e| e.kind()) {
        Some(ErrorKind::NotFound) => "not found",
        Some(ErrorKind::PermissionDenied) => "denied",
        Some(_) => "unreadable",
        None => "refused",
    }
}

/// Place that lines go to, and what is counted of them.
struct Sink {
    out: Box<dyn Write>,
    is_rows: bool,
    tally: Tally,
    /// Names of files that hold nothing known: how many, and the first few.
    others: (usize, Vec<String>),
    /// Reports for a page of all of each, as long as they are few.
    kept: Option<Report>,
}

impl Sink {
    fn new(args: &Check, file: Option<File>, tally: Tally) -> Sink {
        // Of targets that are done there are counts alone.
        let is_new = tally.counts.all() == 0 && tally.failed() == 0;
        let out: Box<dyn Write> = match file {
            Some(file) => Box::new(BufWriter::new(file)),
            None => Box::new(BufWriter::new(io::stdout())),
        };
        Sink {
            out,
            is_rows: args.output.form() == Form::Rows,
            tally,
            others: (0, Vec::new()),
            kept: (args.output.html.is_some() && is_new)
                .then(|| Report::new(CHECK, Vec::new(), Vec::new())),
        }
    }

    fn take(&mut self, outcome: Outcome) -> Result<(), Failure> {
        match outcome {
            Outcome::Done => {}
            Outcome::Other(name) => {
                let (count, first) = &mut self.others;
                *count += 1;
                if first.len() < walk::NAMED {
                    first.push(name);
                }
            }
            Outcome::Checked(lines, target) => {
                self.tally.add(&Seen::from(&*target));
                if let Some(kept) = &mut self.kept {
                    kept.targets.push(*target);
                    if kept.targets.len() > PAGE {
                        self.kept = None;
                    }
                }
                self.out.write_all(&lines)?;
            }
            Outcome::Unread(name, class, why) => {
                complain(&why);
                self.tally.add_unread(class, &why);
                if let Some(kept) = &mut self.kept {
                    kept.errors.push(why.clone());
                    if kept.errors.len() > PAGE {
                        self.kept = None;
                    }
                }
                match self.is_rows {
                    true => rows::write_error(&name, class, &why, &mut self.out)?,
                    false => json::write_error(CHECK, &name, class, &why, &mut self.out)?,
                }
            }
        }
        Ok(())
    }

    /// Words of a bar besides its number.
    fn shown(&self) -> String {
        let (bad, failed) = (self.tally.counts.misaligned, self.tally.failed());
        let errors = if failed > 0 { format!(", {failed} not read") } else { String::new() };
        format!("{bad} misaligned{errors}")
    }

    fn end(mut self, args: &Check) -> Result<Tally, Failure> {
        self.out.flush()?;
        let (count, first) = &self.others;
        if *count > 0 && !args.quiet {
            complain(&walk::passed_over(None, *count, first));
        }
        if let Some(path) = &args.output.html {
            let (tally, made) = (&self.tally, Made::now());
            match self.kept {
                Some(Report { targets, errors, .. }) => {
                    let report = Report::new(CHECK, targets, errors);
                    write_file(path, |file| page::write(&report, &made, file))?;
                }
                None => write_file(path, |file| page::fleet::write(tally, &made, file))?,
            }
        }
        Ok(self.tally)
    }
}
