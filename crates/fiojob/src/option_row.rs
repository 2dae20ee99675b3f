//! A row of a table of options: the name and treatment of an option.

/// Treatment of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionSupport {
    /// The option is implemented.
    Done,
    /// The option cannot change the measurement, for this reason.
    Harmless(&'static str),
    /// The option is replaced by the nearest equivalent, with this note, except with one of these values, which
    /// request nothing.
    Noted(&'static [&'static str], &'static str),
    /// The option stops the run, for this reason, except with one of these values, which request nothing.
    Stops(&'static [&'static str], &'static str),
}

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionRow {
    /// Main name of the option.
    pub name: &'static str,
    /// Other names of the option.
    pub aliases: &'static [&'static str],
    /// Treatment of the option.
    pub kind: OptionSupport,
    /// True if the type of the option in fio's options.c and engines is FIO_OPT_STR_SET, or it has no argument on
    /// fio's own command line.
    is_switch: bool,
}

impl OptionRow {
    /// True if it may be given without a value. On a command line fio then takes a value only after `=`.
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
