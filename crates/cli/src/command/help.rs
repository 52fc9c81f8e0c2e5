//! `help`: what a command takes, or a page on what all of them share.

use crate::args::Options;
use crate::command::explain::topics::{self, TOPICS};
use crate::failure::Failure;
use crate::render::Style;
use crate::render::words::terminal;
use clap::Parser;
use std::process::ExitCode;

pub(crate) fn run(words: &[String]) -> Result<ExitCode, Failure> {
    if let [name] = words
        && let Some(page) = topics::page(name)
    {
        terminal::write(&page, &mut anstream::stdout().lock(), Style::of_stdout())?;
        return Ok(ExitCode::SUCCESS);
    }
    // What `COMMAND --help` prints.
    let line = ["trueline"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match Options::try_parse_from(line) {
        Err(help) if !help.use_stderr() => {
            help.print()?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            let names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
            let topics = names.join(", ");
            Err(Failure::Message(format!(
                "help {}: neither a command nor one of the topics {topics}; see trueline --help",
                words.join(" ")
            )))
        }
    }
}
