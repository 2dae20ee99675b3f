//! `fleet exec`: any program on every host, with its answers grouped like those of `fleet run`.

use std::sync::atomic::AtomicBool;

use super::{HostWork, RunKind, TimeLimits, answer, failed, on_all};
use crate::args::ExecArgs;
use crate::reach::find;
use ui::context::Context;
use ui::exit::Outcome;

/// Runs a program on every host.
pub(crate) fn exec(args: &ExecArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let mut found = find(&args.source)?;
    if args.retry_failed {
        found.hosts = failed(found.hosts, (RunKind::Exec, &args.program), context)?;
    }
    for one in &found.left_out {
        context.notice(one);
    }
    let work = HostWork {
        limits: TimeLimits::of_verb(args.limit),
        ..HostWork::same_for_all(RunKind::Exec, args.program.clone())
    };
    let run = on_all(work, &found.hosts, &args.reach, context, interrupt)?;
    answer(&run, args.json, context, interrupt)
}
