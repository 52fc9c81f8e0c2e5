//! Progress of long work, on stderr: a bar with the time left on a terminal; elsewhere nothing, or
//! a line now and then.

use crate::failure::complain;
use crate::style::Style;
use crate::words::escape;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use trueline_lab::study::Step;

/// Time between two lines where stderr is no terminal, and before the first line.
const NOW_AND_THEN: Duration = Duration::from_secs(10);
/// Shortest time that gives a pace to estimate from.
const SETTLED: Duration = Duration::from_secs(1);

/// Progress of the runs of labs.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// First word of a line and the time of the last one, where lines are wanted.
    lines: Option<(&'static str, Mutex<Instant>)>,
}

impl Progress {
    /// A bar on a terminal; elsewhere lines that begin with `command`, where it is given.
    pub(crate) fn new(command: Option<&'static str>) -> Progress {
        if !io::stderr().is_terminal() {
            let lines = command.map(|command| (command, Mutex::new(Instant::now())));
            return Progress { bar: ProgressBar::hidden(), lines };
        }
        // The number of runs comes with the first that ends; a bar of none would be a full one.
        let bar = ProgressBar::new(0)
            .with_style(style("{elapsed}  {wide_msg}"))
            .with_message("the first runs");
        bar.enable_steady_tick(SETTLED);
        Progress { bar, lines: None }
    }

    /// Advances the bar by the run of a lab that has ended; writes a line if one is due.
    pub(crate) fn step(&self, step: Step<'_>) {
        let (done, all) = (step.done as u64, step.all as u64);
        if self.bar.length() == Some(0) {
            self.bar.set_style(style("{bar:20} {pos}/{len} {left}  {wide_msg}"));
        }
        self.bar.set_length(all);
        self.bar.set_position(done);
        self.bar.set_message(escape::plain(&format!("{} {}", step.lab, step.row)));
        let Some((command, last)) = &self.lines else { return };
        // One line is enough while another thread writes its own.
        let Ok(mut last) = last.try_lock() else { return };
        if last.elapsed() >= NOW_AND_THEN {
            *last = Instant::now();
            let left = left(self.bar.elapsed(), done, all);
            complain(&format!(
                "{command}: {done} of {all} runs done{}{left}",
                if left.is_empty() { "" } else { ", " }
            ));
        }
    }

    /// Removes the bar from the terminal.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Least width, in columns, for a bar with bytes, a rate and the time left.
const ROOMY: usize = 76;

/// A bar of `bytes` bytes, labelled `what`. A narrow terminal shows a percentage instead of bytes
/// and a rate.
pub(crate) fn of_bytes(what: &'static str, bytes: u64) -> ProgressBar {
    let roomy = Style::of_stderr().width.is_none_or(|width| width >= ROOMY);
    let shown =
        if roomy { "{bytes}/{total_bytes} {bytes_per_sec} {left}" } else { "{percent} % {left}" };
    ProgressBar::new(bytes)
        .with_style(style(&format!("{{msg}} {{wide_bar}} {shown}")))
        .with_message(what)
}

/// A bar of the targets of a fleet, of which `total` may not be known; none where `quiet`, where
/// stderr is no terminal, and for a few.
pub(crate) fn of_fleet(total: Option<u64>, quiet: bool) -> ProgressBar {
    /// Least number of targets for a bar.
    const MANY: u64 = 32;
    let is_few = total.is_some_and(|total| total < MANY);
    if quiet || is_few { ProgressBar::hidden() } else { of_things("check", total) }
}

/// A bar of the points of a sweep; none where their lines, on stdout, go to a terminal.
pub(crate) fn of_points(total: u64, to_stdout: bool) -> ProgressBar {
    let is_shown = to_stdout && io::stdout().is_terminal();
    if is_shown { ProgressBar::hidden() } else { of_things("sweep", Some(total)) }
}

/// A bar with the mean pace, and the time left where `total` is known; none where stderr is no
/// terminal.
fn of_things(command: &str, total: Option<u64>) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let roomy = Style::of_stderr().width.is_none_or(|width| width >= ROOMY);
    let pace = if roomy { " {pace}" } else { "" };
    let template = match total {
        Some(_) => format!("{command} {{bar:16}} {{pos}}/{{len}}{pace} {{left}} {{wide_msg}}"),
        None => format!("{command} {{pos}}{pace} {{elapsed}} {{wide_msg}}"),
    };
    let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
    bar.with_style(style(&template))
}

/// A bar's style, in which `{left}` stands for the time left, and `{pace}` for the mean pace.
pub(crate) fn style(template: &str) -> ProgressStyle {
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // indicatif's own {eta} is 0s until it knows a pace, and while nothing is done.
    style
        .with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = out.write_str(&left(state.elapsed(), state.pos(), state.len().unwrap_or(0)));
        })
        .with_key("pace", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = out.write_str(&pace(state.elapsed(), state.pos()));
        })
}

/// The mean pace so far: `650/s`; empty while there is none.
fn pace(elapsed: Duration, done: u64) -> String {
    if elapsed < SETTLED {
        return String::new();
    }
    let each = u128::from(done) * 1000 / elapsed.as_millis();
    format!("{each}/s")
}

/// The time left at the mean pace so far: `40 s left`, `3 min left`; empty while there is no pace.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "for people; no work takes 2^53 s"
)]
fn left(elapsed: Duration, done: u64, all: u64) -> String {
    if done == 0 || elapsed < SETTLED {
        return String::new();
    }
    let seconds =
        (elapsed.as_secs_f64() * all.saturating_sub(done) as f64 / done as f64).ceil() as u64;
    match seconds {
        0..=90 => format!("{seconds} s left"),
        91..=5400 => format!("{} min left", seconds.div_ceil(60)),
        _ => format!("{} h {} min left", seconds / 3600, (seconds / 60).rem_euclid(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_what_has_no_pace_and_the_pace_is_the_mean() {
        let left = |seconds, done, all| left(Duration::from_secs(seconds), done, all);
        assert_eq!([left(0, 5, 10), left(700, 0, 10)], ["", ""]);
        assert_eq!(left(30, 10, 20), "30 s left");
        assert_eq!(left(660, 1, 3), "22 min left");
        assert_eq!(left(3600, 1, 4), "3 h 0 min left");
        assert_eq!(left(5, 10, 10), "0 s left");
        assert_eq!(pace(Duration::from_millis(999), 700), "");
        assert_eq!(pace(Duration::from_millis(1500), 1000), "666/s");
    }
}
