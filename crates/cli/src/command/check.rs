//! `check`: the providers of a target, their verdicts, the cost of a miss and its cure.

use crate::checked::Checked;
use crate::command::check::args::{Check, Form, List, Output};
use crate::fail_on::FailOn;
use crate::failure::{Failure, Reason, complain};
use crate::in_order::{in_order, processors};
use crate::page_file::write_file;
use crate::progress;
use crate::render::made::Made;
use crate::render::report::gitlab::{self, Project};
use crate::render::report::{alignment, json, list, page, prometheus, rows, sarif, text};
use crate::report::{self, Report, UnreadTarget, Verdict};
use crate::style::Style;
use crate::survey::survey_with;
use crate::tally::{Seen, Tally};
use crate::target::open::open;
use crate::target::{DiskOverrides, Named, Target};
use crate::words::escape::shell;
use crate::{remembered, this_host, words};
use fleet::{Fleet, IN_FLIGHT};
use names::{Given, Item};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use textfile::Textfile;
use trueline_geom::base::finding::Severity;
use trueline_geom::graph::Incomplete;

pub(crate) mod alignment_scan;
pub(crate) mod args;
mod changed;
pub(crate) mod checker;
pub(crate) mod conventions;
mod fleet;
mod into;
mod names;
mod permits;
mod single;
mod textfile;
mod walk;

pub(crate) fn run(args: &Check) -> Result<ExitCode, Failure> {
    match run_checks(args) {
        Err(Failure::Message(why)) => match conventions::Convention::chosen(args) {
            Some(convention) => Ok(convention.fail(&why)),
            None => Err(Failure::Message(why)),
        },
        done => done,
    }
}

fn run_checks(args: &Check) -> Result<ExitCode, Failure> {
    let mut overrides = DiskOverrides::new(&args.disk)?;
    let (mut lists, mut devices) = (Vec::new(), Vec::new());
    for path in &args.from {
        match Given::open(path) {
            Given::List(list) => lists.push(list),
            Given::Devices(listing) => devices.push(listing),
        }
    }
    if args.together && !lists.is_empty() {
        let why = "--together takes the targets of the command line: name no list beside it";
        return Err(Failure::Message(why.to_owned()));
    }
    let is_host = args.targets.is_empty() && args.recursive.is_empty() && lists.is_empty();
    if is_host && args.compat.is_some() {
        return Err("--compat virt-alignment-scan: name the disk images of a guest"
            .to_owned()
            .into());
    }
    // Of a provider, or of a set, it would list nothing, which says that all is well.
    let is_image = |target: &Target| target.provider().is_none() && target.sources().len() == 1;
    if args.compat.is_some() && !args.targets.iter().flatten().all(is_image) {
        let why = "--compat virt-alignment-scan: name whole images, no provider and no set";
        return Err(why.to_owned().into());
    }
    if args.compat.is_some() {
        // It knows no drives: a disk that a profile makes unreadable would have no line, and all
        // would seem well.
        overrides = overrides.forgetting();
    }
    if is_host {
        overrides.refuse_model_keys("check")?;
    }
    if !is_host {
        this_host::adopt_files(&devices, &mut overrides)?;
    }
    let is_streamed = args.output.form() != Form::Whole && !is_host && !args.together;
    if args.into.is_some() && !is_streamed {
        let why = "--into goes with targets and --jsonl or --rows".to_owned();
        return Err(Failure::Message(why));
    }
    if args.quiet && args.output.form() != Form::Whole && args.into.is_none() {
        let why = "--quiet prints no lines of --jsonl or --rows: give them a file with --into";
        return Err(Failure::Message(why.to_owned()));
    }
    // Before the work: what cannot be read or replaced is known at once.
    let checked = args.changed.as_deref().map(Checked::open).transpose()?;
    let textfile = args.textfile.as_deref().map(Textfile::open).transpose()?;
    if is_streamed {
        return streamed(args, &overrides, lists, checked);
    }
    let (targets, failures) = if is_host && !devices.is_empty() {
        this_host::from_files(&devices, &overrides)
    } else if is_host {
        this_host::this_host(&overrides).map(|t| (t, Vec::new()))?
    } else {
        named_and_found(args, &overrides, lists)
    };
    failures.iter().for_each(|failure| complain(&failure.why));
    let report = Report::new(report::CHECK, targets, failures);
    if let Some(convention) = conventions::Convention::chosen(args) {
        return convention.print(&report, args);
    }
    if let Some(checked) = checked {
        return changed::print(&report, checked, args);
    }
    let worst = report.targets.iter().flat_map(|t| &t.findings).map(|f| f.severity).max();
    let status = status((!report.errors.is_empty(), worst, unknown(&report) > 0), args);
    if let Some(textfile) = textfile {
        announce(&report);
        write_page(&report, &args.output)?;
        textfile.replace(&report)?;
        return Ok(ExitCode::from(status));
    }
    if args.quiet {
        write_page(&report, &args.output)?;
        return Ok(ExitCode::from(status));
    }
    if !report.targets.is_empty() || report.errors.is_empty() || args.output.is_for_programs() {
        let heading = args.alignment.then_some(!args.list.no_header);
        match print_as(&report, (&args.output, args.counted()), &args.list, heading) {
            // The reader has read what it wanted; the caller still waits for the status.
            Ok(()) | Err(Failure::Pipe) => {}
            Err(failure) => return Err(failure),
        }
    }
    if !args.output.is_for_programs() && !args.prints_list() && !is_host {
        for hint in scattered(&report) {
            // As above: a reader that has gone is no error.
            let _ = words::say(&hint);
        }
    }
    let unknown = unknown(&report);
    if status == 0 && unknown > 0 && !args.output.is_for_programs() && !args.prints_list() {
        let are = if unknown == 1 {
            "1 target is unknown".into()
        } else {
            format!("{unknown} targets are unknown")
        };
        let _ = words::say(&format!(
            "{are}, and the exit status is 0: --strict, as for CI, makes it 3"
        ));
    }
    Ok(ExitCode::from(status))
}

