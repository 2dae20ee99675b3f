//! `fleet zero`: `zero` on all hosts, after one plan of all was shown and agreed to.

use std::sync::atomic::AtomicBool;

use super::destroy::Destroying;
use super::run::{Kind, Limits, words_of_zero};
use crate::args::FleetZeroArgs;
use ui::context::Context;
use ui::exit::Outcome;

/// Zeroes disks on all hosts.
pub(crate) fn zero(args: &FleetZeroArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let destroying = Destroying {
        kind: Kind::Zero,
        look: words_of_zero(&args.zero, true)?,
        words: words_of_zero(&args.zero, false)?,
        limits: Limits::NONE,
        source: &args.source,
        reach: &args.reach,
        yes: args.yes,
        dry_run: args.dry_run,
        json: args.json,
    };
    destroying.carry_out(context, interrupt)
}
