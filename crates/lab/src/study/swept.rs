//! Sweeps whose points are run and written one at a time, all of them or a share: a sweep of any
//! size takes little memory, and spreads over several machines.
//!
//! The points of a row are those of its range: number 0 is the row as it stands, with the
//! models' own values, and the others are the Latin hypercube's.

use super::range::varied;
use super::ready::{OTHERS, Ready};
use super::rows::{Failure, RowIndex, chosen};
use super::{Lab, LabError, Selection, bounds};
use crate::error::{Error, Remedy};
use crate::result::Ours;
use crate::sweep::{Hypercube, Parameter, Set, Share, Values, own_values, parameters, text_hash};
use serde::Serialize;
use std::sync::Arc;
use toml::Value;
use trueline_host::process::signal;
use trueline_sim::model::Model;

/// The selection of rows, points and the share of them that is run here.
#[derive(Clone, Debug)]
pub struct SweepSelection {
    /// Ids of the selected rows; empty: all that have a sweep.
    pub rows: Vec<String>,
    /// Points of a row besides the row as it stands; a quarter as many under other firmware.
    pub points: u32,
    /// The share of the points that is run here, by their numbers.
    pub share: Share,
}

/// Rows with a sweep, laid out and ready to run at their points.
pub struct SweptRows<'a> {
    rows: Vec<SweptRow<'a>>,
    share: Share,
    /// Ids of selected rows without a sweep (no ratio, drives of several models, no range), unless
    /// another row of that id has one.
    pub without: Vec<String>,
    /// Rows that could not be laid out.
    pub failures: Vec<Failure>,
}

/// A row with a sweep under every firmware.
struct SweptRow<'a> {
    lab: &'a Lab,
    index: RowIndex,
    ready: Ready<'a>,
    etag: String,
    cases: Vec<SweptCase>,
}

/// A firmware personality with the parameters that are swept under it.
struct SweptCase {
    firmware: String,
    /// Keys that select the firmware.
    set: Set,
    /// Keys that the sweep does not vary, those of the lab and [`SweptCase::set`].
    fixed: Set,
    parameters: Vec<Parameter>,
    points: u32,
}

/// A point of a sweep, ready to run.
pub struct PointJob<'a> {
    row: &'a SweptRow<'a>,
    case: &'a SweptCase,
    cube: Arc<Hypercube>,
    number: u32,
}

/// The identity of a point: the row, its firmware, the number and the values of the parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointKey<'a> {
    /// The name of the lab.
    pub lab: &'a str,
    /// The id of the row.
    pub row: &'a str,
    /// The firmware personality; empty where the model has none.
    pub firmware: &'a str,
    /// The number of the point; 0 is the row as it stands.
    pub point: u32,
    /// The greatest number of a point of this row and firmware.
    pub points: u32,
    /// A hash of the lab, the texts it names and the version of the program.
    pub etag: &'a str,
    /// The unit of the values.
    pub unit: &'static str,
    /// The swept parameters with their values at the point.
    pub parameters: Vec<PointParameter>,
}

/// The value of a parameter at a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointParameter {
    /// The key as `[range]` of the model spells it.
    pub key: String,
    /// The value; of a word its place in the range, from 0.
    pub number: f64,
    /// The word; empty for a number.
    pub word: String,
}

/// The values of a point in the row's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PointValues {
    /// The value of the aligned layout.
    pub aligned: f64,
    /// The value of the unaligned layout.
    pub unaligned: f64,
    /// The ratio of the unaligned value to the aligned one.
    pub ratio: f64,
}

/// The result of a point's run.
#[derive(Clone, Debug, PartialEq)]
pub enum PointFate {
    /// The point was run.
    Ran(PointValues),
    /// The model refuses the values, for this reason: there is no such drive.
    Impossible(String),
    /// The run failed, for this reason.
    Failed(Error),
    /// A signal ended the run.
    Interrupted,
}

impl<'a> SweptRows<'a> {
    /// Lays out the selected rows.
    ///
    /// # Errors
    /// The rows of a lab ask for more work than a lab may; nothing was started.
    pub fn new(labs: &'a [Lab], asked: &SweepSelection) -> Result<SweptRows<'a>, Failure> {
        let mut swept = SweptRows {
            rows: Vec::new(),
            share: asked.share,
            without: Vec::new(),
            failures: Vec::new(),
        };
        for (lab, row) in chosen(labs, &asked.rows) {
            match SweptRow::new(&labs[lab], (lab, row), asked.points) {
                Ok(Some(row)) => swept.rows.push(row),
                Ok(None) => swept.without.push(labs[lab].row(row).get_ref().id.clone()),
                Err(error) => swept.failures.push(labs[lab].failure(row, error)),
            }
        }
        let is_swept = |id: &String| swept.rows.iter().any(|row| row.id() == id);
        swept.without.retain(|id| !is_swept(id));
        let asks = swept.rows.iter().flat_map(|row| {
            row.cases.iter().map(|case| {
                let (runs, points) = (asked.share.size(0, 0), asked.share.size(1, case.points));
                (row.index, row.ready.asks_of(runs, points))
            })
        });
        bounds::check(labs, asks, Remedy::SmallerShare)
            .map_err(|((lab, row), error)| labs[lab].failure(row, error))?;
        Ok(swept)
    }

    /// True if none of the selected rows has a sweep.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of points in the share, of all rows.
    pub fn size(&self) -> u64 {
        let cases = self.rows.iter().flat_map(|row| &row.cases);
        cases.map(|case| self.share.size(0, case.points)).fold(0, u64::saturating_add)
    }

    /// The points of the share: row after row, the firmware of each one after another, in the order
    /// of their numbers. A row's points are drawn when the first of them is due.
    pub fn jobs(&self) -> impl Iterator<Item = PointJob<'_>> {
        let cases = self.rows.iter().flat_map(|row| row.cases.iter().map(move |case| (row, case)));
        cases.filter(|(_, case)| self.share.size(0, case.points) > 0).flat_map(|(row, case)| {
            let seed = row.lab.form.random;
            let parameters = case.parameters.clone();
            let cube = Arc::new(Hypercube::draw(parameters, case.points, seed, self.share));
            self.share.numbers(0, case.points).map(move |number| PointJob {
                row,
                case,
                cube: Arc::clone(&cube),
                number,
            })
        })
    }
}

