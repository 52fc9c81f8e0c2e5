//! Layouts: the parameters of every layer of a stack, each with its reason and its price.
//!
//! A [`Use`] is a stack of layers as a person names it, from the bottom: `md5x4+luks+lvm+xfs`. Each [`Layer`] is shown the
//! [`LayerBase`] it stands on, takes its choices down in a [`Plan`], and gives the ground it offers to the next, so that grains
//! and their phases travel upwards through the same arithmetic that `check` uses. Nothing here does I/O or knows a host: a
//! plan is what a topology and a use come to.
//!
//! File systems also offer their `Parameters` for a topology, with the arguments of their mkfs.
//!
//! # What a choice costs
//! Write amplification is device bytes for each byte written ([`crate::base::topology::amplification`]), in the layer's smallest or
//! usual write, on the unit below it that is read before part of it is written. Space is what a choice loses, in bytes.
//!
//! # Limits
//! What nobody believes is not planned for. An optimal I/O size that only a device claims is a hint
//! (`docs/decisions/0007`), and said to be one. What cannot be reached is a note.

pub mod asm;
pub mod bcache;
pub mod bcachefs;
pub mod btrfs;
pub mod btrfs_raid;
pub mod card;
pub mod cassandra;
pub mod ceph;
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

pub use stack::{Place, Use, edits};
pub use uses::{Group, Kind, USES};

use crate::base::topology::{Fact, Grain, Topology, Trust, Why, amplification, is_whole};

/// The page of the processors and kernels that most of this is for.
pub const PAGE: u64 = 4096;

/// What a parameter is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A size or place.
    Bytes(u64),
    /// So many of something.
    Count(u64, &'static str),
    /// A word.
    Word(String),
}

impl Value {
    /// A word.
    pub fn word(text: impl Into<String>) -> Value {
        Value::Word(text.into())
    }
}

/// What a choice costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Bytes the device writes for each byte of the layer's.
    pub amplification: f64,
    /// Bytes lost.
    pub space: u64,
    /// Lost to what; empty if nothing is.
    pub what: String,
}

impl Price {
    /// That amplification, and no space.
    pub fn of(amplification: f64) -> Price {
        Price { amplification, space: 0, what: String::new() }
    }

    /// The same with space lost to `what`.
    #[must_use]
    pub fn losing(self, space: u64, what: impl Into<String>) -> Price {
        Price { space, what: what.into(), ..self }
    }

    /// The same with what a file of no particular size loses in its last `block`: half of it.
    #[must_use]
    pub fn tail(self, block: u64) -> Price {
        self.losing(block / 2, "the end of an average file")
    }
}

/// Another value that was considered.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// What it is.
    pub value: Value,
    /// What it costs.
    pub price: Price,
    /// When one would take it.
    pub note: String,
}

/// One parameter of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Whose.
    pub layer: String,
    /// Which.
    pub parameter: &'static str,
    /// Set to what.
    pub value: Value,
    /// The option or setting that says so; `None` where it needs no saying.
    pub command: Option<String>,
    /// Because of which grain, and who says that there is one.
    pub why: String,
    /// What it costs.
    pub price: Price,
    /// What else there was.
    pub alternatives: Vec<Alternative>,
}

impl Choice {
    /// A choice that costs nothing; see the other functions for the rest.
    pub fn new(layer: impl Into<String>, parameter: &'static str, value: Value, why: impl Into<String>) -> Choice {
        let price = Price::of(1.0);
        Choice { layer: layer.into(), parameter, value, command: None, why: why.into(), price, alternatives: Vec::new() }
    }

    /// What to type.
    #[must_use]
    pub fn typed(mut self, command: impl Into<String>) -> Choice {
        self.command = Some(command.into());
        self
    }

    /// What it costs.
    #[must_use]
    pub fn costing(self, price: Price) -> Choice {
        Choice { price, ..self }
    }

    /// What else there was.
    #[must_use]
    pub fn or(mut self, value: Value, price: Price, note: impl Into<String>) -> Choice {
        self.alternatives.push(Alternative { value, price, note: note.into() });
        self
    }
}

/// The choices of a whole stack, from the bottom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Layer by layer.
    pub choices: Vec<Choice>,
    /// In the order to be typed.
    pub commands: Vec<String>,
    /// What cannot be reached, and what was taken for granted.
    pub notes: Vec<String>,
}

