//! Conventions of other programs for output and exit status: `--nagios`, `--compat`. Whatever goes
//! wrong under one of them, usage too, ends as it says.

use super::args::{Check, OtherProgram};
use super::{announce, write_page};
use crate::failure::{Failure, complain};
use crate::render::report::alignment_scan;
use crate::render::report::nagios::{self, ServiceState};
use crate::report::Report;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Convention that a run follows in place of `check`'s own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Convention {
    /// The convention of the Monitoring Plugins.
    Service,
    /// The convention of virt-alignment-scan.
    Scan,
}

impl Convention {
    /// The convention that the options name.
    pub(crate) fn chosen(args: &Check) -> Option<Convention> {
        match args.compat {
            Some(OtherProgram::VirtAlignmentScan) => Some(Convention::Scan),
            None => args.nagios.then_some(Convention::Service),
        }
    }

    /// The convention that words name, which are no command line of `check`.
    pub(crate) fn meant(words: impl Iterator<Item = OsString>) -> Option<Convention> {
        words.take_while(|word| word != "--").find_map(|word| {
            let word = word.to_str()?;
            match word.split_once('=').map_or(word, |(option, _)| option) {
                "--nagios" => Some(Convention::Service),
                "--compat" => Some(Convention::Scan),
                _ => None,
            }
        })
    }

    /// The end of a run that failed.
    pub(crate) fn fail(self, why: &str) -> ExitCode {
        match self {
            Convention::Service => {
                // Where the line cannot be written, its status is what is left of it.
                if nagios::write_failed(why, &mut anstream::stdout().lock()).is_err() {
                    complain(why);
                }
                ExitCode::from(ServiceState::Unknown.status())
            }
            Convention::Scan => {
                complain(why);
                ExitCode::from(alignment_scan::FAILED)
            }
        }
    }

    /// Prints a report. The exit status is that of the convention.
    pub(super) fn print(self, report: &Report, args: &Check) -> Result<ExitCode, Failure> {
        write_page(report, &args.output)?;
        let mut text = Vec::new();
        let status = match self {
            Convention::Service => {
                announce(report);
                let counted = args.counted();
                let state = ServiceState::new(report, counted, args.is_strict());
                nagios::write(report, state, counted, &mut text)?;
                state.status()
            }
            // Of a guest whose disks are not all there nothing is said.
            Convention::Scan if !report.errors.is_empty() => alignment_scan::FAILED,
            Convention::Scan => {
                if !args.quiet {
                    alignment_scan::write(report, &mut text)?;
                }
                alignment_scan::status(report)
            }
        };
        match anstream::stdout().lock().write_all(&text).map_err(Failure::from) {
            Ok(()) | Err(Failure::Pipe) => Ok(ExitCode::from(status)),
            Err(failure) => Err(failure),
        }
    }
}
