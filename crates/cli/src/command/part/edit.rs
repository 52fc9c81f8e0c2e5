//! The verbs of `part` that change a table.

mod table;

use crate::command::part::args::{Add, Common, Delete, Length, Mark, Modify, Resize};
use crate::command::part::json::Document;
use crate::command::part::text;
use crate::command::part::text::{PartEdit, off_grain, report_line};
use crate::failure::{Failure, Reason, complain};
use crate::render::gpart::{Called, Shown};
use crate::style::Style;
use crate::target::Target;
use crate::words::{columns, escape, size};
use crate::write_target::{WriteTarget, refuse};
use crate::writing::WriteOptions;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
pub(super) use table::{create, destroy, recover};
use trueline_geom::base::ondisk::Guid;
use trueline_geom::graph::Id;
use trueline_geom::mapping::slices::{PartitionType, place};
use trueline_geom::table::scheme::{Attribute, Scheme};
use trueline_geom::table::{Entry, Refusal, Request, Rules, Table, Wanted, scheme};
use trueline_host::random;

/// The result of an edit.
struct Outcome {
    /// The line that reports the edit.
    line: String,
    /// A warning about the edit, which was made all the same.
    warning: Option<String>,
}

impl Outcome {
    fn new(line: String) -> Outcome {
        Outcome { line, warning: None }
    }
}

/// Opens the target of a verb; its options choose the names in messages.
fn open_target(
    typed: &Target,
    common: &Common,
    options: &WriteOptions,
) -> Result<WriteTarget, Failure> {
    Ok(WriteTarget {
        speaks_geom: common.speaks_geom(),
        has_document: common.json,
        ..WriteTarget::open(typed, &common.disk, options.access())?
    })
}

/// Makes one edit of the table on `target`: read, change, render, write.
fn edit(
    (attempt, typed): (&str, &Target),
    common: &Common,
    options: &WriteOptions,
    change: impl FnOnce(&WriteTarget, &mut Table) -> Result<Outcome, Refusal>,
) -> Result<ExitCode, Failure> {
    let target = open_target(typed, common, options)?;
    let before = target.edited(attempt)?;
    let mut after = before.clone();
    let outcome = change(&target, &mut after).map_err(|r| refuse(attempt, typed, &r))?;
    let report = Report::new(&target, &after, common, outcome.line);
    target.write(after.scheme, after.scheme.render(&before, &after), Some(&after), options)?;
    if let Some(warning) = &outcome.warning {
        complain(&format!("warning: {warning}"));
    }
    report.print(options)
}

/// The output of an edit once it is made.
enum Report {
    /// The line that reports the edit.
    Line(String),
    /// The table after the edit.
    Table(Document),
}

impl Report {
    fn new(target: &WriteTarget, table: &Table, common: &Common, line: String) -> Report {
        match common.json {
            true => Report::Table(Document::new(&[(
                Shown { name: &Called::geom(&target.name), table, scheme: table.scheme },
                target.site(),
                target.judged.as_ref(),
            )])),
            false => Report::Line(line),
        }
    }

