//! Layouts: the parameters of every layer of a stack, each with its reason and its price.
//!
//! A [`Use`] is a stack of layers in the user's words, from the bottom: `md5x4+luks+lvm+xfs`. Each
//! [`Layer`] is shown the [`LayerBase`] it stands on, adds its choices to a [`Plan`], and gives the
//! base that it offers to the next, so that grains and their phases travel upwards through the same
//! arithmetic that `check` uses. Nothing here does I/O or knows a host: a plan is a function of a
//! topology and a use.
//!
//! File systems also offer their `Parameters` for a topology, with the arguments of their mkfs.
//!
//! # Cost of a choice
//! Write amplification is device bytes for each byte written
//! ([`crate::base::topology::amplification`]), in the layer's smallest or usual write, on the unit
//! below it that is read before part of it is written. Space is what a choice loses, in bytes.
//!
//! # Limits
//! A boundary that is not believed is not planned for. An optimal I/O size that only a device
//! claims is a hint (`docs/decisions/0007`), and a note says so. A boundary that cannot be reached
//! is a note, too.

pub mod asm;
pub mod bcache;
pub mod bcachefs;
pub mod btrfs;
pub mod btrfs_raid;
pub mod card;
pub mod cassandra;
pub mod ceph;
pub mod command;
pub mod database;
pub mod drbd;
pub mod etcd;
pub mod exfat;
pub mod ext4;
pub mod f2fs;
pub mod fat;
pub mod geli;
pub mod gsets;
pub mod kafka;
pub mod luks;
pub mod lvm;
pub mod md;
pub mod ntfs;
pub mod partition;
pub mod sqlite;
pub mod sqlserver;
pub mod stack;
pub mod swap;
pub mod thin;
pub mod ufs;
pub mod uses;
pub mod vm;
pub mod vmfs;
pub mod xfs;
pub mod zfs;

pub use crate::base::size::PAGE;
pub use command::{Command, Note, Operand};
pub use stack::{BaseKind, InvalidUse, Use, edits};
pub use uses::{Group, LayerKind, USES};

use crate::base::topology::{Fact, Grain, Topology, Trust, Why, amplification, is_whole};

/// Value that a parameter is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Size or address, in bytes.
    Bytes(u64),
    /// Number of the named things, such as `segments`.
    Count(u64, &'static str),
    /// Keyword or setting that is no number.
    Word(String),
}

impl Value {
    /// A value of [`Value::Word`] with this text.
    pub fn word(text: impl Into<String>) -> Value {
        Value::Word(text.into())
    }
}

/// Price of a choice, in writes and in space.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Bytes that the device writes for each byte of the layer's; 1 is free.
    pub amplification: f64,
    /// Bytes lost, for a typical volume, file or record as [`Price::what`] says.
    pub space: u64,
    /// Structure that the space is lost to, in words; empty if none is lost.
    pub what: String,
}

impl Price {
    /// A price of that write amplification, without loss of space.
    pub fn amplified(amplification: f64) -> Price {
        Price { amplification, space: 0, what: String::new() }
    }

    /// This price with `space` bytes lost to `what`.
    #[must_use]
    pub fn losing(self, space: u64, what: impl Into<String>) -> Price {
        Price { space, what: what.into(), ..self }
    }

    /// This price with the loss of an average file in its last `block`: half of it.
    #[must_use]
    pub fn tail(self, block: u64) -> Price {
        self.losing(block / 2, "the end of an average file")
    }
}

/// Value that was considered and not taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Value that the parameter could have.
    pub value: Value,
    /// Price of that value.
    pub price: Price,
    /// Condition under which the value would be the better one, in words.
    pub note: String,
}

/// Choice of one parameter of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Name of the layer, such as `ext4`.
    pub layer: String,
    /// Name of the parameter, such as `block`.
    pub parameter: &'static str,
    /// Value that the parameter is set to.
    pub value: Value,
    /// Option or setting that makes the choice; `None` where the tool's default is the same.
    pub command: Option<String>,
    /// Reason in words: the boundary, and the origin of its knowledge.
    pub why: String,
    /// Price of the choice.
    pub price: Price,
    /// Other values that were considered.
    pub alternatives: Vec<Alternative>,
}

impl Choice {
    /// A choice that costs nothing and has no command or alternatives; other methods add those.
    pub fn new(
        layer: impl Into<String>,
        parameter: &'static str,
        value: Value,
        why: impl Into<String>,
    ) -> Choice {
        let price = Price::amplified(1.0);
        Choice {
            layer: layer.into(),
            parameter,
            value,
            command: None,
            why: why.into(),
            price,
            alternatives: Vec::new(),
        }
    }

    /// This choice with the option or setting to type.
    #[must_use]
    pub fn typed(mut self, command: impl Into<String>) -> Choice {
        self.command = Some(command.into());
        self
    }

    /// This choice at that price.
    #[must_use]
    pub fn costing(self, price: Price) -> Choice {
        Choice { price, ..self }
    }

