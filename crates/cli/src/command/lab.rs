//! `lab`: published measurements, made again.

pub(crate) mod args;
pub(crate) mod csv;
pub(crate) mod page;
mod sweep;
pub(crate) mod text;
use crate::command::lab::args::{Lab as Options, RowChoice, Run, Verb};
use crate::failure::{Failure, Reason, complain, worded_lab};
use crate::page_file::write_file;
use crate::progress::Progress;
use crate::render::made::Made;
use crate::style::Style;
use crate::{input_text, words};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueline_host::process::signal;
use trueline_lab::error::Error as LabFailure;
use trueline_lab::study::{
    BUILT_IN, BuiltIn, Failure as RowFailure, Lab, Selection, Texts, every, run as run_rows,
};

/// Longest text that is read (a lab, a hexdump, a model), in bytes.
const MOST: u64 = 16 << 20;
/// Rows that run at one time.
const THREADS: usize = 2;

pub(crate) fn run(args: &Options) -> Result<ExitCode, Failure> {
    match &args.verb {
        Verb::Run(args) => rows(args),
        Verb::Sweep(args) => sweep::run(args),
        Verb::List => list(),
    }
}

fn list() -> Result<ExitCode, Failure> {
    let labs = parsed(every(), "lab list")?;
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    text::list(&labs, &mut stdout, Style::of_stdout())?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn rows(args: &Run) -> Result<ExitCode, Failure> {
    let labs = named(&args.rows, "lab run")?;
    // An interrupt still prints the results so far, and lets a measurement remove its scratch
    // files.
    signal::remember_first();
    let rows = args.rows.row.clone();
    let asked = Selection { rows, sweep: args.sweep.into(), threads: THREADS };
    let progress = Progress::new(None);
    let ran = run_rows(&labs, &asked, &|step| progress.step(step));
    progress.end();
    let (document, failures) =
        ran.map_err(|failure| Failure::Message(format!("lab run {}", worded(failure))))?;
    // Before anything is printed: a reader that goes away takes no page with it.
    if let Some(path) = &args.html {
        write_file(path, |file| page::write(&document, &Made::now(), file))?;
    }
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &document).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else if args.csv {
        csv::write(&document, &mut stdout)?;
    } else {
        text::write(&document, &mut stdout, Style::of_stdout())?;
    }
    stdout.flush()?;
    for failure in &failures {
        complain(&format!("lab run {}", worded(failure.clone())));
    }
    if signal::happened() {
        complain("lab run: interrupted: rows that were not done are left out");
        return Ok(ExitCode::from(2));
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// The labs that `command` names; those of [`BUILT_IN`] for `--all`, but for
/// those that measure this machine. Errors: a lab that cannot be read, or ids of rows in none.
fn named(choice: &RowChoice, command: &str) -> Result<Vec<Lab>, Failure> {
    let labs: Vec<Lab> = if choice.all {
        parsed(BUILT_IN.iter(), command)?.into_iter().filter(|lab| !lab.measures_here()).collect()
    } else {
        choice.files.iter().map(|file| open(file, command)).collect::<Result<_, _>>()?
    };
    let is_there = |id: &String| labs.iter().any(|lab| lab.rows().any(|row| row == id));
    match choice.row.iter().find(|id| !is_there(id)) {
        None => Ok(labs),
        Some(id) => {
            let there: Vec<&str> = labs.iter().flat_map(Lab::rows).collect();
            Err(Failure::Message(format!(
                "{command} --row {id}: no such row: there are {}",
                there.join(", ")
            )))
        }
    }
}

/// A row's failure in one line, with the options that mend it.
fn worded(failure: RowFailure) -> String {
    let cause = LabFailure::new(worded_lab(&failure.cause));
    RowFailure { cause, ..failure }.to_string()
}

/// The reason for which `command` cannot run a lab, behind its place.
fn failed(command: &str, place: impl fmt::Display, why: impl Into<Reason>) -> Reason {
    why.into().behind(format_args!("{command} {place}"))
}

fn parsed(labs: impl Iterator<Item = &'static BuiltIn>, command: &str) -> Result<Vec<Lab>, Reason> {
    labs.map(|lab| lab.lab().map_err(|e| failed(command, lab.file, e))).collect()
}

/// The labs that come with the program and whose names begin with `file`, as advice; empty where
/// `file` is there or none does.
fn beginning(file: &Path) -> String {
    let names = every().filter_map(|lab| lab.file.strip_prefix("labs/")?.strip_suffix(".toml"));
    let begin: Vec<&str> = names
        .filter(|name| !file.exists() && file.to_str().is_some_and(|file| name.starts_with(file)))
        .collect();
    if begin.is_empty() {
        String::new()
    } else {
        format!("; labs whose names begin so: {}", begin.join(", "))
    }
}

/// A lab file, or a lab that comes with the program.
fn open(file: &Path, command: &str) -> Result<Lab, Reason> {
    let named = |name: &str| file.to_str().is_some_and(|file| format!("labs/{file}.toml") == name);
    if let Some(lab) = every().find(|lab| named(lab.file)).filter(|_| !file.exists()) {
        return lab.lab().map_err(|e| failed(command, lab.file, e));
    }
    let place = file.display();
    let text = read(file).map_err(|e| format!("{command} {place}: {e}{}", beginning(file)))?;
    let directory = file.parent().unwrap_or(Path::new("")).to_owned();
    Lab::parse(&text, Box::new(Beside(directory))).map_err(|e| failed(command, place, e))
}

/// The texts beside a lab file.
struct Beside(PathBuf);

impl Texts for Beside {
    fn read(&self, name: &str) -> Result<Cow<'static, str>, LabFailure> {
        let text = read(&self.find(Path::new(name)).map_err(|e| LabFailure::new(e.to_string()))?);
        text.map(Cow::Owned).map_err(|e| LabFailure::new(e.0))
    }

    fn beside(&self, name: &Path) -> Result<PathBuf, LabFailure> {
        match self.find(name) {
            // An absent file fails the row that needs it, not the lab.
            Err(Away::Os(e)) if e.kind() == io::ErrorKind::NotFound => Ok(self.0.join(name)),
            found => found.map_err(|e| LabFailure::new(e.to_string())),
        }
    }
}

/// Reason for which a file is not opened for a lab.
enum Away {
    Os(io::Error),
    Refused(&'static str),
}

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Away::Os(e) => f.write_str(&words::os(e)),
            Away::Refused(what) => f.write_str(what),
        }
    }
}

impl Beside {
    /// The regular file of that name beside the lab. A link that leads elsewhere is refused, as are
    /// pipes and devices: an open of one may block or act.
    fn find(&self, name: &Path) -> Result<PathBuf, Away> {
        let directory = if self.0.as_os_str().is_empty() { Path::new(".") } else { &self.0 };
        let directory = directory.canonicalize().map_err(Away::Os)?;
        let found = directory.join(name).canonicalize().map_err(Away::Os)?;
        if !found.starts_with(&directory) {
            return Err(Away::Refused(
                "a link leads away from beside the lab: put the file itself there",
            ));
        }
        if found.metadata().map_err(Away::Os)?.is_file() {
            Ok(found)
        } else {
            Err(Away::Refused("it is not a regular file"))
        }
    }
}

fn read(file: &Path) -> Result<String, Reason> {
    input_text::read(File::open(file)?, MOST)
}
