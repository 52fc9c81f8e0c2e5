//! `man`: the manual pages, from the same definitions as the command line, with the manual of each
//! command.

use crate::args::Options;
use crate::failure::Failure;
use crate::words;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

mod roff;
mod synopsis;

/// The manual of each command.
const MANUAL: [(&str, &str); 16] = [
    ("bench", include_str!("../../docs/manual/bench.md")),
    ("check", include_str!("../../docs/manual/check.md")),
    ("config", include_str!("../../docs/manual/config.md")),
    ("convert", include_str!("../../docs/manual/convert.md")),
    ("drives", include_str!("../../docs/manual/drives.md")),
    ("lab", include_str!("../../docs/manual/lab.md")),
    ("mkfs", include_str!("../../docs/manual/mkfs.md")),
    ("move", include_str!("../../docs/manual/move.md")),
    ("part", include_str!("../../docs/manual/part.md")),
    ("part-apply", include_str!("../../docs/manual/apply.md")),
    ("plan", include_str!("../../docs/manual/plan.md")),
    ("probe", include_str!("../../docs/manual/probe.md")),
    ("serve", include_str!("../../docs/manual/serve.md")),
    ("show", include_str!("../../docs/manual/show.md")),
    ("stripe", include_str!("../../docs/manual/sets.md")),
    ("trace", include_str!("../../docs/manual/trace.md")),
];

pub(crate) fn run(dir: &Path) -> Result<ExitCode, Failure> {
    let failed = |e: io::Error| {
        Failure::Message(format!("write manual pages into {}: {}", dir.display(), words::os(&e)))
    };
    let mut program = Options::command();
    program.build();
    let mut todo = vec![&program];
    while let Some(command) = todo.pop() {
        page(command, dir).map_err(failed)?;
        todo.extend(pages(command));
    }
    Ok(ExitCode::SUCCESS)
}

/// The commands of `command` that have a page of their own.
fn pages(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
}

/// Name of a command's page, `trueline-check`, once the program has been built.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// Writes one page. The text after the options of `--help` is set line by line: the generator would
/// fill its lines.
fn page(command: &Command, dir: &Path) -> io::Result<()> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis::write(command, &mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if pages(command).next().is_some() {
        writeln!(text, ".SH SUBCOMMANDS")?;
    }
    for inner in pages(command) {
        let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(text, ".TP\n{}(1)\n{}", roff::text(name(inner)), roff::text(&about))?;
    }
    for block in command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default()
        .split("\n\n")
        .filter(|block| !block.is_empty())
    {
        // A paragraph has no title of its own.
        let titled =
            block.split_once('\n').and_then(|(title, body)| Some((title.strip_suffix(':')?, body)));
        let (title, body) = titled.unwrap_or(("Notes", block));
        section(&mut text, title)?;
        roff::block(body, &mut text, title == "Examples")?;
    }
    let own = name(command).strip_prefix("trueline-").unwrap_or_default();
    if let Some((_, manual)) = MANUAL.iter().find(|(known, _)| *known == own) {
        self::manual(&mut text, manual)?;
    }
    std::fs::write(dir.join(format!("{}.1", name(command))), text)
}

/// The manual, a section a heading.
fn manual(text: &mut Vec<u8>, manual: &str) -> io::Result<()> {
    let (head, sections) = manual.split_once("\n## ").unwrap_or((manual, ""));
    let head = head.split_once('\n').map_or("", |(_, rest)| rest);
    let parts = [format!("Manual\n{head}")]
        .into_iter()
        .chain(sections.split("\n## ").filter(|part| !part.is_empty()).map(str::to_owned));
    for part in parts {
        let (title, body) = part.split_once('\n').unwrap_or((&part, ""));
        section(text, title)?;
        roff::markdown(body, text)?;
    }
    Ok(())
}

fn section(text: &mut Vec<u8>, title: &str) -> io::Result<()> {
    writeln!(text, ".SH \"{}\"", roff::quoted(&title.to_uppercase()))
}
