//! Latencies of requests: the share that was done within a time, aligned and unaligned over one
//! another.

use crate::render::charts::axis::Axis;
use crate::render::charts::lanes::{key, text_of};
use crate::render::charts::quantity::{seconds, tick};
use crate::render::charts::track::{Anchor, Track};
use trueline_lab::result::{Row, VariantResult};

const HEIGHT: u32 = 170;
/// Most points of a curve: more cannot be told apart.
const POINTS: usize = 400;
/// Share of requests that end in a cache above which no curve is drawn: it would be a line along
/// the top, and the table has the longest.
const CACHED: f64 = 0.98;
/// Quantiles that are marked on a curve.
const QUANTILES: [(f64, &str); 2] = [(0.5, "p50"), (0.99, "p99")];

/// The curves of a row; `None` if no variant has any.
pub(super) fn curves(row: &Row) -> Option<String> {
    let drawn: Vec<&VariantResult> = row
        .variants
        .iter()
        .filter(|v| unwaited(&v.latency) < CACHED && v.latency.len() > 1)
        .collect();
    let axis = Axis::log(
        drawn.iter().flat_map(|v| &v.latency).filter(|(_, ns)| *ns > 0).map(|(_, ns)| ns_of(*ns)),
    )?;
    let mut track = Track::new(HEIGHT + 20);
    for share in [0.0, 0.5, 0.99] {
        track.level((0.0, 100.0), down(share) / 100.0 * f64::from(HEIGHT), "grid");
    }
    for at in axis.ticks(5) {
        track.upright(axis.at(at), "grid");
        track.text(axis.at(at), f64::from(HEIGHT) + 15.0, "tick", Anchor::Middle, &tick(at));
    }
    for (share, name) in QUANTILES {
        track.text(
            0.3,
            down(share) / 100.0 * f64::from(HEIGHT) + 12.0,
            "tick",
            Anchor::Start,
            name,
        );
    }
    let (mut legend, mut label) =
        (String::new(), format!("Share of requests done within a time, {}", row.title));
    for variant in &drawn {
        let class = super::class_of(&variant.name);
        track.curve_in(HEIGHT, &path(&variant.latency, &axis), &format!("curve {class}"));
        let mut marks = Vec::new();
        let cached = unwaited(&variant.latency);
        if cached > 0.0 {
            marks.push(format!("{:.0} % not waited for", cached * 100.0));
        }
        for (share, name) in QUANTILES {
            let Some(ns) = quantile(&variant.latency, share).filter(|ns| *ns > 0) else { continue };
            let text = format!("{name} {}", seconds(ns_of(ns) / 1e9));
            let y = down(share) / 100.0 * f64::from(HEIGHT);
            track.dot(
                axis.at(ns_of(ns)),
                y,
                4.5,
                &format!("point {class}"),
                &format!("{}: {text}", variant.name),
            );
            marks.push(text);
        }
        let marks = marks.join(" · ");
        legend.push_str(&format!(
            "<li>{}<b>{}</b> {marks}</li>",
            key(class),
            text_of(&variant.name)
        ));
        label.push_str(&format!("; {}: {marks}", variant.name));
    }
    let chart = track.finish();
    Some(format!(
        "<div role=\"img\" aria-label=\"{}\">{chart}</div>\n<ul class=\"legend\">{legend}</ul>\n",
        text_of(&label)
    ))
}

/// Distance from the top in percent, with a little room above all requests.
fn down(share: f64) -> f64 {
    98.0 - if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) } * 92.0
}

/// The points of a curve, in percent.
fn path(latency: &[(f64, u64)], axis: &Axis) -> Vec<(f64, f64)> {
    let step = latency.len().div_ceil(POINTS).max(1);
    let last = latency.len().saturating_sub(1);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (nth, (share, ns)) in latency.iter().enumerate() {
        if *ns > 0 && (nth % step == 0 || nth == last) {
            points.push((axis.at(ns_of(*ns)), down(*share)));
        }
    }
    // The curve begins at nothing done, or at the share done without waiting, and ends at all done.
    if let (Some(first), Some(end)) = (points.first().copied(), points.last().copied()) {
        points.insert(0, (first.0, down(unwaited(latency))));
        points.push((end.0, down(1.0)));
    }
    points
}

/// The least latency that `share` of the requests kept.
fn quantile(latency: &[(f64, u64)], share: f64) -> Option<u64> {
    latency.iter().find(|(q, _)| *q >= share - 1e-9).map(|(_, ns)| *ns)
}

/// The share of requests that end in a cache, which nothing waits for.
fn unwaited(latency: &[(f64, u64)]) -> f64 {
    latency.iter().take_while(|(_, ns)| *ns == 0).last().map_or(0.0, |(share, _)| *share)
}

#[allow(clippy::cast_precision_loss, reason = "for a drawing")]
fn ns_of(ns: u64) -> f64 {
    ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_least_that_suffice() {
        let latency = [(0.0, 100), (0.5, 200), (0.9, 300), (0.99, 900), (1.0, 1000)];
        assert_eq!(
            [0.5, 0.95, 0.99].map(|q| quantile(&latency, q)),
            [Some(200), Some(900), Some(900)]
        );
        assert_eq!(quantile(&latency[..2], 0.99), None);
    }

    #[test]
    fn what_ends_in_a_cache_has_no_latency() {
        let mut row = super::super::sample::document().labs.remove(0).rows.remove(0);
        row.variants[0].latency = vec![(0.0, 0), (0.6, 0), (0.62, 4_000_000), (1.0, 9_000_000)];
        let drawn = curves(&row).unwrap();
        assert!(
            drawn.contains("60 % not waited for · p99 9.00 ms") && !drawn.contains("ns"),
            "{drawn}"
        );
        row.variants
            .iter_mut()
            .for_each(|variant| variant.latency = vec![(0.0, 0), (0.99, 0), (1.0, 9_000_000)]);
        assert_eq!(curves(&row), None);
        row.variants.iter_mut().for_each(|variant| variant.latency.clear());
        assert_eq!(curves(&row), None);
    }

    #[test]
    fn a_curve_goes_from_nothing_to_all_and_never_back() {
        let latency: Vec<(f64, u64)> =
            (0..5000u32).map(|i| (f64::from(i) / 4999.0, 1000 + u64::from(i) * 10)).collect();
        let axis = Axis::log([1e3, 1e5]).unwrap();
        let points = path(&latency, &axis);
        assert!(points.len() <= POINTS + 3, "{}", points.len());
        assert!(points.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 >= w[1].1));
        assert_eq!((points[0].1, points[points.len() - 1].1), (down(0.0), down(1.0)));
    }
}
