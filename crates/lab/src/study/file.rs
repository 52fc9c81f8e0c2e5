//! The keys of a lab file.

use super::bounds::DRIVES;
use super::host::Host;
use super::real::Real;
use super::workload::Workload;
use crate::error::Error;
use crate::layer::stack::LayerStack;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// The most starts of the drives for a row.
const STARTS: u32 = 1024;

/// The most processor time of any item in ns: one second.
const LONGEST_NS: f64 = 1e9;

/// The keys of a whole lab.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    pub name: String,
    pub title: String,
    /// The number of the seed document: `003`.
    pub seed: Option<String>,
    /// The document that published the values.
    pub source: Option<String>,
    /// The seed of the drives' initial positions and of random requests.
    #[serde(default = "seed_1")]
    pub random: u64,
    /// The drives of rows without their own.
    #[serde(default)]
    pub drives: Vec<DriveForm>,
    /// The host of rows without their own.
    #[serde(default)]
    pub host: Host,
    /// The processor of rows without their own.
    #[serde(default)]
    pub processor: Processor,
    #[serde(default)]
    pub row: Vec<Spanned<RowForm>>,
}

fn seed_1() -> u64 {
    1
}

/// The keys of one row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowForm {
    pub id: String,
    pub title: String,
    pub unit: Unit,
    /// The published values, if there are any.
    pub published: Option<PublishedForm>,
    /// The workload; `None` if no honest prediction can be made, and `note` says why.
    pub workload: Option<Workload>,
    /// A shorter workload of the same ratio, run at the points of a sweep.
    pub swept: Option<Workload>,
    pub host: Option<Host>,
    /// The setup of a measurement on this machine; `None` for simulated drives.
    pub real: Option<Real>,
    #[serde(default)]
    pub drives: Vec<DriveForm>,
    pub processor: Option<Processor>,
    /// The layers between the host and the drives, the outermost first.
    #[serde(default)]
    pub layers: LayerStack,
    pub aligned: Option<VariantForm>,
    pub unaligned: Option<VariantForm>,
    /// True if the values are predicted, rather than calibrated to the row itself.
    #[serde(default = "yes")]
    pub predicted: bool,
    /// The greatest |error| that the row promises.
    pub bound: Option<f64>,
    /// The number of starts: each time the drives are switched on anew, with other positions and
    /// phases of their spindles.
    #[serde(default = "once")]
    pub starts: u32,
    /// Seconds of the row over simulated seconds, if only a sample is simulated.
    #[serde(default = "whole")]
    pub scale: f64,
    /// True if the range comes from a sweep over the ranges of its drives' parameters.
    #[serde(default = "yes")]
    pub sweep: bool,
    /// Firmware personalities that are run besides the drives' own.
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
    /// Checks the row's keys, each alone and together. The error says what cannot be.
    pub(super) fn check(&self, lab: &Form) -> Result<(), Error> {
        let values = self
            .published
            .iter()
            .flat_map(|published| [published.aligned, published.unaligned])
            .flatten();
        if let Some(bad) = values.into_iter().find(|value| !(value.is_finite() && *value > 0.0)) {
            return Err(Error::new(format!("published: {bad} is not a number above 0")));
        }
        let Some(workload) = &self.workload else {
            return if self.note.is_empty() {
                Err(Error::new(
                    "without a workload it needs a note that says why it is not predicted".into(),
                ))
            } else {
                Ok(())
            };
        };
        if self.aligned.is_none() {
            return Err(Error::new("with a workload it needs at least the variant aligned".into()));
        }
        if self.drives(lab).len() > DRIVES {
            return Err(Error::new(format!("{} drives: at most {DRIVES}", self.drives(lab).len())));
        }
        if self.real.is_none() && self.drives(lab).is_empty() {
            return Err(Error::new("drives: name the model of at least one".into()));
        }
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return Err(Error::new(format!("scale = {} is not a number above 0", self.scale)));
        }
        if !(1..=STARTS).contains(&self.starts) {
            return Err(Error::new(format!("starts = {}: from 1 to {STARTS}", self.starts)));
        }
        if self.bound.is_some_and(|bound| !(bound.is_finite() && bound >= 0.0)) {
            return Err(Error::new("bound is not a number of at least 0".into()));
        }
        self.processor(lab).check()?;
        // Each personality is a run of its own, so a second mention is a mistake.
        let twice = self
            .personalities
            .iter()
            .enumerate()
            .find(|(nth, name)| self.personalities[..*nth].contains(name));
        if let Some((_, name)) = twice {
            return Err(Error::new(format!("personalities: {name} is named twice")));
        }
        if self.real.is_some() {
            return self.check_real();
        }
        let host = self.host(lab);
        let wrong = [workload]
            .into_iter()
            .chain(&self.swept)
            .find(|workload| workload.is_of_files() != host.is_of_files());
        if let Some(workload) = wrong {
            let (needs, is) = if workload.is_of_files() {
                ("a file system", "has none")
            } else {
                ("blocks", "offers only files")
            };
            return Err(Error::new(format!(
                "the workload {} needs {needs}, and the host {} {is}",
                workload.name(),
                host.name()
            )));
        }
        Ok(())
    }

    /// Checks a row that is measured on this machine: keys of simulated drives are refused.
    fn check_real(&self) -> Result<(), Error> {
        let variants = || self.aligned.iter().chain(&self.unaligned);
        let said = [
            ("drives", !self.drives.is_empty()),
            ("host", self.host.is_some()),
            ("processor", self.processor.is_some()),
            ("personalities", !self.personalities.is_empty()),
            ("starts", self.starts != once()),
            ("set", variants().any(|variant| !variant.set.is_empty())),
            ("through", variants().any(|variant| !variant.through.is_empty())),
            (
                "layers",
                !self.layers.is_empty() || variants().any(|variant| variant.layers.is_some()),
            ),
            ("by", variants().any(|variant| variant.by > 0)),
            ("swept", self.swept.is_some()),
        ];
        if let Some((key, _)) = said.iter().find(|(_, said)| *said) {
            return Err(Error::new(format!(
                "{key} is for simulated drives, and a row with real measures this machine: leave out one"
            )));
        }
        let looped = self.real.as_ref().is_some_and(|real| real.looped);
        let other_ground = self.real.as_ref().is_some_and(|real| !real.layers.is_empty())
            || variants().any(|variant| variant.provider.is_some());
        if looped && (other_ground || self.workload.as_ref().is_some_and(Workload::is_of_files)) {
            return Err(Error::new(
                "loop measures blocks of a whole device: leave out layers and provider, and name a workload of blocks"
                    .into(),
            ));
        }
        let other = self.unaligned.as_ref().and_then(|variant| variant.disk.as_ref());
        match (other, self.aligned.as_ref().and_then(|variant| variant.disk.as_ref())) {
            (Some(other), own) if own.map(Spanned::get_ref) != Some(other.get_ref()) => {
                Err(Error::new(format!(
                    "unaligned: disk = {}: both variants use one scratch file, with the disk of aligned: leave it out",
                    other.get_ref()
                )))
            }
            _ => Ok(()),
        }
    }

    /// The row's processor, or the lab's.
    pub(super) fn processor<'a>(&'a self, lab: &'a Form) -> &'a Processor {
        self.processor.as_ref().unwrap_or(&lab.processor)
    }

    /// The row's host, or the lab's.
    pub(super) fn host<'a>(&'a self, lab: &'a Form) -> &'a Host {
        self.host.as_ref().unwrap_or(&lab.host)
    }

    /// The row's drives, or the lab's.
    pub(super) fn drives<'a>(&'a self, lab: &'a Form) -> &'a [DriveForm] {
        if self.drives.is_empty() { &lab.drives } else { &self.drives }
    }
}

