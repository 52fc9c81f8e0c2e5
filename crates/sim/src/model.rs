//! A drive's model: a TOML file in which every number has an origin.
//!
//! # Form
//! Common keys (`name`, `size`, `logical_block_size`, ...) and one table, `[disk]`, `[ssd]` or
//! `[memory]`, with the parameters of that kind of drive. `[origin]` says of every key where its
//! number comes from (`published`, `generic`, `calibrated`, `fitted`, `user`, and in words);
//! `[range]` between which values, or which words, a sweep may take it. Keys end in their unit.
//!
//! # Errors
//! What is not TOML, not a key or not a value that a drive can have is refused with the line and
//! the reason.

use crate::drive::Drive;
use crate::drive::disk::Disk;
use crate::drive::memory::Memory;
use crate::drive::ssd::Ssd;
use crate::drive::zones::Zones;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};
use trueline_geom::base::topology::is_whole;

mod boundaries;
pub mod disk;
pub mod keys;
pub mod memory;
mod parameters;
mod range;
pub mod ssd;

pub use parameters::Parameter;
pub use range::Range;

/// The built-in models, in the order in which they are listed.
pub const MODELS: &[(&str, &str)] = &[
    ("wd10ears", include_str!("../models/wd10ears.toml")),
    ("wd10eads", include_str!("../models/wd10eads.toml")),
    ("seed-003", include_str!("../models/seed-003.toml")),
    ("seed-004", include_str!("../models/seed-004.toml")),
    ("512n", include_str!("../models/512n.toml")),
    ("4kn", include_str!("../models/4kn.toml")),
    ("smr-8tb", include_str!("../models/smr-8tb.toml")),
    ("smr-hm-14tb", include_str!("../models/smr-hm-14tb.toml")),
    ("qlc-16k", include_str!("../models/qlc-16k.toml")),
    ("qlc-64k", include_str!("../models/qlc-64k.toml")),
    ("tlc-4k", include_str!("../models/tlc-4k.toml")),
    ("sd-4m", include_str!("../models/sd-4m.toml")),
    ("usb-4m", include_str!("../models/usb-4m.toml")),
    ("md", include_str!("../models/md.toml")),
];

/// A drive as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name of the model, as commands take it.
    pub name: String,
    /// The title, one line for people.
    pub title: String,
    /// The size of the drive in bytes.
    pub size: u64,
    /// The logical block size in bytes: the unit that the host addresses.
    pub logical_block_size: u64,
    /// The unit that the medium writes whole, in bytes: a physical sector or an indirection unit.
    pub physical_block_size: u64,
    /// The offset of the first physical block in bytes (`alignment_offset` of Linux).
    #[serde(default)]
    pub alignment_offset: u64,
    /// The physical block size that the drive reports, in bytes, where it is not the true one.
    pub reported_physical_block_size: Option<u64>,
    /// The optimal I/O size that the drive reports, in bytes; 0: none.
    #[serde(default)]
    pub optimal_io_size: u64,
    /// The granularity of writes that an NVMe drive prefers, in bytes (NPWG); 0: none.
    #[serde(default)]
    pub preferred_write_granularity_bytes: u64,
    /// The alignment of writes that an NVMe drive prefers, in bytes (NPWA); 0: that of its
    /// granularity.
    #[serde(default)]
    pub preferred_write_alignment_bytes: u64,
    /// The optimal size of a write of an NVMe drive, in bytes (NOWS); 0: none.
    #[serde(default)]
    pub optimal_write_size_bytes: u64,
    /// The size of a zone of a host-managed drive, in bytes (ZBC); 0: any write is accepted.
    #[serde(default)]
    pub zone_bytes: u64,
    /// The number of conventional zones, which are the first; they take writes anywhere.
    #[serde(default)]
    pub conventional_zones: u64,
    /// Parameters of a hard disk.
    pub disk: Option<disk::Parameters>,
    /// Parameters of an SSD or card.
    pub ssd: Option<ssd::Parameters>,
    /// Parameters of a memory disk.
    pub memory: Option<memory::Parameters>,
    /// The range of a key in a sweep.
    #[serde(default)]
    pub range: BTreeMap<String, Range>,
    /// The origin of a key's value.
    #[serde(default)]
    pub origin: BTreeMap<String, String>,
}

/// The refusal of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRefusal {
    /// The line of the file, if one is to blame.
    pub line: Option<usize>,
    /// The fault, and the values that would be accepted.
    pub message: String,
}

impl ModelRefusal {
    /// The refusal of a value that is in no line of the file.
    fn without_line(message: &str) -> ModelRefusal {
        ModelRefusal { line: None, message: message.replace('\n', " ") }
    }
}

