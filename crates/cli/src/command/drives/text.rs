//! `drives`: the list of simulated drives, the parameters of one, and both as a document.

use crate::style::Style;
use crate::words::columns::{self, Cell, Spare};
use crate::words::{escape, size};
use serde::Serialize;
use std::io;
use toml::Value;
use trueline_sim::model::{Model, Parameter, Range};

/// The document of `drives --json`, `trueline/drives/1`.
#[derive(Serialize)]
pub(crate) struct Document {
    format: &'static str,
    models: Vec<ListedModel>,
}

impl Document {
    pub(crate) fn new(models: Vec<ListedModel>) -> Document {
        Document { format: "trueline/drives/1", models }
    }
}

/// A model and its parameters.
#[derive(Serialize)]
pub(crate) struct ListedModel {
    name: String,
    title: String,
    /// Kind of drive: `disk`, `ssd`, `memory`.
    kind: &'static str,
    size: u64,
    logical_block_size: u64,
    physical_block_size: u64,
    alignment_offset: u64,
    /// The physical block size it reports in bytes, where that is not the true one.
    reported_physical_block_size: Option<u64>,
    optimal_io_size: u64,
    parameters: Vec<Row>,
    /// The whole file, with `--template`.
    pub(crate) template: Option<String>,
}

/// A parameter of a model.
#[derive(Serialize)]
struct Row {
    key: String,
    value: Value,
    range: Option<Range>,
    origin: Option<String>,
}

impl ListedModel {
    pub(crate) fn new(model: Model, parameters: Vec<Parameter>) -> ListedModel {
        let row = |Parameter { key, value, range, origin }| Row { key, value, range, origin };
        ListedModel {
            kind: model.kind(),
            name: model.name,
            title: model.title,
            size: model.size,
            logical_block_size: model.logical_block_size,
            physical_block_size: model.physical_block_size,
            alignment_offset: model.alignment_offset,
            reported_physical_block_size: model.reported_physical_block_size,
            optimal_io_size: model.optimal_io_size,
            parameters: parameters.into_iter().map(row).collect(),
            template: None,
        }
    }

    /// Settings that change the drive as a whole, if it has them: the jumper, the firmware's
    /// personality.
    fn switches(&self) -> String {
        let switch = |row: &Row| match (row.key.as_str(), &row.value) {
            ("personality", Value::String(name)) => {
                Some(format!("personality={}", escape::plain(name)))
            }
            ("jumper", value) => Some(format!("jumper={}", printed(value))),
            _ => None,
        };
        self.parameters.iter().filter_map(switch).collect::<Vec<_>>().join(" ")
    }

    fn physical(&self) -> String {
        let phase = if self.alignment_offset > 0 {
            format!("+{}", self.alignment_offset)
        } else {
            String::new()
        };
        format!("{}{phase}", self.physical_block_size)
    }
}

/// Writes every model on a line.
pub(crate) fn list(
    entries: &[ListedModel],
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let heading = |text: &str| Cell::left(text);
    let number = |text: &str| Cell::right(text);
    let mut rows = vec![vec![
        heading("model"),
        heading("kind"),
        number("size"),
        number("logical"),
        number("physical"),
        number("reports"),
        heading("set"),
        heading("title").wrapped(),
    ]];
    for entry in entries {
        rows.push(vec![
            Cell::left(escape::plain(&entry.name)),
            Cell::left(entry.kind),
            Cell::right(size::human(entry.size)),
            Cell::right(entry.logical_block_size.to_string()),
            Cell::right(entry.physical()),
            Cell::right(
                entry.reported_physical_block_size.map_or(String::new(), |bytes| bytes.to_string()),
            ),
            Cell::left(entry.switches()),
            Cell::left(escape::plain(&entry.title)),
        ]);
    }
    columns::write(&rows, &Spare(&[5, 6, 7], "--json"), style.width, out)
}

/// Writes one model and its parameters, a line each.
pub(crate) fn parameters(
    entry: &ListedModel,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    columns::wrap(
        "",
        0,
        &format!("{}: {}", escape::plain(&entry.name), escape::plain(&entry.title)),
        2,
        style.width,
        out,
    )?;
    writeln!(out)?;
    let mut rows = vec![vec![
        Cell::left("parameter"),
        Cell::right("value"),
        Cell::right("range"),
        Cell::left("origin").wrapped(),
    ]];
    for row in &entry.parameters {
        rows.push(vec![
            Cell::left(escape::plain(&row.key)),
            Cell::right(printed(&row.value)),
            Cell::right(row.range.as_ref().map_or(String::new(), between)),
            Cell::left(escape::plain(row.origin.as_deref().unwrap_or("not said"))),
        ]);
    }
    columns::write(&rows, &Spare::NONE, style.width, out)
}

/// The range of a sweep, in words.
fn between(range: &Range) -> String {
    match range {
        Range::Numbers([least, most]) => format!("{least} .. {most}"),
        Range::Words(words) => escape::plain(&words.join(" | ")),
    }
}

/// A value as it is typed after `--set KEY=`.
fn printed(value: &Value) -> String {
    let text = match value {
        Value::String(word) => word.clone(),
        Value::Float(number) => number.to_string(),
        value => serde_json::to_string(value).unwrap_or_default(),
    };
    escape::plain(&text)
}
