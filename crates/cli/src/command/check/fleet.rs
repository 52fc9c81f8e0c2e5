//! Targets one after another: each is written as soon as those before it are, so that a fleet of
//! any size takes the same memory.

use super::args::{Check, Form};
use super::into::{self, Done};
use super::names::Item;
use super::{shard, survey_one, walk};
use crate::failure::{Failure, Reason, complain};
use crate::page_file::write_file;
use crate::progress;
use crate::render::made::Made;
use crate::render::report::rows::{self, State};
use crate::render::report::{json, page};
use crate::report::{Report, Target};
use crate::tally::{Seen, Tally};
use crate::target::{DiskOverrides, Named};
use crate::words;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// Targets that are under way or done, and not written yet: those before them take longer.
const WINDOW: u64 = 1024;
/// Targets up to which a page has all of each; with more it is that of a fleet.
pub(super) const PAGE: usize = 100;
/// Name of the format of a line, which is that of a report.
const FORMAT: &str = "trueline/check/1";

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

/// Names that are still to be taken, and how far their lines are written.
struct Queue<I> {
    state: Mutex<QueueState<I>>,
    moved: Condvar,
}

struct QueueState<I> {
    names: I,
    taken: u64,
    written: u64,
    /// True once no more names are wanted.
    ended: bool,
}

impl<I: Iterator<Item = Item>> Queue<I> {
    fn new(names: I) -> Queue<I> {
        let state = QueueState { names, taken: 0, written: 0, ended: false };
        Queue { state: Mutex::new(state), moved: Condvar::new() }
    }

    /// The next name and its number; waits while too many are ahead of what is written.
    fn take(&self) -> Option<(u64, Item)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.ended && state.taken >= state.written + WINDOW {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let next = if state.ended { None } else { state.names.next() };
        state.ended |= next.is_none();
        let number = state.taken;
        state.taken += 1;
        next.map(|item| (number, item))
    }

    fn change(&self, change: impl FnOnce(&mut QueueState<I>)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }
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
            let (file, done) = into::open(path, is_rows, |name| {
                state(&crate::target::Target::parse(name), args).etag
            })?;
            (Some(file), done)
        }
        None => (None, Done::nothing()),
    };
    let counted = std::mem::take(&mut done.tally);
    let bar = progress::of_fleet(total, args.quiet);
    let queue = Queue::new(names);
    let (send, receive) = std::sync::mpsc::channel();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (send, queue, done) = (send.clone(), &queue, &done);
            scope.spawn(move || {
                while let Some((number, item)) = queue.take() {
                    let outcome = check(item, args, overrides, done);
                    if send.send((number, outcome)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut sink = Sink::new(args, out, counted);
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        let mut failed = None;
        for (number, outcome) in receive {
            waiting.insert(number, outcome);
            while let Some(outcome) = waiting.remove(&next) {
                next += 1;
                if failed.is_none() {
                    failed = sink.take(outcome).err();
                }
                queue.change(|state| {
                    state.written = next;
                    state.ended |= failed.is_some();
                });
                bar.inc(1);
                bar.set_message(sink.shown());
            }
            if waiting.is_empty() && failed.is_none() {
                failed = sink.out.flush().err().map(Failure::from);
            }
        }
        bar.finish_and_clear();
        match failed {
            // The reader has read what it wanted; the status is of what was checked until then.
            Some(Failure::Pipe) => Ok(sink.tally),
            Some(failure) => Err(failure),
            None => sink.end(args),
        }
    })
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
                _ => json::write_line(FORMAT, &target, &state, &mut lines),
            };
            match written {
                Ok(()) => Outcome::Checked(lines, Box::new(target)),
                Err(e) => Outcome::Unread(target.target, "unreadable", words::os(&e)),
            }
        }
        Err(Reason(why)) => {
            let typed = name.as_ref().map_or(String::new(), |name| name.typed().to_owned());
            Outcome::Unread(typed, class(&name, &why), why)
        }
    }
}

/// The state of a target that is one file, as it is judged: by the file, and by what was said of
/// the disk.
fn state(name: &crate::target::Target, args: &Check) -> State {
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

/// The class of the error of a target that could not be read. Nothing is opened again: a pipe would
/// wait for a writer.
fn class(name: &Named, why: &str) -> &'static str {
    let Ok(name) = name else { return "name" };
    let missing = || name.paths().into_iter().find_map(|path| fs::metadata(path).err());
    if name.is_remote() {
        "remote"
    } else if why.contains("ermission denied") {
        "denied"
    } else {
        match missing().map(|e| e.kind()) {
            Some(ErrorKind::NotFound) => "not found",
            Some(_) => "unreadable",
            None => "refused",
        }
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
                .then(|| Report::new(FORMAT, Vec::new(), Vec::new())),
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
                    false => json::write_error(FORMAT, &name, class, &why, &mut self.out)?,
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
                    let report = Report::new(FORMAT, targets, errors);
                    write_file(path, |file| page::write(&report, &made, file))?;
                }
                None => write_file(path, |file| page::fleet::write(tally, &made, file))?,
            }
        }
        Ok(self.tally)
    }
}
