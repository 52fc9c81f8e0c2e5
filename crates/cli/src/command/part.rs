//! `part`: partition tables as gpart(8) edits them, on the grain.

use crate::command::part::args::{Part, Verb};
use crate::failure::Failure;
use std::process::ExitCode;

mod apply;
pub(crate) mod args;
mod edit;
pub(crate) mod json;
pub(crate) mod layout;
pub(crate) mod picture;
mod restore;
mod show;
#[cfg(test)]
pub(crate) mod tables;
pub(crate) mod text;
mod undo;

pub(crate) fn run(args: &Part) -> Result<ExitCode, Failure> {
    match &args.verb {
        Verb::Show(args) => show::show(args),
        Verb::Backup(args) => show::backup(args),
        Verb::Restore(args) => restore::run(args),
        Verb::Create(args) => edit::create(args),
        Verb::Destroy(args) => edit::destroy(args),
        Verb::Add(args) => edit::add(args),
        Verb::Delete(args) => edit::delete(args),
        Verb::Modify(args) => edit::modify(args),
        Verb::Resize(args) => edit::resize(args),
        Verb::Set(args) => edit::mark(args, true),
        Verb::Unset(args) => edit::mark(args, false),
        Verb::Recover(args) => edit::recover(args),
        Verb::Apply(args) => apply::run(args),
        Verb::Undo(args) => undo::run(args),
    }
}
