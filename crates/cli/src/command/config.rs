//! `config`: the settings, their values and where they come from.

use crate::command::config::args::ShowConfig;
use crate::config::files::{ConfigFile, FileState};
use crate::config::{self, Config, ConfigLine, Loaded, Setting, StatedDrive};
use crate::fail_on::FailOn;
use crate::failure::{Failure, complain};
use crate::remembered;
use crate::style::Style;
use crate::words;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use trueline_geom::base::topology::{Grain, Source, Why};

pub(crate) mod args;
mod text;

/// The document of `config --json`, `trueline/config/1`.
#[derive(Serialize)]
struct Document {
    format: &'static str,
    settings: Vec<Row>,
    drives: Vec<Unit>,
    files: Vec<FileRow>,
}

/// A setting that counts.
#[derive(Serialize)]
struct Row {
    key: &'static str,
    value: Value,
    from: Origin,
}

/// Place that a value comes from: a variable, a line of a file or a file; none of it: the default.
#[derive(Clone, Default, Serialize)]
struct Origin {
    variable: Option<&'static str>,
    path: Option<String>,
    line: Option<usize>,
}

impl From<&ConfigLine> for Origin {
    fn from(line: &ConfigLine) -> Origin {
        Origin { variable: None, path: Some(line.path.clone()), line: Some(line.line) }
    }
}

/// A boundary that counts for a drive.
#[derive(Serialize)]
struct Unit {
    /// The model; null for any.
    model: Option<String>,
    serial: String,
    why: &'static str,
    size: u64,
    phase: u64,
    /// `user` or `measured`, as in what `check` says of the drive.
    source: &'static str,
    /// The origin of the figure, in the user's words.
    stated: Option<String>,
    from: Origin,
}

/// A file that was looked for.
#[derive(Serialize)]
struct FileRow {
    path: String,
    /// The reason for looking there: `--config`, a variable, `user`, `machine`, `measured`.
    by: &'static str,
    state: &'static str,
    /// The reason for which it is not read, or what is wrong in it.
    why: Vec<String>,
}

pub(crate) fn run(args: &ShowConfig) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.check {
        let (settings, drives) = match config::check(path) {
            Ok(counts) => counts,
            Err(wrong) => return Ok(refuse(wrong.iter().map(String::as_str))),
        };
        let (settings, drives) = (words::count(settings, "setting"), words::count(drives, "drive"));
        words::say(&format!("{}: nothing is wrong: {settings}, {drives}", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let loaded = config::load(None);
    let mut document = Document {
        format: "trueline/config/1",
        settings: settings(&loaded.config)?,
        drives: stated(&loaded.config),
        files: loaded.files.iter().map(|(place, state)| file(place, state)).collect(),
    };
    add_measured(&mut document);
    let mut out = BufWriter::new(anstream::stdout().lock());
    if args.json {
        serde_json::to_writer_pretty(&mut out, &document).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        text::write(&document, Style::of_stdout(), &mut out)?;
    }
    out.flush()?;
    Ok(status(loaded))
}

/// The exit status, with what is wrong on stderr; success if nothing is.
fn status(loaded: &Loaded) -> ExitCode {
    match loaded.errors().next() {
        Some(_) => refuse(loaded.errors()),
        None => ExitCode::SUCCESS,
    }
}

fn refuse<'a>(wrong: impl Iterator<Item = &'a str>) -> ExitCode {
    wrong.for_each(complain);
    ExitCode::from(2)
}

/// The settings beside drives, each with its value. Errors: the environment names no profile.
fn settings(config: &Config) -> Result<Vec<Row>, Failure> {
    fn row<T>(
        key: &'static str,
        setting: Option<&Setting<T>>,
        shown: impl Fn(&T) -> Value,
        usual: Value,
    ) -> Row {
        let from = setting.map_or_else(Origin::default, |setting| (&setting.from).into());
        let value = setting.map_or(usual, |setting| shown(&setting.value));
        Row { key, value, from }
    }
    let profile = match remembered::environment()? {
        Some(found) => Row {
            key: "for",
            value: found.profile.into(),
            from: Origin { variable: Some(remembered::VARIABLE), ..Origin::default() },
        },
        None => row("for", config.profile.as_ref(), |name| name.as_str().into(), Value::Null),
    };
    let fail_on = config.fail_on.as_ref();
    Ok(vec![
        profile,
        row("check.fail-on", fail_on, |least| least.name().into(), FailOn::default().name().into()),
        row("check.strict", config.strict.as_ref(), |&strict| strict.into(), false.into()),
    ])
}

/// The boundaries of drives that files state.
fn stated(config: &Config) -> Vec<Unit> {
    let unit = |(drive, (why, unit)): (&StatedDrive, &(Why, Setting<Grain>))| Unit {
        stated: drive.source.clone(),
        from: (&unit.from).into(),
        ..Unit::new(drive.model.clone(), &drive.serial, *why, unit.value, Source::User)
    };
    config.boundaries().map(unit).collect()
}

impl Unit {
    fn new(model: Option<String>, serial: &str, why: Why, grain: Grain, source: Source) -> Unit {
        Unit {
            model,
            serial: serial.into(),
            why: why.name(),
            size: grain.size(),
            phase: grain.phase(),
            source: source.name(),
            stated: None,
            from: Origin::default(),
        }
    }
}

/// Adds what is remembered of measured drives, as far as nothing before it says otherwise.
fn add_measured(document: &mut Document) {
    for (path, drives) in crate::measured::files() {
        let path = path.display().to_string();
        let (state, why) = match &drives {
            Ok(drives) if drives.is_empty() => ("absent", Vec::new()),
            Ok(_) => ("read", Vec::new()),
            Err(why) => ("refused", vec![why.to_string()]),
        };
        document.files.push(FileRow { path: path.clone(), by: "measured", state, why });
        for drive in drives.into_iter().flatten() {
            let is_told = document.drives.iter().any(|unit| {
                let is_model = unit.model.as_ref().is_none_or(|model| *model == drive.model);
                is_model && unit.serial == drive.serial && unit.why == Why::Physical.name()
            });
            let Some(grain) = Grain::new(drive.size, drive.phase).filter(|_| !is_told) else {
                continue;
            };
            let from = Origin { path: Some(path.clone()), ..Origin::default() };
            let (model, why) = (Some(drive.model), Why::Physical);
            let unit = Unit::new(model, &drive.serial, why, grain, Source::Measured);
            document.drives.push(Unit { from, ..unit });
        }
    }
}

fn file(place: &ConfigFile, state: &FileState) -> FileRow {
    let (name, why) = match state {
        FileState::Read => ("read", Vec::new()),
        FileState::Absent => ("absent", Vec::new()),
        FileState::Refused(why) => ("refused", vec![why.clone()]),
        FileState::Wrong(lines) => ("wrong", lines.clone()),
    };
    FileRow { path: place.name(), by: place.by, state: name, why }
}
