//! The settings as text: three tables, of settings, of drives, of files.

use super::{Document, FileRow, Origin, Unit};
use crate::style::Style;
use crate::words::columns::{self, Cell, Spare};
use crate::words::{escape, size};
use serde_json::Value;
use std::io;

/// Value of a setting that has none.
const NONE: &str = "-";

pub(super) fn write(document: &Document, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    let heading = ["SETTING", "VALUE"].map(Cell::left);
    let mut rows = vec![heading.into_iter().chain([Cell::left("FROM").wrapped()]).collect()];
    rows.extend(document.settings.iter().map(|row| {
        let value = match &row.value {
            Value::Null => NONE.to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        vec![Cell::left(row.key), Cell::left(escape::plain(&value)), origin(&row.from, None)]
    }));
    columns::write(&rows, &Spare::NONE, style.width, out)?;
    if !document.drives.is_empty() {
        writeln!(out)?;
        drives(&document.drives, style, out)?;
    }
    writeln!(out)?;
    files(&document.files, style, out)
}

/// The boundaries of drives, a line each.
fn drives(units: &[Unit], style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    let mut rows = vec![vec![
        Cell::left("MODEL"),
        Cell::left("SERIAL"),
        Cell::left("WHY"),
        Cell::right("UNIT"),
        Cell::right("FIRST AT"),
        Cell::left("SOURCE"),
        Cell::left("FROM").wrapped(),
    ]];
    rows.extend(units.iter().map(|unit| {
        vec![
            Cell::left(escape::plain(unit.model.as_deref().unwrap_or("any"))),
            Cell::left(escape::plain(&unit.serial)),
            Cell::left(unit.why),
            Cell::right(size::short(unit.size)),
            Cell::right(unit.phase.to_string()),
            Cell::left(unit.source),
            origin(&unit.from, unit.stated.as_deref()),
        ]
    }));
    columns::write(&rows, &Spare::NONE, style.width, out)
}

/// The files that were looked for, those that count first before others.
fn files(files: &[FileRow], style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    let mut rows = vec![vec![Cell::left("FILE"), Cell::left("BY"), Cell::left("STATE").wrapped()]];
    rows.extend(files.iter().map(|file| {
        let state = match file.state {
            "absent" => "not there".to_owned(),
            "refused" => format!("not read: {}", file.why.join("; ")),
            state => state.to_owned(),
        };
        vec![
            Cell::left(escape::plain(&file.path)),
            Cell::left(file.by),
            Cell::left(escape::plain(&state)),
        ]
    }));
    columns::write(&rows, &Spare::NONE, style.width, out)
}

/// The place that a value comes from, and what the user says of its origin.
fn origin(from: &Origin, stated: Option<&str>) -> Cell {
    let place = match (from.variable, &from.path, from.line) {
        (Some(variable), ..) => variable.to_owned(),
        (None, Some(path), Some(line)) => format!("{path}:{line}"),
        (None, Some(path), None) => path.clone(),
        (None, None, _) => "default".to_owned(),
    };
    let said = stated.map_or_else(String::new, |stated| format!(": {stated}"));
    Cell::left(escape::plain(&format!("{place}{said}")))
}
