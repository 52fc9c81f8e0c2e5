//! `[ssd]`: flash behind an indirection unit, which is the model's `physical_block_size`; an SSD,
//! or a card.

use super::{Impossible, Model};
use serde::Deserialize;

/// The choice of the superblock that garbage collection empties next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The one with the fewest units.
    #[default]
    Greedy,
    /// The one whose last write of the host is the oldest.
    Oldest,
    /// The one with the most room and age for the work, by Rosenblum and Ousterhout's formula.
    CostBenefit,
}

/// The writes that a drive had before it was switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precondition {
    /// None since all of it was discarded.
    #[default]
    None,
    /// One pass from its start to its end.
    Sequential,
    /// Uniform random writes, until the steady state.
    Random,
}

/// The parameters of an SSD or card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The most commands in the drive.
    pub queue_depth: u32,
    /// The rate of the link in bytes a second.
    pub link_rate_bytes: u64,
    /// Nanoseconds from a command's arrival to its first work, not counting the controller's.
    pub command_ns: f64,
    /// Nanoseconds of controller time for a command; the inverse is the most commands a second.
    pub controller_ns: f64,
    /// The number of dies, each of which reads or programs one thing at a time.
    pub dies: u32,
    /// The number of channels that the dies share: die `d` is on channel `d` modulo this.
    pub channels: u32,
    /// The rate of a channel in bytes a second.
    pub channel_rate_bytes: u64,
    /// The size of a page in bytes; it may hold several indirection units.
    pub page_bytes: u64,
    /// The pages that a die programs together.
    pub planes: u32,
    /// Nanoseconds of a die's page read (tR).
    pub read_ns: f64,
    /// Nanoseconds of a die's program of its planes' pages (tPROG).
    pub program_ns: f64,
    /// The size of the write buffer in bytes; 0: a write is done when it is programmed.
    pub buffer_bytes: u64,
    /// Nanoseconds that a partly written unit, or a page that is not full, waits for the rest.
    #[serde(default)]
    pub merge_ns: f64,
    /// Bytes of units cached after they were programmed; the oldest is evicted first.
    #[serde(default)]
    pub cache_bytes: u64,
    /// Bytes programmed for every byte of the host's writes, garbage collection included: 1 without
    /// it. A constant, where `spare_percent` makes it an outcome.
    #[serde(default = "no_collection")]
    pub gc_factor: f64,
    /// The flash beyond `size`, in percent of it; 0: garbage collection is no process but a factor.
    #[serde(default)]
    pub spare_percent: f64,
    /// The size of an erase block of one plane in bytes; 0: erasing takes no time.
    #[serde(default)]
    pub erase_block_bytes: u64,
    /// Nanoseconds in which a die erases a block of each of its planes (tBERS).
    #[serde(default)]
    pub erase_ns: f64,
    /// The choice of what garbage collection empties next.
    #[serde(default)]
    pub victim: Victim,
    /// True if copies of garbage collection go to superblocks of their own.
    #[serde(default)]
    pub separate_frontiers: bool,
    /// The writes before time 0.
    #[serde(default)]
    pub precondition: Precondition,
    /// The share of the drive, from its start, that they went to; the rest is spare.
    #[serde(default = "whole_drive")]
    pub filled: f64,
    /// True if the buffer survives a loss of power, so that FLUSH and FUA need not wait.
    #[serde(default)]
    pub power_loss_protection: bool,
    /// Bytes that are mapped as one, as in cards (the SD association's AU, an erase block); 0:
    /// every indirection unit on its own.
    #[serde(default)]
    pub allocation_unit_bytes: u64,
    /// Allocation units that can be open at once. A write to another closes the one written longest
    /// ago, whose unwritten part is copied.
    #[serde(default)]
    pub open_units: u32,
    /// The order of writes that an open allocation unit takes without copying.
    #[serde(default)]
    pub unit_style: UnitStyle,
    /// The rate in bytes a second at which allocation units are copied; 0: a die copies its pages
    /// by itself, each in `read_ns` and `program_ns`.
    #[serde(default)]
    pub copy_rate_bytes: u64,
}

/// The style of a card's open allocation units: the writes to one that it takes without copying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitStyle {
    /// Any order: each page of the new copy is mapped.
    #[default]
    Mapped,
    /// Any order into a log unit beside the old one; what was out of order is merged later.
    Log,
    /// Ascending order; anything else is copied at once.
    Linear,
}

fn no_collection() -> f64 {
    1.0
}

fn whole_drive() -> f64 {
    1.0
}

/// The longest time of any step in ns. It keeps sums of times inside a `Ps`.
const LONGEST_NS: f64 = 1e9;

/// The largest page in bytes.
const MOST_PAGE: u64 = 1 << 20;

