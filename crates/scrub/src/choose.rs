//! Choice of the arrays to scrub, and of those that run at the same time.

use jiff::{SignedDuration, Timestamp};
use job::JobStore;
use linux::block::{DeviceNumber, Devices};
use linux::{Root, md};

use super::checkpoint::Checkpoint;
use super::target::Target;
use crate::args::ScrubArgs;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};
use ui::units::span;

/// The arrays that were requested and are due. With `--all`, arrays that cannot be scrubbed are reported and left out.
///
/// # Errors
/// When an array that was named cannot be scrubbed, or with `--all` no array can.
pub(crate) fn choose(
    args: &ScrubArgs,
    devices: &Devices,
    context: &Context,
) -> Result<Vec<Target>, Failure> {
    let targets = if args.all {
        all(devices, context)?
    } else {
        named(&args.arrays, devices, context)?
    };
    let Some(every) = args.every else {
        return Ok(targets);
    };
    let store = JobStore::open_if_there(context).ok().flatten();
    let least = SignedDuration::from_nanos(i64::try_from(every.0.0).unwrap_or(i64::MAX));
    let is_due = |target: &Target| {
        let find = |store: &JobStore| store.find::<Checkpoint>(&target.uuid).ok()?;
        let work = store.as_ref().and_then(find);
        let finished = work
            .filter(|work| !work.document.repairs)
            .and_then(|work| work.summary.finished);
        finished.is_none_or(|finished| Timestamp::now().duration_since(finished) >= least)
    };
    let (due, done): (Vec<Target>, Vec<Target>) = targets.into_iter().partition(is_due);
    for target in done {
        context.notice(&format!(
            "disksmith: {} was scrubbed less than {} ago, and is not due (--every).",
            target.path(),
            span(every.0.as_secs_f64())
        ));
    }
    Ok(due)
}

/// All arrays of the host that can be scrubbed.
fn all(devices: &Devices, context: &Context) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    let mut problems = Vec::new();
    for array in md::arrays(&context.root, devices).refused()? {
        match Target::find(&array.name, &context.root, devices) {
            Ok(target) => targets.push(target),
            Err(problem) => problems.push(problem),
        }
    }
    if targets.is_empty() {
        problems.push(match problems.is_empty() {
            true => "there is no array on this host; a single disk is read instead: disksmith scrub --read DISK".to_owned(),
            false => "of the arrays of this host none can be scrubbed".to_owned(),
        });
        return Err(Failure::refused_for("nothing is scrubbed", &problems));
    }
    for problem in problems {
        context.notice(&format!("disksmith: {problem}"));
    }
    Ok(targets)
}

/// True if an array of the host lacks a member. The others are scrubbed all the same, but the exit status tells a user
/// or a timer that scrubs all arrays.
pub(crate) fn is_any_degraded(root: &Root) -> bool {
    let arrays = Devices::read(root).ok();
    let arrays = arrays.and_then(|devices| md::arrays(root, &devices).ok());
    arrays.is_some_and(|arrays| arrays.iter().any(|array| array.degraded.unwrap_or(0) > 0))
}

/// The arrays that were named. The error lists the problems of all of them.
fn named(words: &[String], devices: &Devices, context: &Context) -> Result<Vec<Target>, Failure> {
    let mut targets: Vec<Target> = Vec::new();
    let mut problems = Vec::new();
    for word in words {
        match Target::find(word, &context.root, devices) {
            Ok(target) => {
                if let Some(other) = targets.iter().find(|other| share(other, &target)) {
                    problems.push(format!(
                        "{} and {} share a disk, so each would slow down the other; scrub one \
                         after the other, as --all does",
                        other.path(),
                        target.path()
                    ));
                }
                targets.push(target);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok(targets)
    } else {
        Err(Failure::refused_for("nothing is scrubbed", &problems))
    }
}

/// The disks of an array that none of the `others` uses: each disk is locked once, by one of the arrays.
pub(crate) fn new_disks(target: &Target, others: &[Target]) -> Vec<DeviceNumber> {
    let disks = target.disks.iter().copied();
    disks
        .filter(|disk| !others.iter().any(|other| other.disks.contains(disk)))
        .collect()
}

fn share(one: &Target, other: &Target) -> bool {
    one.disks.iter().any(|disk| other.disks.contains(disk))
}

/// The arrays of a later round in their current state, and for each array that can no longer be scrubbed the reason, as
/// a sentence. Hours or days may have passed since they were chosen.
pub(crate) fn refresh_targets(round: Vec<Target>, root: &Root) -> (Vec<Target>, Vec<String>) {
    let mut targets = Vec::new();
    let mut left_out = Vec::new();
    for target in round {
        match target.again(root) {
            Ok(target) => targets.push(target),
            Err(why) => left_out.push(format!("It was not begun, since by now {why}.")),
        }
    }
    (targets, left_out)
}

/// The arrays, divided into rounds. No two arrays of a round share a disk.
pub(crate) fn rounds(targets: Vec<Target>) -> Vec<Vec<Target>> {
    let mut rounds: Vec<Vec<Target>> = Vec::new();
    for target in targets {
        let free = rounds
            .iter_mut()
            .find(|round| !round.iter().any(|other| share(other, &target)));
        match free {
            Some(round) => round.push(target),
            None => rounds.push(vec![target]),
        }
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::super::target::tests::tree;
    use super::*;

    #[test]
    fn an_array_that_lacks_a_member_is_found() {
        let (_place, root) = tree(&[]);
        assert!(!is_any_degraded(&root));
        let (_place, root) = tree(&[("degraded", "1")]);
        assert!(is_any_degraded(&root));
    }
}
