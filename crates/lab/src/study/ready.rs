//! Rows split into independent runs: one for every firmware, point of the sweep and variant. The
//! runs are spread over several threads, even those of a single long row, and their results are
//! assembled in order.

use super::file::{RowForm, VariantForm};
use super::rows::{Measured, ours};
use super::scene::{PERSONALITY, Scene};
use super::workload::Workload;
use super::{Lab, LabError, Selection};
use crate::error::Error;
use crate::result::{Alternative, Ours, Row};
use crate::sweep::Set;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use toml::Value;
use trueline_host::process::signal;

/// The divisor of sweep points for alternative personalities: nothing is held to their ranges,
/// which would otherwise take half the time.
pub(super) const OTHERS: usize = 4;

/// A row with its scenes laid out.
pub(super) struct Ready<'a> {
    lab: &'a Lab,
    pub(super) form: &'a RowForm,
    pub(super) scenes: Vec<(&'static str, Scene)>,
    /// The drives' own firmware first, then the other personalities of the row.
    pub(super) cases: Vec<Case>,
}

/// A firmware personality with its sweep. `None`: the drives' own.
pub(super) struct Case {
    pub(super) personality: Option<String>,
    pub(super) set: Set,
    points: Vec<Set>,
}

/// One run of a scene, with overridden model keys, at a point of the sweep or not.
pub(super) struct Job<'a> {
    pub(super) row: usize,
    ready: &'a Ready<'a>,
    scene: usize,
    set: &'a Set,
    swept: bool,
}

impl<'a> Ready<'a> {
    /// Lays out the scenes of a row; there are none if the row has no workload.
    pub(super) fn new(
        lab: &'a Lab,
        form: &'a RowForm,
        asked: &Selection,
    ) -> Result<Ready<'a>, LabError> {
        let mut ready = Ready { lab, form, scenes: Vec::new(), cases: Vec::new() };
        if form.workload.is_none() {
            return Ok(ready);
        }
        for (name, variant) in [("aligned", &form.aligned), ("unaligned", &form.unaligned)] {
            let variant: Option<&VariantForm> = variant.as_ref();
            if let Some(variant) = variant {
                ready.scenes.push((name, Scene::new(lab, form, variant)?));
            }
        }
        for personality in [None].into_iter().chain(form.personalities.iter().map(Some)) {
            let set: Set = personality
                .iter()
                .map(|name| (PERSONALITY.to_owned(), Value::String((*name).clone())))
                .collect();
            let points =
                if personality.is_none() { asked.sweep } else { asked.sweep.div_ceil(OTHERS) };
            let points = lab.points(form, &ready.scenes, &set, points)?;
            ready.cases.push(Case { personality: personality.cloned(), set, points });
        }
        Ok(ready)
    }

    /// The runs of the row, in the order that [`Ready::fill`] expects their results in.
    pub(super) fn jobs(&'a self, row: usize) -> impl Iterator<Item = Job<'a>> {
        let sets = self.cases.iter().flat_map(|case| {
            [(&case.set, false)].into_iter().chain(case.points.iter().map(|set| (set, true)))
        });
        sets.flat_map(move |(set, swept)| {
            (0..self.scenes.len()).map(move |scene| Job { row, ready: self, scene, set, swept })
        })
    }

    /// The values with further keys of the models set; `swept`: of the workload of a sweep.
    pub(super) fn values(&self, set: &Set, swept: bool) -> Result<Ours, Error> {
        let run = |scene| Job { row: 0, ready: self, scene, set, swept }.run();
        let runs = (0..self.scenes.len()).map(run).collect::<Result<Vec<_>, _>>()?;
        Ok(ours(&runs))
    }

    /// The requests of one run of every scene; `swept` as in [`Ready::values`].
    pub(super) fn requests(&self, swept: bool) -> u64 {
        let set = Set::new();
        (0..self.scenes.len())
            .map(|scene| Job { row: 0, ready: self, scene, set: &set, swept }.requests())
            .fold(0, u64::saturating_add)
    }

    /// Fills the row with the results of its runs.
    pub(super) fn fill(
        &self,
        row: &mut Row,
        results: &mut dyn Iterator<Item = Result<Measured, Error>>,
    ) -> Result<(), LabError> {
        let mut next = || results.take(self.scenes.len()).collect::<Result<Vec<_>, _>>();
        for case in &self.cases {
            let runs = next()?;
            let mut ours = ours(&runs);
            for _ in &case.points {
                let ratio = self::ours(&next()?)
                    .ratio
                    .ok_or_else(|| Error::new("sweep: a run took no time".into()))?;
                let (low, high) = (ours.low.or(ours.ratio), ours.high.or(ours.ratio));
                ours = Ours {
                    low: low.map(|low| low.min(ratio)),
                    high: high.map(|high| high.max(ratio)),
                    ..ours
                };
            }
            let error = row.published.and_then(|published| published.error(ours));
            match &case.personality {
                Some(personality) => row.alternatives.push(Alternative {
                    personality: personality.clone(),
                    ours,
                    error,
                }),
                None => {
                    row.personality =
                        self.scenes.first().and_then(|(_, scene)| scene.personality(&[]));
                    (row.ours, row.error) = (Some(ours), error);
                    row.level_errors =
                        row.published.map(|p| p.level_errors(ours)).unwrap_or_default();
                    row.null_model = self.null_model(row.published, ours);
                    row.variants = runs.into_iter().map(|run| run.variant).collect();
                }
            }
        }
        Ok(())
    }
}

