//! The live page of `serve`: the stack as it was tasted, and, once a second, where I/O misses the
//! grain.
//!
//! One self-contained page. Strings from disks are text: escaped here, and set as text by the
//! script. The script and the style have a nonce, and nothing else may run or be fetched, except
//! the events.

use crate::command::serve::summary::Event;
use crate::render::draw::scale::{Range, Scale};
use crate::render::draw::stack::{Piece, Stack};
use crate::report::Target;
use crate::words::{self, escape};
use std::io;

mod cures;

const SCRIPT: &str = include_str!("page/live.js");
const STYLE: &str = include_str!("page/live.css");

/// Width of the drawing, in thousandths of the width there is: its contents keep their size.
const WIDTH: usize = 1000;
/// Pixels from one layer to the next, and height of a layer.
const ROW: usize = 76;
const HEIGHT: usize = 70;
/// Least width of a layer, where there is room, so that its name and rate can be read.
const LEAST: usize = 150;
/// Most disks and sets that are drawn.
const DRAWN: usize = 64;

/// The `Content-Security-Policy` of the page.
pub(crate) fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src \
            'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// Writes the page for the providers on the disks of `stack`, with the counts so far, so that it
/// shows something before the first event, or without any. `numbers` are those of the providers in
/// the counts.
pub(crate) fn write(
    (stack, numbers): (&Target, &[usize]),
    now: &Event<'_>,
    nonce: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    // Nothing in it may end the element (HTML Living Standard, "Restrictions for contents of script
    // elements").
    let element = |json: serde_json::Result<String>| {
        json.map_err(io::Error::from).map(|json| json.replace('<', "\\u003c"))
    };
    let (now, cures) = (
        element(serde_json::to_string(now))?,
        element(serde_json::to_string(&cures::list(stack)))?,
    );
    let target = escape::xml(&escape::plain(&stack.target));
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(
        out,
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">"
    )?;
    writeln!(
        out,
        "<title>Trueline serve: {target}</title>\n<style nonce=\"{nonce}\">{STYLE}</style>\n</head>\n<body>"
    )?;
    writeln!(
        out,
        "<header><h1>{target}</h1><p id=\"state\" role=\"status\">waiting for the first counts</p></header>\n<main>"
    )?;
    writeln!(
        out,
        "<section id=\"lead\" class=\"none\"><p id=\"verdict\"></p><ul id=\"why\"></ul></section>\n{WHAT_TO_DO}{HISTORY}"
    )?;
    writeln!(out, "<section aria-label=\"The stack\">")?;
    draw(stack, numbers, out)?;
    writeln!(out, "{LEGEND}</section>\n{TABLES}</main>\n<footer>{FOOTER}</footer>")?;
    writeln!(out, "<script type=\"application/json\" id=\"now\">{now}</script>")?;
    writeln!(out, "<script type=\"application/json\" id=\"cures\">{cures}</script>")?;
    writeln!(out, "<script nonce=\"{nonce}\">{SCRIPT}</script>\n</body>\n</html>")
}

const WHAT_TO_DO: &str =
    "<section id=\"todo\" hidden><h2>What to do</h2><dl id=\"cures-shown\"></dl></section>\n";

/// A chart each of requests, bytes and latencies; the script draws them.
const HISTORY: &str = include_str!("page/history.html");

const LEGEND: &str = include_str!("page/legend.html");

const TABLES: &str = include_str!("page/tables.html");

const FOOTER: &str = "A layer counts the I/O that begins in it and in nothing that stands on it. \
    <a href=\"metrics\">/metrics</a> has the same for Prometheus.";

/// Draws every disk and set, with its providers above it.
fn draw(target: &Target, numbers: &[usize], out: &mut dyn io::Write) -> io::Result<()> {
    let stack = Stack::new(target);
    let roots = stack.top_down();
    for &root in roots.iter().take(DRAWN) {
        draw_root(target, &stack, (root, numbers), out)?;
    }
    if roots.len() > DRAWN {
        writeln!(out, "<p class=\"dim\">and {} more disks</p>", roots.len() - DRAWN)?;
    }
    Ok(())
}

fn draw_root(
    target: &Target,
    stack: &Stack<'_>,
    (root, numbers): (usize, &[usize]),
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let whole = &target.providers[root];
    let pieces = stack.pieces(root);
    let leaves = pieces.iter().filter(|p| p.leaf).count().max(1);
    // Half the width is to scale, whatever the layers need.
    let room = (WIDTH / 2 / leaves).clamp(4, LEAST);
    let ranges: Vec<Range> = pieces
        .iter()
        .map(|p| Range { start: p.start, end: p.end, least: if p.leaf { room } else { 2 } })
        .collect();
    let scale = Scale::new(whole.length.max(1), &ranges, WIDTH);
    let rows = pieces.iter().filter_map(|p| p.row).max().unwrap_or(0);
    let height = (rows + 1) * ROW;
    writeln!(
        out,
        "<svg class=\"stack\" height=\"{height}\" role=\"img\" aria-label=\"{}\">",
        name(target, root)
    )?;
    for piece in &pieces {
        if let Some(row) = piece.row {
            // With more pieces than thousandths, they share them.
            let x = |byte| scale.cell(byte) * WIDTH / scale.width().max(1);
            let (left, right) = (x(piece.start), x(piece.end));
            let number = numbers.get(piece.provider).copied().unwrap_or(piece.provider);
            draw_piece(
                target,
                (piece, number),
                (left, (rows - row) * ROW),
                (right - left).max(3),
                out,
            )?;
        }
    }
    writeln!(out, "</svg>")
}

