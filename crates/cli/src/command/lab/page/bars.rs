//! A row's values: published beside ours, aligned above unaligned, and under them the ratio with
//! its interval.

use super::standing::compared;
use crate::render::charts::axis::Axis;
use crate::render::charts::lanes::Lanes;
use crate::render::charts::quantity::{digits, percent, plain, times, value};
use crate::render::charts::track::{Anchor, Track};
use trueline_lab::result::{Ours, Row};

const BAR: u32 = 18;
const MARK: u32 = 24;

/// The chart of a row's values and ratios.
pub(super) fn bars(row: &Row) -> String {
    let (published, ours) = (row.published.as_ref(), row.ours.as_ref());
    let groups = [
        ("aligned", "al", published.and_then(|p| p.aligned), ours.and_then(|o| o.aligned)),
        ("unaligned", "un", published.and_then(|p| p.unaligned), ours.and_then(|o| o.unaligned)),
    ];
    let axis = Axis::from_zero(groups.iter().flat_map(|g| [g.2, g.3]).flatten());
    let better = if row.more_is_better { "longer is better" } else { "shorter is better" };
    let mut lanes = Lanes::new(&format!("{}, published and ours; {better}", row.title));
    let dead = if row.ours.is_none() { " dead" } else { "" };
    let own = called(row);
    for (name, class, theirs, own_value) in groups {
        if theirs.is_none() && own_value.is_none() {
            continue;
        }
        lanes.head(name, class);
        for (source, kind, shown) in [("published", "pub", theirs), (own, "our", own_value)] {
            let Some(shown) = shown else { continue };
            let mut track = Track::new(BAR);
            let hatch = if class == "un" { " hatch" } else { "" };
            let text = value(shown, &row.unit);
            track.rect(
                (0.0, axis.at(shown)),
                (2, BAR - 4),
                &format!("{class} {kind}{hatch}{dead}"),
                &format!("{name}, {source}: {text}"),
            );
            lanes.lane(source, track, &text, &format!("{name}, {source}"));
        }
    }
    ratios(row, &mut lanes);
    lanes.finish()
}

/// Name of our value: a value that is no prediction was measured, or comes from drives that it
/// calibrated.
fn called(row: &Row) -> &'static str {
    match row.variants.iter().any(|variant| variant.drives.is_some()) {
        _ if row.predicted => "ours",
        true => "calibrated",
        false => "measured",
    }
}

/// Adds the ratio as published, as ours, and under every other personality.
fn ratios(row: &Row, lanes: &mut Lanes) {
    let theirs = row.published.and_then(|p| p.ratio);
    let own = row.ours.and_then(|o| o.ratio);
    if theirs.is_none() && own.is_none() {
        return;
    }
    let of = |o: &Ours| [o.ratio, o.low, o.high];
    let others = row.alternatives.iter().flat_map(|a| of(&a.ours));
    let all =
        [theirs, Some(1.0)].into_iter().chain(row.ours.iter().flat_map(of)).chain(others).flatten();
    let Some(axis) = Axis::log(all) else { return };
    lanes.head("unaligned / aligned", "");
    let dead = if row.ours.is_none() { " dead" } else { "" };
    if let Some(ratio) = theirs {
        let mut track = begin(&axis);
        track.dot(
            axis.at(ratio),
            12.0,
            5.0,
            &format!("point pub{dead}"),
            &format!("published: {}", times(ratio)),
        );
        lanes.lane("published", track, &times(ratio), "ratio, published");
    }
    if let Some(ours) = &row.ours {
        let name =
            row.personality.as_ref().map_or_else(|| called(row).into(), |p| format!("ours, {p}"));
        ratio(&axis, &name, row, ours, lanes, "");
    }
    for other in &row.alternatives {
        ratio(&axis, &format!("ours, {}", other.personality), row, &other.ours, lanes, " other");
    }
    let mut track = Track::new(18);
    for tick in axis.ticks(5) {
        track.text(axis.at(tick), 13.0, "tick", Anchor::Middle, &plain(tick));
    }
    lanes.axis(track);
}

fn begin(axis: &Axis) -> Track {
    let mut track = Track::new(MARK);
    track.upright(axis.at(1.0), "one");
    track
}

fn ratio(axis: &Axis, name: &str, row: &Row, ours: &Ours, lanes: &mut Lanes, class: &str) {
    let Some(ratio) = ours.ratio else { return };
    let mut track = begin(axis);
    let interval = ours.low.zip(ours.high);
    if let Some((low, high)) = interval {
        whisker(&mut track, axis, (low, high), class);
    }
    let range = interval
        .map_or(String::new(), |(low, high)| format!(", {} to {}", digits(low), digits(high)));
    track.dot(
        axis.at(ratio),
        12.0,
        5.0,
        &format!("point our{class}"),
        &format!("{name}: {}{range}", times(ratio)),
    );
    let error = compared(row.published.as_ref(), Some(ours)).filter(|c| c.of_ratios);
    let error = error.map_or(String::new(), |c| format!(" ({})", percent(c.factor - 1.0)));
    lanes.lane(name, track, &format!("{}{error}", times(ratio)), &format!("ratio, {name}{range}"));
}

/// Draws an interval on a strip of [`MARK`] pixels.
pub(super) fn whisker(track: &mut Track, axis: &Axis, (low, high): (f64, f64), class: &str) {
    let (low, high) = (axis.at(low), axis.at(high));
    track.level((low, high), 12.0, &format!("whisker{class}"));
    track.cap(low, 12.0, &format!("whisker{class}"));
    track.cap(high, 12.0, &format!("whisker{class}"));
}
