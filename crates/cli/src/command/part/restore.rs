//! `part restore`: makes a table from gpart(8)'s backup text, to the sector.

use crate::command::part::args::Restore;
use crate::command::part::json::Document;
use crate::command::part::text::{PartEdit, report_line};
use crate::failure::Failure;
use crate::input_text;
use crate::render::gpart::{Called, Shown};
use crate::target::Target;
use crate::words::{escape, say};
use crate::write_target::{WriteTarget, named, partitions, refuse};
use std::io;
use std::process::ExitCode;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::patch::Patch;
use trueline_geom::graph::occupant::Occupant;
use trueline_geom::layout::backup::{self, Backup};
use trueline_geom::registry;
use trueline_geom::table::scheme::{New, Scheme};
use trueline_geom::table::{Refusal, Request, Rules, Table, Wanted};
use trueline_host::random;

/// Longest text of a table, in bytes.
const MOST: u64 = 1 << 20;
const ATTEMPT: &str = "restore the table of";

pub(super) fn run(args: &Restore) -> Result<ExitCode, Failure> {
    let text = input_text::read(io::stdin().lock(), MOST)
        .map_err(|e| format!("restore from stdin: {e}: nothing was written"))?;
    let mut document = Document::new(&[]);
    for typed in &args.targets {
        let restored = restore(args, typed, &text);
        if let Ok(table) = restored {
            document.append(table);
            continue;
        }
        // What was restored before it is told too.
        if args.common.json {
            document.print()?;
        }
        return restored.map(|_| ExitCode::SUCCESS);
    }
    if args.common.json {
        document.print()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the table on one target; the document of it.
fn restore(args: &Restore, typed: &Target, text: &str) -> Result<Document, Failure> {
    let target = WriteTarget {
        speaks_geom: args.common.speaks_geom(),
        has_document: args.common.json,
        ..WriteTarget::open(typed, &args.common.disk, args.write.access())?
    };
    target.require_settled(ATTEMPT)?;
    let sector = target.graph.providers[target.id].topology.sector;
    let backup = backup::parse(text, sector)
        .map_err(|mistake| format!("restore from stdin: {mistake}: nothing was written"))?;
    let refused = |r: Refusal| refuse(ATTEMPT, typed, &r);
    let scheme = registry::scheme_named(&backup.scheme).ok_or_else(|| {
        refused(Refusal::new(
            format!("'{}' is no scheme here", escape::plain(&backup.scheme)),
            "use GPT, MBR, EBR or BSD",
        ))
    })?;
    let occupant = target.occupant();
    match &occupant {
        Occupant::Table(old) if !args.force => {
            let found = format!(
                "there is {} with {}",
                named(old.scheme.name()),
                partitions(old.entries.len())
            );
            return Err(refused(Refusal::new(found, "say -F to replace it")));
        }
        Occupant::Data(holds, _) | Occupant::Remains(holds) if !args.force => {
            return Err(refused(Refusal::new(holds.clone(), "say -F to lose it")));
        }
        _ => {}
    }
    let (patches, after) = patches(args, &target, scheme, &backup, &occupant).map_err(refused)?;
    let called = target.called();
    let name = Called::geom(&target.name);
    let shown = Shown { name: &name, table: &after, scheme: after.scheme };
    let document = Document::new(&[(shown, target.site(), target.judged.as_ref())]);
    target.write(scheme, patches, Some(&after), &args.write)?;
    if !args.write.dry_run && !args.common.json {
        say(&report_line(PartEdit::Restored, called.text()))?;
    }
    Ok(document)
}

/// The writes that make the table and remove remains of another one around it, and the table.
fn patches(
    args: &Restore,
    target: &WriteTarget,
    scheme: &'static dyn Scheme,
    backup: &Backup,
    occupant: &Occupant,
) -> Result<(Vec<Patch>, Table), Refusal> {
    let random = || random::bytes().map_err(|e| Refusal::new(e.to_string(), ""));
    let new = New {
        entries: backup.entries,
        random: random()?,
        medium: Some(target.medium()),
        rules: args.common.rules(),
        ..New::default()
    };
    let empty = occupant.create(&target.graph.probe(target.id), &target.site(), scheme, &new)?;
    let mut table = empty.clone();
    for line in &backup.partitions {
        let of_line =
            |r: Refusal| Refusal { found: format!("line {}: {}", line.number, r.found), ..r };
        let unknown = || {
            of_line(Refusal::new(
                format!("type '{}' is unknown to {}", line.kind, scheme.name()),
                "a raw one is !N",
            ))
        };
        let mut attributes = 0;
        for name in &line.attributes {
            let found = scheme
                .attributes()
                .iter()
                .find(|a| a.name.eq_ignore_ascii_case(name) && !a.of_table);
            attributes |= found
                .ok_or_else(|| {
                    of_line(Refusal::new(format!("no attribute '{name}'"), "correct it"))
                })?
                .bit;
        }
        let wanted = Wanted {
            kind: scheme.kind_in(&table, &line.kind).ok_or_else(unknown)?,
            // A copy keeps its sectors, whether or not they are on the grain.
            place: Request { start: Some(line.start), size: Some(line.size), align: None },
            index: Some(line.index),
            label: line.label.clone().filter(|_| args.labels),
            uuid: if scheme.has_guids() { Some(Guid::random(random()?)) } else { None },
            attributes,
        };
        table.add(&target.site(), wanted, Rules::Aligned).map_err(of_line)?;
    }
    Ok((occupant.replaced(&target.graph.probe(target.id), scheme.render(&empty, &table)), table))
}
