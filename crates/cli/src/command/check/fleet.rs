//! Targets one after another: each is written as soon as those before it are, so that a fleet of
//! any size takes the same memory.

use super::args::{Check, Form};
use super::into::{self, Done};
use super::names::Item;
use super::permits::Permits;
use super::single::{Manner, Outcome, judged, state, write_error};
use super::walk;
use crate::checked::Checked;
use crate::failure::{Failure, complain};
use crate::in_order::{in_order, processors};
use crate::page_file::write_file;
use crate::progress;
use crate::render::made::Made;
use crate::render::report::{changes, json, page};
use crate::report::{CHECK, Report, UnreadTarget};
use crate::tally::{Seen, Tally};
use crate::target::object::{self, Requests};
use crate::target::{self, DiskOverrides};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use trueline_geom::base::finding::Severity;

/// Targets up to which a page has all of each; with more it is that of a fleet.
pub(super) const PAGE: usize = 100;

/// Targets that are waited for at one time, where servers have them.
pub(super) const IN_FLIGHT: usize = 64;

/// Counts of a fleet.
pub(super) struct Fleet {
    pub(super) tally: Tally,
    /// With `--changed`: the worst severity of what is new, and whether a target has become
    /// `unknown`.
    pub(super) new: Option<(Option<Severity>, bool)>,
}

