//! A bar on stderr while `bench` runs, if that is a terminal: the part of all runs that is done,
//! and the time left.

use super::variant::Variant;
use crate::progress::style;
use crate::words::escape;
use indicatif::{ProgressBar, ProgressState};
use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};
use trueline_host::process::signal;
use trueline_lab::ab;

/// The bar of all runs. It counts requests; ms if only time ends a run; runs if neither is known.
pub(super) struct Progress {
    bar: ProgressBar,
    /// Requests or ms of a run; 0 if runs are counted.
    run: u64,
    /// Start of the run, if ms are counted.
    timed: Option<Cell<Instant>>,
    /// Count at the start of this run.
    before: Cell<u64>,
    /// Requests between two updates of the bar.
    look: u64,
}

/// Updates of the bar in a run of few requests, and most requests between two: an update costs more
/// than a request to memory.
const LOOKS: u64 = 256;
const LOOK: u64 = 64;

impl Progress {
    /// A bar at zero; `seconds`: length of a run that time ends.
    pub(super) fn new(variants: &[Variant], seconds: Option<f64>) -> Progress {
        let extents: Option<Vec<u64>> = variants.iter().map(Variant::extent).collect();
        let requests = extents.and_then(|extents| extents.into_iter().max()).unwrap_or(0);
        let ms = seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(|run| u64::try_from(run.as_millis()).unwrap_or(0));
        // The real time that virtual time takes is not known.
        let ms = ms.filter(|&ms| requests == 0 && ms > 0 && !super::is_virtual(variants));
        let template = match (requests, ms) {
            (_, Some(_)) => "{wide_bar} {left}  {msg:.30}",
            (0, None) => "{wide_bar} {pos}/{len} {left}  {msg:.30}",
            _ => "{wide_bar} {pos}/{len} {rate} {left}  {msg:.30}",
        };
        // indicatif's own {per_sec} has four decimals.
        let style =
            style(template).with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = write!(out, "{:.0}/s", state.per_sec());
            });
        let (run, timed) = (ms.unwrap_or(requests), ms.map(|_| Cell::new(Instant::now())));
        Progress {
            bar: ProgressBar::new(0).with_style(style),
            run,
            timed,
            before: Cell::new(0),
            look: (requests / LOOKS).clamp(1, LOOK),
        }
    }

    /// Sets the bar to the start of a run.
    pub(super) fn begin(&self, at: &ab::Progress<'_>) {
        let of =
            |runs: usize| u64::try_from(runs).unwrap_or(u64::MAX).saturating_mul(self.run.max(1));
        self.bar.set_length(of(at.planned));
        self.bar.set_position(of(at.done));
        self.before.set(of(at.done));
        self.timed.iter().for_each(|begun| begun.set(Instant::now()));
        let warmup = if at.warmup { " (warm-up)" } else { "" };
        self.bar.set_message(format!("{}{warmup}", escape::plain(at.variant)));
    }

    /// Sets the bar to so many requests of this run. True if the run is to go on.
    pub(super) fn asked(&self, requests: u64) -> bool {
        if signal::happened() {
            // The message about the end gets a line of its own.
            self.bar.finish_and_clear();
            return false;
        }
        if self.run > 0 && requests.is_multiple_of(self.look) {
            let here = self.timed.as_ref().map_or(requests, |begun| {
                u64::try_from(begun.get().elapsed().as_millis()).unwrap_or(u64::MAX)
            });
            self.bar.set_position(self.before.get().saturating_add(here.min(self.run)));
        }
        true
    }

    /// Removes the bar from the terminal.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
