//! A row of a table of options: its name, and the treatment of what it asks for.

/// Treatment of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionSupport {
    /// It is done.
    Done,
    /// It cannot change what is measured here, for this reason.
    Harmless(&'static str),
    /// The job is run as the nearest thing, with this note, except with one of these values, which ask for nothing.
    Noted(&'static [&'static str], &'static str),
    /// It stops the run, except with one of these values, which ask for nothing; and why.
    Stops(&'static [&'static str], &'static str),
}

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionRow {
    /// Its chief name.
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// Its treatment.
    pub kind: OptionSupport,
    /// Its type in fio's options.c and engines is FIO_OPT_STR_SET, or on fio's own command line it has no argument.
    is_switch: bool,
}

impl OptionRow {
    /// True if it may stand without a value. On a command line fio then takes a value only behind `=`.
    pub fn is_switch(&self) -> bool {
        self.is_switch
    }

    pub(crate) const fn switch(self) -> OptionRow {
        OptionRow {
            is_switch: true,
            ..self
        }
    }
}

pub(crate) const fn done(name: &'static str, aliases: &'static [&'static str]) -> OptionRow {
    OptionRow {
        name,
        aliases,
        kind: OptionSupport::Done,
        is_switch: false,
    }
}

pub(crate) const fn harmless(name: &'static str, why: &'static str) -> OptionRow {
    OptionRow {
        name,
        aliases: &[],
        kind: OptionSupport::Harmless(why),
        is_switch: false,
    }
}

pub(crate) const fn noted(
    name: &'static str,
    off: &'static [&'static str],
    note: &'static str,
) -> OptionRow {
    OptionRow {
        name,
        aliases: &[],
        kind: OptionSupport::Noted(off, note),
        is_switch: false,
    }
}

pub(crate) const fn stops(
    name: &'static str,
    off: &'static [&'static str],
    why: &'static str,
) -> OptionRow {
    OptionRow {
        name,
        aliases: &[],
        kind: OptionSupport::Stops(off, why),
        is_switch: false,
    }
}
