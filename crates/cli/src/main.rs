//! The command `trueline`: the only crate that prints.

pub(crate) mod args;
mod command;
pub(crate) mod disk_options;
pub(crate) mod failure;
pub(crate) mod input_text;
mod move_journal;
pub(crate) mod names;
mod placed;
mod progress;
mod remembered;
pub(crate) mod render;
mod report;
mod target;
pub(crate) mod this_host;
mod typed;
pub(crate) mod write_target;
mod writing;

use crate::args::{Color, Command, Options};
use crate::failure::{Failure, complain};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(answer) => return refuse(&answer),
    };
    let choice = match options.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
    let done = match options.command {
        Command::Check(args) => command::check::run(&args),
        Command::Info(args) => command::info::run(&args),
        Command::Show(args) => command::show::run(&args),
        Command::Part(args) => command::part::run(&args),
        Command::Mkfs(args) => command::mkfs::run(&args),
        Command::Stripe(args) => command::set::stripe(&args),
        Command::Mirror(args) => command::set::mirror(&args),
        Command::Concat(args) => command::set::concat(&args),
        Command::Move(args) => command::moving::run(&args),
        Command::Plan(args) => command::plan::run(&args),
        Command::Drives(args) => command::drives::run(&args),
        Command::Bench(args) => command::bench::run(&args),
        Command::Lab(args) => command::lab::run(&args),
        Command::Serve(args) => command::serve::run(&args),
        Command::Help { words } => command::help::run(&words),
        Command::Complete { words } => command::complete::run(&words),
        Command::Explain(args) => command::explain::run(&args),
        Command::Demo(args) => command::demo::run(&args),
        Command::Man { dir } => command::man::run(&dir),
        Command::Completions { shell } => command::completions::run(shell),
    };
    match done {
        Ok(code) => code,
        Err(Failure::Pipe) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            complain(&message);
            ExitCode::from(2)
        }
    }
}

/// The command and verb that are being typed, as far as they are any, with a blank behind each: where help is.
fn typed(words: impl Iterator<Item = OsString>) -> String {
    let (mut at, mut path) = (Options::command(), String::new());
    let mut words = words.filter_map(|word| word.into_string().ok()).peekable();
    while words.next_if(|word| word.starts_with('-')).is_some_and(|word| !word.contains('=')) {
        words.next_if(|word| at.find_subcommand(word).is_none());
    }
    for word in words {
        let Some(next) = at.find_subcommand(&word).cloned() else { break };
        path = path + &word + " ";
        at = next;
    }
    path
}

/// The option that is not known, and what it is called here, if another NBD server has it.
fn foreign(answer: &clap::Error) -> Option<(String, &'static str)> {
    let unknown = answer.kind() == ErrorKind::UnknownArgument;
    match answer.get(ContextKind::InvalidArg).filter(|_| unknown)? {
        ContextValue::String(option) => Some((option.clone(), command::serve::args::hints::hint(option)?)),
        _ => None,
    }
}

/// Help is printed as it is; what is wrong with the command line is one line, as every other failure.
fn refuse(answer: &clap::Error) -> ExitCode {
    if matches!(answer.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        // A reader that has gone is not worth a word.
        let _ = answer.print();
        return ExitCode::from(u8::from(answer.use_stderr()) * 2);
    }
    let path = typed(std::env::args_os().skip(1));
    if let (true, Some((option, hint))) = (path.trim_end() == "serve", foreign(answer)) {
        complain(&format!("{option} is no option of serve: {hint}; see trueline serve --help"));
        return ExitCode::from(2);
    }
    let text = answer.to_string();
    let said =
        text.trim_start_matches("error: ").split("\n\n").filter(|p| !p.starts_with("Usage:") && !p.starts_with("For more information"));
    let said: Vec<String> = said.map(|p| p.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    complain(&format!("{}; see trueline {}--help", said.join("; "), path));
    ExitCode::from(2)
}
