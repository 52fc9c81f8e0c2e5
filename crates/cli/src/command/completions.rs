//! `completions`: a shell's completion script, from the same definitions as the command line.

use crate::Failure;
use crate::options::Options;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;
use std::process::ExitCode;

pub(crate) fn run(shell: Shell) -> Result<ExitCode, Failure> {
    // The generator panics when its writer fails; a closed pipe is no reason to.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "trueline", &mut script);
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(&script)?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