fn name(target: &Target, id: usize) -> String {
    escape::xml(&words::name(&target.providers[id].provider))
}

/// Draws one layer, with its number: its name, its content, a line for its rates, and a bar of
/// verdicts.
fn draw_piece(
    target: &Target,
    (piece, number): (&Piece, usize),
    (x, y): (usize, usize),
    width: usize,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let (id, p) = (piece.provider, &target.providers[piece.provider]);
    let (name, content) = (name(target, id), escape::xml(&words::content(target, p)));
    let over = if p.members.is_empty() {
        String::new()
    } else {
        format!(" over {}", escape::xml(&escape::plain(&p.members.join(", "))))
    };
    let (bytes, start) = (words::bytes(p.length), words::start(p));
    let width = width.saturating_sub(3).max(2);
    writeln!(
        out,
        "<g class=\"piece\" data-id=\"{number}\" data-x=\"{x}\" data-y=\"{}\" data-w=\"{width}\">",
        y + HEIGHT - 7
    )?;
    writeln!(out, "<title>{name}: {content}{over}: {bytes} from byte {start}</title>")?;
    let place =
        format!("x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{HEIGHT}\"", percent(x), percent(width));
    writeln!(out, "<rect class=\"box\" {place} rx=\"3\"/>")?;
    writeln!(out, "<svg {place}><text class=\"name\" x=\"7\" y=\"18\">{name}</text>")?;
    writeln!(
        out,
        "<text class=\"what\" x=\"7\" y=\"35\">{content}{over}</text><text class=\"live\" x=\"7\" y=\"54\"></text></svg><g class=\"bar\"></g></g>"
    )
}

/// A width in percent, from thousandths.
fn percent(thousandths: usize) -> String {
    format!("{}.{}%", thousandths / 10, thousandths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    fn page(target: &Target) -> String {
        let (served, _) = samples::served();
        samples::text(|out| {
            write((target, &[]), &Event { served: &served, history: &[] }, "abc", out)
        })
    }

    #[test]
    fn hostile_names_stay_text() {
        let (mut served, mut target) = samples::served();
        served.layers[0].provider = "</script><script>alert(1)</script><!--".into();
        target.target = "<img src=x onerror=alert(1)>".into();
        target.providers[3].provider = "\"></svg><script>alert(1)</script>".into();
        target.providers[4].sign = Some("<b>&\u{202e}".into());
        target.findings[0].fix.push("</script><script>alert(1)</script>".into());
        let page = samples::text(|out| {
            write((&target, &[]), &Event { served: &served, history: &[] }, "abc", out)
        });
        assert_eq!(
            ["<script", "</script", "<img", "<b>", "<!--"].map(|what| page.matches(what).count()),
            [3, 3, 0, 0, 0]
        );
        assert!(
            page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains('\u{202e}'),
            "{page}"
        );
    }

    #[test]
    fn nothing_is_fetched_and_nothing_else_is_run() {
        let page = page(&samples::stripe());
        let page = page.replace("http://www.w3.org/2000/svg", "");
        let refused = ["http", "url(", "@import", " style=", " onload=", " onerror=", " onclick="];
        assert!(refused.iter().all(|what| !page.contains(what)), "{page}");
        assert_eq!(page.matches("nonce=\"abc\"").count(), 2);
        assert!(
            !SCRIPT.contains("innerHTML")
                && !SCRIPT.contains("insertAdjacent")
                && !SCRIPT.contains("eval")
        );
    }

    #[test]
    fn every_layer_is_drawn_on_its_disk_and_a_crowd_stays_on_the_sheet() {
        for target in [samples::openbsd(), samples::stripe(), samples::gpt(), samples::crowded(40)]
        {
            let page = page(&target);
            let drawn = page.matches("<g class=\"piece\"").count();
            assert!(
                drawn == target.providers.len() || target.providers.len() > 40,
                "{drawn} of {}: {page}",
                target.providers.len()
            );
            for at in page.split("data-x=\"").skip(1) {
                let number = |text: &str| text.split('"').next().unwrap().parse::<usize>().unwrap();
                let width = at.split("data-w=\"").nth(1).map(number).unwrap();
                assert!(number(at) + width <= WIDTH, "{at}");
            }
        }
        let crowd = page(&samples::crowded(2000));
        assert!(crowd.len() < 4 << 20, "{}", crowd.len());
    }
}
