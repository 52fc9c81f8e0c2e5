//! sfdisk(8)'s scripts: read as layouts, and written as `sfdisk --dump` writes them.
//!
//! ```text
//! label: gpt
//! sector-size: 512
//!
//! disk.img1 : start=2048, size=20480, type=U, name="esp"
//! ,10MiB,S
//! ;
//! ```
//!
//! Headers come first; then a line for each partition. A line has either named fields, optionally
//! after the name of its node, or start, size, type and bootable in this order, between commas,
//! semicolons or blanks. Plain numbers count sectors, decimal, octal or hexadecimal; those with a
//! unit are bytes. A value that is missing, `-` or `+` is chosen.
//!
//! # Differences from sfdisk
//! A size in bytes is kept to the sector, where sfdisk takes it to the nearest MiB. Partitions
//! without a size share the rest, where sfdisk gives all of it to the first. A script for other
//! sectors than the disk's is refused: sfdisk takes the numbers as they are, and every partition
//! has another size.
//!
//! # Sources
//! sfdisk(8), "INPUT FORMATS"; what util-linux 2.38.1 reads and writes.

use crate::base::ondisk::Guid;
use crate::base::size;
use crate::layout::{Layout, Part, Size};
use crate::registry;
use crate::table::scheme::Id;
use crate::table::{Advice, Refusal};
use std::fmt;

pub use dump::dump;
pub use fault::Fault;

mod dump;
mod fault;
mod line;

/// Largest number of partitions, more than any table has room for.
const PARTITIONS: usize = 4096;

/// Parsed script of sfdisk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Label: `gpt` or `dos`; `None` is dos.
    label: Option<String>,
    /// Identity of the table: a GUID or a signature.
    id: Option<Id>,
    first_lba: Option<u64>,
    last_lba: Option<u64>,
    entries: Option<u32>,
    /// Bytes that chosen starts and ends are multiples of.
    grain: Option<u64>,
    /// Bytes of the sectors that it counts; `None` if it does not name them.
    pub sector: Option<u64>,
    lines: Vec<Line>,
}

/// Partition as its line describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    number: Option<u32>,
    start: Option<Count>,
    size: Option<Count>,
    kind: Option<String>,
    bootable: bool,
    uuid: Option<Guid>,
    name: Option<String>,
    attributes: u64,
}

/// Number as scripts write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Sectors(u64),
    Bytes(u64),
}

impl Count {
    fn bytes(self, sector: u64) -> Result<u64, Refusal> {
        match self {
            Count::Bytes(n) => Ok(n),
            Count::Sectors(n) => n
                .checked_mul(sector)
                .ok_or_else(|| Refusal::new(format!("{n} sectors"), "no disk is so large")),
        }
    }
}

