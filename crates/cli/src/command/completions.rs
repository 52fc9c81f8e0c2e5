//! `completions`: a shell's completion script.
//!
//! Those of bash, zsh and fish run the program itself ([`crate::command::complete`]), which knows
//! its lists and the providers of an image. Others list what the definition of the command line
//! has.

use crate::args::Options;
use crate::failure::Failure;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;
use std::process::ExitCode;

const BASH: &str = include_str!("completions/trueline.bash");
const ZSH: &str = include_str!("completions/_trueline");
const FISH: &str = include_str!("completions/trueline.fish");

pub(crate) fn run(shell: Shell) -> Result<ExitCode, Failure> {
    // The generator panics if its writer fails; a closed pipe is no reason to panic.
    let mut script = Vec::new();
    match shell {
        Shell::Bash => script.extend_from_slice(BASH.as_bytes()),
        Shell::Zsh => script.extend_from_slice(ZSH.as_bytes()),
        Shell::Fish => script.extend_from_slice(FISH.as_bytes()),
        other => clap_complete::generate(other, &mut Options::command(), "trueline", &mut script),
    }
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(&script)?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
