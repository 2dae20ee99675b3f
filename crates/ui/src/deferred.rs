//! Arguments that are declared only when they are needed.

use std::fmt;
use std::ops::{Deref, DerefMut};

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};

/// The arguments of a verb, of which clap learns when the verb is given. To declare those of all verbs at each start
/// takes longer than most verbs do.
pub struct Deferred<T>(pub Box<T>);

/// Adds the arguments to their verb, whose own description stays: the one of their type would take its place.
fn declare<T: Args>(verb: Command) -> Command {
    let short = Resettable::from(verb.get_about().cloned());
    let long = Resettable::from(verb.get_long_about().cloned());
    T::augment_args(verb).about(short).long_about(long)
}

impl<T: Args> Args for Deferred<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(verb: Command) -> Command {
        verb.defer(declare::<T>)
    }

    fn augment_args_for_update(verb: Command) -> Command {
        T::augment_args_for_update(verb)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Box::from_arg_matches(matches).map(Deferred)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        Box::from_arg_matches_mut(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: fmt::Debug> fmt::Debug for Deferred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Deferred<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
