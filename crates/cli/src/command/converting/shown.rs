//! A conversion as it is shown: the partitions before and after, what is written, the document.

use crate::style::Style;
use crate::target::Target;
use crate::words::columns::{self, Cell, Spare};
use crate::words::{escape, size};
use crate::write_target::WriteTarget;
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use trueline_geom::convert::{Conversion, Kept};
use trueline_geom::graph::Id;
use trueline_geom::mapping::slices::place;

/// The name of a provider; `the disk` for what has none.
pub(super) fn name(target: &WriteTarget, id: Id) -> String {
    match target.graph.providers[id].name.as_str() {
        "" => "the disk".into(),
        name => escape::plain(name),
    }
}

/// Prints the plan: a line for each partition, and what is written.
pub(super) fn plan(target: &WriteTarget, conversion: &Conversion) -> io::Result<()> {
    let style = Style::of_stdout();
    let mut out = BufWriter::new(anstream::stdout().lock());
    let aim = &conversion.aim;
    if !conversion.partitions.is_empty() {
        let head = ["PARTITION", "FROM", "IN NEW SECTORS", "SIZE", "CONTENTS"];
        let head = head.map(Cell::left).to_vec();
        let rows = conversion.partitions.iter().map(|kept| {
            vec![
                Cell::left(name(target, kept.id)),
                Cell::left(place(kept.after.start, aim.from)),
                Cell::left((kept.after.start / aim.grid()).to_string()),
                Cell::right(size::human(kept.after.end - kept.after.start)),
                Cell::left(contents(target, conversion, kept)),
            ]
        });
        let rows: Vec<Vec<Cell>> = [head].into_iter().chain(rows).collect();
        columns::write(&rows, &Spare::NONE, style.width, &mut out)?;
        writeln!(out)?;
    }
    let longer = conversion.after.saturating_sub(conversion.before);
    let longer = match longer {
        0 => String::new(),
        bytes => format!("; the image gets {} longer", size::human(bytes)),
    };
    let line = format!("{} are written{longer}", size::human(conversion.bytes()));
    columns::line(&line, style.width, &mut out)?;
    out.flush()
}

/// The contents of a partition and what becomes of them, in words.
fn contents(target: &WriteTarget, conversion: &Conversion, kept: &Kept) -> String {
    let p = &target.graph.providers[kept.id];
    if let Some((class, _)) = &p.table {
        return format!("{class} table, adapted");
    }
    let kinds: Vec<&str> = p.in_use().map(|sign| sign.kind.name).collect();
    let kinds = match (&p.member, kinds.is_empty()) {
        (_, false) => kinds.join(", "),
        (Some((_, member)), true) => format!("in {}", escape::plain(&member.provider)),
        (None, true) => "none known".into(),
    };
    let becomes =
        match (conversion.rewritten.contains(&kept.id), kept.before.end.cmp(&kept.after.end)) {
            (true, _) => ", adapted",
            (false, std::cmp::Ordering::Less) => ", partition rounded up",
            (false, std::cmp::Ordering::Greater) => ", partition rounded down",
            (false, std::cmp::Ordering::Equal) => "",
        };
    format!("{kinds}{becomes}")
}

/// The line at the end.
pub(super) fn done(typed: &Target, conversion: &Conversion, output: Option<&Path>) -> String {
    let aim = &conversion.aim;
    let sectors = match aim.universal {
        true => "of 512 and of 4096 bytes".to_string(),
        false => format!("of {} bytes", aim.to),
    };
    match output {
        Some(output) => {
            format!("{}: {typed} for sectors {sectors}", escape::plain(&output.to_string_lossy()))
        }
        None => format!("{typed}: converted, for sectors {sectors}"),
    }
}

/// The document of `convert --json`.
#[derive(Serialize)]
pub(super) struct Report {
    format: &'static str,
    target: String,
    /// Sectors in bytes before.
    from: u64,
    /// Sectors in bytes for which it is right after.
    to: Vec<u64>,
    /// Length of the disk in bytes before and after.
    length: [u64; 2],
    /// Bytes that are written anew.
    bytes: u64,
    partitions: Vec<Partition>,
}

/// One partition of that document.
#[derive(Serialize)]
struct Partition {
    provider: String,
    start: u64,
    /// Length in bytes before and after.
    length: [u64; 2],
    contents: Vec<&'static str>,
    rewritten: bool,
}

/// The document of a conversion.
pub(super) fn report(target: &WriteTarget, conversion: &Conversion) -> Report {
    let partition = |kept: &Kept| Partition {
        provider: target.graph.providers[kept.id].name.clone(),
        start: kept.after.start,
        length: [kept.before.end - kept.before.start, kept.after.end - kept.after.start],
        contents: target.graph.providers[kept.id].in_use().map(|sign| sign.kind.name).collect(),
        rewritten: conversion.rewritten.contains(&kept.id),
    };
    Report {
        format: "trueline/convert/1",
        target: target.typed.typed().into(),
        from: conversion.aim.from,
        to: conversion.aim.sizes().to_vec(),
        length: [conversion.before, conversion.after],
        bytes: conversion.bytes(),
        partitions: conversion.partitions.iter().map(partition).collect(),
    }
}

/// Prints a document, on lines of its own.
pub(super) fn print(report: &Report) -> io::Result<()> {
    let mut out = BufWriter::new(anstream::stdout().lock());
    serde_json::to_writer_pretty(&mut out, report).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()
}