impl Plan {
    /// What `wanted` comes to on `disk`.
    pub fn of(wanted: &Use, disk: LayerBase) -> Plan {
        let mut plan = Plan::default();
        stack::lay(wanted, disk, &mut plan);
        plan
    }

    fn choose(&mut self, choice: Choice) {
        self.choices.push(choice);
    }

    fn run(&mut self, command: impl Into<String>) {
        self.commands.push(command.into());
    }

    /// Notes something, once.
    fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// What a layer stands on.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerBase {
    /// Its boundaries.
    pub topology: Topology,
    /// What to call it in commands: a device, several before they are a set, or a directory.
    pub names: Vec<String>,
    /// Whether it is a whole disk, on which partitions go first.
    pub whole: bool,
    /// What is known of it as a place for files, if that is what it is.
    pub files: Option<Files>,
    /// Where its commands are typed.
    pub host: Host,
}

/// Where commands are typed, and so what a partition is called there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Linux, with device nodes.
    Linux,
    /// FreeBSD, with GEOM's.
    FreeBsd,
    /// Anywhere: the disk is an image that this program reads and writes itself.
    Image,
}

/// A file system as a place for files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Which.
    pub system: &'static str,
    /// Where pieces of a file may begin: a block, cluster or record.
    pub grid: u64,
    /// Whether a block is never overwritten in place, so that no crash leaves half of one.
    pub whole_blocks: bool,
}

impl LayerBase {
    /// A whole disk.
    pub fn disk(topology: Topology, names: Vec<String>) -> LayerBase {
        LayerBase { topology, names, whole: true, files: None, host: Host::Linux }
    }

    /// The same with commands for `host`.
    #[must_use]
    pub fn on(self, host: Host) -> LayerBase {
        LayerBase { host, ..self }
    }

    /// A device that a layer makes.
    fn device(topology: Topology, name: impl Into<String>) -> LayerBase {
        LayerBase { topology, names: vec![name.into()], whole: false, files: None, host: Host::Linux }
    }

    /// A file system at `mount`, over the same boundaries.
    fn with_files(&self, mount: &str, files: Files) -> LayerBase {
        LayerBase { names: vec![mount.into()], whole: false, files: Some(files), ..self.clone() }
    }

    /// Whether it is in an image that no kernel has as a device.
    fn is_image(&self) -> bool {
        self.host == Host::Image
    }

    /// What a command must be told of an image whose sectors are not the usual ones.
    fn sector(&self) -> String {
        if self.is_image() && self.topology.sector != 512 { format!("--logical {} ", self.topology.sector) } else { String::new() }
    }

    /// Takes down the command that makes a file system: `tool` with `options`, or this program where there is no device for it.
    fn make(&self, kind: &str, tool: &str, options: &[String], plan: &mut Plan) {
        let (options, names) = (options.join(" "), self.arguments());
        match self.host {
            Host::Image => plan.run(format!("trueline mkfs {kind} {}{names} -- {options}", self.sector())),
            _ => plan.run(format!("{tool} {options} {names}")),
        }
    }

    /// Takes down the command that mounts it on `/mnt`, where a kernel has it.
    fn mount(&self, plan: &mut Plan) {
        if !self.is_image() {
            plan.run(format!("mount {} /mnt", self.names.first().map_or("", String::as_str)));
        }
    }

    /// All names, as arguments.
    fn arguments(&self) -> String {
        self.names.join(" ")
    }
}

/// What stands on a layer, as far as that layer must know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Above {
    /// Its kind, if anything does.
    pub name: Option<&'static str>,
    /// Whether it wants a device rather than files.
    pub device: bool,
    /// The piece in which it overwrites files, if it does so in pieces of one size.
    pub page: Option<u64>,
    /// The piece in which it takes space in files, where that is what a file system's cluster is to be.
    pub extent: Option<u64>,
}

/// One layer of a stack.
pub trait Layer {
    /// Takes its choices down for the ground it stands on; the ground it offers.
    fn lay(&self, ground: &LayerBase, above: Above, plan: &mut Plan) -> LayerBase;

    /// How many disks it is made of.
    fn disks(&self) -> u64 {
        1
    }

    /// The table that its specification asks for on a disk of its own.
    fn table(&self, _disk: &Topology) -> Option<partition::Own> {
        None
    }

