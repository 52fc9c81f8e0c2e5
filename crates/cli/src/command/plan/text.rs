//! `plan`: the choices, layer by layer, as a table for people and as one document.

use crate::command::plan::words;
use crate::remembered::Remembered;
use crate::report::Grain;
use crate::style::Style;
use crate::survey;
use crate::words::columns::{Cell, Spare, wrap, write as write_rows};
use crate::words::width::columns_of;
use crate::words::{escape, size};
use anstyle::Style as Colour;
use serde::Serialize;
use std::io;
use trueline_geom::base::topology::{Fact, Source, Trust};
use trueline_geom::plan::{Alternative, Choice, Group, LayerKind, Plan, Price, USES, Value};

/// The document of a plan; its serialised form is the contract of `plan --json`.
#[derive(Serialize)]
pub(crate) struct Document {
    format: &'static str,
    target: Option<String>,
    #[serde(rename = "for")]
    judged: Option<Remembered>,
    r#use: String,
    grains: Vec<Grain>,
    layers: Vec<Row>,
    commands: Vec<String>,
    notes: Vec<String>,
}

/// All uses; the contract of `plan --list --json`.
#[derive(Serialize)]
pub(crate) struct Uses {
    format: &'static str,
    uses: Vec<KindRow>,
}

/// One kind of layer.
#[derive(Serialize)]
struct KindRow {
    r#use: &'static str,
    also: &'static [&'static str],
    group: &'static str,
    about: &'static str,
}

impl Uses {
    /// Every kind, in the order of its list.
    pub(crate) fn all() -> Uses {
        let row = |kind: &LayerKind| KindRow {
            r#use: kind.name,
            also: kind.also,
            group: kind.group.heading(),
            about: kind.about,
        };
        Uses { format: "trueline/plan-uses/1", uses: USES.iter().map(row).collect() }
    }
}

/// Writes all uses as a table, with a heading for each group.
pub(crate) fn uses(out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    for (nth, group) in Group::ALL.into_iter().enumerate() {
        if nth > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", group.heading())?;
        let kinds: Vec<&LayerKind> = USES.iter().filter(|kind| kind.group == group).collect();
        let width = kinds.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
        for kind in kinds {
            let indent = width + 4;
            wrap(
                &format!("  {:width$}  ", kind.name),
                indent,
                kind.about,
                indent,
                style.width,
                out,
            )?;
            if !kind.also.is_empty() {
                // Other forms stand on lines of their own.
                let also = format!("also {}", kind.also.join(" "));
                wrap(&" ".repeat(indent), indent, &also, indent, style.width, out)?;
            }
        }
    }
    Ok(())
}

/// One parameter of one layer.
#[derive(Serialize)]
struct Row {
    layer: String,
    parameter: &'static str,
    value: Setting,
    unit: &'static str,
    command: Option<String>,
    why: String,
    write_amplification: f64,
    space_cost: Space,
    alternatives: Vec<Other>,
}

/// A value that was not chosen.
#[derive(Serialize)]
struct Other {
    value: Setting,
    unit: &'static str,
    write_amplification: f64,
    space_cost: Space,
    why: String,
}

/// A number, or a word.
#[derive(Serialize)]
#[serde(untagged)]
enum Setting {
    Number(u64),
    Word(String),
}

#[derive(Serialize)]
struct Space {
    bytes: u64,
    what: String,
}

/// A value, and the unit it counts.
fn setting(value: &Value) -> (Setting, &'static str) {
    match value {
        Value::Bytes(bytes) => (Setting::Number(*bytes), "bytes"),
        Value::Count(count, unit) => (Setting::Number(*count), unit),
        Value::Word(word) => (Setting::Word(word.clone()), ""),
    }
}

impl From<&Price> for Space {
    fn from(price: &Price) -> Space {
        Space { bytes: price.space, what: price.what.clone() }
    }
}

impl Other {
    fn from_alternative(other: &Alternative) -> Other {
        let (value, unit) = setting(&other.value);
        let price = &other.price;
        Other {
            value,
            unit,
            write_amplification: price.amplification,
            space_cost: price.into(),
            why: other.note.clone(),
        }
    }
}

impl Row {
    fn from_choice(choice: &Choice) -> Row {
        let (value, unit) = setting(&choice.value);
        Row {
            layer: choice.layer.clone(),
            parameter: choice.parameter,
            value,
            unit,
            command: choice.command.clone(),
            why: choice.why.clone(),
            write_amplification: choice.price.amplification,
            space_cost: (&choice.price).into(),
            alternatives: choice.alternatives.iter().map(Other::from_alternative).collect(),
        }
    }
}

