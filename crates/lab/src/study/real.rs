//! Rows measured on this machine, on an unnamed scratch file that the lab makes: nothing else is
//! ever written, and nothing is left of it, however the program ends. Rows of files use a scratch
//! directory instead, which Ctrl-C removes too.
//!
//! A row that this machine cannot run (no direct I/O on this file system, no sectors so small, no
//! room) says so in its note; the other rows go on.

use super::Lab;
use super::file::{RowForm, VariantForm};
use super::rows::value;
use super::workload::Workload;
use crate::ab::{self, Measure, MeasurementPlan};
use crate::error::Error;
use crate::latency::curve;
use crate::result::{Ours, Row, VariantResult};
use crate::rig;
use crate::run::Run;
use crate::statistics::{Verdict, median, slope};
use crate::workload::Blocks;
use looped::Looped;
use serde::Deserialize;
use std::path::Path;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Topology, round_down};
use trueline_geom::graph::{Disk, Graph, Id};
use trueline_geom::mapping::route::Route;
use trueline_geom::probe::Limits;
use trueline_host::device::stat;
use trueline_host::disk::file::Medium;
use trueline_host::engine::Choice;
use trueline_host::engine::open_file::{Cache, OpenFile};
use trueline_host::process::signal;
use trueline_host::process::tmpfile::TemporaryFile;

mod files;
mod looped;

/// The setup of a measurement on this machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Real {
    /// The size of the scratch file in bytes, written before the measurement; 0 if a hexdump gives
    /// the disk.
    #[serde(default)]
    pub bytes: u64,
    /// True if requests go through the page cache, which holds nothing of the file when a run
    /// begins.
    #[serde(default)]
    pub buffered: bool,
    /// Runs of each variant, not counting warm-ups.
    #[serde(default = "ten")]
    pub runs: usize,
    /// Providers of the hexdump's disk, each deeper than the one before, `""` the disk itself. The
    /// row is then the cost of a layer.
    #[serde(default)]
    pub layers: Vec<String>,
    /// True if every variant runs on its own loop device, which begins at the variant's offset of
    /// the scratch file.
    #[serde(default, rename = "loop")]
    pub looped: bool,
}

fn ten() -> usize {
    10
}

/// The largest scratch file in bytes, and the most runs: a lab file may be untrusted.
const LARGEST: u64 = 4 << 30;
const MOST_RUNS: usize = 1000;

/// The granularity of a loop device's length in bytes: a page.
const WHOLE: u64 = 4096;

/// Warm-up runs of each variant, not counted.
const WARMUP: usize = 1;

impl Real {
    fn runs(&self) -> usize {
        self.runs.clamp(1, MOST_RUNS)
    }

    /// Runs of a variant, warm-ups included.
    pub(super) fn all_runs(&self) -> usize {
        self.runs() + WARMUP
    }

    /// The size in bytes of a scratch file for `disk`; 0 if it would be above [`LARGEST`], as none
    /// is made then.
    pub(super) fn room(&self, disk: &Sparse) -> u64 {
        Some(disk.length()).filter(|&length| length <= LARGEST).unwrap_or(0)
    }
}

/// A place in the scratch file for a workload.
struct VariantSite {
    name: String,
    provider: Id,
    depth: usize,
    work: Box<dyn Blocks>,
    /// The loop device in place of the file, if there is one.
    looped: Option<Looped>,
    /// The target as text for the report.
    target: String,
}

/// A scratch file and the graph of its providers.
struct Scratch {
    file: TemporaryFile,
    medium: Medium,
    graph: Graph,
    cache: Cache,
}

impl Lab {
    /// Measures a row. If this machine cannot run it, the note says so, and that is no error.
    pub(super) fn measure_here(&self, form: &RowForm, real: &Real, row: &mut Row) {
        row.predicted = false;
        if let Err(error) = self.try_here(form, real, row) {
            row.skipped = true;
            add(&mut row.note, &format!("skipped here: {error}"));
        }
    }

