//! The command `trueline`: the only crate that prints.

mod command;
mod host;
mod options;
mod out;
mod report;
mod survey;
mod target;

use clap::Parser;
use options::{Color, Command, Options};
use std::io;
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
    let options = Options::parse();
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
        Command::Explain(args) => command::explain::run(&args),
        Command::Demo(args) => command::demo::run(&args),
        Command::Man { dir } => command::man::run(&dir),
        Command::Completions { shell } => command::completions::run(shell),
    };
    match done {
        Ok(code) => code,
        Err(Failure::Pipe) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            anstream::eprintln!("trueline: {message}");
            ExitCode::from(2)
        }
    }
}
