//! Counts of a server under the names that its user gave: of the target, and of the profile that
//! its disks are judged by.

use crate::command::serve::summary::Served;
use crate::report;
use crate::survey::survey_audited;
use crate::target::{DiskOverrides, Target};
use std::sync::{Arc, Mutex};
use trueline_host::lock::lock;
use trueline_serve::counting::{Counting, Stack};

/// The source of the summary, `--top`, the page and the metrics.
pub(super) struct Telemetry {
    counting: Arc<Counting>,
    target: Target,
    /// The description of the disks, which the commands of a cure repeat.
    said: DiskOverrides,
    /// The report of the stack that was asked for last.
    report: Mutex<Option<(u64, Arc<report::Target>)>>,
}

impl Telemetry {
    /// Telemetry of `counting`, which counts what is asked of `target`.
    pub(super) fn new(counting: Arc<Counting>, target: &Target, said: &DiskOverrides) -> Telemetry {
        Telemetry { counting, target: target.clone(), said: said.clone(), report: Mutex::default() }
    }

    /// The counters of all exports.
    pub(super) fn counting(&self) -> &Counting {
        &self.counting
    }

    /// The counts until now, for the summary.
    pub(super) fn served(&self) -> Served {
        Served::new(self.target.typed(), self.said.judged(), &self.counting.counts())
    }

    /// The report of what is on the disks, with the numbers of its providers in what is counted. It
    /// is made once for each stack, because cures are tried in memory.
    pub(super) fn report(&self) -> (Arc<report::Target>, Arc<Stack>) {
        let stack = self.counting.stack();
        let mut last = lock(&self.report);
        let known = last
            .as_ref()
            .filter(|(generation, _)| *generation == stack.generation)
            .map(|(_, report)| report.clone());
        let report = known.unwrap_or_else(|| {
            let report = Arc::new(survey_audited(
                &self.target,
                Some(&self.said),
                &stack.graph(),
                &stack.audit,
            ));
            *last = Some((stack.generation, report.clone()));
            report
        });
        (report, stack)
    }
}
