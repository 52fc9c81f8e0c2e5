//! `[disk]`: a hard disk's mechanics, caches and firmware.
//!
//! The medium is that of the full drive, `full_size_bytes`. A drive of a smaller `size` is the same
//! drive cut off after its outer tracks; one of a larger size has more cylinders.

use super::{Impossible, Model};
use crate::drive::disk::measures;
use serde::Deserialize;
use trueline_geom::base::topology::is_whole;

/// The order in which waiting work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Shortest positioning time first: the sector that comes under the head soonest, seek and
    /// rotation together.
    Sptf,
    /// Upwards by address, then from the lowest again.
    #[serde(alias = "c-look")]
    CLook,
    /// First in, first out.
    Fifo,
}

/// The personality of the firmware: which writes it joins, and which it delays. Each is a file in
/// `drive/disk/firmware/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Personality {
    /// A: every command is written alone.
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
    /// Shingled tracks: whole bands in place, all else to a media cache, merged into bands later.
    Shingled,
}

/// The parameters of a hard disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The nominal speed in revolutions a minute.
    pub rpm: f64,
    /// The spread of actual speeds around `rpm`, in percent; a drive's seed determines its own. Two
    /// drives drift apart by it.
    pub rpm_spread_percent: f64,
    /// The size of the whole medium in bytes, whatever part of it `size` is.
    pub full_size_bytes: u64,
    /// The number of surfaces, a head each.
    pub heads: u32,
    /// Zones of tracks of one length, from the outside in in equal steps, with equally many
    /// cylinders.
    pub zones: u32,
    /// The size of the outermost track in bytes, rounded down to physical sectors.
    pub outer_track_bytes: u64,
    /// The size of the innermost track over that of the outermost.
    pub inner_outer_ratio: f64,
    /// The time of a switch to the next head of a cylinder, in ms; tracks are skewed by as much.
    pub head_switch_ms: f64,
    /// The shortest seek, to the next cylinder, in ms.
    pub track_to_track_ms: f64,
    /// The mean seek over all pairs of cylinders, in ms. A seek over d cylinders takes a + b
    /// sqrt(d).
    pub average_seek_ms: f64,
    /// The additional settling time of a write after a seek, in ms.
    pub write_settle_ms: f64,
    /// The set-up time of an operation of the medium, in ms; none where it continues the last one.
    pub setup_ms: f64,
    /// The time of a command on the link besides its data, in ms.
    pub command_overhead_ms: f64,
    /// The rate of the link in bytes a second.
    pub link_rate_bytes: u64,
    /// The most commands in the drive: NCQ's tags, 1 without.
    pub tags: u32,
    /// The order of commands that need the medium.
    pub order: Order,
    /// The age in ms from which on a command is next, whatever the order; of several the oldest.
    pub age_limit_ms: f64,
    /// The size of the data cache in bytes.
    pub cache_bytes: u64,
    /// The number of read segments in the cache; 0: none.
    pub read_segments: u32,
    /// The bytes that it reads ahead of the host's requests, while it has no other work.
    pub read_ahead_bytes: u64,
    /// True if a write is done once it is in the cache (WCE).
    pub write_cache: bool,
    /// The most extents of dirty data in the cache.
    pub slots: u32,
    /// Dirty bytes, in percent of the cache, at which destaging begins; it also begins when one
    /// slot is left.
    pub high_percent: f64,
    /// Dirty bytes, in percent of the cache, at which destaging ends, if half of the slots are free
    /// too.
    pub low_percent: f64,
    /// Idle time of the host in ms before the remaining dirty data are destaged. For the same time
    /// after a read, destaging that only the amount of dirty data calls for is held back, as the
    /// next read is often near.
    pub idle_ms: f64,
    /// The time in ms that a flush takes besides its data, if anything was written since the last
    /// one. The mechanism does nothing else meanwhile.
    #[serde(default)]
    pub flush_ms: f64,
    /// The order of destaging.
    pub destage_order: Order,
    /// The personality of the firmware.
    pub personality: Personality,
    /// Physical sectors whose content it remembers from rewriting them; 0: none.
    pub edge_cache_sectors: u32,
    /// `stream`, `log`: the most bytes written in one go.
    pub destage_bytes: u64,
    /// `stream`: bytes after which a stream is closed even with a ragged last sector; 0: never.
    pub segment_bytes: u64,
    /// `window`: the reach in bytes of one rewriting from its first ragged byte. A continuation
    /// beyond it is cut there, between physical sectors; the first command is never cut.
    pub window_bytes: u64,
    /// `log`: adjacent dirty data of fewer bytes go to the log, others home as with `stream`.
    pub log_threshold_bytes: u64,
    /// `log`: the size in bytes of the log, which lies behind the last sector. It is emptied while
    /// the host is idle. While it is full, all data go home.
    pub log_bytes: u64,
    /// `shingled`: the size in bytes of a band, which is only written whole. The log is the media
    /// cache: it lies before the first sector, and when it is full, bands are cleaned to make room.
    #[serde(default)]
    pub band_bytes: u64,
    /// `shingled`: the most extents that the map of the media cache has.
    #[serde(default)]
    pub log_entries: u32,
    /// `shingled`: idle time of the host in ms before bands are cleaned.
    #[serde(default)]
    pub clean_idle_ms: f64,
    /// Jumper 7-8 of Western Digital's first drives with sectors of 4096 bytes: the drive adds 1 to
    /// every LBA.
    pub jumper: bool,
}

