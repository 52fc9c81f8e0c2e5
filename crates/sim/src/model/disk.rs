//! `[disk]`: a hard disk's mechanics, caches and firmware.
//!
//! The medium is that of the full drive, `full_size_bytes`; a drive of a smaller `size` is the same drive cut off after its outer
//! tracks, and one of a larger size the same with more cylinders.

use super::{Impossible, Model};
use crate::drive::disk::measures;
use serde::Deserialize;

/// In what order waiting work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Shortest positioning time first: what comes under the head soonest, seek and rotation together.
    Sptf,
    /// Upwards by address, then from the lowest again.
    #[serde(alias = "c-look")]
    CLook,
    /// As it came.
    Fifo,
}

/// What the firmware writes together and what it waits for; each is a file in `drive/disk/firmware/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Personality {
    /// A: every command alone.
    #[serde(alias = "A", alias = "a")]
    Command,
    /// B: adjacent data together, the tail of a live stream waits for its other half.
    #[serde(alias = "B", alias = "b")]
    Stream,
    /// C: everything dirty in a window, one pass to read the edges and one to write.
    #[serde(alias = "C", alias = "c")]
    Window,
    /// D: small writes to a log, rewritten in place when the host is idle.
    #[serde(alias = "D", alias = "d")]
    Log,
}

/// What a hard disk is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Revolutions a minute.
    pub rpm: f64,
    /// The true speed of one drive lies within this of `rpm`, in percent; which, its seed says. Two drives drift apart by it.
    pub rpm_spread_percent: f64,
    /// Bytes of the whole medium, whatever part of it `size` is.
    pub full_size_bytes: u64,
    /// Surfaces, a head each.
    pub heads: u32,
    /// Zones of tracks of one length, outside in in equal steps, with as many cylinders each.
    pub zones: u32,
    /// Bytes of the outermost track, rounded down to physical sectors.
    pub outer_track_bytes: u64,
    /// Bytes of the innermost track over those of the outermost.
    pub inner_outer_ratio: f64,
    /// To the next head of the same cylinder; tracks are turned against each other by as much.
    pub head_switch_ms: f64,
    /// The shortest seek, to the next cylinder.
    pub track_to_track_ms: f64,
    /// The mean seek over all pairs of cylinders. A seek over d cylinders takes a + b sqrt(d).
    pub average_seek_ms: f64,
    /// What a write waits for the arm to settle after a seek.
    pub write_settle_ms: f64,
    /// Set-up of an operation of the medium; none where it goes on where the last ended.
    pub setup_ms: f64,
    /// What a command takes on the link besides its data.
    pub command_overhead_ms: f64,
    /// Bytes a second on the link.
    pub link_rate_bytes: u64,
    /// Commands that the drive has at one time: NCQ's tags, 1 without.
    pub tags: u32,
    /// In what order it does those that need the medium.
    pub order: Order,
    /// A command that is older is next, whatever the order; of several the oldest.
    pub age_limit_ms: f64,
    /// Bytes of memory for data.
    pub cache_bytes: u64,
    /// Runs of read data that it remembers; 0: none.
    pub read_segments: u32,
    /// How far it reads on after what the host asked for, while there is nothing else to do.
    pub read_ahead_bytes: u64,
    /// Whether a write is done once it is in memory (WCE).
    pub write_cache: bool,
    /// Extents of dirty data that it keeps.
    pub slots: u32,
    /// Dirty bytes, in percent of the cache, at which it begins to destage; so it does when one slot is left.
    pub high_percent: f64,
    /// Dirty bytes, in percent of the cache, at which it stops, when half the slots are free too.
    pub low_percent: f64,
    /// How long the host must ask for nothing before it destages what is left; and how long after a read it holds back what is only
    /// much, not waited for: what follows a read is often near it.
    pub idle_ms: f64,
    /// In what order it destages.
    pub destage_order: Order,
    /// Which firmware.
    pub personality: Personality,
    /// Physical sectors that it remembers from having rewritten them; 0: none.
    pub edge_cache_sectors: u32,
    /// `stream`, `log`: bytes written in one go at most.
    pub destage_bytes: u64,
    /// `stream`: bytes after which a stream is closed though its last sector is ragged; 0: never.
    pub segment_bytes: u64,
    /// `window`: how far one rewriting reaches from its first ragged byte. What goes on from it beyond is cut there, between physical
    /// sectors; the first command is never cut.
    pub window_bytes: u64,
    /// `log`: adjoining dirty data of fewer bytes go to the log, others home as with `stream`.
    pub log_threshold_bytes: u64,
    /// `log`: bytes of the log, which lies behind the last sector. It is put in its place while the host is idle; when it is full,
    /// everything goes home until it has been emptied.
    pub log_bytes: u64,
    /// Jumper 7-8 of Western Digital's first drives with sectors of 4096 bytes: the drive adds 1 to every LBA.
    pub jumper: bool,
}

