//! A sweep that goes on where one of the same settings was stopped.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use job::{Job, Store, Takeover};
use ledger::{OwnerLiveness, Work};
use linux::consent::{Reason, Refusal, open_for_destroying};
use linux::process;

use super::check::missing;
use super::checkpoint::Checkpoint;
use super::ready::{ETC, Ready, host, refused};
use super::record::Settings;
use super::testbed::{Allowed, Testbed};
use super::underway::Underway;
use array::programs::Programs;
use array::steps::Undone;
use domain::plan_binding;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// Takes down what a killed start has left of a sweep, and claims the devices.
///
/// # Errors
/// Refused, where it cannot go on here, or on these devices; failed midway, where what was left could not be
/// taken down.
pub(super) fn resume(
    key: &str,
    settings: &Settings,
    allowed: &Allowed,
    store: Store,
    context: &mut Context,
    programs: &mut dyn Programs,
) -> Result<Ready, Failure> {
    let (mut job, work) = Job::claim(store, key, Takeover::FromDead).refused()?;
    let mut checkpoint = work.document;
    let boot = process::boot_id(&context.root).refused()?;
    rename(&mut checkpoint, key, settings, &boot)?;
    let paths = checkpoint.record.settings.paths();
    // What was left is taken down before the disks can be claimed, and is to be of the plan too.
    plan_binding::check_reading(&allowed.planned, &paths, &context.root)
        .map_err(|problems| refused(&problems))?;
    context.notice(&format!(
        "disksmith: going on with sweep {key}: {} measured so far.",
        checkpoint.record.cells.len()
    ));
    take_down(&mut checkpoint, &paths, context, programs)?;
    checkpoint.boot = boot;
    checkpoint.record.starts += 1;
    job.save(&checkpoint).midway()?;
    let testbed = Testbed::claim(&context.root, Path::new(ETC), &paths, allowed)
        .map_err(|problems| refused(&problems))?;
    Ok(Ready {
        checkpoint,
        job,
        testbed,
    })
}

/// Gives the volumes the names that they have now: a boot may have given them others.
///
/// # Errors
/// Refused, where one of them cannot be told from others since a boot.
fn rename(
    checkpoint: &mut Checkpoint,
    key: &str,
    settings: &Settings,
    boot: &str,
) -> Result<(), Failure> {
    let nameless = checkpoint
        .record
        .settings
        .devices
        .iter()
        .find(|v| v.id.is_none());
    if let Some(nameless) = nameless.filter(|_| checkpoint.boot != boot) {
        return Err(Failure::refused(format!(
            "the sweep {key} cannot continue: {} has no serial number, and since the machine was \
             booted its name may be another disk's. disksmith sweep --abandon {key} gives it up",
            nameless.path.display()
        )));
    }
    for volume in &mut checkpoint.record.settings.devices {
        if let Some(now) = settings.devices.iter().find(|now| volume.is(now)) {
            volume.path.clone_from(&now.path);
        }
    }
    Ok(())
}

/// Looks whether a sweep could go on, as far as that can be known while what a killed start has left still
/// stands. Nothing is touched.
///
/// # Errors
/// Everything that would speak against it.
pub(super) fn rehearse(
    work: Work<Checkpoint>,
    settings: &Settings,
    allowed: &Allowed,
    store: &Store,
    context: &Context,
) -> Result<(), Failure> {
    let key = &work.summary.key;
    if store.liveness(&work.summary.owner) == OwnerLiveness::Alive {
        return Err(Failure::refused(format!(
            "the sweep {key} of these devices is under way; wait for its end, or end it"
        )));
    }
    let mut checkpoint = work.document;
    rename(
        &mut checkpoint,
        key,
        settings,
        &process::boot_id(&context.root).refused()?,
    )?;
    let paths = checkpoint.record.settings.paths();
    let Some(left) = &checkpoint.underway else {
        let claimed = Testbed::claim(&context.root, Path::new(ETC), &paths, allowed);
        return claimed.map(drop).map_err(|problems| refused(&problems));
    };
    let problems: Vec<String> = paths
        .iter()
        .enumerate()
        .filter_map(|(at, path)| {
            let refusal = open_for_destroying(&context.root, path, &allowed.consents).err()?;
            let is_member = at < left.members;
            without_left(refusal, is_member.then_some(left))
        })
        .map(|refusal| refusal.to_string())
        .collect();
    if problems.is_empty() {
        plan_binding::check_reading(&allowed.planned, &paths, &context.root)
            .map_err(|problems| refused(&problems))
    } else {
        Err(refused(&problems))
    }
}