    fn try_here(&self, form: &RowForm, real: &Real, row: &mut Row) -> Result<(), Error> {
        if form.workload.as_ref().is_some_and(Workload::is_of_files) {
            return self.in_directory(form, real, row);
        }
        let scratch = self.scratch(form, real)?;
        let places = self.places(form, real, &scratch)?;
        if let Some(workload) = &form.workload {
            let workload = workload.clone().times((real.all_runs() * places.len()) as u64);
            places.iter().try_for_each(|place| {
                workload.check_here(&*place.work, scratch.ground(place).1.length())
            })?;
        }
        let plan = MeasurementPlan {
            variants: places.iter().map(|place| place.name.clone()).collect(),
            warmup: WARMUP,
            runs: real.runs(),
            until: None,
            measure: Measure::Time,
            seed: self.form.random,
            is_virtual: false,
        };
        // Bytes the page cache read and requests made for each variant, warm-ups included.
        let mut fetched = vec![(0, 0); places.len()];
        let mut rest_ns = 0;
        let mut one = |nth: usize, run: usize| {
            let place =
                places.get(nth).ok_or_else(|| Error::new("a variant that is not there".into()))?;
            let before = stat::fetched();
            let seed = self.form.random.wrapping_add(run as u64);
            let run = scratch.run(place, seed, rest_ns)?;
            rest_ns = run.rest_ns();
            fetched[nth].0 += stat::fetched()
                .zip(before)
                .map_or(0, |(after, before)| after.saturating_sub(before));
            fetched[nth].1 += run.ops;
            if signal::happened() { Err(Error::new("interrupted".into())) } else { Ok(run) }
        };
        let found = ab::measure(&plan, &mut one, &mut |_| {});
        if found.runs.iter().all(Vec::is_empty) {
            return Err(found.stopped.unwrap_or_else(|| Error::new("no run was finished".into())));
        }
        let middle =
            |runs: &Vec<Run>| median(&runs.iter().map(|run| value(form, run)).collect::<Vec<_>>());
        let values: Vec<f64> = found.runs.iter().map(middle).collect();
        let mut notes: Vec<String> =
            found.stopped.iter().map(|error| format!("ended early: {error}")).collect();
        row.ours = Some(if real.layers.is_empty() {
            notes.extend(
                found
                    .comparison
                    .as_ref()
                    .ok()
                    .filter(|_| places.len() > 1)
                    .map(ToString::to_string),
            );
            ours(form, &values, &found)
        } else {
            let (ours, said) = a_layer(&places, &found.runs);
            notes.push(said);
            ours
        });
        let each = fetched.into_iter().map(|(bytes, requests): (u64, u64)| bytes / requests.max(1));
        for (place, bytes) in
            places.iter().zip(each).filter(|(_, bytes)| real.buffered && *bytes > 0)
        {
            notes.push(format!("{}: the page cache read {bytes} bytes a request", place.name));
        }
        notes.extend(found.warnings.iter().cloned());
        notes.iter().for_each(|note| add(&mut row.note, note));
        row.variants = (0..places.len()).map(|nth| told(&places[nth], nth, &found)).collect();
        Ok(())
    }

    /// The content of the scratch file: a hexdump's disk, or zeros.
    pub(super) fn disk_here(&self, form: &RowForm, real: &Real) -> Result<Sparse, Error> {
        match form.aligned.as_ref().and_then(|variant| variant.disk.as_ref()) {
            None => Ok(Sparse::new(real.bytes)),
            Some(name) => {
                let text = self
                    .text(name.get_ref())
                    .map_err(|e| Error::new(format!("read the hexdump {}: {e}", name.get_ref())))?;
                let disks = Sparse::from_hexdumps(&text)
                    .map_err(|e| Error::new(format!("hexdump {}: {e}", name.get_ref())))?;
                let first = disks
                    .into_iter()
                    .next()
                    .ok_or_else(|| Error::new(format!("hexdump {}: no disk", name.get_ref())))?;
                Ok(first.1)
            }
        }
    }

