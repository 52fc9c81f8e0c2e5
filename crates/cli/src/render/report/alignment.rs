//! `--alignment`: a line for each VHD and VHDX, with the number that Hyper-V's `Get-VHD` calls its
//! Alignment.
//!
//! It is 1 where all blocks that are there lie on 4096 bytes and the file ends there too, so that
//! the next block will; else 0. That is Microsoft's "Performance Tuning Guidelines", "VHD format",
//! with both of its examples; of a fixed VHD, whose blocks all lie from byte 0 on, and of a VHDX,
//! whose blocks are whole mebibytes, it is 1.

use super::list::column;
use crate::report::{Provider, Report, Target};
use crate::words::escape;
use std::io;
use trueline_geom::base::topology::is_whole;

/// Unit in bytes that Hyper-V has for both: the sector of an Advanced Format drive.
const UNIT: u64 = 4096;

/// Writes the list; without `header` its lines alone. Returns the number of lines.
pub(crate) fn write(report: &Report, header: bool, out: &mut dyn io::Write) -> io::Result<usize> {
    if header {
        writeln!(out, "ALIGNMENT  TARGET")?;
    }
    let width = if header { 11 } else { 3 };
    let mut count = 0;
    for target in &report.targets {
        for file in &target.providers {
            let Some(aligned) = alignment(target, file) else { continue };
            let name = escape::plain(&column::named(target, &file.provider));
            writeln!(out, "{:<width$}{name}", u8::from(aligned))?;
            count += 1;
        }
    }
    Ok(count)
}

/// The alignment of the file that a provider is, `None` where it is no VHD.
fn alignment(target: &Target, file: &Provider) -> Option<bool> {
    let is_grown = match file.sign.as_deref()? {
        "vhdx" => false,
        "vhd" => true,
        _ => return None,
    };
    let holds = |p: &&Provider| {
        p.parent.as_deref() == Some(&file.provider) && file.sign.as_deref() == Some(p.class)
    };
    let contents = target.providers.iter().find(holds)?;
    // Of a fixed one nothing is translated.
    let Some(container) = &contents.container else { return Some(true) };
    let blocks = is_whole(container.grain, UNIT) && is_whole(container.phase, UNIT);
    Some(!is_grown || blocks && is_whole(file.length, UNIT))
}