    /// Whether this program makes it inside an image, without a device.
    fn in_image(&self, _disk: &Topology) -> bool {
        false
    }

    /// Where it is made: its commands are FreeBSD's, or else Linux's.
    fn host(&self) -> Host {
        Host::Linux
    }

    /// A boundary that such disks have although this one does not name it.
    fn presumes(&self, _disk: &Topology) -> Option<Fact> {
        None
    }
}

/// The boundary that is read before part of it is written: the largest believed one, since a smaller write costs most there.
pub fn unit(topology: &Topology) -> Option<&Fact> {
    topology.counting().filter(|f| matches!(f.why, Why::Physical | Why::Preferred)).max_by_key(|f| f.grain.size())
}

/// Its size, and at least a logical sector.
pub fn unit_size(topology: &Topology) -> u64 {
    unit(topology).map_or(0, |f| f.grain.size()).max(topology.sector)
}

/// The boundary for one purpose, if there is a believed one.
pub fn fact(topology: &Topology, why: Why) -> Option<&Fact> {
    topology.facts.iter().filter(|f| f.why == why && f.trust > Trust::Untrusted).max_by_key(|f| f.grain.size())
}

/// A striped set as file systems want to be told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Bytes on one member.
    pub chunk: u64,
    /// Bytes of data in a row, if that is whole chunks.
    pub row: Option<u64>,
    /// How far past the beginning of a chunk this begins; file systems count from their own byte 0.
    pub off: u64,
}

/// The set beneath, or the I/O size that a person calls optimal. Of sets over sets it is the topmost: its chunks are what the layer
/// above sees, whatever the members cut them into. A set's own facts come after those of its members.
pub fn stripe(topology: &Topology) -> Option<Stripe> {
    let last = |of: &[Why]| topology.facts.iter().rfind(|f| of.contains(&f.why) && f.trust > Trust::Untrusted);
    let named = fact(topology, Why::Optimal).filter(|f| f.counts());
    let chunk = last(&[Why::Chunk]).or(named)?.grain;
    let row = last(&[Why::FullStripe, Why::Row]).or(named).map(|f| f.grain.size());
    Some(Stripe { chunk: chunk.size(), row: row.filter(|&row| is_whole(row, chunk.size())), off: chunk.remainder(0) })
}

/// Device bytes per byte, for writes of `write` bytes that begin on multiples of `grid`.
fn written(topology: &Topology, write: u64, grid: u64) -> f64 {
    let (size, off) = unit(topology).map_or((topology.sector, 0), |f| (f.grain.size(), f.grain.remainder(0)));
    amplification(write, grid, size, off).unwrap_or(1.0)
}

/// `4096-byte physical unit (user)`.
fn said(fact: &Fact) -> String {
    let phase = match fact.grain.phase() {
        0 => String::new(),
        phase => format!(" at {phase}"),
    };
    format!("{}-byte {} unit{phase} ({})", fact.grain.size(), fact.why.name(), fact.source.name())
}

/// The same of the unit that is read before part of it is written.
fn said_unit(topology: &Topology) -> String {
    unit(topology).map_or_else(|| format!("{}-byte sectors; no larger unit is known", topology.sector), said)
}

/// Every boundary that counts.
fn said_all(topology: &Topology) -> String {
    let all: Vec<String> = topology.counting().map(said).collect();
    if all.is_empty() { said_unit(topology) } else { all.join(", the ") }
}

/// `value` rounded up to whole `step`s.
fn up(value: u64, step: u64) -> u64 {
    Grain::new(step, 0).and_then(|g| g.next(value)).unwrap_or(value)
}

/// As tools take sizes: `64K`, `1M`, or plain bytes.
fn short(bytes: u64) -> String {
    let power = (bytes.trailing_zeros() / 10).min(2);
    let letter = if power == 1 { "K" } else { "M" };
    if power == 0 || bytes == 0 { bytes.to_string() } else { format!("{}{letter}", bytes >> (10 * power)) }
}

/// The sizes from `first` to `last` by doubling.
fn powers(first: u64, last: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(first), |size| size.checked_mul(2)).take_while(move |&size| size <= last)
}

/// The power of two at or above `size`, up to `most`, which is one.
fn power(size: u64, most: u64) -> u64 {
    powers(1, most).find(|&power| power >= size).unwrap_or(most)
}

#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
