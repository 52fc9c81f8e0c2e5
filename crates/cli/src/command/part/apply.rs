//! `part apply`: makes the tables of a disk what a file describes.

use crate::command::part::args::apply::Apply;
use crate::command::part::layout::{self, Document};
use crate::failure::{Failure, Reason, complain};
use crate::input_text;
use crate::remembered::Remembered;
use crate::render::gpart::Called;
use crate::style::Style;
use crate::target::Target;
use crate::words::{columns, escape, say};
use crate::write_target::{WriteTarget, refuse};
use serde::Serialize;
use std::fs;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use trueline_geom::layout::sfdisk::Script;
use trueline_geom::layout::{Layout, May, Planned, Step, in_order, plan};
use trueline_geom::table::{Refusal, types};
use trueline_host::random;

/// The document of `part apply --json`.
#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    target: &'a str,
    #[serde(rename = "for")]
    judged: Option<&'a Remembered>,
    changed: bool,
    tables: Vec<TableNow<'a>>,
}

#[derive(Serialize)]
struct TableNow<'a> {
    provider: &'a str,
    scheme: &'a str,
    edits: &'a [String],
    partitions: Vec<PartitionNow<'a>>,
}

#[derive(Serialize)]
struct PartitionNow<'a> {
    index: u32,
    start: u64,
    length: u64,
    #[serde(rename = "type")]
    kind: String,
    label: Option<&'a str>,
    uuid: Option<String>,
}

/// Longest layout, in bytes; a longer file is something else.
const LONGEST: u64 = 16 << 20;

/// The user's layout, parsed.
enum Wanted {
    Toml(Document),
    Sfdisk(Script),
}

impl Wanted {
    /// Sector in bytes of the disk it is for, if it names one.
    fn sector(&self) -> Option<u64> {
        match self {
            Wanted::Toml(document) => document.sector,
            Wanted::Sfdisk(script) => script.sector,
        }
    }

    /// The layout for a disk with this sector and length, both in bytes. Errors: a layout for other
    /// sectors.
    fn layout(self, sector: u64, length: u64) -> Result<Layout, Refusal> {
        match self {
            Wanted::Toml(Document { sector: Some(own), .. }) if own != sector => {
                let found =
                    format!("the layout is for sectors of {own} bytes, the disk has {sector}");
                Err(Refusal::new(found, "correct its line sector"))
            }
            Wanted::Toml(document) => Ok(document.layout),
            Wanted::Sfdisk(script) => script.layout(sector, length),
        }
    }
}

