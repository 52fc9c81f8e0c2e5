//! Parsing and `--help`: clap prints the options, and what stands behind them is printed here,
//! since clap would break commands.

use super::Options;
use crate::style::Style;
use crate::words::after_help;
use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error, FromArgMatches};
use std::ffi::OsString;
use std::io::{self, Write};

/// Columns of the widest page, as of clap's own part.
const WIDEST: usize = 100;
/// Columns that a usage line goes on behind.
const USAGE: usize = 7;

/// Parses the words of a command line, the program's name first.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Options, Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    let mut command = Options::command();
    match command.try_get_matches_from_mut(&words) {
        Ok(parsed) => Options::from_arg_matches(&parsed).map_err(|e| e.format(&mut command)),
        // Asked for once more: the text behind the options is known only once they are built.
        Err(answer) if is_page(&answer) => {
            Err(bare(whole()).try_get_matches_from_mut(words).err().unwrap_or(answer))
        }
        Err(answer) => Err(without_hidden(answer)),
    }
}

/// True if help or the version is what is printed, not an error.
pub(crate) fn is_page(answer: &Error) -> bool {
    matches!(
        answer.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// The program with the options of every command; parsing builds those of one.
fn whole() -> Command {
    let mut program = Options::command();
    program.build();
    program
}

/// The commands without the text behind their options.
fn bare(command: Command) -> Command {
    command.after_help(Resettable::Reset).mut_subcommands(bare)
}

/// An error that suggests no command which is not listed.
fn without_hidden(mut answer: Error) -> Error {
    let program = Options::command();
    let is_hidden = |name: &String| program.find_subcommand(name).is_some_and(Command::is_hide_set);
    if let Some(ContextValue::Strings(names)) = answer.get(ContextKind::SuggestedSubcommand) {
        let listed: Vec<String> = names.iter().filter(|name| !is_hidden(name)).cloned().collect();
        let listed =
            if listed.is_empty() { ContextValue::None } else { ContextValue::Strings(listed) };
        answer.insert(ContextKind::SuggestedSubcommand, listed);
    }
    answer
}

/// The command and verb that are being typed, as far as they are any.
pub(crate) fn typed(words: impl Iterator<Item = OsString>) -> Vec<String> {
    let (mut at, mut path) = (whole(), Vec::new());
    let mut words = words.filter_map(|word| word.into_string().ok()).peekable();
    while words.next_if(|word| word.starts_with('-')).is_some_and(|word| !word.contains('=')) {
        words.next_if(|word| at.find_subcommand(word).is_none());
    }
    for word in words {
        let Some(next) = at.find_subcommand(&word).cloned() else { break };
        path.push(word);
        at = next;
    }
    path
}

/// Prints help that was asked for, of the command at `path`, on stdout, or on stderr where a
/// command was left out.
pub(crate) fn print(answer: &Error, path: &[String]) -> io::Result<()> {
    let program = whole();
    let command = path.iter().try_fold(&program, |command, word| command.find_subcommand(word));
    let is_help = answer.kind() != ErrorKind::DisplayVersion;
    let after =
        command.and_then(Command::get_after_help).filter(|_| is_help).map(ToString::to_string);
    let on_stderr = answer.use_stderr();
    let width = if on_stderr { Style::of_stderr() } else { Style::of_stdout() }
        .width
        .map(|width| width.min(WIDEST));
    let mut page = Vec::new();
    for line in answer.render().ansi().to_string().trim_end().lines() {
        writeln!(page, "{}", fitted(line, width))?;
    }
    if let Some(after) = after {
        writeln!(page)?;
        after_help::write(&after, width, &mut page)?;
    }
    if on_stderr {
        anstream::stderr().write_all(&page)
    } else {
        anstream::stdout().write_all(&page)
    }
}

/// A line of clap's, which breaks neither usage lines nor headings, broken between words.
fn fitted(line: &str, width: Option<usize>) -> String {
    let shown = |text: &str| anstream::adapter::strip_str(text).to_string().chars().count();
    let Some(width) = width.filter(|&width| shown(line) > width) else { return line.to_owned() };
    let plain = anstream::adapter::strip_str(line).to_string();
    let blank = plain.len() - plain.trim_start().len();
    let indent = if plain.starts_with("Usage:") { USAGE } else { blank };
    let (mut text, mut at) = (String::new(), 0);
    for word in line.split(' ') {
        let length = shown(word);
        if at > blank && at + 1 + length > width {
            text += &format!("\n{:indent$}", "");
            at = indent;
        } else if !text.is_empty() || at > 0 {
            text.push(' ');
            at += 1;
        }
        text += word;
        at += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_leave_the_description_of_their_command_as_it_is() {
        let described = |program: &Command| -> Vec<String> {
            let about = |command: &Command| command.get_about().map(ToString::to_string);
            program.get_subcommands().map(|command| about(command).unwrap_or_default()).collect()
        };
        let before = described(&Options::command());
        assert!(before.iter().all(|about| !about.is_empty()), "{before:?}");
        assert_eq!(described(&whole()), before);
    }

    #[test]
    fn global_options_come_last() {
        let program = whole();
        for name in ["check", "bench", "serve"] {
            let command = program.find_subcommand(name).unwrap();
            let mut headings: Vec<_> =
                command.get_opts().filter_map(|arg| arg.get_help_heading()).collect();
            headings.dedup();
            assert!(headings.len() > 1, "{name}: {headings:?}");
            assert_eq!(headings.last(), Some(&"Global options"), "{name}: {headings:?}");
        }
    }

    #[test]
    fn the_options_of_one_command_alone_are_built() {
        let mut program = Options::command();
        program.try_get_matches_from_mut(["trueline", "check", "disk.img"]).unwrap();
        let of = |name| program.find_subcommand(name).unwrap().get_arguments();
        assert!(of("check").any(|arg| arg.get_id() == "strict"));
        assert!(!of("serve").any(|arg| arg.get_id() == "strict"));
        assert_eq!(program.find_subcommand("part").unwrap().get_subcommands().count(), 0);
    }

    #[test]
    fn verbs_that_are_typed_are_found() {
        let path = |line: &str| typed(line.split(' ').map(OsString::from));
        assert_eq!(path("--color never part add --help"), ["part", "add"]);
        assert_eq!(path("stripe label -x"), ["stripe", "label"]);
        assert_eq!(path("help part"), ["help"]);
    }
}