impl Parameters {
    /// Checks the values alone and together. The error names the key.
    pub(super) fn check(&self, model: &Model) -> Result<(), Impossible> {
        let unit = model.physical_block_size;
        self.counts()?;
        for (key, ns) in [
            ("command_ns", self.command_ns),
            ("controller_ns", self.controller_ns),
            ("read_ns", self.read_ns),
            ("program_ns", self.program_ns),
            ("merge_ns", self.merge_ns),
            ("erase_ns", self.erase_ns),
        ] {
            if !(0.0..=LONGEST_NS).contains(&ns) {
                return Err((
                    key,
                    format!("{key} = {ns}: from 0 to {LONGEST_NS}, which is a second"),
                ));
            }
        }
        for (key, rate) in [
            ("link_rate_bytes", self.link_rate_bytes),
            ("channel_rate_bytes", self.channel_rate_bytes),
            ("copy_rate_bytes", self.copy_rate_bytes),
        ] {
            // A copy may also be left to the dies.
            let optional = key == "copy_rate_bytes" && rate == 0;
            if !optional && !(100_000..=1 << 44).contains(&rate) {
                return Err((key, format!("{key} = {rate}: from 100000 to 2^44 bytes a second")));
            }
        }
        if unit > 4 << 20 {
            return Err((
                "physical_block_size",
                format!("physical_block_size = {unit}: an indirection unit has 4 MiB at most"),
            ));
        }
        let page = self.page_bytes;
        if !page.is_power_of_two() || page < model.logical_block_size || page > MOST_PAGE {
            let least = model.logical_block_size;
            let what = format!(
                "page_bytes = {page}: a power of two from logical_block_size = {least} to 1 MiB"
            );
            return Err(("page_bytes", what));
        }
        if page > unit && self.allocation_unit_bytes != 0 {
            let what =
                format!("page_bytes = {page} on a card: physical_block_size = {unit} at most");
            return Err(("page_bytes", what));
        }
        for (key, bytes) in [("buffer_bytes", self.buffer_bytes), ("cache_bytes", self.cache_bytes)]
        {
            if bytes != 0 && !(unit..=1 << 40).contains(&bytes) {
                return Err((
                    key,
                    format!("{key} = {bytes}: 0, or from one indirection unit, {unit}, to 1 TiB"),
                ));
            }
        }
        if !(1.0..=100.0).contains(&self.gc_factor) {
            return Err((
                "gc_factor",
                format!("gc_factor = {}: from 1, no garbage collection, to 100", self.gc_factor),
            ));
        }
        self.collection()?;
        self.allocation(unit)
    }

    /// Checks the keys of garbage collection as a process.
    fn collection(&self) -> Result<(), Impossible> {
        let (spare, block) = (self.spare_percent, self.erase_block_bytes);
        if spare != 0.0 && !(1.0..=400.0).contains(&spare) {
            return Err((
                "spare_percent",
                format!("spare_percent = {spare}: 0, no process, or from 1 to 400"),
            ));
        }
        if spare != 0.0 && self.gc_factor > 1.0 {
            let what = format!(
                "gc_factor = {} with spare_percent = {spare}: a factor or a process, not both",
                self.gc_factor
            );
            return Err(("gc_factor", what));
        }
        if spare != 0.0 && self.allocation_unit_bytes != 0 {
            let what = format!(
                "spare_percent = {spare} with allocation_unit_bytes: cards collect no garbage"
            );
            return Err(("spare_percent", what));
        }
        if block != 0 && !(self.page_bytes..=1 << 30).contains(&block) {
            let what = format!("erase_block_bytes = {block}: 0, or from page_bytes to 1 GiB");
            return Err(("erase_block_bytes", what));
        }
        if !(0.0..=1.0).contains(&self.filled) {
            return Err(("filled", format!("filled = {}: from 0 to 1, all of it", self.filled)));
        }
        Ok(())
    }

    /// Checks the counts: each is at least one, and bounded.
    fn counts(&self) -> Result<(), Impossible> {
        let counts = [
            ("dies", self.dies),
            ("channels", self.channels),
            ("planes", self.planes),
            ("queue_depth", self.queue_depth),
        ];
        for (key, count) in counts {
            let most = if key == "queue_depth" { 65536 } else { 4096 };
            if count == 0 || count > most {
                return Err((key, format!("{key} = {count}: from 1 to {most}")));
            }
        }
        Ok(())
    }

    fn allocation(&self, unit: u64) -> Result<(), Impossible> {
        let (bytes, open) = (self.allocation_unit_bytes, self.open_units);
        if bytes != 0 && (!bytes.is_power_of_two() || bytes < unit || bytes > 1 << 30) {
            let what = format!(
                "allocation_unit_bytes = {bytes}: 0, or a power of two from physical_block_size = {unit} to 1 GiB"
            );
            return Err(("allocation_unit_bytes", what));
        }
        if (bytes == 0) != (open == 0) || open > 4096 {
            let what = format!(
                "open_units = {open} with allocation_unit_bytes = {bytes}: both, or neither, and 4096 at most"
            );
            return Err(("open_units", what));
        }
        Ok(())
    }
}
