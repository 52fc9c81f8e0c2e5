//! `part`: the verbs and options of gpart(8).

pub(crate) mod apply;
use crate::args::on_demand::OnDemand;
use crate::command::part::args::apply::Apply;
use crate::disk_options::DiskOptions;
use crate::failure::Reason;
use crate::target::Target;
use crate::writing::WriteOptions;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use trueline_geom::base::size;
use trueline_geom::mapping::slices::Dialect;
use trueline_geom::table::Rules;
use trueline_geom::table::types::ALIASES;

pub(crate) const EXAMPLES: &str = "Examples:
  trueline part create -s gpt disk.img
  trueline part add -t efi -s 512m -l esp disk.img
  trueline part add -t linux-data disk.img        the rest, on the grain
  trueline part create -s bsd 'disk.img#s1'       a label inside a slice
  trueline part show --picture disk.img
  trueline part apply layout.toml disk.img        all of it at once

Sizes: a plain number counts sectors, as in gpart(8); 512b, 4k, 90g and 1MiB are bytes.";

#[derive(Args)]
pub(crate) struct Part {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Show a table and what is free, as gpart(8) does
    Show(OnDemand<Show>),
    /// Make an empty table
    Create(OnDemand<Create>),
    /// Remove a partition table
    Destroy(OnDemand<Destroy>),
    /// Add a partition to a table
    Add(OnDemand<Add>),
    /// Delete a partition from a table
    Delete(OnDemand<Delete>),
    /// Change a partition's type or label
    Modify(OnDemand<Modify>),
    /// Change a partition's size; what is in it is neither moved nor resized
    Resize(OnDemand<Resize>),
    /// Set an attribute of a partition or of the table
    Set(OnDemand<Mark>),
    /// Unset an attribute of a partition or of the table
    Unset(OnDemand<Mark>),
    /// Print a table as text for restore, here or in gpart(8); with --sfdisk as a script
    Backup(OnDemand<Backup>),
    /// Make a table from the text of backup, read from stdin
    Restore(OnDemand<Restore>),
    /// Make a damaged table whole, from its other copy if it has one
    Recover(OnDemand<Recover>),
    /// Make the tables match a layout; what matches already is left alone
    Apply(OnDemand<Apply>),
    /// Put back the bytes that --save kept
    Undo(OnDemand<Undo>),
}

/// Options that all verbs share.
#[derive(Args, Clone)]
pub(crate) struct Common {
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Choose places and speak as gpart(8) does
    #[arg(long)]
    pub gpart_rules: bool,
    /// Rules and formats of an older system: 9 for FreeBSD 9
    #[arg(long, value_name = "RELEASE", value_enum)]
    pub compat: Option<Compat>,
    /// Print one JSON document: the table as it is in the end
    #[arg(long)]
    pub json: bool,
}

impl Common {
    /// True if messages name providers as GEOM does, `ada0s1`, and not as they were typed.
    pub(crate) fn speaks_geom(&self) -> bool {
        self.gpart_rules || self.compat.is_some()
    }
}

/// Options of every verb that changes one table.
#[derive(Args)]
pub(crate) struct On {
    #[command(flatten)]
    pub write: WriteOptions,
    #[command(flatten)]
    pub common: Common,
    /// Disk or provider with the table: DISK[,DISK...][#PROVIDER]
    pub target: Target,
}

/// A release with rules and formats of its own.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// The rules of FreeBSD 9
    #[value(name = "9")]
    Nine,
}

impl Common {
    /// Rules by which places are chosen.
    pub(crate) fn rules(&self) -> Rules {
        match (self.gpart_rules, self.compat) {
            (false, _) => Rules::Aligned,
            (true, None) => Rules::Gpart,
            (true, Some(Compat::Nine)) => Rules::Gpart9,
        }
    }
}

#[derive(Args)]
#[command(after_help = "Examples:\n  trueline part show disk.img\n  trueline part show --picture \
        'disk.img#s1'")]