/// Checks targets one after another, each written as soon as it is there.
fn streamed(
    args: &Check,
    overrides: &DiskOverrides,
    lists: Vec<Box<dyn BufRead + Send>>,
    checked: Option<Checked>,
) -> Result<ExitCode, Failure> {
    let is_far = args.recursive.iter().any(|directory| names::is_prefix(directory))
        || args.targets.iter().flatten().any(Target::is_remote);
    // Names of a list may be objects.
    let threads = if is_far || !lists.is_empty() { IN_FLIGHT } else { processors() };
    let is_counted = lists.is_empty() && !is_far;
    let (targets, directories) = (args.targets.clone(), args.recursive.clone());
    let all = names::all(targets, directories, lists, args.shard);
    // The length of a list is known at its end.
    let (names, total): (Box<dyn Iterator<Item = Item> + Send>, _) = if is_counted {
        let all: Vec<Item> = all.collect();
        let total = all.len() as u64;
        (Box::new(all.into_iter()), Some(total))
    } else {
        (Box::new(all), None)
    };
    let Fleet { tally, new } = fleet::run(args, overrides, (names, total), threads, checked)?;
    let is_all = args.targets.is_empty() && is_counted && args.shard.is_none();
    if is_all && tally.counts.all() + tally.failed() == 0 {
        let names: Vec<String> =
            args.recursive.iter().map(|directory| directory.display().to_string()).collect();
        let why = format!("check {}: no image in it or beneath it", names.join(" "));
        return Err(Failure::Message(why));
    }
    let (severity, unknown) = new.unwrap_or((tally.severity, tally.counts.unknown > 0));
    let counts = (tally.failed() > 0, severity, unknown);
    Ok(ExitCode::from(status(counts, args)))
}

/// The targets that were named, and the images in the directories that were.
fn named_and_found(
    args: &Check,
    overrides: &DiskOverrides,
    lists: Vec<Box<dyn BufRead + Send>>,
) -> (Vec<report::Target>, Vec<UnreadTarget>) {
    let (mut targets, mut failures) = if args.together {
        let named: Result<Vec<Target>, Reason> = args
            .targets
            .iter()
            .cloned()
            .map(|name| name.map_err(|e| Reason(e.to_string())))
            .collect();
        match named.and_then(|named| Target::together(&named)) {
            Ok(whole) => survey_all(&[Ok(whole)], overrides, args.quiet),
            Err(failure) => (Vec::new(), vec![failure.0.into()]),
        }
    } else {
        let named = names::all(args.targets.clone(), Vec::new(), lists, args.shard);
        survey_items(named, overrides, args.quiet)
    };
    for directory in &args.recursive {
        let found = names::all(Vec::new(), vec![directory.clone()], Vec::new(), args.shard);
        let (found, wrong) = survey_items(found, overrides, args.quiet);
        failures.extend(wrong);
        let (images, others): (Vec<report::Target>, Vec<report::Target>) =
            found.into_iter().partition(walk::is_image);
        if images.is_empty() && failures.is_empty() && args.shard.is_none() {
            let why = format!("check {}: no image in it or beneath it", directory.display());
            failures.push(why.into());
        }
        // With a state nothing is said that was said before.
        if !others.is_empty() && !args.quiet && args.changed.is_none() {
            let first: Vec<String> =
                others.iter().take(walk::NAMED).map(|target| target.target.clone()).collect();
            complain(&walk::passed_over(Some(directory), others.len(), &first));
        }
        targets.extend(images);
    }
    (targets, failures)
}

