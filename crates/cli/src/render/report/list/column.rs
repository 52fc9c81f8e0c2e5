//! The columns of a list: name, help and value of each. Help, completion and the manual have them
//! from here.
//!
//! Where lsblk has a column of that meaning, it has lsblk's name.
//!
//! # Sources
//! lsblk(8) of util-linux; Documentation/ABI/stable/sysfs-block of Linux: `alignment_offset`,
//! `minimum_io_size`, `optimal_io_size`. A set's are those that md sets, by chunk and row.

use crate::failure::Reason;
use crate::report::{Grain, Provider, Target};
use crate::words::{self, size};
use trueline_geom::base::finding::Severity;
use trueline_geom::base::topology::{Fact, Grain as Boundaries, Trust, Why};
use trueline_geom::registry;

/// A column of the list.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    /// Its heading, as typed.
    pub(crate) name: &'static str,
    /// The meaning of its values.
    pub(crate) help: &'static str,
    /// True if values are numbers, which are aligned right.
    pub(super) right: bool,
    /// Its value of a provider, in whole bytes where that is asked for; empty where there is none.
    pub(super) value: Value,
}

type Value = fn(&Target, &Provider, bool) -> String;

/// All columns, in the order of `--output-all`.
pub(crate) const COLUMNS: [Column; 26] = [
    left("NAME", "provider, as the command line takes it", |t, p, _| named(t, &p.provider)),
    left("TARGET", "target, as you named it", |t, _, _| t.target.clone()),
    left("PROVIDER", "the part of NAME behind #", |_, p, _| words::name(&p.provider)),
    left("PKNAME", "NAME of the provider beneath", |t, p, _| {
        provider_beneath(t, p).map_or(String::new(), |below| named(t, below))
    }),
    left("TYPE", "disk, part, lvm, crypt, raid5, data, ...", |t, p, _| kind(t, p)),
    left("CONTENT", "recognised content, else the table, else the type", |t, p, _| {
        Some(words::content(t, p)).filter(|content| content != "-").unwrap_or_default()
    }),
    left("FSTYPE", "recognised content, if it is one thing", |_, p, _| {
        p.sign.clone().unwrap_or_default()
    }),
    left("PARTTYPENAME", "type in the table, in words", |_, p, _| {
        p.kind.clone().unwrap_or_default()
    }),
    right("START", "first byte on the medium (lsblk: sectors, see LBA)", |_, p, _| {
        if p.placed { words::start(p).to_string() } else { String::new() }
    }),
    right("LBA", "first logical sector on the medium", |_, p, _| {
        words::lba(p).map_or(String::new(), |lba| lba.to_string())
    }),
    right("SIZE", "length", |_, p, bytes| {
        if bytes { p.length.to_string() } else { size::human(p.length).replace(' ', "") }
    }),
    right("ALIGN", "largest power of two that divides START", |_, p, bytes| {
        words::start_grain(p).map_or(String::new(), |grain| shown(grain, bytes))
    }),
    right("ALIGNMENT", "bytes from its start to the first boundary of MIN-IO", |_, p, _| {
        smallest(p).map_or(String::new(), |grain| grain.phase.to_string())
    }),
    right("GRAIN", "largest boundary that it is judged by, and its phase", |_, p, bytes| {
        grain(p, bytes)
    }),
    right("MIN-IO", "minimum I/O size in bytes", |_, p, _| number(smallest(p))),
    right("OPT-IO", "optimal I/O size in bytes", |_, p, _| {
        number(of(p, &[Why::Optimal, Why::FullStripe, Why::Row]))
    }),
    right("PHY-SEC", "physical sector in bytes", |_, p, _| number(of(p, &[Why::Physical]))),
    right("LOG-SEC", "logical sector in bytes", |_, p, _| p.sector_size.to_string()),
    right("DISC-GRAN", "discard granularity in bytes", |_, p, _| number(of(p, &[Why::Discard]))),
    right("BLOCK", "unit of I/O of the content in bytes", |_, p, _| {
        p.block_size.map_or(String::new(), |block| block.to_string())
    }),
    left("VERDICT", "aligned, misaligned or unknown", |_, p, _| {
        words::shown(p).map_or("", words::verdict).to_owned()
    }),
    right("COST", "device operations of the dearest finding, 1 on the grain", |t, p, _| cost(t, p)),
    left("RULES", "rules of its findings, the worst first", |t, p, _| rules(t, p)),
    left("LABEL", "label of the file system, else of the table's entry", |_, p, _| {
        p.label.clone().unwrap_or_default()
    }),
    left("UUID", "UUID of the content, else of the table's entry", |_, p, _| {
        p.uuid.clone().unwrap_or_default()
    }),
    left("MOUNTPOINT", "first mount point, on a running host", |_, p, _| {
        p.mountpoint.clone().unwrap_or_default()
    }),
];

const fn left(name: &'static str, help: &'static str, value: Value) -> Column {
    Column { name, help, right: false, value }
}

const fn right(name: &'static str, help: &'static str, value: Value) -> Column {
    Column { name, help, right: true, value }
}

/// The columns of a list without `-o`, which `-o +COLUMN` adds to.
pub(crate) fn usual() -> Vec<Column> {
    let names = ["NAME", "CONTENT", "START", "SIZE", "ALIGN", "VERDICT", "LABEL"];
    COLUMNS.into_iter().filter(|column| names.contains(&column.name)).collect()
}

