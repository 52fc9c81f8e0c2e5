//! The verdicts of a row of a table, as one bar.

use crate::render::charts::track::Track;
use crate::traffic::Verdicts;

/// Pixels from the top to the bottom of a bar.
const BAR: u32 = 14;

/// The key of the colours of verdicts.
pub(super) const LEGEND: &str = "<ul class=\"verdicts\"><li class=\"k-misaligned\">misaligned: a \
    unit or more, with a part of one at an end</li><li class=\"k-partial\">partial: less than a \
    unit</li><li class=\"k-aligned\">aligned: whole units</li><li class=\"k-unknown\">no unit is \
    known</li></ul>\n";

/// The shares of verdicts, misaligned first.
pub(super) fn bar(all: Verdicts) -> String {
    let Verdicts { aligned, misaligned, partial, unknown } = all;
    let parts = [
        ("misaligned", misaligned),
        ("partial", partial),
        ("unknown", unknown),
        ("aligned", aligned),
    ];
    let (mut track, mut from) = (Track::new(BAR), 0);
    let whole = all.sum();
    for (name, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        let title = format!("{count} of {whole} {name}");
        let ends = (percent(from, whole), percent(from + count, whole));
        track.rect(ends, (0, BAR), &format!("v-{name}"), &title);
        from += count;
    }
    track.finish()
}

/// A share in percent; 0 of nothing.
#[allow(clippy::cast_precision_loss, reason = "for a drawing")]
pub(super) fn percent(some: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { some as f64 / whole as f64 * 100.0 }
}