impl Document {
    /// The document of a plan for `wanted` on a disk with those boundaries, its own or a profile's.
    pub(crate) fn new(
        target: Option<&str>,
        judged: Option<&Remembered>,
        wanted: &str,
        grains: &[Fact],
        plan: &Plan,
    ) -> Document {
        Document {
            format: "trueline/plan/1",
            target: target.map(str::to_owned),
            judged: judged.cloned(),
            r#use: wanted.into(),
            grains: grains.iter().map(survey::grain).collect(),
            layers: plan.choices.iter().map(Row::from_choice).collect(),
            commands: plan.commands.iter().map(words::command).collect(),
            notes: plan.notes.iter().map(words::note).collect(),
        }
    }
}

const BOLD: Colour = Colour::new().bold();
const DIM: Colour = Colour::new().dimmed();

/// Writes the document for people.
pub(crate) fn write(document: &Document, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let target =
        document.target.as_deref().map_or(String::new(), |t| format!("{}: ", escape::plain(t)));
    writeln!(out, "{BOLD}{target}{}{BOLD:#}", escape::plain(&document.r#use))?;
    if let Some(judged) = &document.judged {
        judged.write(style.width, out)?;
    }
    for g in &document.grains {
        let phase = if g.phase > 0 { format!("+{}", g.phase) } else { String::new() };
        // The source "assumed" implies the trust.
        let trust = if g.source == Source::Assumed && g.trust == Trust::Assumed {
            String::new()
        } else {
            format!(", {}", g.trust)
        };
        writeln!(out, "  {} {}{phase} ({}{trust})", g.why, g.size, g.source)?;
    }
    for rows in document.layers.chunk_by(|a, b| a.layer == b.layer) {
        writeln!(out, "\n{BOLD}{}{BOLD:#}", rows.first().map_or("", |row| row.layer.as_str()))?;
        let heads = ["  parameter", "value", "set with", "written", "lost", ""].map(Cell::left);
        // The remarks are sentences: they wrap, or stand beneath.
        let mut table = vec![heads.map(|head| head.colour(DIM).wrapped().beneath()).to_vec()];
        table.extend(rows.iter().flat_map(cells));
        // The command of a value is left out first: it is among the commands too.
        write_rows(&table, &Spare(&[2], "--json"), style.width, out)?;
        for row in rows {
            let head = format!("  {}: ", row.parameter);
            wrap(&head, columns_of(&head), &row.why, 4, style.width, out)?;
        }
    }
    if !document.notes.is_empty() {
        writeln!(out, "\n{BOLD}notes{BOLD:#}")?;
    }
    for note in &document.notes {
        wrap("  ", 2, &escape::plain(note), 4, style.width, out)?;
    }
    writeln!(out, "\n{BOLD}commands{BOLD:#}")?;
    for command in &document.commands {
        writeln!(out, "{}", escape::plain(command))?;
    }
    Ok(())
}

/// The row of a choice, and those of its alternatives.
fn cells(row: &Row) -> Vec<Vec<Cell>> {
    let first = vec![
        Cell::left(format!("  {}", row.parameter)),
        Cell::right(shown(&row.value, row.unit)),
        Cell::left(row.command.clone().unwrap_or_default()),
        Cell::right(format!("{:.2}", row.write_amplification)),
        Cell::left(lost(&row.space_cost)),
        Cell::default(),
    ];
    let others = row.alternatives.iter().map(|other| {
        vec![
            Cell::left("    or").colour(DIM),
            Cell::right(shown(&other.value, other.unit)),
            Cell::default(),
            Cell::right(format!("{:.2}", other.write_amplification)),
            Cell::left(lost(&other.space_cost)),
            Cell::left(other.why.clone()),
        ]
    });
    std::iter::once(first).chain(others).collect()
}

fn shown(value: &Setting, unit: &str) -> String {
    match value {
        Setting::Number(n) if unit == "bytes" => size::short(*n),
        Setting::Number(n) => n.to_string(),
        Setting::Word(word) => word.clone(),
    }
}

fn lost(space: &Space) -> String {
    if space.bytes == 0 {
        String::new()
    } else {
        format!("{}, {}", size::human(space.bytes), space.what)
    }
}
