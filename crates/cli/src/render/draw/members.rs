//! The mapping of a set to its members, drawn.

use super::canvas::{Canvas, INNER, MARGIN};
use super::zoom::{chunk_class, member};
use crate::report::{Provider, Target};
use crate::words::{self, escape, size};
use trueline_geom::base::topology::{Why, round_down};

/// Pixels for the members' names.
const NAMES: u64 = 150;
const ROWS: u64 = INNER - NAMES;
const HIGH: u64 = 24;
/// Most chunks that are drawn, and most members.
const CHUNKS: usize = 8;
const MEMBERS: usize = 8;

/// Draws how the set's class uses its members; classes other than stripe, concat and mirror are not
/// drawn.
pub(super) fn draw(c: &mut Canvas, target: &Target, set: &Provider) {
    let chunk = set.grains.iter().find(|g| g.why == Why::Chunk);
    match (set.class, chunk) {
        ("stripe", Some(chunk)) => draw_stripe(c, set, chunk.size),
        ("concat", _) => draw_concat(c, target, set),
        ("mirror", _) => draw_mirror(c, set),
        _ => return,
    }
    let hidden = set.members.len().saturating_sub(MEMBERS);
    if hidden > 0 {
        c.text(MARGIN, c.y + 12, "tl-dim", "start", INNER, &format!("and {hidden} more"));
        c.y += 20;
    }
    c.y += 10;
}

fn heading(c: &mut Canvas, text: &str) {
    c.text(MARGIN, c.y + 14, "tl-dim", "start", INNER, text);
    c.y += 22;
}

fn name_of(c: &mut Canvas, name: &str, y: u64) {
    c.text(MARGIN, y + 17, "tl-b", "start", NAMES - 10, &words::name(name));
}

/// Draws the first chunks: in the set's order, then each on the line of its member.
fn draw_stripe(c: &mut Canvas, set: &Provider, chunk: u64) {
    let members = set.members.len().max(1);
    let shown = CHUNKS.max(members.min(MEMBERS));
    heading(
        c,
        &format!(
            "{} deals its bytes out in chunks of {}: where its first {shown} lie",
            words::name(&set.provider),
            size::human(chunk)
        ),
    );
    let columns = u64::try_from(shown).unwrap_or(1);
    let left = |nth: u64| MARGIN + NAMES + ROWS * nth / columns;
    name_of(c, &set.provider, c.y);
    for nth in 0..columns {
        let (x, byte) = (left(nth), nth.saturating_mul(chunk));
        let on = member(set, nth);
        c.rect(
            x,
            c.y,
            left(nth + 1) - x,
            HIGH,
            chunk_class(on),
            &format!("byte {byte} of the set"),
        );
        c.text(x + 6, c.y + 17, "tl-num", "start", left(nth + 1) - x - 8, &byte.to_string());
    }
    c.y += HIGH + 4;
    for (row, name) in set.members.iter().take(MEMBERS).enumerate() {
        name_of(c, name, c.y);
        c.rect(MARGIN + NAMES, c.y, ROWS, HIGH, "tl-fan", &escape::plain(name));
        for nth in (0..columns).filter(|&nth| member(set, nth) == row) {
            let (x, turn) = (
                left(nth),
                round_down(nth, u64::try_from(members).unwrap_or(1))
                    / u64::try_from(members).unwrap_or(1),
            );
            let byte = turn.saturating_mul(chunk);
            c.rect(
                x,
                c.y,
                left(nth + 1) - x,
                HIGH,
                chunk_class(row),
                &format!("byte {byte} of {}", escape::plain(name)),
            );
            c.text(
                x + 6,
                c.y + 17,
                "tl-num",
                "start",
                left(nth + 1) - x - 8,
                &format!("its {byte}"),
            );
        }
        c.y += HIGH + 2;
    }
}

/// Draws one member after another, to scale.
fn draw_concat(c: &mut Canvas, target: &Target, set: &Provider) {
    heading(c, &format!("{} has its members one after another", words::name(&set.provider)));
    let length = |name: &String| {
        target.providers.iter().find(|p| p.provider == *name).map_or(0, |p| p.length)
    };
    let whole: u128 = set.members.iter().map(|name| u128::from(length(name))).sum::<u128>().max(1);
    let x = |byte: u128| MARGIN + u64::try_from(byte * u128::from(INNER) / whole).unwrap_or(0);
    let mut before = 0u128;
    for (nth, name) in set.members.iter().enumerate() {
        let (from, to) = (x(before), x(before + u128::from(length(name))));
        let class = chunk_class(member(set, u64::try_from(nth).unwrap_or(0)));
        c.rect(
            from,
            c.y,
            (to - from).max(2),
            HIGH,
            class,
            &format!("{}, {}", escape::plain(name), words::bytes(length(name))),
        );
        c.text(
            from + 6,
            c.y + 17,
            "tl-b",
            "start",
            (to - from).saturating_sub(8),
            &words::name(name),
        );
        before += u128::from(length(name));
    }
    c.y += HIGH + 2;
}

/// Draws each member with the bytes of the whole set.
fn draw_mirror(c: &mut Canvas, set: &Provider) {
    heading(c, &format!("{} has the same bytes on every member", words::name(&set.provider)));
    for name in set.members.iter().take(MEMBERS) {
        name_of(c, name, c.y);
        c.rect(MARGIN + NAMES, c.y, ROWS, HIGH, "tl-chunk0", &escape::plain(name));
        c.text(
            MARGIN + NAMES + 6,
            c.y + 17,
            "tl-dim",
            "start",
            ROWS - 12,
            &format!("all of {}", words::name(&set.provider)),
        );
        c.y += HIGH + 2;
    }
}
