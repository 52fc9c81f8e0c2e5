//! Causes of what misses, with their evidence and what to do.

use super::section;
use crate::command::trace::causes::Cause;
use crate::command::trace::document::Traced;
use crate::render::charts::lanes::text_of;
use crate::render::traffic::{Miss, layer_name};
use crate::traffic::Row;
use crate::words;
use std::io::{self, Write};

/// Writes what was found for each layer, the one that misses most first.
pub(super) fn write(traced: &Traced, rows: &[&Row], out: &mut dyn Write) -> io::Result<()> {
    if traced.causes.is_empty() {
        return Ok(());
    }
    section("causes", "Why, and what to do", "", out)?;
    writeln!(out, "<ul class=\"findings\">")?;
    for row in rows {
        for cause in traced.causes.iter().filter(|cause| cause.id == row.all.id) {
            write_cause(row, cause, out)?;
        }
    }
    writeln!(out, "</ul>\n</section>")
}

fn write_cause(row: &Row, cause: &Cause, out: &mut dyn Write) -> io::Result<()> {
    let class = if cause.miss == Some(Miss::Stack) {
        "error"
    } else if cause.miss.is_some() {
        "warning"
    } else {
        "note"
    };
    let kind = if cause.known { "known" } else { "suspected" };
    let rule = cause.rule.map_or(String::new(), |id| format!(" <a href=\"#{id}\">{id}</a>"));
    let name = text_of(&layer_name(&row.all));
    writeln!(
        out,
        "<li class=\"{class}\"><p class=\"head\"><b>{kind}</b>{rule} {name}: {}</p>",
        text_of(&said(row, cause))
    )?;
    if !cause.fix.is_empty() {
        writeln!(out, "<dl class=\"fixes\">")?;
        for (nth, command) in cause.commands.iter().enumerate() {
            let head = if nth == 0 { "fix" } else { "then" };
            writeln!(out, "<dt>{head}<dd><code>{}</code>", text_of(command))?;
        }
        for fix in cause.fix.iter().skip(usize::from(!cause.commands.is_empty())) {
            let head = if !words::is_a_fix(fix) {
                ""
            } else if cause.commands.is_empty() {
                "fix"
            } else {
                "or"
            };
            writeln!(out, "<dt>{head}<dd>{}", text_of(fix))?;
        }
        writeln!(out, "</dl>")?;
    }
    writeln!(out, "</li>")
}

/// The sentence of a cause; that of a start says what it makes requests miss.
fn said(row: &Row, cause: &Cause) -> String {
    match cause.miss {
        Some(Miss::Stack) => format!(
            "{}, so {} of {} requests are off the {}-byte {} unit",
            cause.message,
            cause.requests,
            cause.of,
            row.all.unit,
            row.all.why.unwrap_or("unknown")
        ),
        _ => cause.message.clone(),
    }
}
