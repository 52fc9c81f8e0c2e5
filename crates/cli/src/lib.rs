//! The command `trueline`: the only crate that prints; and [`checker`], by which other programs
//! have what `check` says of a target.

mod appended;
mod args;
mod checked;
pub mod checker;
mod child;
mod command;
mod config;
mod disk_options;
mod fail_on;
mod failure;
mod in_order;
mod input_text;
mod key_file;
mod log;
mod measured;
mod media;
mod move_journal;
mod names;
mod page_file;
mod placed;
mod progress;
mod remembered;
mod render;
mod replaced;
mod report;
mod screen;
mod shard;
mod style;
mod survey;
mod tally;
mod target;
mod this_host;
mod traffic;
mod typed;
mod words;
mod write_target;
mod writing;

use crate::args::{Color, Command};
use crate::command::check::conventions::Convention;
use crate::failure::{Failure, Reason, complain};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::process::ExitCode;

/// The command, with the words of this process's command line. Its status is that of `--help`, or
/// of the program by whose name it is called.
pub fn main() -> ExitCode {
    let words = match command::check::alignment_scan::translated(std::env::args_os().collect()) {
        Ok(words) => words,
        Err(status) => return status,
    };
    let options = match args::help::parse(words) {
        Ok(options) => options,
        Err(answer) => return refuse(&answer),
    };
    let choice = match options.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
    config::load(options.config.as_deref());
    // Of what is said of the settings a log has objects too.
    if let Command::Serve(args) = &options.command {
        args.log_format.form().choose();
    }
    if let Err(why) = settled(&options.command) {
        let convention = match &options.command {
            Command::Check(args) => Convention::chosen(args),
            _ => None,
        };
        return match convention {
            Some(convention) => convention.fail(&why.0),
            None => Failure::from(why).end(),
        };
    }
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
        Command::Convert(args) => command::converting::run(&args),
        Command::Plan(args) => command::plan::run(&args),
        Command::Drives(args) => command::drives::run(&args),
        Command::Bench(args) => command::bench::run(&args),
        Command::Lab(args) => command::lab::run(&args),
        Command::Serve(args) => command::serve::run(&args),
        Command::Probe(args) => command::probe::run(&args),
        Command::Trace(args) => command::trace::run(&args),
        Command::Help { words } => command::help::run(&words),
        Command::Complete { words } => command::complete::run(&words),
        Command::Config(args) => command::config::run(&args),
        Command::Explain(args) => command::explain::run(&args),
        Command::Demo(args) => command::demo::run(&args),
        Command::Man { dir } => command::man::run(&dir),
        Command::Completions { shell } => command::completions::run(shell),
    };
    done.unwrap_or_else(Failure::end)
}

/// Refuses to go on where the settings are wrong, and names the files that are not believed. What
/// helps to mend them goes on.
fn settled(command: &Command) -> Result<(), Reason> {
    if command.is_about_the_program() {
        return Ok(());
    }
    config::load(None).notes().for_each(|note| complain(&note));
    config::config().map(|_| ())
}

/// The unknown option, and a hint at serve's own name for it, if another NBD server has such an
/// option.
fn foreign(answer: &clap::Error) -> Option<(String, &'static str)> {
    let unknown = answer.kind() == ErrorKind::UnknownArgument;
    match answer.get(ContextKind::InvalidArg).filter(|_| unknown)? {
        ContextValue::String(option) => {
            Some((option.clone(), command::serve::args::hints::hint(option)?))
        }
        _ => None,
    }
}

/// Prints help as it is. An error in the command line becomes one line on stderr, like every other
/// failure.
fn refuse(answer: &clap::Error) -> ExitCode {
    if args::help::is_page(answer) {
        // A reader that has gone needs no message.
        let _ = args::help::print(answer, &args::help::typed(std::env::args_os().skip(1)));
        return ExitCode::from(u8::from(answer.use_stderr()) * 2);
    }
    let path = args::help::typed(std::env::args_os().skip(1)).join(" ");
    if let (true, Some((option, hint))) = (path == "serve", foreign(answer)) {
        complain(&format!("{option} is no option of serve: {hint}; see trueline serve --help"));
        return ExitCode::from(2);
    }
    let text = answer.to_string();
    let paragraphs = text
        .trim_start_matches("error: ")
        .split("\n\n")
        .filter(|p| !p.starts_with("Usage:") && !p.starts_with("For more information"));
    let paragraphs: Vec<String> =
        paragraphs.map(|p| p.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let convention =
        Some(std::env::args_os().skip(1)).filter(|_| path == "check").and_then(Convention::meant);
    let path = if path.is_empty() { path } else { path + " " };
    let why = format!("{}; see trueline {path}--help", paragraphs.join("; "));
    if let Some(convention) = convention {
        return convention.fail(&why);
    }
    complain(&why);
    ExitCode::from(2)
}
