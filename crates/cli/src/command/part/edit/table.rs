//! Verbs that make, destroy and recover a whole table.

use super::{Report, open_target};
use crate::command::part::args::{Create, Destroy, Recover};
use crate::command::part::json::Document;
use crate::command::part::text::{PartEdit, report_line};
use crate::failure::{Failure, Reason};
use crate::typed;
use crate::words::escape;
use crate::write_target::{named, partitions, refuse};
use std::process::ExitCode;
use trueline_geom::graph::occupant::Occupant;
use trueline_geom::registry::{self, SCHEMES};
use trueline_geom::table::Refusal;
use trueline_geom::table::scheme::{Geometry, InvalidId, New};
use trueline_host::random;

pub(in crate::command::part) fn create(args: &Create) -> Result<ExitCode, Failure> {
    let attempt = format!("make a table ({}) on", escape::plain(&args.scheme));
    let scheme = registry::scheme_named(&args.scheme).ok_or_else(|| {
        let names: Vec<String> = SCHEMES.iter().map(|s| s.name().to_lowercase()).collect();
        format!(
            "{attempt} {}: no such scheme: use {}: nothing was written",
            args.on.target,
            names.join(", ")
        )
    })?;
    let target = open_target(&args.on.target, &args.on.common, &args.on.write)?;
    target.require_settled(&attempt)?;
    let refused = |found: String, advice: &str| {
        refuse(&attempt, &args.on.target, &Refusal::new(found, advice))
    };
    if args.dialect.is_some() && scheme.name() != "BSD" {
        return Err(refused(
            format!("{} has no dialects", named(scheme.name())),
            "leave out --dialect",
        ));
    }
    if args.geometry.is_some() && scheme.has_guids() {
        return Err(refused(
            format!("{} has no geometry", named(scheme.name())),
            "leave out --geometry",
        ));
    }
    let occupant = target.occupant();
    match &occupant {
        Occupant::Table(old) if !args.overwrite => {
            let damaged = !old.damage.is_empty();
            let what = if damaged {
                format!("a damaged {}", old.scheme.name())
            } else {
                named(old.scheme.name())
            };
            let found = format!("there is {what} with {}", partitions(old.entries.len()));
            return Err(refused(
                found,
                "remove it with part destroy (-F if it has partitions), or say --overwrite to replace it",
            ));
        }
        Occupant::Data(holds, _) | Occupant::Remains(holds) if !args.overwrite => {
            return Err(refused(
                holds.clone(),
                &format!("say --overwrite to lose it: {}", typed::with_option("--overwrite")),
            ));
        }
        _ => {}
    }
    let new = New {
        entries: args.entries,
        id: args
            .id
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|wrong: InvalidId| refused(wrong.to_string(), ""))?,
        random: random::bytes().map_err(Reason::from)?,
        dialect: args.dialect.map(Into::into),
        geometry: args
            .geometry
            .as_deref()
            .map(geometry)
            .transpose()
            .map_err(|r| refuse(&attempt, &args.on.target, &r))?,
        medium: Some(target.medium()),
        rules: args.on.common.rules(),
        usable: None,
    };
    let table = occupant
        .create(&target.graph.probe(target.id), &target.site(), scheme, &new)
        .map_err(|r| refuse(&attempt, &args.on.target, &r))?;
    let report = Report::new(
        &target,
        &table,
        &args.on.common,
        report_line(PartEdit::Created, target.called().text()),
    );
    let patches = occupant.replaced(&target.graph.probe(target.id), scheme.render(&table, &table));
    target.write(scheme, patches, Some(&table), &args.on.write)?;
    report.print(&args.on.write)
}

fn geometry(text: &str) -> Result<Geometry, Refusal> {
    let numbers = text.split_once(',').and_then(|(s, h)| Some((s.parse().ok()?, h.parse().ok()?)));
    let good = numbers.filter(|&(sectors, heads): &(u32, u32)| {
        (1..=255).contains(&sectors) && (1..=255).contains(&heads)
    });
    let (sectors, heads) = good.ok_or_else(|| {
        Refusal::new(format!("geometry '{text}'"), "write sectors and heads, 1 to 255: 63,16")
    })?;
    Ok(Geometry { sectors, heads })
}

pub(in crate::command::part) fn destroy(args: &Destroy) -> Result<ExitCode, Failure> {
    let attempt = "destroy the table on";
    let target = open_target(&args.on.target, &args.on.common, &args.on.write)?;
    let table = target.edited(attempt)?;
    let refused =
        |found: String, advice| Err(refuse(attempt, &args.on.target, &Refusal::new(found, advice)));
    if !table.damage.is_empty() && !args.force {
        return refused(
            format!("the {} is damaged: {}", table.scheme, table.damage.join("; ")),
            "part recover, or say -F to lose it",
        );
    }
    if !table.entries.is_empty() && !args.force {
        return refused(
            format!("the {} has {}", table.scheme, partitions(table.entries.len())),
            "delete them first, or say -F",
        );
    }
    let patches = table.scheme.erase(&table);
    let report = match args.on.common.json {
        true => Report::Table(Document::new(&[])),
        false => Report::Line(report_line(PartEdit::Destroyed, target.called().text())),
    };
    target.write(table.scheme, patches, None, &args.on.write)?;
    report.print(&args.on.write)
}

pub(in crate::command::part) fn recover(args: &Recover) -> Result<ExitCode, Failure> {
    let attempt = "recover the table on";
    let target = open_target(&args.on.target, &args.on.common, &args.on.write)?;
    let before = target.edited(attempt)?;
    if before.damage.is_empty() {
        let report = Report::new(
            &target,
            &before,
            &args.on.common,
            report_line(PartEdit::Whole, target.called().text()),
        );
        target.write(before.scheme, Vec::new(), Some(&before), &args.on.write)?;
        return report.print(&args.on.write);
    }
    let after = before
        .scheme
        .recover(&before, &target.site())
        .map_err(|r| refuse(attempt, &args.on.target, &r))?;
    let report = Report::new(
        &target,
        &after,
        &args.on.common,
        report_line(PartEdit::Recovered, target.called().text()),
    );
    target.write(
        after.scheme,
        after.scheme.render(&before, &after),
        Some(&after),
        &args.on.write,
    )?;
    report.print(&args.on.write)
}