/// Line that does not belong to a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line of the text, from 1.
    pub line: usize,
    /// Fault of the line.
    pub what: Fault,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl Script {
    /// Parses a script; the error names the line.
    pub fn parse(text: &str) -> Result<Script, Mistake> {
        let mut script = Script::default();
        for (number, line) in (1..).zip(text.lines()) {
            script.line(line.trim()).map_err(|what| Mistake { line: number, what })?;
        }
        if script.lines.is_empty() && script.label.is_none() {
            return Err(Mistake { line: text.lines().count().max(1), what: Fault::Empty });
        }
        Ok(script)
    }

    fn line(&mut self, line: &str) -> Result<(), Fault> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let header = line
            .split_once(':')
            .filter(|(name, value)| !name.is_empty() && !value.is_empty() && !line.contains('='));
        match header {
            Some(_) if !self.lines.is_empty() => {
                return Err(Fault::LateHeader);
            }
            Some((name, value)) => return self.header(name.trim(), value.trim()),
            None => self.lines.push(if line.contains('=') {
                line::named(line)?
            } else {
                line::unnamed(line)?
            }),
        }
        if self.lines.len() > PARTITIONS { Err(Fault::Partitions(PARTITIONS)) } else { Ok(()) }
    }

    fn header(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        let bad = || Fault::HeaderValue { name: name.into(), value: value.into() };
        let number = || line::number(value).ok_or_else(bad);
        match name.to_ascii_lowercase().as_str() {
            "label" => match value {
                "gpt" | "dos" => self.label = Some(value.into()),
                _ => return Err(Fault::Label(value.into())),
            },
            "label-id" => {
                let signature = value
                    .strip_prefix("0x")
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                    .map(Id::Signature);
                self.id =
                    Some(signature.or_else(|| value.parse().ok().map(Id::Guid)).ok_or_else(bad)?);
            }
            "unit" if value == "sectors" => {}
            "unit" => return Err(Fault::Unit(value.into())),
            "first-lba" => self.first_lba = Some(number()?),
            "last-lba" => self.last_lba = Some(number()?),
            "table-length" => {
                self.entries = Some(number().and_then(|n| u32::try_from(n).map_err(|_| bad()))?)
            }
            "grain" => self.grain = Some(size::bytes(value).filter(|&n| n > 0).ok_or_else(bad)?),
            "sector-size" => self.sector = Some(number()?),
            "device" => {}
            _ => return Err(Fault::Header(name.into())),
        }
        Ok(())
    }

    /// The layout that it describes, for a disk of `length` bytes in sectors of `sector` bytes.
    pub fn layout(&self, sector: u64, length: u64) -> Result<Layout, Refusal> {
        if let Some(other) = self.sector.filter(|&s| s != sector) {
            return Err(Refusal::new(
                format!("the script counts sectors of {other} bytes, the disk has {sector}"),
                Advice::ShowSectors(other),
            ));
        }
        let gpt = self.label.as_deref() == Some("gpt");
        let mut outer = empty(if gpt { "GPT" } else { "MBR" })?;
        outer.id = self.id.filter(|id| matches!(id, Id::Guid(_)) == gpt);
        if self.id.is_some() && outer.id.is_none() {
            return Err(Refusal::new(
                "the label-id is not of this label",
                "GPT has a GUID, dos eight hex digits after 0x",
            ));
        }
        outer.align = self.grain;
        if gpt {
            outer.entries = self.entries;
            outer.usable = self.usable(sector, length)?;
            outer.parts =
                self.lines.iter().map(|line| line.part(true, sector)).collect::<Result<_, _>>()?;
            return Ok(outer);
        }
        let (primary, logical) = self.split(sector)?;
        outer.parts = primary;
        if !logical.is_empty() {
            let mut inner = empty("EBR")?;
            (inner.from_above, inner.align, inner.parts) = (true, self.grain, logical);
            let extended = outer.parts.iter_mut().find(|part| is_extended(&part.kind));
            let none = || {
                Refusal::new(
                    "the script has logical partitions and no extended one",
                    "add a line of type Ex before them",
                )
            };
            extended.ok_or_else(none)?.inside = Some(inner);
        }
        Ok(outer)
    }

    /// Range in which partitions may lie, as first byte and byte after the last; `None` unless the
    /// script has one end at least.
    fn usable(&self, sector: u64, length: u64) -> Result<Option<(u64, u64)>, Refusal> {
        if self.first_lba.is_none() && self.last_lba.is_none() {
            return Ok(None);
        }
        let first = self.first_lba.map_or(Ok(1 << 20), |lba| Count::Sectors(lba).bytes(sector))?;
        let array = u64::from(self.entries.unwrap_or(128)).saturating_mul(128).div_ceil(sector);
        let last = (length / sector).saturating_sub(array.saturating_add(1));
        let end = Count::Sectors(self.last_lba.map_or(last, |lba| lba.saturating_add(1)))
            .bytes(sector)?;
        Ok(Some((first, end)))
    }

    /// The primary partitions of a dos label, numbered, and the logical ones in order.
    fn split(&self, sector: u64) -> Result<(Vec<Part>, Vec<Part>), Refusal> {
        let (mut primary, mut logical) = (Vec::<Part>::new(), Vec::new());
        for line in &self.lines {
            let mut part = line.part(false, sector)?;
            let slot = (1..=4).find(|n| {
                !self.lines.iter().any(|l| l.number == Some(*n))
                    && !primary.iter().any(|p| p.index == Some(*n))
            });
            let extended = primary.iter().find(|p| is_extended(&p.kind));
            let within = extended.is_some_and(|extended| {
                match (part.start, extended.start, extended.size) {
                    (None, _, size) => size == Size::Rest,
                    (Some(start), Some(from), Size::Bytes(size)) => {
                        start >= from && start - from < size
                    }
                    (Some(start), Some(from), _) => start >= from,
                    (Some(_), None, _) => false,
                }
            });
            match (line.number, slot) {
                (Some(n @ 1..=4), _) => part.index = Some(n),
                (None, Some(n)) if !within => part.index = Some(n),
                (n, _) => {
                    logical.push((n.unwrap_or(u32::MAX), part));
                    continue;
                }
            }
            primary.push(part);
        }
        // The numbers of logical partitions only give their order.
        logical.sort_by_key(|(n, _)| *n);
        let logical = logical.into_iter().map(|(_, part)| Part { index: None, ..part });
        Ok((primary, logical.collect()))
    }
}

fn empty(scheme: &str) -> Result<Layout, Refusal> {
    let scheme = registry::scheme_named(scheme)
        .ok_or_else(|| Refusal::new(format!("{scheme} tables cannot be written"), ""))?;
    Ok(Layout {
        scheme,
        id: None,
        entries: None,
        usable: None,
        align: None,
        dialect: None,
        from_above: false,
        parts: Vec::new(),
    })
}

fn is_extended(kind: &str) -> bool {
    matches!(kind, "extended" | "!5" | "!15" | "!133")
}

/// Attribute bit of the active partition of an MBR.
const ACTIVE: u64 = 0x80;

impl Line {
    fn part(&self, gpt: bool, sector: u64) -> Result<Part, Refusal> {
        let size = match self.size {
            None => Size::Rest,
            Some(Count::Bytes(n)) => Size::Bytes(n),
            Some(sectors) => Size::Bytes(sectors.bytes(sector)?),
        };
        Ok(Part {
            index: self.number,
            start: self.start.map(|s| s.bytes(sector)).transpose()?,
            size,
            kind: line::kind(self.kind.as_deref().unwrap_or("L"), gpt),
            // A script describes a partition completely: an attribute that it leaves out is not
            // set.
            label: gpt.then(|| self.name.clone().unwrap_or_default()),
            uuid: self.uuid,
            attributes: Some(if gpt { self.attributes } else { u64::from(self.bootable) * ACTIVE }),
            inside: None,
        })
    }
}

#[cfg(test)]
#[path = "sfdisk/tests.rs"]
mod tests;