pub(crate) struct Show {
    /// Disks or providers to list: DISK[,DISK...][#PROVIDER]
    #[arg(required = true)]
    pub targets: Vec<Target>,
    /// Print labels instead of types
    #[arg(short = 'l', conflicts_with = "raw")]
    pub labels: bool,
    /// Print raw types instead of their names
    #[arg(short = 'r')]
    pub raw: bool,
    /// Print names of providers instead of indexes
    #[arg(short = 'p')]
    pub providers: bool,
    /// Draw it to scale, with the grain as a ruler
    #[arg(long, conflicts_with = "json")]
    pub picture: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  trueline part create -s gpt disk.img\n  trueline part create -s bsd \
        --dialect openbsd 'disk.img#s4'"
)]
pub(crate) struct Create {
    /// gpt, mbr, ebr or bsd
    #[arg(short = 's', value_name = "SCHEME")]
    pub scheme: String,
    /// Entries the table has room for: 128
    #[arg(short = 'n', value_name = "ENTRIES")]
    pub entries: Option<u32>,
    /// The flavour of a BSD label
    #[arg(long, value_enum)]
    pub dialect: Option<DialectName>,
    /// The identity: a GUID for GPT, eight hex digits for MBR, sixteen for OpenBSD's label
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Sectors a track and heads, for MBR and BSD labels
    #[arg(long, value_name = "SECTORS,HEADS")]
    pub geometry: Option<String>,
    /// Make it although there is data: what is there is lost
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub on: On,
}

/// A flavour of BSD label.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum DialectName {
    /// Offsets from the slice
    Freebsd,
    /// Offsets from the start of the disk, 48 bits
    Openbsd,
    /// Offsets from the start of the disk
    Netbsd,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Dialect {
        match name {
            DialectName::Freebsd => Dialect::FreeBsd,
            DialectName::Openbsd => Dialect::OpenBsd,
            DialectName::Netbsd => Dialect::NetBsd,
        }
    }
}

#[derive(Args)]
pub(crate) struct Destroy {
    /// Remove it even with partitions in it, or damaged
    #[arg(short = 'F')]
    pub force: bool,
    #[command(flatten)]
    pub on: On,
}

/// Examples, and every type by name: gpart(8)'s manual is not at hand everywhere.
fn add_help() -> String {
    let mut help = String::from(
        "Examples:
  trueline part add -t freebsd-ufs -s 90g 'ada1.img#s1'
  trueline part add -t linux-data -b 63 disk.img    obeyed, with a warning

Types:",
    );
    let mut names: Vec<&str> = ALIASES.iter().map(|alias| alias.name).collect();
    names.sort_unstable();
    let mut room = 0;
    for name in names {
        if name.len() >= room {
            help.push_str("\n ");
            room = WIDTH;
        }
        room -= name.len() + 1;
        help = help + " " + name;
    }
    help + "\n  in a BSD label also disklabel's: 4.2BSD swap MSDOS ...; sfdisk's L U S H R V; any \
        other as a number or GUID: !131"
}

/// Width of a list of names, in columns.
const WIDTH: usize = 96;

/// A length as typed; its bytes depend on the sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Bytes(u64),
    Sectors(u64),
}

impl Length {
    /// Parses a length in gpart's way: a plain number counts sectors, one with a unit bytes.
    pub(crate) fn parse(text: &str) -> Result<Length, Reason> {
        let bad = || Reason(format!("'{text}' is not a size: 2048 (sectors), 512b, 4k, 1MiB, 90g"));
        let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
        let plain = digits.strip_suffix('s').unwrap_or(digits);
        if !plain.is_empty() && plain.chars().all(|c| c.is_digit(radix)) {
            return u64::from_str_radix(plain, radix).map(Length::Sectors).map_err(|_| bad());
        }
        let bytes = text
            .strip_suffix('b')
            .filter(|t| t.chars().all(|c| c.is_ascii_digit()))
            .unwrap_or(text);
        size::bytes(bytes).map(Length::Bytes).ok_or_else(bad)
    }

    /// The length in bytes, with sectors of `sector` bytes; `None` past 2^64.
    pub(crate) fn bytes(self, sector: u64) -> Option<u64> {
        match self {
            Length::Bytes(n) => Some(n),
            Length::Sectors(n) => n.checked_mul(sector),
        }
    }
}

