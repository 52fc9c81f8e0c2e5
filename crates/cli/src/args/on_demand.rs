//! Options of one command, which clap gets to know once that command is typed.

use clap::builder::Resettable;
use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id};
use std::ops::Deref;

/// Options of a command, or of a verb of one: every run would build those of all for the sake of
/// one, which takes more instructions than a check of a small disk.
pub(crate) struct OnDemand<T>(T);

impl<T> Deref for OnDemand<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for OnDemand<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(built::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

/// The command with the options of `T`. Its description stays: options that commands share would
/// each leave their own behind. Global options, which it has already, go behind the new ones.
fn built<T: Args>(command: Command) -> Command {
    let about = Resettable::from(command.get_about().cloned());
    let long = Resettable::from(command.get_long_about().cloned());
    let global: Vec<Id> = command.get_arguments().map(|arg| arg.get_id().clone()).collect();
    let command = T::augment_args(command).about(about).long_about(long);
    // An argument that is changed becomes the last one.
    global.into_iter().fold(command, |command, id| command.mut_arg(id, |arg| arg))
}

impl<T: FromArgMatches> FromArgMatches for OnDemand<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(OnDemand)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(OnDemand)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}
