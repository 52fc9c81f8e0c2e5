//! `info`: one provider in the manner of `diskinfo -v`, with every grain and its source.

use crate::command::info::args::Info;
use crate::failure::Failure;
use crate::remembered::Remembered;
use crate::report::{Provider, TouchedRange};
use crate::survey::survey_with;
use crate::target::open::open;
use crate::target::{DiskOverrides, Target};
use crate::words::{escape, size};
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use trueline_host::disk::file;

pub(crate) mod args;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    target: &'a str,
    #[serde(rename = "for")]
    judged: Option<&'a Remembered>,
    #[serde(flatten)]
    provider: &'a Provider,
    /// Facts of what was recognised, in order.
    details: Vec<Detail<'a>>,
    drive: Option<&'a Drive>,
}

/// A fact of what was recognised, in its own tools' words.
#[derive(Serialize)]
struct Detail<'a> {
    name: &'static str,
    value: &'a str,
}

/// Properties of a file or device that the kernel reports, beyond boundaries. `None`, 0: not
/// reported.
#[derive(Serialize)]
pub(super) struct Drive {
    model: Option<String>,
    rotational: Option<bool>,
    zoned: Option<String>,
    /// Preferred size of a buffered I/O in bytes (`st_blksize`).
    io_block: u64,
    /// Alignment of memory, and of offset and length, for direct I/O in bytes (`statx`).
    dio_mem_align: Option<u32>,
    dio_offset_align: Option<u32>,
    /// Queue limits of a block device, in bytes.
    dma_alignment: Option<u64>,
    max_io: Option<u64>,
    atomic_write_unit_min: u64,
    atomic_write_unit_max: u64,
}

impl Drive {
    /// Properties of the single file or device that the target names.
    fn from_target(target: &Target) -> Option<Drive> {
        let opened = file::open(target.only_path()?).ok()?;
        let limits = opened.device.as_ref().map(|d| d.limits.clone()).unwrap_or_default();
        Some(Drive {
            model: opened.device.and_then(|d| d.model),
            rotational: limits.rotational,
            zoned: limits.zoned.filter(|z| z != "none"),
            io_block: opened.io.block,
            dio_mem_align: opened.io.dio_memory,
            dio_offset_align: opened.io.dio_offset,
            dma_alignment: limits.dma_alignment,
            max_io: limits.max_sectors_kb.map(|k| k.saturating_mul(1024)),
            atomic_write_unit_min: limits.atomic_write_unit_min_bytes,
            atomic_write_unit_max: limits.atomic_write_unit_max_bytes,
        })
    }
}