    /// This choice with one more value that was considered, its price, and the condition for it.
    #[must_use]
    pub fn or(mut self, value: Value, price: Price, note: impl Into<String>) -> Choice {
        self.alternatives.push(Alternative { value, price, note: note.into() });
        self
    }
}

/// Choices of a whole stack, from the bottom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Choices, layer by layer from the bottom.
    pub choices: Vec<Choice>,
    /// Commands in the order to be typed.
    pub commands: Vec<Command>,
    /// Notes about boundaries that cannot be reached, and about assumptions.
    pub notes: Vec<Note>,
}

impl Plan {
    /// The plan of `wanted` on a disk.
    pub fn make(wanted: &Use, disk: LayerBase) -> Plan {
        let mut plan = Plan::default();
        stack::lay(wanted, disk, &mut plan);
        plan
    }

    fn choose(&mut self, choice: Choice) {
        self.choices.push(choice);
    }

    /// Adds a line for a shell.
    fn run(&mut self, line: impl Into<String>) {
        self.commands.push(Command::Shell(line.into()));
    }

    /// Adds a note, unless the plan has it already.
    fn note(&mut self, note: impl Into<Note>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Base of a layer: the device, set or directory beneath it.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerBase {
    /// Boundaries of the base, in its own addresses.
    pub topology: Topology,
    /// Names in commands: a device, several before they are a set, or a directory.
    pub names: Vec<String>,
    /// True if it is a whole disk, on which partitions go first.
    pub whole: bool,
    /// File system on it, if it is a directory.
    pub files: Option<Files>,
    /// System on which the commands are typed.
    pub host: Host,
}

/// System on which commands are typed; names of partitions follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Linux, with the device nodes of its kernel and udev.
    Linux,
    /// FreeBSD, with the device nodes of GEOM.
    FreeBsd,
    /// Any system: the disk is an image that this program reads and writes itself.
    Image,
}

/// File system as a place for files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Name of the file system, such as `xfs`.
    pub system: &'static str,
    /// Granularity in bytes at which pieces of a file may begin: a block, cluster or record.
    pub grid: u64,
    /// True if a block is never overwritten in place, so that no crash leaves half of one.
    pub whole_blocks: bool,
}

impl LayerBase {
    /// The base of a stack: a whole disk, or several with the same topology.
    pub fn disk(topology: Topology, names: Vec<String>) -> LayerBase {
        LayerBase { topology, names, whole: true, files: None, host: Host::Linux }
    }

    /// This base with commands for `host`.
    #[must_use]
    pub fn with_host(self, host: Host) -> LayerBase {
        LayerBase { host, ..self }
    }

    /// A device that a layer makes, for the next one.
    fn device(topology: Topology, name: impl Into<String>) -> LayerBase {
        LayerBase {
            topology,
            names: vec![name.into()],
            whole: false,
            files: None,
            host: Host::Linux,
        }
    }

    /// A file system at `mount`, over the same boundaries.
    fn with_files(&self, mount: &str, files: Files) -> LayerBase {
        LayerBase { names: vec![mount.into()], whole: false, files: Some(files), ..self.clone() }
    }

    /// True if it is in an image, without a kernel's device.
    fn is_image(&self) -> bool {
        self.host == Host::Image
    }

    /// The operand of a command of this program called `name`: a disk of this base, or all of it.
    fn operand(&self, name: impl Into<String>) -> Operand {
        let sector = Some(self.topology.sector).filter(|&sector| self.is_image() && sector != 512);
        Operand { name: name.into(), sector }
    }

    /// Adds the command that makes a file system: `tool` with `options`, or this program where
    /// there is no device for it.
    fn make(&self, system: &'static str, tool: &str, options: &[String], plan: &mut Plan) {
        if self.is_image() {
            self.make_here(system, options, plan);
        } else {
            plan.run(format!("{tool} {} {}", options.join(" "), self.arguments()));
        }
    }

    /// Adds the command by which this program makes a file system.
    fn make_here(&self, system: &'static str, options: &[String], plan: &mut Plan) {
        plan.commands.push(Command::MakeFileSystem {
            system,
            provider: self.operand(self.arguments()),
            options: options.to_vec(),
        });
    }

    /// Adds the command that mounts it on `/mnt`, where a kernel has it.
    fn mount(&self, plan: &mut Plan) {
        if !self.is_image() {
            plan.run(format!("mount {} /mnt", self.names.first().map_or("", String::as_str)));
        }
    }

    /// All names, separated by blanks, as arguments of a command.
    fn arguments(&self) -> String {
        self.names.join(" ")
    }
}

/// Facts about the layer above that a layer needs for its choices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Above {
    /// Kind of the layer above; `None` at the top.
    pub name: Option<&'static str>,
    /// True if that layer wants a device rather than files.
    pub device: bool,
    /// Bytes of the pieces in which it overwrites files, if they are of one size.
    pub page: Option<u64>,
    /// Bytes of the pieces in which it allocates space in files, where a file system's cluster is
    /// to be one.
    pub extent: Option<u64>,
}

/// One layer of a stack.
pub trait Layer {
    /// Adds its choices for the base it stands on to the plan; returns the base that it offers.
    fn lay(&self, base: &LayerBase, above: Above, plan: &mut Plan) -> LayerBase;