/// The block of help with every column and its meaning.
pub(crate) fn help() -> String {
    let lines = COLUMNS.iter().map(|column| format!("\n  {:14}{}", column.name, column.help));
    format!("Columns of -o:{}", lines.collect::<String>())
}

/// A column as typed.
#[derive(Clone, Copy)]
pub(crate) struct NamedColumn {
    /// The column of that name.
    pub(crate) column: Column,
    /// True if a `+` before it adds it to the usual ones.
    pub(crate) is_added: bool,
}

impl NamedColumn {
    /// The column of that name, in any case, with a `+` before it or without. Errors: no such
    /// column.
    pub(crate) fn parse(typed: &str) -> Result<NamedColumn, Reason> {
        let (name, is_added) = typed.strip_prefix('+').map_or((typed, false), |name| (name, true));
        let names = || COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
        COLUMNS
            .into_iter()
            .find(|column| column.name.eq_ignore_ascii_case(name))
            .map(|column| NamedColumn { column, is_added })
            .ok_or_else(|| Reason(format!("there are {}", names())))
    }
}

/// The provider of that name as a command line takes it.
pub(crate) fn named(target: &Target, provider: &str) -> String {
    let disks = target.disks();
    if provider.is_empty() { disks.to_owned() } else { format!("{disks}#{provider}") }
}

/// The provider beneath another one. Two may have one name, as the disks of one OVA: it is the last
/// before.
fn beneath<'a>(target: &'a Target, p: &Provider) -> Option<&'a Provider> {
    let before = target.providers.iter().take_while(|other| !std::ptr::eq(*other, p));
    before.filter(|below| Some(&below.provider) == p.parent.as_ref()).last()
}

/// The name of what a provider stands on. Contents that have the name of what they are in, as the
/// disk of a container in a container, have that beneath them which both stand on. Of a set with
/// several members there is none.
fn provider_beneath<'a>(target: &'a Target, p: &'a Provider) -> Option<&'a str> {
    if let [member] = p.members.as_slice() {
        return Some(member);
    }
    let mut at = p;
    while let Some(below) = beneath(target, at) {
        if below.provider != p.provider {
            return Some(&below.provider);
        }
        at = below;
    }
    // Of a provider that was named it is not among those that are shown.
    at.parent.as_deref().filter(|parent| *parent != p.provider)
}

/// Type of a provider as lsblk calls it; `data` is the data area of a format.
fn kind(target: &Target, p: &Provider) -> String {
    let beneath = beneath(target, p);
    let is_part =
        beneath.and_then(|below| below.table.as_ref()).is_some_and(|t| t.scheme == p.class);
    let is_contents = registry::containers().any(|container| container == p.class);
    match p.class {
        _ if is_part => "part".into(),
        _ if is_contents => "disk".into(),
        _ if beneath.is_some_and(|below| below.sign.as_deref() == Some(p.class)) => "data".into(),
        "luks" => "crypt".into(),
        "md" | "imsm" => p.arrangement.as_ref().map_or(p.class.to_owned(), |set| set.level.clone()),
        class => class.to_owned(),
    }
}

/// A size in a column: short, or in whole bytes.
fn shown(bytes: u64, whole: bool) -> String {
    if whole { bytes.to_string() } else { size::short(bytes) }
}

fn number(grain: Option<&Grain>) -> String {
    grain.map_or(String::new(), |grain| grain.size.to_string())
}

/// The first boundary of those purposes that is believed.
fn of<'a>(p: &'a Provider, purposes: &[Why]) -> Option<&'a Grain> {
    let believed =
        |why: &Why| p.grains.iter().find(|g| g.why == *why && g.trust > Trust::Untrusted);
    purposes.iter().find_map(believed)
}

/// The boundary of the minimum I/O size: the preferred unit, a set's chunk, else the physical unit.
fn smallest(p: &Provider) -> Option<&Grain> {
    of(p, &[Why::Preferred, Why::Chunk, Why::Physical])
}

/// The largest boundary that a start is judged by: its size, and its phase if it has one.
fn grain(p: &Provider, whole: bool) -> String {
    let counts = |g: &&Grain| {
        Boundaries::new(g.size, g.phase).is_some_and(|grain| {
            Fact { grain, why: g.why, source: g.source, trust: g.trust }.counts()
        })
    };
    p.grains.iter().filter(counts).max_by_key(|g| g.size).map_or(String::new(), |g| match g.phase {
        0 => shown(g.size, whole),
        phase => format!("{}+{}", shown(g.size, whole), shown(phase, whole)),
    })
}

/// Device operations of the dearest finding on it, relative to the same I/O on the grain.
fn cost(target: &Target, p: &Provider) -> String {
    let found =
        target.findings.iter().filter(|f| f.provider == p.provider && f.severity != Severity::Note);
    let worst = found.map(|f| f.rmw_factor).reduce(f64::max).or(p.data_bearing.then_some(1.0));
    worst.map_or(String::new(), |worst| format!("{worst:.2}"))
}

/// Ids of the rules of its findings, each once.
fn rules(target: &Target, p: &Provider) -> String {
    let mut rules: Vec<&str> = Vec::new();
    for found in target.findings.iter().filter(|f| f.provider == p.provider) {
        if !rules.contains(&found.rule) {
            rules.push(found.rule);
        }
    }
    rules.join(",")
}
