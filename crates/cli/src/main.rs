//! The command `trueline`: the only crate that prints.

mod command;
mod cure;
mod host;
mod layout;
mod made;
mod move_journal;
mod options;
mod out;
mod page;
mod placed;
mod progress;
mod remembered;
mod report;
mod seat;
mod served;
mod survey;
mod target;
mod text;
mod topics;
mod typed;
mod writing;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use options::{Color, Command};
use out::{Style, columns, escape};
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command ended early.
pub(crate) enum Failure {
    /// The work could not be done: one line on stderr.
    Message(String),
    /// Nobody reads the output any more (`| head`): not worth a word.
    Pipe,
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Message(message)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Pipe,
            _ => Failure::Message(format!("write the output: {error}")),
        }
    }
}

fn main() -> ExitCode {
    let options = match options::help::parse(std::env::args_os()) {
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

/// One line on stderr, whatever names the message holds; on a terminal it is broken to fit. If nothing reads it, the exit status still
/// speaks.
pub(crate) fn complain(message: &str) {
    let text = format!("trueline: {}", escape::plain(&escape::short(message)));
    let mut line = Vec::new();
    let _ = columns::line(&text, Style::of_stderr().width, &mut line).and_then(|()| anstream::stderr().write_all(&line));
}

/// The option that is not known, and what it is called here, if another NBD server has it.
fn foreign(answer: &clap::Error) -> Option<(String, &'static str)> {
    let unknown = answer.kind() == ErrorKind::UnknownArgument;
    match answer.get(ContextKind::InvalidArg).filter(|_| unknown)? {
        ContextValue::String(option) => Some((option.clone(), options::serve::hints::hint(option)?)),
        _ => None,
    }
}

/// Help is printed as it is; what is wrong with the command line is one line, as every other failure.
fn refuse(answer: &clap::Error) -> ExitCode {
    if matches!(answer.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        // A reader that has gone is not worth a word.
        let _ = options::help::print(answer, &options::help::typed(std::env::args_os().skip(1)));
        return ExitCode::from(u8::from(answer.use_stderr()) * 2);
    }
    let path = options::help::typed(std::env::args_os().skip(1)).join(" ");
    if let (true, Some((option, hint))) = (path == "serve", foreign(answer)) {
        complain(&format!("{option} is no option of serve: {hint}; see trueline serve --help"));
        return ExitCode::from(2);
    }
    let text = answer.to_string();
    let said =
        text.trim_start_matches("error: ").split("\n\n").filter(|p| !p.starts_with("Usage:") && !p.starts_with("For more information"));
    let said: Vec<String> = said.map(|p| p.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let path = if path.is_empty() { path } else { path + " " };
    complain(&format!("{}; see trueline {path}--help", said.join("; ")));
    ExitCode::from(2)
}