/// Checks what `names` has, and writes the lines of each in that order, or those of what differs
/// from `checked`, which is saved once they are out. `total`: number of the names, if it is known.
pub(super) fn run(
    args: &Check,
    overrides: &DiskOverrides,
    (names, total): (impl Iterator<Item = Item> + Send, Option<u64>),
    threads: usize,
    checked: Option<Checked>,
) -> Result<Fleet, Failure> {
    let (out, mut done) = match &args.into {
        Some(path) => {
            let is_rows = args.output.form() == Form::Rows;
            if is_rows && args.output.html.is_some() {
                return Err(Failure::Message(
                    "--html of --into needs --jsonl: rows have no messages".into(),
                ));
            }
            let objects = objects_of(path, args, overrides);
            let now = |name: &str| match objects.get(name) {
                Some(etag) => etag.clone(),
                None => state(&target::Target::parse(name), &args.disk, overrides).etag,
            };
            let (file, done) = into::open(path, is_rows, now)?;
            (Some(file), done)
        }
        None => (None, Done::nothing()),
    };
    let counted = std::mem::take(&mut done.tally);
    // Lines on a terminal are a progress of their own, and a bar would stand among them.
    let is_shown = args.into.is_none() && io::stdout().is_terminal();
    let bar = progress::of_fleet(total, args.quiet || is_shown);
    let mut sink = Sink::new(args, out, counted, checked);
    let mut failed = None;
    let permits = Permits::new(processors());
    let manner =
        Manner { disk: &args.disk, overrides, form: args.output.form(), permits: &permits };
    let work = |item| manner.check(item, |name, etag| done.has(name, etag));
    in_order(threads, names, work, |outcome, is_more| {
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
        Some(Failure::Pipe) => Ok(sink.counts()),
        Some(failure) => Err(failure),
        None => sink.end(args),
    }
}

/// The states of the objects of which the file at `path` has lines: of those that are listed, as
/// they are listed; of others, as their stores say it, which is asked of many at a time.
fn objects_of(path: &Path, args: &Check, overrides: &DiskOverrides) -> HashMap<String, String> {
    let named: HashSet<String> = into::names(path).filter(|name| object::is_meant(name)).collect();
    let mut states = HashMap::new();
    if named.is_empty() {
        return states;
    }
    let prefixes = args.recursive.iter().filter_map(|directory| directory.to_str());
    for found in prefixes.filter(|prefix| object::is_meant(prefix)).flat_map(object::list) {
        // One that cannot be listed is said when it is listed for its objects.
        let Ok((target, _)) = found else { break };
        if named.contains(target.typed()) {
            let etag = state(&target, &args.disk, overrides).etag;
            states.insert(target.typed().to_owned(), etag);
        }
    }
    let left: Vec<String> = named.into_iter().filter(|name| !states.contains_key(name)).collect();
    let ask = |name: String| {
        let target = target::Target::parse(&name);
        let etag = target.only_object().map_or_else(String::new, object::Spelling::current_state);
        (name, judged(etag, &args.disk))
    };
    in_order(IN_FLIGHT, left.into_iter(), ask, |(name, etag), _| {
        states.insert(name, etag);
        true
    });
    states
}

/// Place that lines go to, and what is counted of them.
struct Sink {
    out: Box<dyn Write>,
    form: Form,
    tally: Tally,
    requests: Requests,
    /// Names of files that hold nothing known: how many, and the first few.
    others: (usize, Vec<String>),
    /// Reports for a page of all of each, as long as they are few.
    kept: Option<Report>,
    /// State of earlier runs, from which lines say what differs.
    checked: Option<Checked>,
}

impl Sink {
    fn new(args: &Check, file: Option<File>, tally: Tally, checked: Option<Checked>) -> Sink {
        // Of targets that are done there are counts alone.
        let is_new = tally.counts.all() == 0 && tally.failed() == 0;
        let out: Box<dyn Write> = match file {
            Some(file) => Box::new(BufWriter::new(file)),
            None => Box::new(BufWriter::new(io::stdout())),
        };
        Sink {
            out,
            form: args.output.form(),
            tally,
            requests: Requests::default(),
            others: (0, Vec::new()),
            kept: (args.output.html.is_some() && is_new)
                .then(|| Report::new(CHECK, Vec::new(), Vec::new())),
            checked,
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
            Outcome::Checked(lines, target, requests) => {
                self.requests += requests;
                self.tally.add(&Seen::from(&*target));
                match &mut self.checked {
                    None => self.out.write_all(&lines)?,
                    Some(checked) => {
                        if let Some(difference) = checked.compare(&target) {
                            changes::write_line(&difference, &mut self.out)?;
                        }
                    }
                }
                if let Some(kept) = &mut self.kept {
                    kept.targets.push(*target);
                    if kept.targets.len() > PAGE {
                        self.kept = None;
                    }
                }
            }
            Outcome::Unread(name, class, why) => {
                complain(&why);
                self.tally.add_unread(class, &why);
                if let Some(kept) = &mut self.kept {
                    kept.errors.push(UnreadTarget { target: name.clone(), why: why.clone() });
                    if kept.errors.len() > PAGE {
                        self.kept = None;
                    }
                }
                if self.checked.is_some() {
                    json::write_error(changes::FORMAT, &name, class, &why, &mut self.out)?;
                } else {
                    write_error(self.form, (&name, class, &why), &mut self.out)?;
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

    /// Counts of what was taken.
    fn counts(self) -> Fleet {
        let new = self.checked.map(|checked| (checked.worst, checked.unknown > 0));
        Fleet { tally: self.tally, new }
    }

    fn end(mut self, args: &Check) -> Result<Fleet, Failure> {
        self.out.flush()?;
        // With a state nothing is said that was said before.
        let is_quiet = args.quiet || self.checked.is_some();
        let (count, first) = &self.others;
        if *count > 0 && !is_quiet {
            complain(&walk::passed_over(None, *count, first));
        }
        if let Some(sentence) = self.requests.sentence().filter(|_| !is_quiet) {
            complain(&sentence);
        }
        if let Some(path) = &args.output.html {
            let (tally, made) = (&self.tally, Made::now());
            match self.kept.take() {
                Some(Report { targets, errors, .. }) => {
                    let report = Report::new(CHECK, targets, errors);
                    write_file(path, |file| page::write(&report, &made, file))?;
                }
                None => write_file(path, |file| page::fleet::write(tally, &made, file))?,
            }
        }
        if let Some(checked) = &self.checked {
            checked.save()?;
        }
        Ok(self.counts())
    }
}
