//! The need of each command of the manual: the kind of host on which it runs.

/// Condition that a command has to find where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Files, loop devices and a ledger.
    Host,
    /// Somebody who ends it: it runs until an interrupt.
    Interrupt,
    /// The files of a database, on a file system of a disk.
    Files,
    /// A server of a database.
    Database,
    /// Other hosts.
    Hosts,
    /// A kernel with md, and disks for it.
    Array,
    /// QEMU, for minutes.
    Lab,
    /// An account at AWS, which `tests/sweep_ec2.rs` has.
    Cloud,
}

/// The need of the program's arguments.
pub(crate) fn of(words: &[String]) -> Need {
    let has = |option: &str| words.iter().any(|word| word.starts_with(option));
    match (words[0].as_str(), words.get(1).map_or("", String::as_str)) {
        ("fleet", "hosts" | "plan") => Need::Host,
        ("fleet", _) if has("--collect") => Need::Host,
        ("fleet", _) => Need::Hosts,
        ("lab", "serve") => Need::Interrupt,
        ("lab", _) => Need::Lab,
        ("array", action) if action != "list" => Need::Array,
        ("scrub", _) if !has("--status") && !has("--read") => Need::Array,
        ("sweep", _) if has("--ec2") => Need::Cloud,
        ("sweep", _) => Need::Array,
        ("doctor", _) if has("--mysql") || has("--postgres") => Need::Database,
        ("serve", action) if action != "token" => Need::Interrupt,
        ("tally", _) if has("--follow") => Need::Interrupt,
        ("warm" | "trace", _) if has("--first") || has("--dataset") => Need::Files,
        _ => Need::Host,
    }
}