    /// Prints the report: with `--dry-run` the table that would be, and no line on what was done.
    fn print(&self, options: &WriteOptions) -> Result<ExitCode, Failure> {
        let mut out = BufWriter::new(anstream::stdout().lock());
        match self {
            Report::Line(_) if options.dry_run => {}
            Report::Line(line) => {
                columns::line(&escape::plain(line), Style::of_stdout().width, &mut out)?
            }
            Report::Table(document) => {
                return document.print().map(|()| ExitCode::SUCCESS).map_err(Failure::from);
            }
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The outcome of a change to one partition of `table`, or to the table itself.
fn outcome(
    target: &WriteTarget,
    table: &Table,
    entry: Option<&Entry>,
    done: PartEdit<'_>,
) -> Outcome {
    let called = target.called();
    let name = entry.map_or_else(
        || called.text().to_owned(),
        |e| Shown { name: &called, table, scheme: table.scheme }.partition(e),
    );
    Outcome::new(report_line(done, &name))
}

/// The outcome of a partition added or resized: its place, and a warning if that is off the grain.
fn placed(
    target: &WriteTarget,
    table: &Table,
    index: u32,
    done: PartEdit<'_>,
    rules: Rules,
) -> Outcome {
    let called = target.called();
    let (shown, site) = (Shown { name: &called, table, scheme: table.scheme }, target.site());
    let Some(entry) = table.entry(index) else { return Outcome::new(String::new()) };
    let added = matches!(done, PartEdit::Added);
    match rules {
        Rules::Aligned => {
            let line = report_line(done, &shown.partition(entry));
            let line = format!(
                "{line}: {} at {}",
                size::human(entry.partition.length),
                text::spot(shown, &site, entry.partition.start)
            );
            Outcome { line, warning: off_grain(shown, &site, entry).filter(|_| added) }
        }
        // gpart has its warning in the line itself.
        _ if added => Outcome::new(text::added(shown, &site, entry, rules)),
        _ => Outcome::new(report_line(done, &shown.partition(entry))),
    }
}

/// The request of lengths as typed, in bytes. Errors: a number past 2^64 bytes.
fn request(
    table: &Table,
    start: Option<Length>,
    size: Option<Length>,
    align: Option<Length>,
) -> Result<Request, Refusal> {
    let bytes = |length: Option<Length>| {
        let past = || Refusal::new("a number that ends past 2^64 bytes", "use a smaller one");
        length.map(|l| l.bytes(table.sector).ok_or_else(past)).transpose()
    };
    Ok(Request { start: bytes(start)?, size: bytes(size)?, align: bytes(align)? })
}

fn kind(table: &Table, name: &str) -> Result<PartitionType, Refusal> {
    let (kind, holder) = scheme::typed_kind(table, name)?;
    if let Some(holder) = holder {
        complain(&format!(
            "note: -t {}: its {} type is {holder}",
            escape::plain(name),
            table.scheme
        ));
    }
    Ok(kind)
}

pub(super) fn add(args: &Add) -> Result<ExitCode, Failure> {
    let random = random::bytes().map_err(Reason::from)?;
    let attempt = ("add a partition to", &args.on.target);
    edit(attempt, &args.on.common, &args.on.write, |target, table| {
        let uuid = match args.uuid.as_deref().map(str::parse::<Guid>) {
            None => table.scheme.has_guids().then(|| Guid::random(random)),
            Some(_) if !table.scheme.has_guids() => {
                return Err(Refusal::new(
                    format!("partitions of {} have no UUIDs", table.scheme),
                    "leave out --uuid",
                ));
            }
            Some(Ok(uuid)) => Some(uuid),
            Some(Err(())) => {
                return Err(Refusal::new("--uuid is not a UUID", "write it as uuidgen does"));
            }
        };
        let wanted = Wanted {
            kind: kind(table, &args.kind)?,
            place: request(table, args.start, args.size, args.align)?,
            index: args.index,
            label: args.label.clone(),
            uuid,
            attributes: 0,
        };
        let rules = args.on.common.rules();
        let index = table.add(&target.site(), wanted, rules)?;
        let outcome = placed(target, table, index, PartEdit::Added, rules);
        // Neither place nor size was asked for, and only a scrap in front of the first boundary is
        // free.
        let asked = args.start.or(args.size).or(args.align).is_some();
        let is_scrap = |entry: &&Entry| {
            !asked
                && rules == Rules::Aligned
                && !target
                    .site()
                    .topology
                    .shift(entry.partition.start, entry.partition.length)
                    .missed(1)
                    .is_empty()
        };
        if let Some(entry) = table.entry(index).filter(is_scrap) {
            let found = format!(
                "no room on the grain: the most that is free is {} bytes at {}",
                entry.partition.length,
                place(entry.partition.start, table.sector)
            );
            return Err(Refusal::new(found, "delete or resize what is there, or insist with -b"));
        }
        Ok(outcome)
    })
}

/// Refuses the index of a logical partition, which the table of an extended one holds, and names
/// that target.
fn own(target: &WriteTarget, table: &Table, index: u32) -> Result<(), Refusal> {
    if table.scheme.name() != "MBR" || table.entry(index).is_some() {
        return Ok(());
    }
    let holds = |id: &Id| {
        target
            .table_on(*id)
            .is_some_and(|table| table.scheme.name() == "EBR" && table.entry(index).is_some())
    };
    let Some(extended) = target.graph.children(target.id).find(holds) else { return Ok(()) };
    let disks = target.typed.disks();
    let found = format!("index {index} is a logical partition, in the extended one");
    Err(Refusal::new(
        found,
        format!("name that: {disks}#{}", target.graph.providers[extended].name),
    ))
}

pub(super) fn delete(args: &Delete) -> Result<ExitCode, Failure> {
    edit(
        ("delete a partition of", &args.on.target),
        &args.on.common,
        &args.on.write,
        |target, table| {
            own(target, table, args.index)?;
            let entry = table.delete(args.index)?;
            Ok(outcome(target, table, Some(&entry), PartEdit::Deleted))
        },
    )
}

pub(super) fn modify(args: &Modify) -> Result<ExitCode, Failure> {
    edit(
        ("modify a partition of", &args.on.target),
        &args.on.common,
        &args.on.write,
        |target, table| {
            if args.kind.is_none() && args.label.is_none() {
                return Err(Refusal::new(
                    "nothing to change",
                    "say a type with -t or a label with -l",
                ));
            }
            own(target, table, args.index)?;
            let kind = args.kind.as_deref().map(|name| kind(table, name)).transpose()?;
            table.modify(args.index, kind, args.label.clone())?;
            Ok(outcome(target, table, table.entry(args.index), PartEdit::Modified))
        },
    )
}

pub(super) fn resize(args: &Resize) -> Result<ExitCode, Failure> {
    edit(
        ("resize a partition of", &args.on.target),
        &args.on.common,
        &args.on.write,
        |target, table| {
            own(target, table, args.index)?;
            let place = request(table, None, args.size, args.align)?;
            let rules = args.on.common.rules();
            table.resize(&target.site(), args.index, &place, rules)?;
            let mut outcome = placed(target, table, args.index, PartEdit::Resized, rules);
            outcome.warning = outcome.warning.or_else(|| {
                table.entry(args.index).and_then(|entry| cut_off(target, table, entry))
            });
            Ok(outcome)
        },
    )
}

/// A warning if the file system in `entry` is longer than the partition.
fn cut_off(target: &WriteTarget, table: &Table, entry: &Entry) -> Option<String> {
    let start = target.site().base.checked_add(entry.partition.start)?;
    let mut inside = target
        .graph
        .children(target.id)
        .map(|id| &target.graph.providers[id])
        .filter(|p| p.base() == start);
    let (kind, size) = inside.find_map(|p| {
        p.in_use()
            .find_map(|s| Some((s.kind, s.size.filter(|&size| size > entry.partition.length)?)))
    })?;
    let name = Shown { name: &target.called(), table, scheme: table.scheme }.partition(entry);
    let length = entry.partition.length;
    Some(format!(
        "{kind} on {name} covers {size} bytes, and the partition now has {length}: make it larger again before anything writes to it"
    ))
}

pub(super) fn mark(args: &Mark, on: bool) -> Result<ExitCode, Failure> {
    edit(("mark", &args.on.target), &args.on.common, &args.on.write, |target, table| {
        args.index.map_or(Ok(()), |index| own(target, table, index))?;
        let attribute = attribute(table.scheme, &args.attribute)?;
        table.mark(args.index, attribute, on)?;
        let done = if on { PartEdit::Set(attribute.name) } else { PartEdit::Unset(attribute.name) };
        Ok(outcome(target, table, args.index.and_then(|i| table.entry(i)), done))
    })
}

fn attribute(scheme: &dyn Scheme, name: &str) -> Result<&'static Attribute, Refusal> {
    scheme.attributes().iter().find(|a| a.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names: Vec<&str> = scheme.attributes().iter().map(|a| a.name).collect();
        let there = if names.is_empty() {
            "it has none".into()
        } else {
            format!("there are {}", names.join(", "))
        };
        Refusal::new(format!("{} has no attribute '{name}'", scheme.name()), there)
    })
}