impl Job<'_> {
    fn workload(&self) -> Option<&Workload> {
        let form = self.ready.form;
        if self.swept {
            form.swept.as_ref().or(form.workload.as_ref())
        } else {
            form.workload.as_ref()
        }
    }

    /// The requests of all its starts.
    pub(super) fn requests(&self) -> u64 {
        let Ready { form, scenes, .. } = self.ready;
        let all = |workload: &Workload| {
            workload.clone().times(form.starts.into()).requests(scenes[self.scene].1.length())
        };
        self.workload().map_or(0, all)
    }

    fn run(&self) -> Result<Measured, Error> {
        if signal::happened() {
            return Err(Error::new("interrupted".into()));
        }
        let Ready { lab, form, scenes, .. } = self.ready;
        let (name, scene) = &scenes[self.scene];
        let workload = self.workload().ok_or_else(|| Error::new("nothing to run".into()))?;
        lab.variant(form, workload, scene, self.set)
            .map_err(|e| Error { message: format!("{name}: {}", e.message), ..e })
            .map(|measured| measured.named(name))
    }
}

/// Runs all jobs on `threads` threads. Returns their results in order. `done` is called for each,
/// from any thread.
pub(super) fn run_jobs(
    jobs: &[Job<'_>],
    threads: usize,
    done: &(dyn Fn(&Job<'_>) + Sync),
) -> Vec<Result<Measured, Error>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(jobs.len()));
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { break };
                    let result = job.run();
                    if let Ok(mut results) = results.lock() {
                        results.push((at, result));
                    }
                    done(job);
                }
            });
        }
    });
    // A thread that panics takes the scope with it, so the lock is never poisoned here.
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{BUILT_IN, rows};

    fn lab(name: &str) -> Lab {
        let file = format!("labs/{name}.toml");
        BUILT_IN.iter().find(|lab| lab.file == file).map(|lab| lab.lab().unwrap()).unwrap()
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let labs = [lab("2002-geom"), lab("2010-osnews")];
        let wanted =
            ["mds1", "random-write", "random-write-direct", "cp-r"].map(str::to_owned).to_vec();
        let run = |threads| {
            rows::run(&labs, &Selection { rows: wanted.clone(), sweep: 3, threads }, &|_| {})
                .unwrap()
        };
        let ((one, failed), (three, _)) = (run(1), run(3));
        assert!(failed.is_empty(), "{failed:?}");
        assert_eq!(one.labs.iter().map(|lab| lab.rows.len()).sum::<usize>(), 4);
        assert!(one.labs[1].rows[0].ours.is_some_and(|ours| ours.low < ours.high
            && ours.low <= ours.ratio
            && ours.ratio <= ours.high));
        assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&three).unwrap());
    }

    #[test]
    fn other_firmware_is_swept_at_a_quarter_of_the_points() {
        let lab = lab("2010-osnews");
        let form =
            (0..).map(|at| lab.row(at).get_ref()).find(|form| form.id == "random-write").unwrap();
        let swept = |sweep| {
            let ready =
                Ready::new(&lab, form, &Selection { rows: Vec::new(), sweep, threads: 1 }).unwrap();
            ready.cases.iter().map(|case| case.points.len()).collect::<Vec<_>>()
        };
        assert_eq!([swept(0), swept(1), swept(9)], [vec![0, 0], vec![1, 1], vec![9, 3]]);
    }

    #[test]
    fn what_is_swept_has_the_ratio_of_the_row() {
        let lab = lab("2010-wd10ears");
        let asked = Selection { rows: Vec::new(), sweep: 0, threads: 1 };
        // Pieces of one size: that of the others ends in the same clusters.
        let form = (0..).map(|at| lab.row(at).get_ref()).find(|form| form.id == "dd-read-64k");
        let form = form.unwrap();
        let ready = Ready::new(&lab, form, &asked).unwrap();
        let set = Set::new();
        let ratio = |swept| {
            let job = |scene| Job { row: 0, ready: &ready, scene, set: &set, swept }.run();
            ours(&[job(0).unwrap(), job(1).unwrap()]).ratio.unwrap()
        };
        let (whole, short) = (ratio(false), ratio(true));
        assert!(form.swept.is_some() && (short / whole - 1.0).abs() < 0.01, "{short} for {whole}");
    }
}
