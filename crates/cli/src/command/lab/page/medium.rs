//! A layout drawn on the medium: its blocks as a ruler, the start of every layer in one, and the
//! first requests over them.

use crate::render::charts::lanes::Lanes;
use crate::render::charts::track::Track;
use crate::words::size;
use trueline_geom::base::topology::Grain;
use trueline_lab::result::{Layout, Row, VariantResult};

/// Most blocks that are drawn, and most layers and requests that are listed.
const BLOCKS: u64 = 8;
const LAYERS: usize = 8;
const REQUESTS: usize = 4;

const RULER: u32 = 18;
const LAYER: u32 = 22;
const REQUEST: u32 = 20;

/// The layouts of a row's variants; `None` if there are none.
pub(super) fn layouts(row: &Row) -> Option<String> {
    // All layouts of a row have one scale.
    let blocks =
        row.variants.iter().filter_map(|v| v.layout.as_ref()).filter_map(Window::blocks).max()?;
    let drawn: Vec<String> = row.variants.iter().filter_map(|v| layout(v, blocks)).collect();
    (!drawn.is_empty()).then(|| drawn.concat())
}

fn layout(variant: &VariantResult, blocks: u64) -> Option<String> {
    let layout = variant.layout.as_ref()?;
    let grain = Grain::new(layout.unit, layout.phase)?;
    let window = Window { grain, blocks };
    let mut lanes = Lanes::new(&format!("Layout on the medium, {}", variant.name));
    lanes.head(&variant.name, super::class_of(&variant.name));
    lanes.lane("blocks", window.ruler(), "", &format!("of {}", size::human(grain.size())));
    for (name, first) in layout.layers.iter().take(LAYERS) {
        let past = grain.remainder(*first);
        let mut track = Track::new(LAYER);
        let title = format!("{name} begins at byte {first}, {}", past_of(past));
        // A layer at byte 0 cannot begin elsewhere: a jumper moves every boundary off it.
        let off = if past == 0 || *first == 0 { "" } else { " off" };
        track.rect((window.at(past), 100.0), (3, LAYER - 6), &format!("layer{off}"), &title);
        track.rect(
            (window.at(past), window.at(past) + 1.0),
            (3, LAYER - 6),
            &format!("begin{off}"),
            &title,
        );
        window.edges(&mut track);
        let value = if past == 0 { "on a boundary".to_owned() } else { format!("+{past} bytes") };
        lanes.lane(name, track, &value, &format!("{name} begins at byte {first}"));
    }
    for &(first, length) in layout.requests.iter().take(REQUESTS) {
        lane_of_request(&window, first, length, &mut lanes);
    }
    Some(lanes.finish())
}

fn lane_of_request(window: &Window, first: u64, length: u64, lanes: &mut Lanes) {
    let (past, touched) = (window.grain.remainder(first), window.grain.touched(first, length));
    let straddles = touched > window.least(length);
    let ends = (window.at(past), window.at(past.saturating_add(length)));
    let mut track = Track::new(REQUEST);
    let title = format!("byte {first}, {}, {}", size::human(length), past_of(past));
    track.rect(
        ends,
        (3, REQUEST - 6),
        if straddles { "request over hatch" } else { "request" },
        &title,
    );
    window.edges(&mut track);
    let only = if straddles { format!(", not {}", window.least(length)) } else { String::new() };
    let text = format!("{touched} block{}{only}", if touched == 1 { "" } else { "s" });
    lanes.lane(&format!("at {}", size::human(first)), track, &text, &title);
}

fn past_of(past: u64) -> String {
    if past == 0 { "on a boundary".into() } else { format!("{past} bytes past a boundary") }
}

/// The range of blocks that is drawn.
struct Window {
    grain: Grain,
    blocks: u64,
}

impl Window {
    /// Number of blocks that the longest request needs, from 2 to [`BLOCKS`].
    fn blocks(layout: &Layout) -> Option<u64> {
        let grain = Grain::new(layout.unit, layout.phase)?;
        let touched = layout
            .requests
            .iter()
            .take(REQUESTS)
            .map(|&(first, length)| grain.touched(first, length))
            .max();
        Some(touched.unwrap_or(2).clamp(2, BLOCKS))
    }

    /// The fewest blocks that hold so many bytes.
    fn least(&self, length: u64) -> u64 {
        self.grain.touched(self.grain.phase(), length)
    }

    /// Position of a byte in percent, counted from the first boundary drawn.
    #[allow(clippy::cast_precision_loss, reason = "for a drawing")]
    fn at(&self, byte: u64) -> f64 {
        (byte as f64 / self.grain.size() as f64 / self.blocks as f64 * 100.0).min(100.0)
    }

    #[allow(clippy::cast_precision_loss, reason = "for a drawing")]
    fn boundary(&self, nth: u64) -> f64 {
        nth as f64 / self.blocks as f64 * 100.0
    }

    /// Draws the boundaries down a strip.
    fn edges(&self, track: &mut Track) {
        for nth in 0..=self.blocks {
            track.upright(self.boundary(nth), "edge");
        }
    }

    /// The blocks, each with its size in it.
    fn ruler(&self) -> Track {
        let mut track = Track::new(RULER);
        for nth in 0..self.blocks {
            let class = if nth % 2 == 0 { "block" } else { "block odd" };
            let ends = (self.boundary(nth), self.boundary(nth + 1));
            track.rect(ends, (0, RULER), class, "a block of the medium");
            track.inside(ends, RULER, "in-block", &size::human(self.grain.size()));
        }
        track
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(unit: u64, phase: u64, requests: &[(u64, u64)]) -> Window {
        let layout = Layout { unit, phase, layers: vec![], requests: requests.to_vec() };
        Window { grain: Grain::new(unit, phase).unwrap(), blocks: Window::blocks(&layout).unwrap() }
    }

    fn drawn(window: &Window, first: u64, length: u64) -> String {
        let mut lanes = Lanes::new("");
        lane_of_request(window, first, length, &mut lanes);
        lanes.finish()
    }

    #[test]
    fn what_straddles_is_red_and_what_does_not_is_not() {
        let w = window(4096, 0, &[(512, 4096)]);
        assert_eq!(w.blocks, 2);
        assert!(
            drawn(&w, 512, 4096).contains("request over")
                && drawn(&w, 512, 4096).contains("2 blocks, not 1<")
        );
        assert!(
            !drawn(&w, 4096, 4096).contains("over") && drawn(&w, 4096, 4096).contains("1 block<")
        );
        // A small request within one block is whole, wherever it is.
        assert!(!drawn(&w, 512, 2048).contains("over"));
        // The jumper moves the boundaries.
        let jumper = window(4096, 3584, &[]);
        assert!(
            !drawn(&jumper, 3584, 4096).contains("over")
                && drawn(&jumper, 4096, 4096).contains("over")
        );
    }

    #[test]
    fn any_layout_is_drawn_within_its_place() {
        for (unit, phase) in [(1, 0), (u64::MAX, 7), (4096, u64::MAX), (1 << 63, 1)] {
            let w = window(unit, phase, &[(u64::MAX, u64::MAX), (0, 0), (5, u64::MAX)]);
            assert!((2..=BLOCKS).contains(&w.blocks));
            for byte in [0, 1, unit, u64::MAX] {
                assert!((0.0..=100.0).contains(&w.at(byte)));
            }
            assert!(drawn(&w, u64::MAX, u64::MAX).len() < 5000);
        }
    }
}