impl fmt::Display for ModelRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelRefusal {}

/// The refusal of a single value: its key, and a message.
pub(crate) type Impossible = (&'static str, String);

impl Model {
    /// The text of a built-in model.
    pub fn named(name: &str) -> Option<&'static str> {
        MODELS.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
    }

    /// Reads a model from the text of its file.
    pub fn parse(text: &str) -> Result<Model, ModelRefusal> {
        let model: Model = toml::from_str(text).map_err(|e| refused(text, &e))?;
        model
            .check()
            .map_err(|(key, message)| ModelRefusal { line: line_of(text, key), message })?;
        model.check_said(text)?;
        Ok(model)
    }

    /// Reads a model with some keys set to other values: `jumper = true`, `disk.rpm = 7200`. A key
    /// without its table is looked for in the table of the drive's kind.
    pub fn parse_with(text: &str, set: &[(String, Value)]) -> Result<Model, ModelRefusal> {
        Model::set(text, set).map(|(model, _)| model)
    }

    /// Keys that can be set, those of tables with their table's name: `size`, `disk.rpm`.
    pub fn keys() -> impl Iterator<Item = String> {
        let common = keys::names::<Model>().iter().filter(|key| is_common(key));
        let tables = [
            (DISK, keys::names::<disk::Parameters>()),
            (SSD, keys::names::<ssd::Parameters>()),
            (MEMORY, keys::names::<memory::Parameters>()),
        ];
        let within = |(table, names): (&'static str, &'static [&'static str])| {
            names.iter().map(move |name| format!("{table}.{name}"))
        };
        common.map(|key| (*key).to_owned()).chain(tables.into_iter().flat_map(within))
    }

    /// The model with keys set, and its file's table with the same.
    fn set(text: &str, set: &[(String, Value)]) -> Result<(Model, Table), ModelRefusal> {
        let model = Model::parse(text)?;
        let table: Table = toml::from_str(text).map_err(|e| refused(text, &e))?;
        if set.is_empty() {
            return Ok((model, table));
        }
        let mut changed = table.clone();
        let put_all = set.iter().try_for_each(|(key, value)| put(&mut changed, key, value.clone()));
        let model = match changed.clone().try_into::<Model>() {
            Ok(model) if put_all.is_ok() => model,
            _ => Model::one_by_one(table, set)?,
        };
        model.check().map_err(|(_, message)| ModelRefusal::without_line(&message))?;
        Ok((model, changed))
    }

    /// Sets one key after another, to name the first that cannot be set.
    fn one_by_one(mut table: Table, set: &[(String, Value)]) -> Result<Model, ModelRefusal> {
        for (key, value) in set {
            put(&mut table, key, value.clone())?;
            let refused = |e: toml::de::Error| {
                ModelRefusal::without_line(&format!("{key}: {}", plain(e.message())))
            };
            let _: Model = table.clone().try_into().map_err(refused)?;
        }
        table.try_into().map_err(|e: toml::de::Error| ModelRefusal::without_line(e.message()))
    }

    /// The name of its parameters' table: `disk`, `ssd` or `memory`.
    pub fn kind(&self) -> &'static str {
        match (&self.disk, &self.ssd) {
            (Some(_), _) => DISK,
            (_, Some(_)) => SSD,
            (None, None) => MEMORY,
        }
    }

    /// The most bytes, written in extents of `extent` bytes, that may still be in volatile memory
    /// after their writes were acknowledged.
    pub fn kept(&self, extent: u64) -> u64 {
        match (&self.disk, &self.ssd) {
            (Some(disk), _) if disk.write_cache => {
                disk.cache_bytes.min(u64::from(disk.slots).saturating_mul(extent))
            }
            (_, Some(ssd)) => ssd.buffer_bytes,
            _ => 0,
        }
    }

    /// The empty zones of a host-managed drive of this model.
    pub fn zones(&self) -> Option<Zones> {
        let (bytes, block) = (self.zone_bytes, self.physical_block_size);
        (bytes > 0).then(|| Zones::new(bytes, self.conventional_zones, self.size, block))
    }

    /// A drive of this model, switched on at time 0. `seed` determines the angle of its platters
    /// and their actual speed.
    pub fn drive(&self, seed: u64) -> Box<dyn Drive> {
        match (&self.disk, &self.ssd, &self.memory) {
            (Some(disk), _, _) => Box::new(Disk::new(self, disk, seed)),
            (_, Some(ssd), _) => Box::new(Ssd::new(self, ssd)),
            (_, _, Some(memory)) => Box::new(Memory::new(memory)),
            (None, None, None) => Box::new(Memory::new(&memory::Parameters::default())),
        }
    }

    /// Checks that `[range]` and `[origin]` name keys of the model: a misspelled range would sweep
    /// nothing, and the range would be too narrow.
    fn check_said(&self, text: &str) -> Result<(), ModelRefusal> {
        let table: Table = toml::from_str(text).map_err(|e| refused(text, &e))?;
        let given = |key: &str| {
            let leaf = key.rsplit('.').next().unwrap_or(key);
            table.get(leaf).or_else(|| table.get(self.kind()).and_then(|kind| kind.get(leaf)))
        };
        // A key that is left out has a default.
        let is_known = |key: &str| {
            let mut with = table.clone();
            let unknown = |e: toml::de::Error| e.message().starts_with("unknown field");
            put(&mut with, key, Value::Integer(1)).is_ok()
                && !with.try_into::<Model>().is_err_and(unknown)
        };
        let refuse = |said: &str, key: &str, why: String| {
            Err(ModelRefusal {
                line: line_in(text, |table| table == said, key),
                message: format!("{said} {key}{why}"),
            })
        };
        let [ranges, origins] = SAID;
        for (key, range) in &self.range {
            let fits = match (given(key), range) {
                (None, _) if !is_known(key) => {
                    return refuse(ranges, key, ": the model has no such key".into());
                }
                (None, _) => true,
                (Some(value), Range::Numbers(_)) => value.is_integer() || value.is_float(),
                (Some(value), Range::Words(_)) => value.is_str(),
            };
            if !range.is_valid() {
                let why = "two numbers, the least first, or two words and more, each once";
                return refuse(ranges, key, format!(" = {range}: {why}"));
            }
            if !fits {
                return refuse(
                    ranges,
                    key,
                    format!(" = {range}: two numbers for a number, words for a word"),
                );
            }
        }
        match self.origin.keys().find(|key| given(key).is_none() && !is_known(key)) {
            Some(key) => refuse(origins, key, ": the model has no such key".into()),
            None => Ok(()),
        }
    }

    /// Checks the values alone and together. The error names the key.
    fn check(&self) -> Result<(), Impossible> {
        let power = |key, size: u64, least| {
            let fits = size.is_power_of_two() && size >= least && size <= 1 << 30;
            if fits {
                Ok(())
            } else {
                Err((key, format!("{key} = {size}: a power of two from {least} to 1 GiB")))
            }
        };
        if self.name.trim().is_empty() {
            return Err(("name", "name: empty: what the drive is called".into()));
        }
        power("logical_block_size", self.logical_block_size, 512)?;
        power("physical_block_size", self.physical_block_size, self.logical_block_size)?;
        let sized = |key, bytes: u64| match is_whole(bytes, self.logical_block_size) {
            true => Ok(()),
            false => Err((
                key,
                format!(
                    "{key} = {bytes}: not a multiple of logical_block_size = {}",
                    self.logical_block_size
                ),
            )),
        };
        sized("size", self.size)?;
        if self.size < self.physical_block_size || self.size > 1 << 56 {
            return Err((
                "size",
                format!("size = {}: at least one physical block, at most 64 PiB", self.size),
            ));
        }
        sized("alignment_offset", self.alignment_offset)?;
        if self.alignment_offset >= self.physical_block_size {
            let (offset, block) = (self.alignment_offset, self.physical_block_size);
            return Err((
                "alignment_offset",
                format!("alignment_offset = {offset}: less than physical_block_size = {block}"),
            ));
        }
        if let Some(reported) = self.reported_physical_block_size {
            power("reported_physical_block_size", reported, self.logical_block_size)?;
        }
        if self.optimal_io_size > 1 << 40 {
            return Err((
                "optimal_io_size",
                format!("optimal_io_size = {}: 1 TiB at most", self.optimal_io_size),
            ));
        }
        self.check_preferred()?;
        self.check_zones()?;
        let kinds = [self.disk.is_some(), self.ssd.is_some(), self.memory.is_some()];
        if kinds.iter().filter(|&&there| there).count() != 1 {
            return Err((
                "name",
                "a model has one of the tables [disk], [ssd] and [memory]".into(),
            ));
        }
        self.disk.as_ref().map_or(Ok(()), |disk| disk.check(self))?;
        self.ssd.as_ref().map_or(Ok(()), |ssd| ssd.check(self))?;
        self.memory.as_ref().map_or(Ok(()), memory::Parameters::check)
    }
}

