//! The keys of a lab file.

use super::bounds::DRIVES;
use super::host::Host;
use super::real::Real;
use super::workload::Workload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// The most times that drives are switched on for a row.
const STARTS: u32 = 1024;

/// The most that the processor spends on anything: a second.
const LONGEST_NS: f64 = 1e9;

/// A lab.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    pub name: String,
    pub title: String,
    /// The number of the seed document.
    pub seed: Option<String>,
    /// The document the published values are from.
    pub source: Option<String>,
    /// Where drives stand when they are switched on, and which random requests are made.
    #[serde(default = "one")]
    pub random: u64,
    /// The drives of the rows that name none.
    #[serde(default)]
    pub drives: Vec<DriveForm>,
    /// The host of the rows that name none.
    #[serde(default)]
    pub host: Host,
    /// The processor of the rows that name none.
    #[serde(default)]
    pub processor: Processor,
    #[serde(default)]
    pub row: Vec<Spanned<RowForm>>,
}

fn one() -> u64 {
    1
}

/// A row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowForm {
    pub id: String,
    pub title: String,
    pub unit: Unit,
    /// What the document says.
    pub published: Option<PublishedForm>,
    /// What is run; none: no honest prediction can be made, and `note` says why.
    pub workload: Option<Workload>,
    /// A shorter one of the same ratio, which is run at the points of a sweep.
    pub swept: Option<Workload>,
    pub host: Option<Host>,
    /// It is measured on this machine, rather than on drives.
    pub real: Option<Real>,
    #[serde(default)]
    pub drives: Vec<DriveForm>,
    pub processor: Option<Processor>,
    pub aligned: Option<VariantForm>,
    pub unaligned: Option<VariantForm>,
    /// Whether its value is predicted, rather than calibrated to the row itself.
    #[serde(default = "yes")]
    pub predicted: bool,
    /// The greatest |error|.
    pub bound: Option<f64>,
    /// How many times the drives are switched on and the workload run: spindles of a set stand otherwise each time, and turn otherwise.
    #[serde(default = "once")]
    pub starts: u32,
    /// Seconds of the row over seconds that are simulated, where only a sample is.
    #[serde(default = "whole")]
    pub scale: f64,
    /// Whether the interval is from a sweep over the ranges of its drives' parameters.
    #[serde(default = "yes")]
    pub sweep: bool,
    /// The firmware personalities that are tried besides the drives' own.
    #[serde(default)]
    pub personalities: Vec<String>,
    #[serde(default)]
    pub note: String,
}

fn yes() -> bool {
    true
}

fn once() -> u32 {
    1
}

fn whole() -> f64 {
    1.0
}