/// Reports on the targets of a walk or a list, and errors, first those of the walk or list itself.
fn survey_items(
    items: impl Iterator<Item = Item>,
    overrides: &DiskOverrides,
    quiet: bool,
) -> (Vec<report::Target>, Vec<UnreadTarget>) {
    let (mut names, mut failures) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Named(name) | Item::Found(name) => names.push(name),
            Item::Unread(why) => failures.push(why.into()),
        }
    }
    let (targets, unread) = survey_all(&names, overrides, quiet);
    failures.extend(unread);
    (targets, failures)
}

/// Most names of targets in a hint; with more, the option alone is named.
const NAMED: usize = 8;

/// Hints, one for each set whose members are in several targets: the command that checks them as
/// one.
fn scattered(report: &Report) -> Vec<String> {
    let mut sets: BTreeMap<(&str, &str), (&str, BTreeSet<&str>)> = BTreeMap::new();
    for target in &report.targets {
        for Incomplete { class, set, provider, .. } in &target.incomplete {
            let (_, targets) =
                sets.entry((class, set)).or_insert_with(|| (provider, BTreeSet::new()));
            targets.insert(&target.target);
        }
    }
    sets.into_values()
        .filter(|(_, targets)| targets.len() > 1)
        .map(|(provider, targets)| {
            let names: Vec<String> = match targets.len() {
                ..=NAMED => targets.iter().map(|name| shell(name)).collect(),
                _ => vec!["DISK...".into()],
            };
            format!(
                "{provider} has members in {} of these targets: trueline check --together {}",
                targets.len(),
                names.join(" ")
            )
        })
        .collect()
}

/// Number of targets with the verdict `unknown`.
fn unknown(report: &Report) -> usize {
    report.targets.iter().filter(|t| t.verdict == Verdict::Unknown).count()
}

/// The exit status of `check`, as its help lists it, by whether something could not be read, the
/// worst severity, and whether something is unknown.
fn status((unread, worst, unknown): (bool, Option<Severity>, bool), args: &Check) -> u8 {
    if unread {
        2
    } else if worst.is_some_and(|worst| args.counted().counts(worst)) {
        1
    } else if args.is_strict() && unknown {
        3
    } else {
        0
    }
}

/// Reports on every target, made on all processors, in the order of the command line; and errors of
/// those that could not be read. `quiet`: without a bar.
pub(crate) fn survey_all(
    names: &[Named],
    overrides: &DiskOverrides,
    quiet: bool,
) -> (Vec<report::Target>, Vec<UnreadTarget>) {
    let bar = progress::of_fleet(Some(names.len() as u64), quiet);
    let (mut targets, mut failures) = (Vec::new(), Vec::new());
    let survey = |name: &Named| {
        survey_one(name, overrides).map_err(|why| UnreadTarget {
            target: name.as_ref().map_or_else(|_| String::new(), |name| name.typed().into()),
            why: why.0,
        })
    };
    let mut take = |result| {
        match result {
            Ok(target) => targets.push(target),
            Err(failure) => failures.push(failure),
        }
        bar.inc(1);
    };
    if let [name] = names {
        // A thread takes longer to begin than a disk to be read.
        take(survey(name));
    } else {
        let is_far = names.iter().flatten().any(Target::is_remote);
        let threads = if is_far { IN_FLIGHT } else { processors() };
        in_order(threads, names.iter(), survey, |result, _| {
            take(result);
            true
        });
    }
    bar.finish_and_clear();
    (targets, failures)
}

