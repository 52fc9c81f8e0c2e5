//! `part show` and `part backup`: a table in gpart(8)'s text, or sfdisk's.

use crate::command::part::args::{Backup, Compat, Show};
use crate::command::part::json::Document;
use crate::command::part::picture;
use crate::failure::{Failure, complain};
use crate::remembered::Remembered;
use crate::render::gpart::{self, Called, Format, Shown, What};
use crate::style::Style;
use crate::write_target::WriteTarget;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use trueline_geom::class::mbr::Ebr;
use trueline_geom::layout::{backup, sfdisk};
use trueline_geom::registry;
use trueline_geom::table::read_only::ReadOnly;
use trueline_geom::table::scheme::{Scheme, TableSite};
use trueline_geom::table::{Rules, Table};
use trueline_host::disk::file::Access;

/// The scheme of a table that is shown.
enum ShownScheme {
    /// One whose tables can be edited.
    Edited(&'static dyn Scheme),
    /// One whose tables are only read.
    ReadOnly(ReadOnly),
}

impl ShownScheme {
    fn scheme(&self) -> &dyn Scheme {
        match self {
            ShownScheme::Edited(scheme) => *scheme,
            ShownScheme::ReadOnly(scheme) => scheme,
        }
    }
}

pub(super) fn show(args: &Show) -> Result<ExitCode, Failure> {
    let mut found: Vec<(WriteTarget, ShownScheme, Table)> = Vec::new();
    let mut done = ExitCode::SUCCESS;
    for typed in &args.targets {
        let target = WriteTarget {
            speaks_geom: args.common.speaks_geom() || args.common.json,
            ..WriteTarget::open(typed, &args.common.disk, Access::Read)?
        };
        if let Some((scheme, table)) =
            target.read_only().filter(|(scheme, _)| registry::scheme_named(scheme.name()).is_none())
        {
            found.push((target, ShownScheme::ReadOnly(scheme), table));
            continue;
        }
        match target.readable("show the table on") {
            Ok(table) => found.push((target, ShownScheme::Edited(table.scheme), table)),
            Err(Failure::Message(message)) => {
                complain(&message);
                done = ExitCode::from(2);
            }
            Err(failure) => return Err(failure),
        }
    }
    let called: Vec<Called> = found.iter().map(|(target, _, _)| target.called()).collect();
    let shown = found.iter().zip(&called).map(|((target, scheme, table), name)| {
        (Shown { name, table, scheme: scheme.scheme() }, target.site(), target.judged.as_ref())
    });
    let shown: Vec<(Shown<'_>, TableSite<'_>, Option<&Remembered>)> = shown.collect();
    if args.common.json {
        Document::new(&shown).print()?;
        return Ok(done);
    }
    let mut out = BufWriter::new(anstream::stdout().lock());
    if args.picture {
        for (nth, (shown, site, _)) in shown.iter().enumerate() {
            if nth > 0 {
                writeln!(out)?;
            }
            picture::write(*shown, site, &mut out, Style::of_stdout())?;
        }
    } else {
        let what = match (args.labels, args.raw) {
            (true, _) => What::Label,
            (_, true) => What::Raw,
            _ => What::Type,
        };
        let (release9, ours) = (
            args.common.compat == Some(Compat::Nine),
            args.common.rules() == Rules::Aligned && args.common.compat.is_none(),
        );
        let format = Format { what, names: args.providers, release9, ours };
        shown.iter().try_for_each(|(shown, ..)| gpart::write(*shown, format, &mut out))?;
    }
    out.flush()?;
    Ok(done)
}

pub(super) fn backup(args: &Backup) -> Result<ExitCode, Failure> {
    let target = WriteTarget::open(&args.target, &args.disk, Access::Read)?;
    let table = target.readable("back up the table on")?;
    let text = match args.sfdisk {
        true => script(&target, &table)?,
        false => backup::write(&table),
    };
    write!(anstream::stdout().lock(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// The table as sfdisk dumps it, with logical partitions beside the others.
fn script(target: &WriteTarget, table: &Table) -> Result<String, Failure> {
    let graph = &target.graph;
    let extended = graph.children(target.id).find(|&id| graph.providers[id].is_extended());
    let logicals = extended.and_then(|id| {
        let start = graph.providers[id].base().checked_sub(graph.providers[target.id].base())?;
        Some((Ebr.read(&graph.probe(id))?, start))
    });
    let device = target
        .typed
        .paths()
        .first()
        .map_or_else(|| target.typed.to_string(), |p| p.display().to_string());
    sfdisk::dump(table, logicals.as_ref().map(|(table, start)| (table, *start)), &device)
        .ok_or_else(|| {
            Failure::Message(format!(
                "back up the table on {}: sfdisk has no script of a {}: leave out --sfdisk",
                target.typed, table.scheme
            ))
        })
}
