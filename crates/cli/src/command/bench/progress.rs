//! A bar on stderr while `bench` runs, if that is a terminal: runs, and requests of all of them.

use super::variant::Variant;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::cell::Cell;
use std::fmt;
use trueline_host::interrupt;
use trueline_lab::ab;

/// The bar.
pub(super) struct Progress {
    bar: ProgressBar,
    /// Requests of a run; 0 if only time ends it: then runs are counted.
    run: u64,
    /// Requests, or runs, done before this run.
    before: Cell<u64>,
}

/// Requests between two looks at the bar: looking costs more than asking for one in memory.
const LOOK: u64 = 64;

impl Progress {
    /// Nothing done yet.
    pub(super) fn new(variants: &[Variant]) -> Progress {
        let extents: Option<Vec<u64>> = variants.iter().map(Variant::extent).collect();
        let run = extents.and_then(|extents| extents.into_iter().max()).unwrap_or(0);
        let template = if run > 0 { "{msg} {wide_bar} {pos}/{len} {rate} {eta}" } else { "{msg} {wide_bar} {pos}/{len} {eta}" };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        // indicatif's own {per_sec} has four decimals.
        let style = style.with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = write!(out, "{:.0}/s", state.per_sec());
        });
        Progress { bar: ProgressBar::new(0).with_style(style), run, before: Cell::new(0) }
    }

    /// A run begins.
    pub(super) fn begin(&self, at: &ab::Progress<'_>) {
        let of = |runs: usize| u64::try_from(runs).unwrap_or(u64::MAX).saturating_mul(self.run.max(1));
        self.bar.set_length(of(at.planned));
        self.bar.set_position(of(at.done));
        self.before.set(of(at.done));
        let warmup = if at.warmup { " (warm-up)" } else { "" };
        self.bar.set_message(format!("{}{warmup}", crate::out::escape::plain(at.variant)));
    }

    /// So many requests of this run were asked for; whether to go on.
    pub(super) fn asked(&self, requests: u64) -> bool {
        if requests.is_multiple_of(LOOK) && self.run > 0 {
            self.bar.set_position(self.before.get().saturating_add(requests.min(self.run)));
        }
        !interrupt::happened()
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
