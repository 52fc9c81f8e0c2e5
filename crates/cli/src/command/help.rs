//! `help`: the options of a command, or a page on a topic of all commands.

use super::explain;
use crate::args::help;
use crate::command::explain::topics::{self, TOPICS};
use crate::failure::Failure;
use crate::style::Style;
use crate::words::terminal;
use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) fn run(words: &[String]) -> Result<ExitCode, Failure> {
    if let [name] = words
        && let Some(page) = topics::page(name)
    {
        terminal::write(&page, &mut anstream::stdout().lock(), Style::of_stdout())?;
        return Ok(ExitCode::SUCCESS);
    }
    // The same text as `COMMAND --help`.
    let line = ["trueline"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match help::parse(line.map(OsString::from)) {
        Err(answer) if !answer.use_stderr() => {
            help::print(&answer, words)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            // Rules, profiles and words have their pages in explain.
            if let [name] = words
                && explain::page(name).is_some()
            {
                return Err(Failure::Message(format!(
                    "help {name}: neither a command nor a topic: see trueline explain {name}"
                )));
            }
            let names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
            let topics = names.join(", ");
            Err(Failure::Message(format!(
                "help {}: neither a command nor one of the topics {topics}; see trueline --help",
                words.join(" ")
            )))
        }
    }
}
