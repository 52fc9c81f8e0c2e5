//! `part show` and `part backup`: a table in gpart(8)'s text, or sfdisk's.

use crate::command::part::args::{Backup, Compat, Show};
use crate::command::part::json::Document;
use crate::command::part::picture;
use crate::failure::{Failure, complain};
use crate::remembered::Remembered;
use crate::render::gpart::{self, Called, Format, Shown, What};
use crate::style::Style;
use crate::target;
use crate::write_target::WriteTarget;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use trueline_geom::class::mbr::Ebr;
use trueline_geom::layout::{backup, sfdisk};
use trueline_geom::table::scheme::{Scheme, TableSite};
use trueline_geom::table::{Rules, Table};
use trueline_host::disk::file::Access;

pub(super) fn show(args: &Show) -> Result<ExitCode, Failure> {
    let mut found: Vec<(WriteTarget, &'static dyn Scheme, Table)> = Vec::new();
    let mut done = ExitCode::SUCCESS;
    for target in &args.targets {
        let seat = WriteTarget {
            speaks_geom: args.common.speaks_geom() || args.common.json,
            ..WriteTarget::open(target, &args.common.disk, Access::Read)?
        };
        match seat.edited("show the table on") {
            Ok((scheme, table)) => found.push((seat, scheme, table)),
            Err(Failure::Message(message)) => {
                complain(&message);
                done = ExitCode::from(2);
            }
            Err(failure) => return Err(failure),
        }
    }
    let called: Vec<Called> = found.iter().map(|(seat, _, _)| seat.called()).collect();
    let shown = found
        .iter()
        .zip(&called)
        .map(|((seat, scheme, table), name)| (Shown { name, table, scheme: *scheme }, seat.ground(), seat.judged.as_ref()));
    let shown: Vec<(Shown<'_>, TableSite<'_>, Option<&Remembered>)> = shown.collect();
    let mut out = BufWriter::new(anstream::stdout().lock());
    if args.common.json {
        serde_json::to_writer_pretty(&mut out, &Document::new(&shown)).map_err(io::Error::from)?;
        writeln!(out)?;
    } else if args.picture {
        for (nth, (shown, ground, _)) in shown.iter().enumerate() {
            if nth > 0 {
                writeln!(out)?;
            }
            picture::write(*shown, ground, &mut out, Style::of_stdout())?;
        }
    } else {
        let what = match (args.labels, args.raw) {
            (true, _) => What::Label,
            (_, true) => What::Raw,
            _ => What::Type,
        };
        let (release9, ours) =
            (args.common.compat == Some(Compat::Nine), args.common.rules() == Rules::Aligned && args.common.compat.is_none());
        let format = Format { what, names: args.providers, release9, ours };
        shown.iter().try_for_each(|(shown, ..)| gpart::write(*shown, format, &mut out))?;
    }
    out.flush()?;
    Ok(done)
}

pub(super) fn backup(args: &Backup) -> Result<ExitCode, Failure> {
    let seat = WriteTarget::open(&args.target, &args.disk, Access::Read)?;
    let (scheme, table) = seat.edited("back up the table on")?;
    let text = match args.sfdisk {
        true => script(&seat, &table)?,
        false => backup::write(&table, scheme),
    };
    write!(anstream::stdout().lock(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// The table as sfdisk dumps it, with logical partitions beside the others.
fn script(seat: &WriteTarget, table: &Table) -> Result<String, Failure> {
    let graph = &seat.graph;
    let extended = graph.children(seat.id).find(|&id| graph.providers[id].is_extended());
    let logicals = extended.and_then(|id| {
        let start = graph.providers[id].base().checked_sub(graph.providers[seat.id].base())?;
        Some((Ebr.read(&graph.probe(id))?, start))
    });
    let device = target::paths(&seat.target).first().map_or_else(|| seat.target.clone(), |p| p.display().to_string());
    sfdisk::dump(table, logicals.as_ref().map(|(table, start)| (table, *start)), &device).ok_or_else(|| {
        Failure::Message(format!("back up the table on {}: sfdisk has no script of a {}: leave out --sfdisk", seat.target, table.scheme))
    })
}