/// Most cylinders, so that angles stay exact in 64 bits.
const CYLINDERS: u64 = 1 << 24;

impl Parameters {
    /// What cannot be.
    pub(super) fn check(&self, model: &Model) -> Result<(), Impossible> {
        self.check_mechanics(model)?;
        self.check_caches(model)?;
        let cylinders = measures(model, self).cylinders();
        if cylinders > CYLINDERS {
            return Err((
                "outer_track_bytes",
                format!("outer_track_bytes = {}: {cylinders} cylinders, at most {CYLINDERS}", self.outer_track_bytes),
            ));
        }
        Ok(())
    }

    fn check_mechanics(&self, model: &Model) -> Result<(), Impossible> {
        let sector = model.physical_block_size;
        between("rpm", self.rpm, 60.0, 100_000.0, "platters that turn, revolutions a minute")?;
        between("rpm_spread_percent", self.rpm_spread_percent, 0.0, 10.0, "percent")?;
        count("full_size_bytes", self.full_size_bytes, sector, 1 << 56, "at least one physical sector")?;
        count("heads", self.heads.into(), 1, 64, "at least one reads")?;
        count("zones", self.zones.into(), 1, 1024, "at least one")?;
        count("outer_track_bytes", self.outer_track_bytes, sector, 1 << 28, "at least one physical sector")?;
        if !(self.inner_outer_ratio > 0.0 && self.inner_outer_ratio <= 1.0) {
            return Err(("inner_outer_ratio", format!("inner_outer_ratio = {}: more than 0, at most 1", self.inner_outer_ratio)));
        }
        for (key, value) in [
            ("head_switch_ms", self.head_switch_ms),
            ("track_to_track_ms", self.track_to_track_ms),
            ("average_seek_ms", self.average_seek_ms),
            ("write_settle_ms", self.write_settle_ms),
            ("setup_ms", self.setup_ms),
            ("command_overhead_ms", self.command_overhead_ms),
            ("age_limit_ms", self.age_limit_ms),
            ("idle_ms", self.idle_ms),
        ] {
            between(key, value, 0.0, 100_000.0, "a time")?;
        }
        if self.average_seek_ms < self.track_to_track_ms {
            let (mean, least) = (self.average_seek_ms, self.track_to_track_ms);
            return Err(("average_seek_ms", format!("average_seek_ms = {mean}: less than track_to_track_ms = {least}, the shortest")));
        }
        count("link_rate_bytes", self.link_rate_bytes, 100_000, 1 << 40, "bytes a second")?;
        count("tags", self.tags.into(), 1, 65_536, "at least one command at a time")
    }

    fn check_caches(&self, model: &Model) -> Result<(), Impossible> {
        let sector = model.physical_block_size;
        count("cache_bytes", self.cache_bytes, sector, 1 << 40, "at least one physical sector")?;
        count("read_segments", self.read_segments.into(), 0, 1024, "runs of read data")?;
        count("read_ahead_bytes", self.read_ahead_bytes, 0, self.cache_bytes, "no more than cache_bytes")?;
        count("slots", self.slots.into(), 2, 1 << 20, "one is kept free")?;
        if u64::from(self.slots).saturating_mul(model.logical_block_size) > self.cache_bytes {
            return Err(("slots", format!("slots = {}: more than cache_bytes = {} has sectors", self.slots, self.cache_bytes)));
        }
        between("high_percent", self.high_percent, 0.0, 100.0, "percent of the cache")?;
        between("low_percent", self.low_percent, 0.0, self.high_percent, "percent of the cache, no more than high_percent")?;
        count("edge_cache_sectors", self.edge_cache_sectors.into(), 0, 1 << 20, "physical sectors")?;
        count("destage_bytes", self.destage_bytes, sector, 1 << 32, "at least one physical sector")?;
        count("segment_bytes", self.segment_bytes, 0, 1 << 40, "bytes, 0 for none")?;
        count("window_bytes", self.window_bytes, sector, 1 << 32, "at least one physical sector")?;
        count("log_threshold_bytes", self.log_threshold_bytes, 0, 1 << 32, "bytes, 0 for none")?;
        count("log_bytes", self.log_bytes, sector, 1 << 40, "at least one physical sector")
    }
}

/// A measure between two, and a number.
fn between(key: &'static str, value: f64, least: f64, most: f64, what: &str) -> Result<(), Impossible> {
    if value >= least && value <= most {
        return Ok(());
    }
    // Without three hundred zeros.
    let value = if value.abs() < 1e15 || !value.is_finite() { value.to_string() } else { format!("{value:e}") };
    Err((key, format!("{key} = {value}: {what}, {least} to {most}")))
}

/// A count between two.
fn count(key: &'static str, value: u64, least: u64, most: u64, what: &str) -> Result<(), Impossible> {
    if (least..=most).contains(&value) { Ok(()) } else { Err((key, format!("{key} = {value}: {what}, {least} to {most}"))) }
}

#[cfg(test)]
mod tests;