/// The most cylinders, so that angles stay exact in 64 bits.
const CYLINDERS: u64 = 1 << 24;

impl Parameters {
    /// Checks the values alone and together. The error names the key.
    pub(super) fn check(&self, model: &Model) -> Result<(), Impossible> {
        self.check_mechanics(model)?;
        self.check_caches(model)?;
        let cylinders = measures(model, self).cylinders();
        if cylinders > CYLINDERS {
            return Err((
                "outer_track_bytes",
                format!(
                    "outer_track_bytes = {}: {cylinders} cylinders, at most {CYLINDERS}",
                    self.outer_track_bytes
                ),
            ));
        }
        Ok(())
    }

    fn check_mechanics(&self, model: &Model) -> Result<(), Impossible> {
        let sector = model.physical_block_size;
        between("rpm", self.rpm, 60.0, 100_000.0, "platters that turn, revolutions a minute")?;
        between("rpm_spread_percent", self.rpm_spread_percent, 0.0, 10.0, "percent")?;
        count(
            "full_size_bytes",
            self.full_size_bytes,
            sector,
            1 << 56,
            "at least one physical sector",
        )?;
        count("heads", self.heads.into(), 1, 64, "at least one reads")?;
        count("zones", self.zones.into(), 1, 1024, "at least one")?;
        count(
            "outer_track_bytes",
            self.outer_track_bytes,
            sector,
            1 << 28,
            "at least one physical sector",
        )?;
        if !(self.inner_outer_ratio > 0.0 && self.inner_outer_ratio <= 1.0) {
            return Err((
                "inner_outer_ratio",
                format!("inner_outer_ratio = {}: more than 0, at most 1", self.inner_outer_ratio),
            ));
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
            ("flush_ms", self.flush_ms),
            ("clean_idle_ms", self.clean_idle_ms),
        ] {
            between(key, value, 0.0, 100_000.0, "a time")?;
        }
        if self.average_seek_ms < self.track_to_track_ms {
            let (mean, least) = (self.average_seek_ms, self.track_to_track_ms);
            return Err((
                "average_seek_ms",
                format!(
                    "average_seek_ms = {mean}: less than track_to_track_ms = {least}, the shortest"
                ),
            ));
        }
        count("link_rate_bytes", self.link_rate_bytes, 100_000, 1 << 40, "bytes a second")?;
        count("tags", self.tags.into(), 1, 65_536, "at least one command at a time")
    }

    fn check_caches(&self, model: &Model) -> Result<(), Impossible> {
        let sector = model.physical_block_size;
        count("cache_bytes", self.cache_bytes, sector, 1 << 40, "at least one physical sector")?;
        count("read_segments", self.read_segments.into(), 0, 1024, "runs of read data")?;
        count(
            "read_ahead_bytes",
            self.read_ahead_bytes,
            0,
            self.cache_bytes,
            "no more than cache_bytes",
        )?;
        count("slots", self.slots.into(), 2, 1 << 20, "one is kept free")?;
        if u64::from(self.slots).saturating_mul(model.logical_block_size) > self.cache_bytes {
            return Err((
                "slots",
                format!(
                    "slots = {}: more than cache_bytes = {} has sectors",
                    self.slots, self.cache_bytes
                ),
            ));
        }
        between("high_percent", self.high_percent, 0.0, 100.0, "percent of the cache")?;
        between(
            "low_percent",
            self.low_percent,
            0.0,
            self.high_percent,
            "percent of the cache, no more than high_percent",
        )?;
        count(
            "edge_cache_sectors",
            self.edge_cache_sectors.into(),
            0,
            1 << 20,
            "physical sectors",
        )?;
        count(
            "destage_bytes",
            self.destage_bytes,
            sector,
            1 << 32,
            "at least one physical sector",
        )?;
        count("segment_bytes", self.segment_bytes, 0, 1 << 40, "bytes, 0 for none")?;
        count("window_bytes", self.window_bytes, sector, 1 << 32, "at least one physical sector")?;
        count("log_threshold_bytes", self.log_threshold_bytes, 0, 1 << 32, "bytes, 0 for none")?;
        count("log_bytes", self.log_bytes, sector, 1 << 40, "at least one physical sector")?;
        let least = u64::from(self.personality == Personality::Shingled);
        let entries = "extents, with shingled one at least";
        count("log_entries", self.log_entries.into(), least, 1 << 22, entries)?;
        let band = "physical sectors, with shingled one at least";
        count("band_bytes", self.band_bytes, least * sector, 1 << 32, band)?;
        if !is_whole(self.band_bytes, sector) {
            let what = format!("band_bytes = {}: whole sectors of {sector}", self.band_bytes);
            return Err(("band_bytes", what));
        }
        Ok(())
    }
}

/// Checks that a measure is between two bounds, and a number.
fn between(
    key: &'static str,
    value: f64,
    least: f64,
    most: f64,
    what: &str,
) -> Result<(), Impossible> {
    if value >= least && value <= most {
        return Ok(());
    }
    // In exponential form, not with three hundred zeros.
    let value = if value.abs() < 1e15 || !value.is_finite() {
        value.to_string()
    } else {
        format!("{value:e}")
    };
    Err((key, format!("{key} = {value}: {what}, {least} to {most}")))
}

/// Checks that a count is between two bounds.
fn count(
    key: &'static str,
    value: u64,
    least: u64,
    most: u64,
    what: &str,
) -> Result<(), Impossible> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err((key, format!("{key} = {value}: {what}, {least} to {most}")))
    }
}

#[cfg(test)]
mod tests;
