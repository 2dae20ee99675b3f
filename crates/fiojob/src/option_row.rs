//! A row of a table of options: its name, and the treatment of what it asks for.

/// Treatment of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    pub kind: Kind,
}

impl OptionRow {
    /// True if it may stand without a value. On a command line fio then takes a value only behind `=`.
    pub fn is_switch(&self) -> bool {
        SWITCHES.contains(&self.name)
    }
}

/// Options whose type is FIO_OPT_STR_SET in fio's options.c and engines.
const SWITCHES: &[&str] = &[
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "fixedbufs",
    "group_reporting",
    "hipri",
    "new_group",
    "norandommap",
    "refill_buffers",
    "registerfiles",
    "sqthread_poll",
    "stonewall",
    "thread",
    "time_based",
    "userspace_reap",
    "verify_only",
    "zero_buffers",
    // Of fio's own command line.
    "append-terse",
    "bandwidth-log",
    "latency-log",
    "merge-blktrace-only",
    "minimal",
    "parse-only",
    "readonly",
    "showcmd",
    "warnings-fatal",
];

pub(crate) const fn done(name: &'static str, aliases: &'static [&'static str]) -> OptionRow {
    OptionRow {
        name,
        aliases,
        kind: Kind::Done,
    }
}

pub(crate) const fn harmless(name: &'static str, why: &'static str) -> OptionRow {
    OptionRow {
        name,
        aliases: &[],
        kind: Kind::Harmless(why),
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
        kind: Kind::Noted(off, note),
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
        kind: Kind::Stops(off, why),
    }
}