/// The file of a directory that says which others a disk is in, as Parallels and macOS have it.
fn home_of_disk(directory: &Path) -> Option<String> {
    let bands = directory.join("bands").is_dir().then_some("Info.plist");
    let names = ["DiskDescriptor.xml"].into_iter().chain(bands);
    let mut files = names.map(|name| directory.join(name)).filter(|file| file.is_file());
    files.next()?.to_str().map(str::to_owned)
}

fn survey_one(name: &Named, overrides: &DiskOverrides) -> Result<report::Target, Reason> {
    let name = name.as_ref().map_err(ToString::to_string)?;
    let overrides = &overrides.remembering(name)?;
    if name.only_path().is_some_and(Path::is_dir) {
        if let Some(descriptor) = home_of_disk(Path::new(name.typed())) {
            return Err(Reason(format!(
                "open {name}: it is a directory with a disk in files: name {}, with --follow",
                shell(&descriptor)
            )));
        }
        let tree = shell(name.typed());
        return Err(Reason(format!(
            "open {name}: it is a directory: name an image file or a block device; trueline check -r {tree} checks every image in it"
        )));
    }
    if !name.is_simulated() {
        overrides.refuse_model_keys(&format!("open {name}"))?;
    }
    let opened = || {
        open(name, overrides).and_then(|graph| {
            survey_with(name, Some(overrides), &graph, name.provider())
                .map_err(|e| e.behind(format_args!("open {name}")))
        })
    };
    this_host::named(name, overrides)
        .unwrap_or_else(opened)
        .map(|target| report::Target { judged: overrides.judged().cloned(), ..target })
}

/// The counts of a report.
fn tally(report: &Report) -> Tally {
    let mut tally = Tally::default();
    report.targets.iter().for_each(|target| tally.add(&Seen::from(target)));
    report.errors.iter().for_each(|error| tally.add_unread("unreadable", &error.why));
    tally
}

/// Writes lines on stderr for profiles that the command line does not name, for forms without a
/// place for them.
pub(crate) fn announce(report: &Report) {
    remembered::sentences(
        report.targets.iter().filter_map(|t| Some((t.target.as_str(), t.judged.as_ref()?))),
    )
    .iter()
    .for_each(|sentence| complain(&format!("note: {sentence}")));
}

/// Writes the page of `--html`, if it is wanted.
fn write_page(report: &Report, output: &Output) -> Result<(), Failure> {
    output.html.as_ref().map_or(Ok(()), |path| {
        write_file(path, |file| match report.targets.len() {
            ..=fleet::PAGE => page::write(report, &Made::now(), file),
            _ => page::fleet::write(&tally(report), &Made::now(), file),
        })
    })
}

/// The project of a GitLab job; elsewhere the directory that this is run in.
fn project() -> Project {
    let here = std::env::current_dir().unwrap_or_default();
    let root = std::env::var_os("CI_PROJECT_DIR").filter(|root| !root.is_empty());
    let root = root.map_or_else(|| here.clone(), PathBuf::from);
    Project::new(here, &root)
}

/// Prints `report` in the form of the options.
pub(crate) fn print(report: &Report, output: &Output) -> Result<(), Failure> {
    print_as(report, (output, FailOn::default()), &List::default(), None)
}

/// Prints `report` in the form of the options, findings that are `counted` whole; a list replaces
/// the text, and one of the alignments of VHDs, with a heading or without, that list.
fn print_as(
    report: &Report,
    (output, counted): (&Output, FailOn),
    list: &List,
    heading: Option<bool>,
) -> Result<(), Failure> {
    write_page(report, output)?;
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if output.json {
        json::write(report, &mut stdout)?;
    } else if output.form() == Form::Lines {
        json::write_lines(report, &mut stdout)?;
    } else if output.form() == Form::Rows {
        rows::write_all(report, &mut stdout)?;
    } else if output.sarif {
        announce(report);
        sarif::write(report, &mut stdout)?;
    } else if output.gitlab {
        announce(report);
        gitlab::write(report, &project(), &mut stdout)?;
    } else if output.prometheus {
        announce(report);
        prometheus::write(report, &mut stdout)?;
    } else if let Some(header) = heading {
        announce(report);
        if alignment::write(report, header, &mut stdout)? == 0 {
            complain("note: no VHD or VHDX is among the targets");
        }
    } else if list.is_wanted() {
        announce(report);
        list::write(report, &list.columns(), list.manner(), &mut stdout)?;
    } else {
        text::write(report, counted, &mut stdout, Style::of_stdout())?;
    }
    stdout.flush()?;
    Ok(())
}
