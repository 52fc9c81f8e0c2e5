//! `man`: the manual pages, from the same definitions as the command line.

use crate::Failure;
use crate::options::Options;
use crate::out::words;
use clap::CommandFactory;
use clap_mangen::Man;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(dir: &Path) -> Result<ExitCode, Failure> {
    let failed = |e: io::Error| Failure::Message(format!("write manual pages into {}: {}", dir.display(), words::os(&e)));
    let mut program = Options::command().disable_help_subcommand(true);
    program.build();
    page(&program, dir).map_err(failed)?;
    for command in program.get_subcommands() {
        page(command, dir).map_err(failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One page. What stands after the options of `--help` is set as it is typed: the generator would fill its lines.
fn page(command: &clap::Command, dir: &Path) -> io::Result<()> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    for block in command.get_after_help().map(ToString::to_string).unwrap_or_default().split("\n\n") {
        let (title, body) = block.split_once('\n').unwrap_or((block, ""));
        let body = body.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
        writeln!(text, ".SH {}\n.nf\n{body}\n.fi", title.trim_end_matches(':').to_uppercase())?;
    }
    // `trueline-check`, once the program has been built.
    let name = command.get_display_name().unwrap_or(command.get_name());
    std::fs::write(dir.join(format!("{name}.1")), text)
}
