//! Options of fio's own command line, which do not describe a job, and the treatment of each.

use crate::option_row::{OptionRow, done, harmless, stops};

const PROGRESS: &str = "progress is on standard error, where that is a terminal";
const TERSE: &str = "fio's terse output is not written; give --format csv, or --json";
const REMOTE: &str = "other hosts are measured by: disksmith fleet run";
const TRIGGER: &str = "no program is started while a job runs";
const INSPECT: &str = "it is a query to fio, and nothing is measured for it";
const LOGS: &str = "windows are written as fio's logs by --logs PREFIX";

/// Options of fio's command line that are known by name.
pub const COMMAND_OPTIONS: &[OptionRow] = &[
    done("output-format", &[]),
    done("section", &[]),
    harmless("eta", PROGRESS),
    harmless("eta-interval", PROGRESS),
    harmless("eta-newline", PROGRESS),
    harmless("status-interval", PROGRESS),
    harmless(
        "readonly",
        "an existing file or device is only read unless --destroy names it",
    )
    .switch(),
    harmless("alloc-size", "memory is allocated as needed"),
    harmless("max-jobs", "the number of jobs has no limit of its own"),
    harmless("warnings-fatal", "all problems of a job end it").switch(),
    harmless("aux-path", "nothing is kept of a job except its run"),
    harmless(
        "idle-prof",
        "the processor time of each phase is always measured",
    ),
    stops(
        "output",
        &[],
        "answers are on standard output; write > FILE behind the command",
    ),
    stops("minimal", &["0"], TERSE).switch(),
    stops("append-terse", &["0"], TERSE).switch(),
    stops("terse-version", &[], TERSE),
    stops("bandwidth-log", &["0"], LOGS).switch(),
    stops("latency-log", &["0"], LOGS).switch(),
    stops("server", &[], REMOTE),
    stops("client", &[], REMOTE),
    stops("daemonize", &[], REMOTE),
    stops("remote-config", &[], REMOTE),
    stops("trigger", &[], TRIGGER),
    stops("trigger-file", &[], TRIGGER),
    stops("trigger-timeout", &[], TRIGGER),
    stops("trigger-remote", &[], TRIGGER),
    stops("parse-only", &["0"], INSPECT).switch(),
    stops("showcmd", &["0"], INSPECT).switch(),
    stops("debug", &[], INSPECT),
    stops("inflate-log", &[], INSPECT),
    stops("merge-blktrace-only", &["0"], INSPECT).switch(),
];

/// The option of fio's command line with this name, if it is known.
pub(crate) fn find(name: &str) -> Option<&'static OptionRow> {
    COMMAND_OPTIONS.iter().find(|row| row.name == name)
}