/// Rest of a refusal once a layout is taken down that a killed start has left on the device; `None` where
/// that is nothing. Whoever else holds the device is found when it is claimed after that.
fn without_left(mut refusal: Refusal, left: Option<&Underway>) -> Option<Refusal> {
    if let Some(left) = left {
        refusal.reasons.retain(|reason| match reason {
            Reason::Held { .. } | Reason::Busy { .. } | Reason::Carries { .. } => false,
            Reason::Mounted { point, .. } => *point != left.mount,
            _ => true,
        });
    }
    (!refusal.reasons.is_empty()).then_some(refusal)
}

/// The programs without which it cannot be known what is left.
const TAKING_DOWN: [(&str, &str); 3] = [
    ("umount", "mount, or util-linux"),
    ("wipefs", "util-linux"),
    ("mdadm", "mdadm"),
];

/// Takes down what a start that was killed has left on the devices at these paths.
///
/// # Errors
/// Parts that could not be taken down, or the reason why nothing was.
pub(crate) fn take_down(
    checkpoint: &mut Checkpoint,
    paths: &[PathBuf],
    context: &Context,
    programs: &mut dyn Programs,
) -> Result<(), Failure> {
    let Some(underway) = &checkpoint.underway else {
        return Ok(());
    };
    // A sweep of disks alone has never needed mdadm.
    let had_arrays = checkpoint.record.has_arrays();
    for (program, package) in TAKING_DOWN {
        if !programs.has(program) && (program != "mdadm" || had_arrays) {
            return Err(Failure::refused(format!(
                "the remains of the killed sweep cannot be taken down: {}",
                missing(program, package)
            )));
        }
    }
    let mut report = |_: &str| ();
    let undone = underway.take_down(&mut host(context, programs, &mut report), paths, had_arrays);
    let back: Vec<&str> = undone.iter().filter_map(Undone::back).collect();
    if !back.is_empty() {
        context.notice(&format!(
            "disksmith: remains of the killed sweep: {}.",
            back.join("; ")
        ));
    }
    let left: Vec<&str> = undone.iter().filter_map(Undone::left).collect();
    if left.is_empty() {
        checkpoint.underway = None;
        return Ok(());
    }
    Err(Failure::Midway(anyhow!(
        "the remains of the killed sweep could not be taken down. Left: {}",
        left.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use linux::consent::Relation;

    use super::*;

    #[test]
    fn only_what_the_layout_itself_left_is_no_reason_against_going_on() {
        let left = Underway {
            members: 1,
            array: "a".to_owned(),
            fs: "f".to_owned(),
            node: "/dev/md0".into(),
            mount: "/run/sweep".into(),
            schedulers: Vec::new(),
            boot: "b".to_owned(),
        };
        let refused = |reasons: &[Reason], left: Option<&Underway>| {
            let refusal = Refusal {
                path: "/dev/a".into(),
                reasons: reasons.to_vec(),
            };
            without_left(refusal, left).map(|refusal| refusal.reasons)
        };
        let mounted = |point: &str| Reason::Mounted {
            device: "md0".to_owned(),
            relation: Relation::Above,
            point: point.into(),
        };
        let busy = Reason::Busy {
            path: "/dev/a".into(),
        };
        let own = [mounted("/run/sweep"), busy.clone()];
        assert_eq!(refused(&own, Some(&left)), None);
        // What is not its own stays, and where nothing was left all of it does.
        let others = [busy, mounted("/data")];
        let kept = refused(&others, Some(&left)).unwrap();
        assert_eq!(kept, [mounted("/data")]);
        assert_eq!(refused(&others, None).unwrap(), others);
    }
}