impl<'a> SweptRow<'a> {
    /// Lays out a row; `None` if it has no sweep.
    fn new(lab: &'a Lab, index: RowIndex, points: u32) -> Result<Option<SweptRow<'a>>, LabError> {
        if lab.is_real(index.1) {
            return Ok(None);
        }
        let form = lab.row(index.1).get_ref();
        let as_it_stands = Selection { rows: Vec::new(), sweep: 0, threads: 1 };
        let ready = Ready::new(lab, form, &as_it_stands)?;
        let mut cases = Vec::new();
        for case in &ready.cases {
            let Some((text, fixed)) = varied(form, &ready.scenes, &case.set) else { continue };
            let parameters = parameters(text, &fixed)
                .map_err(|refusal| Error::new(format!("sweep: {refusal}")))?;
            if parameters.is_empty() {
                continue;
            }
            let others = u32::try_from(OTHERS).unwrap_or(1);
            let own = || ready.scenes.first().and_then(|(_, scene)| scene.personality(&[]));
            cases.push(SweptCase {
                firmware: case.personality.clone().or_else(own).unwrap_or_default(),
                set: case.set.clone(),
                fixed,
                parameters,
                points: match case.personality {
                    Some(_) => points.div_ceil(others),
                    None => points,
                },
            });
        }
        let texts =
            ready.scenes.iter().fold(0, |hash: u64, (_, scene)| hash.rotate_left(1) ^ scene.texts);
        let etag = texts.rotate_left(1)
            ^ text_hash(&lab.text)
            ^ text_hash(env!("CARGO_PKG_VERSION")).rotate_left(2);
        // Some readers take a word of digits for a number.
        let etag = format!("{:08x}-{:08x}", etag >> 32, etag & 0xffff_ffff);
        Ok((!cases.is_empty()).then_some(SweptRow { lab, index, ready, etag, cases }))
    }

    /// The id of the row.
    fn id(&self) -> &str {
        &self.lab.row(self.index.1).get_ref().id
    }

    /// The text of the drives' model.
    fn model(&self) -> &str {
        self.ready.scenes.first().and_then(|(_, scene)| scene.only_model()).unwrap_or_default()
    }
}

impl PointJob<'_> {
    /// The identity of the point.
    pub fn key(&self) -> PointKey<'_> {
        let PointJob { row, case, .. } = self;
        let form = row.lab.row(row.index.1).get_ref();
        let point = self.point().unwrap_or_else(|| own_values(row.model(), &case.parameters));
        PointKey {
            lab: row.lab.name(),
            row: row.id(),
            firmware: &case.firmware,
            point: self.number,
            points: case.points,
            etag: &row.etag,
            unit: form.unit.name(),
            parameters: point
                .into_iter()
                .map(|(key, value)| {
                    let known = case.parameters.iter().find(|parameter| parameter.key == key);
                    PointParameter::new(key, &value, known.map(|parameter| &parameter.values))
                })
                .collect(),
        }
    }

    /// Runs both layouts at the point.
    pub fn run(&self) -> PointFate {
        if signal::happened() {
            return PointFate::Interrupted;
        }
        let (case, point) = (self.case, self.point());
        if let Some(point) = &point {
            let tried: Set = case.fixed.iter().chain(point).cloned().collect();
            if let Err(refusal) = Model::parse_with(self.row.model(), &tried) {
                return PointFate::Impossible(refusal.to_string());
            }
        }
        let is_swept = point.is_some();
        let set: Set = point.into_iter().flatten().chain(case.set.iter().cloned()).collect();
        match self.row.ready.values(&set, is_swept) {
            Ok(Ours {
                aligned: Some(aligned),
                unaligned: Some(unaligned),
                ratio: Some(ratio),
                ..
            }) => PointFate::Ran(PointValues { aligned, unaligned, ratio }),
            Ok(_) => PointFate::Failed(Error::new("sweep: a run took no time".into())),
            Err(_) if signal::happened() => PointFate::Interrupted,
            Err(error) => PointFate::Failed(error),
        }
    }

    /// The values drawn for the point; `None` for the row as it stands.
    fn point(&self) -> Option<Set> {
        self.cube.point(self.number)
    }
}

impl PointParameter {
    /// A parameter's value, with the range that its place is counted in.
    fn new(key: String, value: &Value, range: Option<&Values>) -> PointParameter {
        let place = |word: &str| match range {
            Some(Values::Of(words)) => words.iter().position(|known| known == word),
            _ => None,
        };
        #[allow(clippy::cast_precision_loss, reason = "a model's whole numbers are below 2^53")]
        let (number, word) = match value {
            Value::Integer(whole) => (*whole as f64, ""),
            Value::Float(number) => (*number, ""),
            Value::String(word) => (place(word).map_or(-1.0, |place| place as f64), word.as_str()),
            _ => (0.0, ""),
        };
        PointParameter { key, number, word: word.to_owned() }
    }
}