pub(crate) fn run(args: &Info) -> Result<ExitCode, Failure> {
    let overrides = if args.json {
        DiskOverrides::for_target(&args.disk, &args.target)?
    } else {
        DiskOverrides::announced(&args.disk, &args.target)?
    };
    let graph = open(&args.target, &overrides)?;
    // Of one container, the disk that it shows.
    let contents = Some(graph.disk(0)).filter(|&id| id > 0 && args.target.sources().len() == 1);
    let contents = contents.map(|id| graph.providers[id].name.clone());
    let only = args.target.provider().or(contents.as_deref());
    let target = survey_with(&args.target, Some(&overrides), &graph, only)
        .map_err(|e| format!("open {}: {e}", args.target))?;
    // Several disks without a named provider: each of them.
    let asked: Vec<&Provider> = match only {
        Some(_) => target.providers.iter().take(1).collect(),
        None => target.providers.iter().filter(|p| p.class == "disk").collect(),
    };
    if args.json && asked.len() > 1 {
        let names: Vec<&str> = target.providers.iter().map(|p| p.provider.as_str()).collect();
        return Err(format!(
            "info --json {}: one provider is one document: name it after a #: {}",
            args.target,
            names.join(", ")
        )
        .into());
    }
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    let several = asked.len() > 1;
    let drive = Drive::from_target(&args.target);
    for provider in asked {
        if args.json {
            let (judged, drive) = (overrides.judged(), drive.as_ref());
            let details = provider.details.iter().map(|(name, value)| Detail { name, value });
            let document = Document {
                format: "trueline/info/1",
                target: args.target.typed(),
                judged,
                provider,
                details: details.collect(),
                drive,
            };
            serde_json::to_writer_pretty(&mut stdout, &document).map_err(io::Error::from)?;
            writeln!(stdout)?;
        } else {
            let name = if several {
                format!("{}#{}", args.target, provider.provider)
            } else {
                args.target.to_string()
            };
            text(&name, provider, drive.as_ref(), &mut stdout)?;
        }
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn text(
    target: &str,
    p: &Provider,
    drive: Option<&Drive>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{target}")?;
    let mut line = |value: String, what: &str| writeln!(out, "\t{value:<12}\t# {what}");
    line(p.sector_size.to_string(), "sectorsize")?;
    line(p.length.to_string(), &format!("mediasize in bytes ({})", size::human(p.length)))?;
    line((p.length / p.sector_size.max(1)).to_string(), "mediasize in sectors")?;
    line(p.stripe_size.to_string(), "stripesize")?;
    line(p.stripe_offset.to_string(), "stripeoffset")?;
    if let Some(start) = p.start {
        line(start.to_string(), "start on the medium in bytes")?;
    }
    if let Some(sign) = &p.sign {
        line(sign.clone(), "contents")?;
    }
    for (name, value) in &p.details {
        line(escape::plain(value), name)?;
    }
    if let Some(set) = &p.arrangement {
        line(set.level.clone(), "level of the set")?;
        set.layout.clone().map_or(Ok(()), |layout| line(layout, "layout"))?;
        set.chunk.map_or(Ok(()), |chunk| line(chunk.to_string(), "chunk in bytes"))?;
        line(format!("{} of {}", set.present, set.members), "members here")?;
        let why = set.read_only.map(|why| line("read-only".into(), why));
        why.unwrap_or(Ok(()))?;
    }
    if let Some(first) = p.container.as_ref().and_then(|container| container.first_write.as_ref()) {
        let parts = |count: fn(&TouchedRange) -> u64| {
            let touched = first.ranges.iter().filter(|range| count(range) > 0);
            let names: Vec<&str> = touched.map(|range| range.what).collect();
            if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
        };
        let written = parts(|range| range.writes);
        line(first.writes.to_string(), &format!("writes at least for a new cluster{written}"))?;
        let read = parts(|range| range.reads);
        line(
            first.reads.to_string(),
            &format!("reads besides, all in units of {}{read}", first.unit),
        )?;
    }
    if let Some(d) = drive {
        let numbers = [
            (Some(d.io_block), "preferred bytes of a buffered I/O"),
            (d.dio_mem_align.map(u64::from), "alignment of memory for direct I/O"),
            (d.dio_offset_align.map(u64::from), "alignment of offset and length for direct I/O"),
            (d.dma_alignment, "DMA alignment mask"),
            (d.max_io, "largest I/O in bytes"),
            (Some(d.atomic_write_unit_min).filter(|&n| n > 0), "smallest atomic write"),
            (Some(d.atomic_write_unit_max).filter(|&n| n > 0), "largest atomic write"),
        ];
        for (value, what) in numbers {
            value.map_or(Ok(()), |value| line(value.to_string(), what))?;
        }
        let words = [
            (d.model.clone(), "model"),
            (d.zoned.clone(), "zones"),
            (d.rotational.map(|r| (if r { "yes" } else { "no" }).into()), "rotates"),
        ];
        for (value, what) in words {
            value.map_or(Ok(()), |value: String| line(escape::plain(&value), what))?;
        }
    }
    writeln!(out, "\n\t{:>12} {:>12}  {:<12} {:<8} trust", "grain", "phase", "why", "source")?;
    for g in &p.grains {
        writeln!(
            out,
            "\t{:>12} {:>12}  {:<12} {:<8} {}",
            g.size, g.phase, g.why, g.source, g.trust
        )?;
    }
    Ok(())
}
