//! The synopsis of a manual page: every option with its value, `{A | B}` where one of several is
//! needed.

use super::roff::{quoted, text};
use clap::{Arg, ArgAction, Command};
use std::io::{self, Write};

/// Writes the section. A usage that the command words itself stands as it is.
pub(super) fn write(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    writeln!(out, ".SH SYNOPSIS\n.nh\n.ad l")?;
    if let Some(usage) = command.get_overridden_usage() {
        let lines: Vec<String> = usage.to_string().lines().map(|line| text(line.trim())).collect();
        writeln!(out, "{}", lines.join("\n.br\n"))?;
    } else {
        // A command of several words is one thing.
        writeln!(out, ".HP 4\n\\fB{}\\fR", text(name).replace(' ', "\\ "))?;
        parts(command).iter().try_for_each(|part| writeln!(out, "{}", part.replace(' ', "\\ ")))?;
    }
    writeln!(out, ".ad b\n.hy")
}

/// Options, then groups of which one is needed, then what has no name; each is set without a break.
fn parts(command: &Command) -> Vec<String> {
    let needed: Vec<Vec<&Arg>> = command
        .get_groups()
        .filter(|group| group.is_required_set())
        .map(|group| {
            group
                .get_args()
                .filter_map(|id| command.get_arguments().find(|arg| arg.get_id() == id))
                .collect()
        })
        .collect();
    let in_group =
        |arg: &Arg| needed.iter().flatten().any(|member| member.get_id() == arg.get_id());
    let plain = |arg: &&Arg| {
        !arg.is_hide_set() && !in_group(arg) && !matches!(arg.get_id().as_str(), "help" | "version")
    };
    let mut options: Vec<&Arg> =
        command.get_arguments().filter(plain).filter(|arg| !arg.is_positional()).collect();
    options.sort_by_key(|arg| arg.is_required_set());
    let mut parts: Vec<String> =
        options.into_iter().map(|arg| optional(arg, &option(arg))).collect();
    parts.extend(needed.iter().filter(|group| !group.is_empty()).map(|group| {
        let members: Vec<String> = group
            .iter()
            .map(|arg| if arg.is_positional() { value(arg) } else { option(arg) })
            .collect();
        format!("{{{}}}", members.join(" | "))
    }));
    parts.extend(command.get_arguments().filter(plain).filter(|arg| arg.is_positional()).map(
        |arg| {
            let dashes = if arg.is_last_set() { "\\-\\- " } else { "" };
            optional(arg, &format!("{dashes}{}", value(arg)))
        },
    ));
    if command.has_subcommands() {
        parts.push(
            if command.is_subcommand_required_set() {
                "\\fICOMMAND\\fR"
            } else {
                "[\\fICOMMAND\\fR]"
            }
            .to_owned(),
        );
    }
    parts
}

/// In brackets, unless it is required; with dots where it may be there several times.
fn optional(arg: &Arg, part: &str) -> String {
    let several = matches!(arg.get_action(), ArgAction::Append | ArgAction::Count)
        || arg.get_num_args().is_some_and(|n| n.max_values() > 1);
    let dots = if several { "..." } else { "" };
    if arg.is_required_set() { format!("{part}{dots}") } else { format!("[{part}]{dots}") }
}

/// `--journal FILE`; the short form where there is no long one.
fn option(arg: &Arg) -> String {
    let long = arg.get_long().map(|long| format!("\\-\\-{}", quoted(long)));
    let short = || arg.get_short().map(|short| format!("\\-{short}"));
    let name = long.or_else(short).unwrap_or_default();
    match arg.get_num_args() {
        Some(n) if n.max_values() == 0 => format!("\\fB{name}\\fR"),
        Some(n) if n.min_values() == 0 => format!("\\fB{name}\\fR [{}]", value(arg)),
        _ => format!("\\fB{name}\\fR {}", value(arg)),
    }
}

/// The name of what is typed.
fn value(arg: &Arg) -> String {
    let names: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(|name| text(name)).collect();
    let names =
        if names.is_empty() { arg.get_id().as_str().to_uppercase() } else { names.join(" ") };
    format!("\\fI{names}\\fR")
}
