//! Bounds on the work of a whole lab: a lab may be untrusted, and have many rows that are each
//! within their own bounds.
//!
//! The work is counted before any starts, for the selected rows and the points of a sweep that are
//! run here. Requests of rows that only time ends are counted as they are made.

use super::file::RowForm;
use super::ready::Ready;
use super::real::Real;
use super::rows::RowIndex;
use super::{Lab, LabError};
use crate::error::Remedy::FewerRows;
use crate::error::{Error, Remedy};

/// The most rows of a lab, and the most drives of a row.
pub(super) const ROWS: usize = 1024;
pub(super) const DRIVES: usize = 64;

/// The most requests of a lab, one above 1 MiB counted by the MiB: eight times those of a row,
/// under an hour on any machine.
pub(super) const REQUESTS: u64 = 1 << 30;

/// The most bytes of scratch files, summed over the rows.
const SCRATCH: u64 = 64 << 30;

/// The most seconds of real time, summed over rows that end by time.
pub(super) const SECONDS: f64 = 3600.0;

/// The most bytes of texts read by its rows, hexdumps and models, counted as often as they are
/// read.
pub(super) const TEXTS: u64 = 256 << 20;

/// The work that rows ask for together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asks {
    requests: u64,
    scratch: u64,
    seconds: f64,
}

impl Asks {
    /// Adds the work of another row. An error says which bound is then exceeded; `fewer_requests`
    /// is the remedy of too many requests.
    fn add(&mut self, row: Asks, fewer_requests: Remedy) -> Result<(), Error> {
        self.requests = self.requests.saturating_add(row.requests);
        self.scratch = self.scratch.saturating_add(row.scratch);
        self.seconds += row.seconds;
        let (what, most, remedy) = if self.requests > REQUESTS {
            (format!("{} requests", self.requests), REQUESTS.to_string(), fewer_requests)
        } else if self.scratch > SCRATCH {
            (format!("{} bytes of scratch files", self.scratch), SCRATCH.to_string(), FewerRows)
        } else if self.seconds > SECONDS {
            (format!("{} seconds", self.seconds), SECONDS.to_string(), FewerRows)
        } else {
            return Ok(());
        };
        Err(Error::new(format!("with this row the lab needs {what}, more than {most}"))
            .with(remedy))
    }
}

/// Checks that the work of the selected rows is within the bounds of their labs. A row that cannot
/// be laid out, or exceeds its own bounds, never starts and counts nothing. Labs of the program are
/// trusted and unbounded, as are those whose bounds the user lifted.
pub(super) fn check(
    labs: &[Lab],
    rows: impl Iterator<Item = (RowIndex, Asks)>,
    fewer_requests: Remedy,
) -> Result<(), (RowIndex, LabError)> {
    let mut sums = vec![Asks::default(); labs.len()];
    for ((lab, row), asks) in rows.filter(|((lab, _), _)| !labs[*lab].unbounded) {
        sums[lab]
            .add(asks, fewer_requests)
            .map_err(|error| ((lab, row), labs[lab].refuse(labs[lab].row(row), error)))?;
    }
    Ok(())
}

impl Ready<'_> {
    /// The work of all its runs.
    pub(super) fn asks(&self) -> Asks {
        Asks {
            requests: self.jobs(0).map(|job| job.requests()).fold(0, u64::saturating_add),
            ..Asks::default()
        }
    }

    /// The work of so many runs as it stands, and of so many points of a sweep.
    pub(super) fn asks_of(&self, runs: u64, points: u64) -> Asks {
        let runs = self.requests(false).saturating_mul(runs);
        let points = self.requests(true).saturating_mul(points);
        Asks { requests: runs.saturating_add(points), ..Asks::default() }
    }
}

impl Lab {
    /// The work of a row that is measured on this machine.
    pub(super) fn asks_here(&self, form: &RowForm, real: &Real) -> Asks {
        let Some(workload) = &form.workload else { return Asks::default() };
        let variants = if real.layers.is_empty() {
            1 + usize::from(form.unaligned.is_some())
        } else {
            real.layers.len()
        };
        let times = (real.all_runs() * variants) as u64;
        let scratch = if workload.is_of_files() {
            0
        } else {
            self.disk_here(form, real).map_or(0, |disk| real.room(&disk))
        };
        #[allow(clippy::cast_precision_loss, reason = "not as many as that")]
        let seconds = Some(workload.seconds() * times as f64)
            .filter(|seconds| (0.0..=SECONDS).contains(seconds))
            .unwrap_or(0.0);
        Asks { requests: workload.clone().times(times).requests(scratch), scratch, seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Selection, Texts, run};
    use std::borrow::Cow;
    use std::sync::atomic::Ordering;

    /// A text of 16 MiB under every name.
    struct Long(&'static str);

    impl Texts for Long {
        fn read(&self, _name: &str) -> Result<Cow<'static, str>, Error> {
            Ok(self.0.into())
        }
    }

    fn lab(row: &str) -> Lab {
        let head = "name = \"x\"\ntitle = \"x\"\ndrives = [{ model = \"md\" }]\n[[row]]\nid \
            = \"r\"\ntitle = \"r\"\nunit = \"s\"\n";
        Lab::parse(&format!("{head}{row}\n"), Box::new(Long(" ".repeat(16 << 20).leak()))).unwrap()
    }

    /// A run of negative time would leave more for the others.
    #[test]
    fn seconds_that_are_none_are_not_counted() {
        for (said, counted) in
            [("10.0", 40.0), ("-1e300", 0.0), ("nan", 0.0), ("inf", 0.0), ("2000.0", 0.0)]
        {
            let work =
                format!("workload = {{ kind = \"random-read\", bs = 512, seconds = {said} }}");
            let lab = lab(&format!("{work}\nreal = {{ bytes = 65536, runs = 3 }}\naligned = {{}}"));
            let form = lab.row(0).get_ref();
            let asks = lab.asks_here(form, form.real.as_ref().unwrap());
            assert!((asks.seconds - counted).abs() < 1e-9, "{said}: {}", asks.seconds);
        }
    }

    #[test]
    fn texts_are_counted_as_often_as_they_are_read() {
        let lab = lab("note = \"-\"");
        assert!((0..TEXTS >> 24).all(|_| lab.text("a.hex").is_ok()));
        let refused = lab.text("a.hex").unwrap_err();
        assert!(refused.message.contains("more than 268435456 bytes of hexdumps"), "{refused}");
    }

    #[test]
    fn what_only_time_ends_is_counted_as_it_goes() {
        let asked = Selection { rows: Vec::new(), sweep: 0, threads: 1 };
        // At 18.1 us a request, 56 of them in a millisecond.
        let work = "workload = { kind = \"random-read\", bs = 512, seconds = 0.001 }\naligned = {}";
        let message = |before: u64| {
            let lab = lab(work);
            lab.by_time.store(before, Ordering::Relaxed);
            run(&[lab], &asked, &|_| {})
                .unwrap()
                .1
                .first()
                .map(|failure| failure.cause.message.clone())
        };
        assert_eq!(message(REQUESTS - 60), None);
        assert!(message(REQUESTS - 50).is_some_and(|why| {
            why.contains("more than 1073741824 requests of rows that only seconds end")
        }));
    }
}