/// A TOML error as a refusal with its line and key. A key occurs in up to three tables, so a table
/// of ranges or origins is named as well: a replacement of `rpm` throughout the file would have
/// changed its origin too.
fn refused(text: &str, error: &toml::de::Error) -> ModelRefusal {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| before.matches('\n').count() + 1);
    let tables =
        text.lines().take(line.unwrap_or(0)).map(str::trim).filter(|line| line.starts_with('['));
    let table = tables
        .last()
        .filter(|table| SAID.contains(table))
        .map_or(String::new(), |table| format!("in {table}: "));
    let message = format!("{table}{}", in_words(text, error));
    ModelRefusal { line, message }
}

/// A deserializer's message on a text, with the key whose value, or whose second value, it is
/// about, and without names of Rust types.
pub fn in_words(text: &str, error: &toml::de::Error) -> String {
    let said = plain(error.message());
    let Some((before, at, after)) = error
        .span()
        .and_then(|s| Some((text.get(..s.start)?, text.get(s.clone())?, text.get(s.end..)?)))
    else {
        return said;
    };
    let own = at.split(|c: char| c == '=' || c.is_whitespace()).next().unwrap_or(at);
    if said == "duplicate key" {
        return format!("{said} {own}");
    }
    // The message is about a value, behind its key, or about the key; an unknown key is named
    // already.
    let line = before.rsplit('\n').next().unwrap_or(before).trim_end();
    let key = match line.strip_suffix('=') {
        Some(line) => line.rsplit(['{', ',']).next().unwrap_or(line).trim(),
        None if after.trim_start_matches([' ', '\t']).starts_with('=')
            && !said.starts_with("unknown field") =>
        {
            own
        }
        None => "",
    };
    if key.is_empty() || said.starts_with(key) { said } else { format!("{key}: {said}") }
}

