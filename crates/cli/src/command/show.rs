//! `show`: the stack as tasted, with free space.

use super::check::write_file;
use crate::Failure;
use crate::options::Show;
use crate::out::{self, Style};
use crate::report::Report;
use crate::survey::survey;
use crate::target::{Said, open};
use std::io::{BufWriter, Write};
use std::process::ExitCode;

pub(crate) fn run(args: &Show) -> Result<ExitCode, Failure> {
    let said = Said::new(&args.disk)?;
    let mut targets = Vec::new();
    for name in &args.targets {
        let (graph, only) = open(name, &said)?;
        targets.push(survey(name, &graph, only.as_deref()).map_err(|e| format!("show {name}: {e}"))?);
    }
    let report = Report::new("trueline/show/1", targets);
    if let Some(path) = &args.svg {
        write_file(path, |file| out::svg::write_all(&report, file))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if args.json {
        out::json::write(&report, &mut stdout)?;
    } else if args.picture {
        out::picture::write(&report, &mut stdout, Style::of_stdout())?;
    } else {
        out::tree::write(&report, &mut stdout, Style::of_stdout())?;
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
