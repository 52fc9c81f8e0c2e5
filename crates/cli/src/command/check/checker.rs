//! Targets one at a time, for programs that have the names: a line of `check` for each.

use super::args::Form;
use super::names::Item;
use super::permits::Permits;
use super::single::{Manner, Outcome, write_error};
use crate::disk_options::DiskOptions;
use crate::failure::Reason;
use crate::in_order::processors;
use crate::target::{self, DiskOverrides};
use clap::Parser;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// Form of the lines of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineForm {
    /// Line of `check --jsonl`: the whole report.
    Report,
    /// Lines of `check --rows`: one for each provider, flat, with the same keys in all.
    Rows,
}

/// Refusal of the options of a checker, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongOptions(String);

impl fmt::Display for WrongOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for WrongOptions {}

/// Options of a checker: those of `check` that say what a disk is.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct CheckerOptions {
    #[command(flatten)]
    disk: DiskOptions,
}

/// Checker of targets, as `check` is one of those on its command line. Threads may share it: files
/// are read by as many at a time as there are processors, and servers are waited for by all.
pub struct Checker {
    disk: DiskOptions,
    overrides: DiskOverrides,
    permits: Permits,
}

impl Checker {
    /// Checker with options as words of a command line, such as `--for` and `ssd-16k`. Errors: one
    /// that is unknown, wrong, or about what is checked or printed.
    pub fn new<W: Into<OsString> + Clone>(
        options: impl IntoIterator<Item = W>,
    ) -> Result<Checker, WrongOptions> {
        let parsed = CheckerOptions::try_parse_from(options);
        let CheckerOptions { disk } = parsed.map_err(|answer| {
            let text = answer.to_string();
            let reason = text.trim_start_matches("error: ").split("\n\n").next().unwrap_or("");
            WrongOptions(reason.split_whitespace().collect::<Vec<_>>().join(" "))
        })?;
        let overrides = DiskOverrides::new(&disk).map_err(|Reason(why)| WrongOptions(why))?;
        Ok(Checker { disk, overrides, permits: Permits::new(processors()) })
    }

    /// Lines of the target called `name`, each with its end, as `check` writes them behind its
    /// options: also if it cannot be read, when one says so with the class of the error.
    pub fn lines(&self, name: impl AsRef<OsStr>, form: LineForm) -> Vec<u8> {
        let form = match form {
            LineForm::Report => Form::Lines,
            LineForm::Rows => Form::Rows,
        };
        let Checker { disk, overrides, permits } = self;
        let manner = Manner { disk, overrides, form, permits };
        match manner.check(Item::Named(target::listed(name.as_ref())), |_, _| false) {
            Outcome::Checked(lines, ..) => lines,
            Outcome::Unread(name, class, why) => {
                let mut line = Vec::new();
                // Memory takes every byte.
                let _ = write_error(form, (&name, class, &why), &mut line);
                line
            }
            // Of a name that was given neither is said.
            Outcome::Other(_) | Outcome::Done => Vec::new(),
        }
    }
}