/// A deserializer's message without names of Rust types.
fn plain(message: &str) -> String {
    let words = [
        (" as i128", ""),
        ("expected f64", "expected a number"),
        ("expected u64", WHOLE),
        ("expected u32", WHOLE_32),
        ("\n", " "),
    ];
    words.iter().fold(message.to_owned(), |said, (from, to)| said.replace(from, to))
}

/// Replacements for the names of integer types.
const WHOLE: &str = "expected a whole number";
const WHOLE_32: &str = "expected a whole number below 2^32";

/// The tables whose keys are those of other tables.
const SAID: [&str; 2] = ["[range]", "[origin]"];

/// Names of the tables of parameters, one for each kind of drive.
const KINDS: [&str; 3] = [DISK, SSD, MEMORY];
const DISK: &str = "disk";
const SSD: &str = "ssd";
const MEMORY: &str = "memory";

/// The line, from 1, that gives `key` its value.
fn line_of(text: &str, key: &str) -> Option<usize> {
    line_in(text, |table| !SAID.contains(&table), key)
}

/// The line, from 1, of `key` in a table that `looked_for` accepts.
fn line_in(text: &str, looked_for: impl Fn(&str) -> bool, key: &str) -> Option<usize> {
    let mut table = "";
    let gives = |line: &str| {
        let rest = line.trim_start_matches('"').strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start_matches('"').trim_start().starts_with('='))
    };
    for (nth, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        match line.starts_with('[') {
            true => table = line,
            false if looked_for(table) && gives(line) => return Some(nth),
            false => {}
        }
    }
    None
}

/// Sets the value of a key, `rpm` or `disk.rpm`.
fn put(table: &mut Table, key: &str, value: Value) -> Result<(), ModelRefusal> {
    let (kind, leaf) = match key.split_once('.') {
        Some((kind, leaf)) => (Some(kind.to_owned()), leaf),
        None if table.contains_key(key) || is_common(key) => (None, key),
        None => {
            (KINDS.iter().find(|kind| table.contains_key(**kind)).map(|&kind| kind.to_owned()), key)
        }
    };
    let inner = match kind {
        None => table,
        Some(kind) => {
            let unknown = || ModelRefusal {
                line: None,
                message: format!("{key}: the model has no table [{kind}]"),
            };
            table.get_mut(&kind).and_then(Value::as_table_mut).ok_or_else(unknown)?
        }
    };
    inner.insert(leaf.to_owned(), value);
    Ok(())
}

/// True for keys outside of the tables, with a value of their own.
fn is_common(key: &str) -> bool {
    let is_table = KINDS.contains(&key) || ["range", "origin"].contains(&key);
    !is_table && keys::names::<Model>().contains(&key)
}

#[cfg(test)]
mod tests;