/// The unit of a row's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Unit {
    /// Seconds of the whole run.
    #[serde(rename = "s")]
    Seconds,
    /// Requests done a second.
    #[serde(rename = "req/s")]
    Requests,
    /// Bytes moved a second.
    #[serde(rename = "bytes/s")]
    Bytes,
    /// Nanoseconds taken by a request.
    #[serde(rename = "ns")]
    Nanoseconds,
}

impl Unit {
    /// The name in the file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Requests => "req/s",
            Unit::Bytes => "bytes/s",
            Unit::Nanoseconds => "ns",
        }
    }

    /// True if a greater value is better.
    pub(super) fn more_is_better(self) -> bool {
        matches!(self, Unit::Requests | Unit::Bytes)
    }
}

/// The published values of a row.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedForm {
    pub aligned: Option<f64>,
    pub unaligned: Option<f64>,
}

/// The keys of a drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DriveForm {
    /// The name of a model that `trueline drives` lists, or a model file.
    pub model: Spanned<String>,
    /// Keys of the model to override, with their values.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
}

/// The disks, provider and offset of a variant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantForm {
    /// The hexdump (`hexdump -C`) of the disks; `None` for empty drives.
    pub disk: Option<Spanned<String>>,
    /// The provider that requests go to; `None` for the only disk.
    pub provider: Option<Spanned<String>>,
    /// The offset in the provider at which requests begin, in bytes.
    #[serde(default)]
    pub offset: u64,
    /// Bytes added to every request of the workload: above the host, while `offset` is below it.
    #[serde(default)]
    pub by: u64,
    /// The layers in the place of the row's.
    pub layers: Option<LayerStack>,
    /// Keys to override in the model of every drive, with their values.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Classes that requests cross besides those on the provider's path. A BSD label's `c` is one:
    /// it is the whole slice, and no provider of ours.
    #[serde(default)]
    pub through: Vec<String>,
}

/// The processor time of the host for a request, in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Processor {
    /// Nanoseconds of a system call.
    #[serde(default)]
    pub syscall_ns: f64,
    /// Nanoseconds of the block layer, independent of the classes.
    #[serde(default)]
    pub fixed_ns: f64,
    /// Nanoseconds of each class on the provider's path.
    #[serde(default)]
    pub class_ns: BTreeMap<String, f64>,
}

impl Processor {
    /// Refuses negative times, and those longer than [`LONGEST_NS`].
    fn check(&self) -> Result<(), Error> {
        let classes = self.class_ns.iter().map(|(class, ns)| (class.as_str(), *ns));
        match [("syscall_ns", self.syscall_ns), ("fixed_ns", self.fixed_ns)]
            .into_iter()
            .chain(classes)
            .find(|(_, ns)| !(0.0..=LONGEST_NS).contains(ns))
        {
            Some((key, ns)) => Err(Error::new(format!(
                "processor: {key} = {ns}: from 0 to {LONGEST_NS} ns, a second"
            ))),
            None => Ok(()),
        }
    }
}