pub(crate) fn run(args: &Apply) -> Result<ExitCode, Failure> {
    let attempt = format!("apply {} to", args.layout.display());
    let wanted = read(args)?;
    let mut disk = args.disk.clone();
    // A device has its own sector; an image has that of the disk it is for.
    if is_image(&args.target) {
        disk.logical = disk.logical.or(wanted.sector());
    }
    let target = WriteTarget {
        has_document: args.json,
        ..WriteTarget::open(&args.target, &disk, args.write.access())?
    };
    target.require_settled(&attempt)?;
    let topology = &target.graph.providers[target.id].topology;
    let layout = wanted
        .layout(topology.sector, topology.length)
        .map_err(|r| refuse(&attempt, &args.target, &r))?;
    let may = May { delete: args.delete_others, replace: args.replace };
    let mut failed = None;
    let mut random = || {
        random::bytes().unwrap_or_else(|e| {
            failed = Some(e.to_string());
            [0; 16]
        })
    };
    let planned = plan(
        &layout,
        &target.graph.probe(target.id),
        &target.site(),
        target.medium(),
        may,
        &mut random,
    )
    .map_err(|refused| {
        let at = if refused.provider.is_empty() {
            args.target.to_string()
        } else {
            format!("{}: {}", args.target, refused.provider)
        };
        refuse(&attempt, at, &refused.why)
    })?;
    if let Some(failed) = failed {
        return Err(Failure::Message(failed));
    }
    let (called, judged) = (target.called(), target.judged.clone());
    if args.write.dry_run && !args.json {
        interrupted(&planned)?;
    }
    write(target, args, &planned)?;
    if !args.write.dry_run || args.json {
        report(args, (&called, judged.as_ref()), &planned.steps)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(args: &Apply) -> Result<Wanted, Failure> {
    let failed =
        |why: Reason| Failure::from(why.behind(format_args!("read {}", args.layout.display())));
    let file: Box<dyn Read> = match args.layout == Path::new("-") {
        true => {
            if io::stdin().is_terminal() {
                complain("the layout is read from standard input: end it with Ctrl-D");
            }
            Box::new(io::stdin().lock())
        }
        false => Box::new(fs::File::open(&args.layout).map_err(|e| failed(e.into()))?),
    };
    let text = input_text::read(file, LONGEST).map_err(failed)?;
    match args.sfdisk {
        true => Script::parse(&text).map(Wanted::Sfdisk).map_err(|e| failed(e.to_string().into())),
        false => layout::parse(&text).map(Wanted::Toml).map_err(failed),
    }
}

/// True if the target is a plain file and no simulated drive: then the layout alone knows its
/// sector.
fn is_image(target: &Target) -> bool {
    !target.is_simulated()
        && target.paths().iter().all(|path| fs::metadata(path).is_ok_and(|m| m.is_file()))
}

/// Prints the states that an interrupt can leave, as comments before the writes; nothing if there
/// are none.
fn interrupted(planned: &Planned) -> io::Result<()> {
    let (mut out, width) = (BufWriter::new(anstream::stdout().lock()), Style::of_stdout().width);
    let between: Vec<&str> =
        planned.stages.iter().filter_map(|stage| stage.leaves.as_deref()).collect();
    if !between.is_empty() {
        let these = "interrupted, the writes below leave what was there, or the layout, or one of \
            these states between them:";
        columns::comment(these, width, &mut out)?;
    }
    for state in between {
        columns::comment(&format!("  {}", escape::plain(state)), width, &mut out)?;
    }
    out.flush()
}

/// Writes the stages in order: a table inside a new partition is complete before the partition
/// appears.
fn write(target: WriteTarget, args: &Apply, planned: &Planned) -> Result<(), Failure> {
    match planned.steps.first() {
        Some(step) => target.write(
            step.table.scheme,
            in_order(&planned.stages),
            Some(&step.table),
            &args.write,
        ),
        None => Ok(()),
    }
}

/// Reports the edits, and with `--json` the tables as they are now, or would be.
fn report(
    args: &Apply,
    (called, judged): (&Called, Option<&Remembered>),
    steps: &[Step],
) -> io::Result<()> {
    let changed = steps.iter().any(|step| !step.edits.is_empty());
    if args.json {
        let mut out = BufWriter::new(anstream::stdout().lock());
        let tables = steps.iter().map(TableNow::from_step).collect();
        let report = Report {
            format: "trueline/part-apply/1",
            target: args.target.typed(),
            judged,
            changed,
            tables,
        };
        serde_json::to_writer_pretty(&mut out, &report).map_err(io::Error::from)?;
        writeln!(out)?;
        return out.flush();
    }
    if !changed {
        say(&format!("{}: as the layout says; nothing was written", args.target))?;
    }
    for step in steps {
        for edit in &step.edits {
            say(&format!("{}: {edit}", called.with(&step.provider)))?;
        }
    }
    Ok(())
}

impl TableNow<'_> {
    fn from_step(step: &Step) -> TableNow<'_> {
        let partitions = step.table.entries.iter().map(|entry| PartitionNow {
            index: entry.partition.index,
            start: entry.partition.start,
            length: entry.partition.length,
            kind: types::name(entry.partition.kind),
            label: entry.partition.label.as_deref(),
            uuid: entry.partition.guid.map(|uuid| uuid.to_string()),
        });
        TableNow {
            provider: &step.provider,
            scheme: step.table.scheme.name(),
            edits: &step.edits,
            partitions: partitions.collect(),
        }
    }
}
