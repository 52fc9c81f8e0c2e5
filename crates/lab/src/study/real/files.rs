//! Rows of files: every run has a scratch directory of its own, removed after it.

use super::{Real, WARMUP, add};
use crate::ab::{self, Measure, MeasurementPlan};
use crate::error::Error;
use crate::files::{Files, directory::Directory, scratch::Scratch};
use crate::latency::curve;
use crate::result::{Ours, Row, VariantResult};
use crate::rig::real::rest;
use crate::statistics::median;
use crate::study::Lab;
use crate::study::file::RowForm;
use crate::study::rows::value;
use std::path::Path;
use trueline_host::process::signal;

impl Lab {
    /// Measures a row of files in the working directory, or in the directory for temporary files.
    pub(super) fn in_directory(
        &self,
        form: &RowForm,
        real: &Real,
        row: &mut Row,
    ) -> Result<(), Error> {
        let workload = form
            .workload
            .as_ref()
            .ok_or_else(|| Error::new("a row that is measured has a workload".into()))?;
        let workload = workload.clone().times(real.all_runs() as u64);
        let (variants, runs) = (vec!["files".into()], real.runs());
        let plan = MeasurementPlan {
            variants,
            warmup: WARMUP,
            runs,
            until: None,
            measure: Measure::Time,
            seed: self.form.random,
            is_virtual: false,
        };
        let mut rest_ns = 0;
        let mut one = |_, run: usize| {
            let scratch =
                Scratch::new(Path::new(".")).or_else(|_| Scratch::new(&std::env::temp_dir()))?;
            let mut files = Directory::new(scratch.path())?;
            // Earlier dirty pages must not be written during this run.
            files.forget()?;
            rest(rest_ns, &mut || !signal::happened());
            let seed = self.form.random.wrapping_add(run as u64);
            let run = workload.on_files(&mut files, seed, &mut |_| !signal::happened())?;
            rest_ns = run.rest_ns();
            drop(files);
            scratch.remove()?;
            if signal::happened() { Err(Error::new("interrupted".into())) } else { Ok(run) }
        };
        let found = ab::measure(&plan, &mut one, &mut |_| {});
        let runs = found.runs.first().map_or(&[][..], Vec::as_slice);
        let Some(first) = runs.first() else {
            return Err(found.stopped.unwrap_or_else(|| Error::new("no run was finished".into())));
        };
        if let Some(error) = &found.stopped {
            add(&mut row.note, &format!("ended early: {error}"));
        }
        let aligned = median(&runs.iter().map(|run| value(form, run)).collect::<Vec<_>>());
        row.ours = Some(Ours {
            aligned: Some(aligned),
            unaligned: None,
            ratio: None,
            low: None,
            high: None,
        });
        row.variants = vec![VariantResult {
            name: "files".into(),
            target: "scratch directory".into(),
            seconds: median(&Measure::Time.series(runs)),
            ops: first.ops,
            bytes: first.bytes,
            latency: curve(&found.latency(0)),
            drives: None,
            layers: Vec::new(),
            layout: None,
        }];
        found.warnings.iter().for_each(|warning| add(&mut row.note, warning));
        Ok(())
    }
}