    /// Makes the scratch file with every block written.
    fn scratch(&self, form: &RowForm, real: &Real) -> Result<Scratch, Error> {
        let disk = self.disk_here(form, real)?;
        let length = disk.length();
        if length == 0 || length > LARGEST {
            return Err(Error::new(format!(
                "make a scratch file of {length} bytes: set bytes, from 1 to {LARGEST}"
            )));
        }
        let file =
            TemporaryFile::new(Path::new("."), length).map_err(|e| Error::new(e.to_string()))?;
        let medium = file.store().map_err(|e| Error::new(e.to_string()))?;
        // Blocks that were never written would be read from nowhere. So all are written, those of a
        // disk with its content.
        let mut block = vec![0; 1 << 20];
        let mut at = 0;
        while at < length {
            let part = usize::try_from(length - at).unwrap_or(usize::MAX).min(block.len());
            let done = disk
                .read_at(&mut block[..part], at)
                .and_then(|()| medium.write_at(&block[..part], at));
            done.map_err(|errno| Error::io("write the scratch file", at, errno))?;
            at += part as u64;
        }
        medium.flush().map_err(|errno| Error::io("flush the scratch file", 0, errno))?;
        let cache = if real.buffered { Cache::Through } else { Cache::Around };
        let graph = Graph::taste(
            vec![Disk::new(String::new(), Box::new(disk), Topology::new(512, length))],
            Limits::default(),
        );
        Ok(Scratch { file, medium, graph, cache })
    }

    /// The places of the row's variants, or of the providers of its layers.
    fn places(
        &self,
        form: &RowForm,
        real: &Real,
        scratch: &Scratch,
    ) -> Result<Vec<VariantSite>, Error> {
        let workload = form
            .workload
            .as_ref()
            .ok_or_else(|| Error::new("a row that is measured has a workload".into()))?;
        let place = |name: &str, provider: &str, offset: u64| {
            let there = if provider.is_empty() { Some(0) } else { scratch.graph.find(provider) };
            let provider = there
                .ok_or_else(|| Error::new(format!("no provider '{provider}' in the hexdump")))?;
            let depth = scratch.graph.providers[provider].depth;
            let way = if real.buffered { "through the page cache" } else { "direct" };
            let target = format!("scratch file, {way}");
            Ok(VariantSite {
                name: name.into(),
                provider,
                depth,
                work: workload.moved_blocks(offset)?,
                looped: None,
                target,
            })
        };
        if !real.layers.is_empty() {
            let name = |provider: &str| {
                if provider.is_empty() { "disk".to_owned() } else { provider.to_owned() }
            };
            return real
                .layers
                .iter()
                .map(|provider| place(&name(provider), provider, 0))
                .collect();
        }
        let variants = [("aligned", &form.aligned), ("unaligned", &form.unaligned)];
        let there = variants.iter().filter_map(|(name, variant)| {
            variant.as_ref().map(|variant: &VariantForm| (name, variant))
        });
        let named = |variant: &VariantForm| {
            variant.provider.as_ref().map_or(String::new(), |name| name.get_ref().clone())
        };
        if real.looped {
            // All loop devices are equally long.
            let last = there.clone().map(|(_, variant)| variant.offset).max().unwrap_or(0);
            let length = round_down(scratch.medium.length().saturating_sub(last), WHOLE);
            if length == 0 {
                let room = scratch.medium.length();
                return Err(Error::new(format!(
                    "make a loop device from byte {last}: the scratch file has {room} bytes, and at least a page of {WHOLE} must be left"
                )));
            }
            let device = |(name, variant): (&&str, &VariantForm)| {
                let looped = Some(Looped::new(&scratch.file, variant.offset, length)?);
                let own = place(name, "", 0)?;
                let target =
                    format!("loop device from byte {} of a {}", variant.offset, own.target);
                Ok(VariantSite { looped, target, ..own })
            };
            return there.map(device).collect();
        }
        there.map(|(name, variant)| place(name, &named(variant), variant.offset)).collect()
    }
}