    /// Number of disks that it is made of.
    fn disks(&self) -> u64 {
        1
    }

    /// The table that its specification asks for on a disk of its own; `None` for a GPT as usual.
    fn table(&self, _disk: &Topology) -> Option<partition::Own> {
        None
    }

    /// True if this program makes it inside an image, without a device.
    fn in_image(&self, _disk: &Topology) -> bool {
        false
    }

    /// System on which it is made: FreeBSD, or else Linux.
    fn host(&self) -> Host {
        Host::Linux
    }

    /// A boundary that such disks have, for a disk that does not name it.
    fn presumes(&self, _disk: &Topology) -> Option<Fact> {
        None
    }
}

/// The largest believed boundary that is read before part of it is written: a smaller write costs
/// most there.
pub fn unit(topology: &Topology) -> Option<&Fact> {
    topology
        .counting()
        .filter(|f| matches!(f.why, Why::Physical | Why::Preferred))
        .max_by_key(|f| f.grain.size())
}

/// Size in bytes of [`unit()`], and at least a logical sector.
pub fn unit_size(topology: &Topology) -> u64 {
    unit(topology).map_or(0, |f| f.grain.size()).max(topology.sector)
}

/// The largest believed boundary of one purpose; `None` if there is none.
pub fn fact(topology: &Topology, why: Why) -> Option<&Fact> {
    topology
        .facts
        .iter()
        .filter(|f| f.why == why && f.trust > Trust::Untrusted)
        .max_by_key(|f| f.grain.size())
}

/// Striped set in the terms of file systems' stripe options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Bytes of a chunk, on one member.
    pub chunk: u64,
    /// Bytes of data in a row; `None` unless they are whole chunks.
    pub row: Option<u64>,
    /// Bytes past the beginning of a chunk at which this base begins; file systems count from their
    /// own byte 0.
    pub off: u64,
}

/// The striped set beneath, or the I/O size that the user calls optimal. Of sets over sets it is
/// the topmost: its chunks reach the layer above, whatever the members cut them into. A set's own
/// facts come after those of its members.
pub fn stripe(topology: &Topology) -> Option<Stripe> {
    let last = |of: &[Why]| {
        topology.facts.iter().rfind(|f| of.contains(&f.why) && f.trust > Trust::Untrusted)
    };
    let named = fact(topology, Why::Optimal).filter(|f| f.counts());
    let chunk = last(&[Why::Chunk]).or(named)?.grain;
    let row = last(&[Why::FullStripe, Why::Row]).or(named).map(|f| f.grain.size());
    Some(Stripe {
        chunk: chunk.size(),
        row: row.filter(|&row| is_whole(row, chunk.size())),
        off: chunk.remainder(0),
    })
}

/// Write amplification of writes of `write` bytes that begin on multiples of `grid`.
fn written(topology: &Topology, write: u64, grid: u64) -> f64 {
    let (size, off) =
        unit(topology).map_or((topology.sector, 0), |f| (f.grain.size(), f.grain.remainder(0)));
    amplification(write, grid, size, off).unwrap_or(1.0)
}

/// A fact in words: `4096-byte physical unit (user)`.
fn describe(fact: &Fact) -> String {
    let phase = match fact.grain.phase() {
        0 => String::new(),
        phase => format!(" at {phase}"),
    };
    format!("{}-byte {} unit{phase} ({})", fact.grain.size(), fact.why.name(), fact.source.name())
}

/// The [`unit()`] in words, or the sector where no unit is known.
fn describe_unit(topology: &Topology) -> String {
    unit(topology).map_or_else(
        || format!("{}-byte sectors; no larger unit is known", topology.sector),
        describe,
    )
}

/// Every boundary that counts, in words.
fn describe_all(topology: &Topology) -> String {
    let all: Vec<String> = topology.counting().map(describe).collect();
    if all.is_empty() { describe_unit(topology) } else { all.join(", the ") }
}

/// `value` rounded up to whole `step`s; `value` itself past 2^64 or for `step` 0.
fn up(value: u64, step: u64) -> u64 {
    Grain::new(step, 0).and_then(|g| g.next(value)).unwrap_or(value)
}

/// A size as tools take it: `64K`, `1M`, or plain bytes.
fn short(bytes: u64) -> String {
    let power = (bytes.trailing_zeros() / 10).min(2);
    let letter = if power == 1 { "K" } else { "M" };
    if power == 0 || bytes == 0 {
        bytes.to_string()
    } else {
        format!("{}{letter}", bytes >> (10 * power))
    }
}

/// Sizes from `first` to `last` inclusive, each twice the one before.
fn powers(first: u64, last: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(first), |size| size.checked_mul(2))
        .take_while(move |&size| size <= last)
}

/// The power of two at or above `size`, or `most`, itself a power of two, if `size` is larger.
fn power(size: u64, most: u64) -> u64 {
    powers(1, most).find(|&power| power >= size).unwrap_or(most)
}

#[cfg(test)]
mod tests;
