//! `show`: the stack as tasted, with free space.

use super::check::{announce, survey_all};
use crate::command::show::args::Show;
use crate::failure::{Failure, complain};
use crate::page_file::write_file;
use crate::render::draw::{picture, svg, tree};
use crate::render::report::{json, list};
use crate::report::Report;
use crate::style::Style;
use crate::target::DiskOverrides;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

pub(crate) mod args;

pub(crate) fn run(args: &Show) -> Result<ExitCode, Failure> {
    let overrides = DiskOverrides::new(&args.disk)?;
    let (targets, failures) = survey_all(&args.targets, &overrides, args.quiet);
    failures.iter().filter(|_| !args.quiet).for_each(|failure| complain(&failure.why));
    let done = if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    // A reader of a document has the errors in it.
    if targets.is_empty() && !args.json {
        return Ok(done);
    }
    let report = Report::new("trueline/show/1", targets, failures);
    if let Some(path) = &args.svg {
        write_file(path, |file| svg::write_all(&report, file))?;
        if !args.json && !args.picture {
            announce(&report);
            return Ok(done);
        }
    }
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if args.json {
        json::write(&report, &mut stdout)?;
    } else if args.list.is_wanted() {
        announce(&report);
        list::write(&report, &args.list.columns(), args.list.manner(), &mut stdout)?;
    } else if args.picture {
        picture::write(&report, &mut stdout, Style::of_stdout())?;
    } else {
        tree::write(&report, &mut stdout, Style::of_stdout())?;
    }
    stdout.flush()?;
    Ok(done)
}