impl RowForm {
    /// What cannot be.
    pub(super) fn check(&self, lab: &Form) -> Result<(), String> {
        let values = self.published.iter().flat_map(|published| [published.aligned, published.unaligned]).flatten();
        if let Some(bad) = values.into_iter().find(|value| !(value.is_finite() && *value > 0.0)) {
            return Err(format!("published: {bad}: a number above 0"));
        }
        let Some(workload) = &self.workload else {
            return if self.note.is_empty() { Err("without a workload, note says why it cannot be predicted".into()) } else { Ok(()) };
        };
        if self.aligned.is_none() {
            return Err("a row with a workload has at least the variant aligned".into());
        }
        if self.drives(lab).len() > DRIVES {
            return Err(format!("{} drives: at most {DRIVES}", self.drives(lab).len()));
        }
        if self.real.is_none() && self.drives(lab).is_empty() {
            return Err("drives: name the model of at least one".into());
        }
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return Err(format!("scale = {}: a number above 0", self.scale));
        }
        if !(1..=STARTS).contains(&self.starts) {
            return Err(format!("starts = {}: from 1 to {STARTS}", self.starts));
        }
        if self.bound.is_some_and(|bound| !(bound.is_finite() && bound >= 0.0)) {
            return Err("bound: a number from 0".into());
        }
        self.processor(lab).check()?;
        // Each is a run of its own, and there are not many.
        let twice = self.personalities.iter().enumerate().find(|(nth, name)| self.personalities[..*nth].contains(name));
        if let Some((_, name)) = twice {
            return Err(format!("personalities: {name} is named twice"));
        }
        if self.real.is_some() {
            return self.check_real();
        }
        let host = self.host(lab);
        let wrong = [workload].into_iter().chain(&self.swept).find(|workload| workload.is_of_files() != host.is_of_files());
        if let Some(workload) = wrong {
            let (needs, is) = if workload.is_of_files() { ("a file system", "has none") } else { ("blocks", "gives files") };
            return Err(format!("the workload {} needs {needs}, and the host {} {is}", workload.name(), host.name()));
        }
        Ok(())
    }

    /// What a row that is measured cannot say, as there is no drive that it could be said of.
    fn check_real(&self) -> Result<(), String> {
        let variants = || self.aligned.iter().chain(&self.unaligned);
        let said = [
            ("drives", !self.drives.is_empty()),
            ("host", self.host.is_some()),
            ("processor", self.processor.is_some()),
            ("personalities", !self.personalities.is_empty()),
            ("starts", self.starts != once()),
            ("set", variants().any(|variant| !variant.set.is_empty())),
            ("through", variants().any(|variant| !variant.through.is_empty())),
            ("by", variants().any(|variant| variant.by > 0)),
            ("swept", self.swept.is_some()),
        ];
        if let Some((key, _)) = said.iter().find(|(_, said)| *said) {
            return Err(format!("{key} is for simulated drives, and real measures this machine"));
        }
        let looped = self.real.as_ref().is_some_and(|real| real.looped);
        let other_ground =
            self.real.as_ref().is_some_and(|real| !real.layers.is_empty()) || variants().any(|variant| variant.provider.is_some());
        if looped && (other_ground || self.workload.as_ref().is_some_and(Workload::is_of_files)) {
            return Err("loop: blocks of the whole device: without layers, provider and workloads of files".into());
        }
        let other = self.unaligned.as_ref().and_then(|variant| variant.disk.as_ref());
        match (other, self.aligned.as_ref().and_then(|variant| variant.disk.as_ref())) {
            (Some(other), own) if own.map(Spanned::get_ref) != Some(other.get_ref()) => {
                Err(format!("unaligned: disk = {}: there is one scratch file, with the disk of aligned", other.get_ref()))
            }
            _ => Ok(()),
        }
    }

    /// Its processor, or the lab's.
    pub(super) fn processor<'a>(&'a self, lab: &'a Form) -> &'a Processor {
        self.processor.as_ref().unwrap_or(&lab.processor)
    }

    /// Its host, or the lab's.
    pub(super) fn host<'a>(&'a self, lab: &'a Form) -> &'a Host {
        self.host.as_ref().unwrap_or(&lab.host)
    }

    /// Its drives, or the lab's.
    pub(super) fn drives<'a>(&'a self, lab: &'a Form) -> &'a [DriveForm] {
        if self.drives.is_empty() { &lab.drives } else { &self.drives }
    }
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Unit {
    /// Seconds of the whole.
    #[serde(rename = "s")]
    Seconds,
    /// Requests a second.
    #[serde(rename = "req/s")]
    Requests,
    /// Bytes a second.
    #[serde(rename = "bytes/s")]
    Bytes,
    /// Nanoseconds a request.
    #[serde(rename = "ns")]
    Nanoseconds,
}

impl Unit {
    /// As the file spells it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Requests => "req/s",
            Unit::Bytes => "bytes/s",
            Unit::Nanoseconds => "ns",
        }
    }

    /// Whether more is better.
    pub(super) fn more_is_better(self) -> bool {
        matches!(self, Unit::Requests | Unit::Bytes)
    }
}

/// What a document says.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedForm {
    pub aligned: Option<f64>,
    pub unaligned: Option<f64>,
}

/// A drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DriveForm {
    /// A model that `trueline drives` lists, or a model file.
    pub model: Spanned<String>,
    /// Keys of the model with other values.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
}

/// Where a variant's requests go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantForm {
    /// A text of `hexdump -C` with the disks' contents; none: bare drives.
    pub disk: Option<Spanned<String>>,
    /// The provider on them; none: the only disk.
    pub provider: Option<Spanned<String>>,
    /// Where requests begin in it, in bytes.
    #[serde(default)]
    pub offset: u64,
    /// Bytes that the workload moves every request by: above the host, where `offset` is below it.
    #[serde(default)]
    pub by: u64,
    /// Keys of every drive's model with other values.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Classes that requests go through besides those that stand on the provider's path: a BSD label's `c` is the whole slice, and no
    /// provider of ours.
    #[serde(default)]
    pub through: Vec<String>,
}

/// What the host's processor spends on a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Processor {
    /// Entering the kernel and leaving it.
    #[serde(default)]
    pub syscall_ns: f64,
    /// What the block layer costs whatever is in it.
    #[serde(default)]
    pub fixed_ns: f64,
    /// What each class on the provider's path costs.
    #[serde(default)]
    pub class_ns: BTreeMap<String, f64>,
}

impl Processor {
    /// What no processor spends, or longer than virtual time lasts.
    fn check(&self) -> Result<(), String> {
        let classes = self.class_ns.iter().map(|(class, ns)| (class.as_str(), *ns));
        match [("syscall_ns", self.syscall_ns), ("fixed_ns", self.fixed_ns)]
            .into_iter()
            .chain(classes)
            .find(|(_, ns)| !(0.0..=LONGEST_NS).contains(ns))
        {
            Some((key, ns)) => Err(format!("processor: {key} = {ns}: from 0 to {LONGEST_NS}, which is a second")),
            None => Ok(()),
        }
    }
}