#[derive(Args)]
#[command(after_help = add_help())]
pub(crate) struct Add {
    /// The type: an alias of gpart(8), a number or GUID after a !
    #[arg(short = 't', value_name = "TYPE")]
    pub kind: String,
    /// Align the start to this multiple, on the medium [default: 1 MiB and every grain below]
    #[arg(short = 'a', value_name = "ALIGN", value_parser = Length::parse)]
    pub align: Option<Length>,
    /// The start, counted from that of the table's provider: 2048 (sectors), 1MiB
    #[arg(short = 'b', value_name = "START", value_parser = Length::parse)]
    pub start: Option<Length>,
    /// The size: 2048 (sectors), 4k, 90g [default: the largest free space]
    #[arg(short = 's', value_name = "SIZE", value_parser = Length::parse)]
    pub size: Option<Length>,
    /// The index [default: the lowest that is free]
    #[arg(short = 'i', value_name = "INDEX")]
    pub index: Option<u32>,
    /// The label: root, data
    #[arg(short = 'l', value_name = "LABEL", allow_hyphen_values = true)]
    pub label: Option<String>,
    /// The UUID, in a GPT
    #[arg(long, value_name = "UUID")]
    pub uuid: Option<String>,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args)]
pub(crate) struct Delete {
    /// The index of the partition
    #[arg(short = 'i', value_name = "INDEX")]
    pub index: u32,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args)]
pub(crate) struct Modify {
    /// The index of the partition
    #[arg(short = 'i', value_name = "INDEX")]
    pub index: u32,
    /// The new type: linux-data, freebsd-ufs
    #[arg(short = 't', value_name = "TYPE")]
    pub kind: Option<String>,
    /// The new label; "" removes it
    #[arg(short = 'l', value_name = "LABEL", allow_hyphen_values = true)]
    pub label: Option<String>,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args)]
pub(crate) struct Resize {
    /// The index of the partition
    #[arg(short = 'i', value_name = "INDEX")]
    pub index: u32,
    /// Align the end to this multiple, on the medium
    #[arg(short = 'a', value_name = "ALIGN", value_parser = Length::parse)]
    pub align: Option<Length>,
    /// The new size [default: all that is free behind it]
    #[arg(short = 's', value_name = "SIZE", value_parser = Length::parse)]
    pub size: Option<Length>,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args)]
pub(crate) struct Mark {
    /// The attribute: active, bootme
    #[arg(short = 'a', value_name = "ATTRIBUTE")]
    pub attribute: String,
    /// The index of the partition [default: the table itself]
    #[arg(short = 'i', value_name = "INDEX")]
    pub index: Option<u32>,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args)]
pub(crate) struct Recover {
    #[command(flatten)]
    pub on: On,
}

#[derive(Args)]
pub(crate) struct Backup {
    /// As sfdisk --dump writes it, for apply --sfdisk or sfdisk itself
    #[arg(long)]
    pub sfdisk: bool,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Disk or provider with the table: DISK[,DISK...][#PROVIDER]
    pub target: Target,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  trueline part backup ada1.img > ada1.table\n  trueline part restore \
        -l ada2.img < ada1.table"
)]
pub(crate) struct Restore {
    /// Restore labels as well
    #[arg(short = 'l')]
    pub labels: bool,
    /// Replace a table or data that is there
    #[arg(short = 'F', visible_alias = "overwrite")]
    pub force: bool,
    #[command(flatten)]
    pub write: WriteOptions,
    #[command(flatten)]
    pub common: Common,
    /// Disks or providers to write: DISK[,DISK...][#PROVIDER]
    #[arg(required = true)]
    pub targets: Vec<Target>,
}

#[derive(Args)]
pub(crate) struct Undo {
    /// File that --save wrote
    pub file: PathBuf,
    #[command(flatten)]
    pub on: On,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_as_gpart_takes_them() {
        let bytes = |text: &str, sector| Length::parse(text).unwrap().bytes(sector);
        assert_eq!(
            ["574", "0x10", "8s"].map(|t| bytes(t, 512)),
            [574 * 512, 16 * 512, 4096].map(Some)
        );
        assert_eq!(
            ["512b", "4k", "1MiB", "90g"].map(|t| bytes(t, 4096)),
            [512, 4096, 1 << 20, 90 << 30].map(Some)
        );
        assert_eq!(bytes("18446744073709551615", 512), None);
        assert!(
            ["", "s", "-1", "1x", "99999999999999999999"].iter().all(|t| Length::parse(t).is_err())
        );
    }
}