impl Scratch {
    /// The medium of a place (the file or its loop device), the route on it, and its path.
    fn ground<'a>(&'a self, place: &'a VariantSite) -> (&'a Medium, Route, &'a Path) {
        match &place.looped {
            Some(device) => (&device.medium, Route::store(0, device.medium.length()), &device.path),
            None => (
                &self.medium,
                self.graph.providers[place.provider].route().clone(),
                Path::new("the scratch file"),
            ),
        }
    }

    /// Makes one run on a new rig, so that no state is left to the next run. What the run before
    /// wrote is flushed, and a run that writes begins after a rest of `rest_ns`.
    fn run(&self, place: &VariantSite, seed: u64, rest_ns: u64) -> Result<Run, Error> {
        let (medium, route, path) = self.ground(place);
        let file =
            OpenFile::new(medium, self.cache, path).map_err(|e| Error::new(e.to_string()))?;
        let depth = u32::try_from(place.work.depth()).unwrap_or(u32::MAX);
        let shape =
            rig::real::RigSetup { depth, largest: place.work.largest(), engine: Choice::Best };
        let sector = self.graph.providers[place.provider].topology.sector;
        let mut rig = rig::real::Real::new(route, sector, vec![file], shape)?;
        medium.flush().map_err(|errno| Error::io("flush the scratch file", 0, errno))?;
        if place.work.writes() {
            rig::real::rest(rest_ns, &mut || !signal::happened());
        }
        medium.start_writeback(0, 0);
        let run = place.work.run(&mut rig, seed, &mut |_| !signal::happened())?;
        match &run.first_error {
            Some(first) => {
                Err(Error::new(format!("{} requests failed, the first: {first}", run.errors)))
            }
            None => Ok(run),
        }
    }
}

/// The values of a row in its unit, with the interval of its ratio, which times alone have.
fn ours(form: &RowForm, values: &[f64], found: &ab::Measurement) -> Ours {
    let comparison = found.comparison.as_ref().ok().filter(|_| values.len() > 1);
    let ratio = comparison.map(|comparison| comparison.ratio);
    // With too few runs there is no interval of 95 %, and the note has what was measured.
    let interval = ratio.filter(|_| comparison.is_some_and(|of| of.verdict != Verdict::TooFew));
    let (low, high) = (interval.map(|ratio| ratio.low), interval.map(|ratio| ratio.high));
    let over = |value: Option<f64>| value.map(|value| 1.0 / value);
    let median = ratio.map(|ratio| ratio.median);
    let (ratio, low, high) = if form.unit.more_is_better() {
        (over(median), over(high), over(low))
    } else {
        (median, low, high)
    };
    Ours { aligned: values.first().copied(), unaligned: values.get(1).copied(), ratio, low, high }
}

/// The cost of a layer in nanoseconds: the slope of the mean latency over the number of layers
/// below.
fn a_layer(places: &[VariantSite], runs: &[Vec<Run>]) -> (Ours, String) {
    #[allow(clippy::cast_precision_loss, reason = "a handful of layers")]
    let points = places
        .iter()
        .zip(runs)
        .flat_map(|(place, runs)| runs.iter().map(|run| (place.depth as f64, run.mean_ns())));
    let line = slope(&points.collect::<Vec<_>>());
    let said = match line {
        None => "there are too few layers for a slope".into(),
        Some(line) => {
            let (low, high) = (line.interval.low, line.interval.high);
            let verdict = if low <= 0.0 && high >= 0.0 { "; this may be 0" } else { "" };
            format!(
                "{:.1} ns a layer (95 %: {low:.1} to {high:.1}){verdict}; {:.0} ns without one",
                line.slope, line.intercept
            )
        }
    };
    (
        Ours {
            aligned: line.map(|line| line.slope),
            unaligned: None,
            ratio: None,
            low: None,
            high: None,
        },
        said,
    )
}

fn told(place: &VariantSite, nth: usize, found: &ab::Measurement) -> VariantResult {
    let runs = found.runs.get(nth).map_or(&[][..], Vec::as_slice);
    let first = runs.first();
    VariantResult {
        name: place.name.clone(),
        target: place.target.clone(),
        seconds: median(&Measure::Time.series(runs)),
        ops: first.map_or(0, |run| run.ops),
        bytes: first.map_or(0, |run| run.bytes),
        latency: curve(&found.latency(nth)),
        drives: None,
        layers: Vec::new(),
        layout: None,
    }
}

/// Appends a phrase to a note.
fn add(note: &mut String, more: &str) {
    if !note.is_empty() {
        note.push_str("; ");
    }
    note.push_str(more);
}

#[cfg(test)]
mod tests;
