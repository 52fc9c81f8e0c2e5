//! `man`: the manual pages, from the same definitions as the command line.

use crate::Failure;
use crate::options::Options;
use clap::CommandFactory;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(dir: &Path) -> Result<ExitCode, Failure> {
    clap_mangen::generate_to(Options::command(), dir).map_err(|e| format!("write manual pages into {}: {e}", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
