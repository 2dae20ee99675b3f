//! Continuation of an interrupted sweep with the same settings.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use job::{JobStore, OwnedJob, Takeover};
use ledger::{OwnerLiveness, StoredWork};
use linux::consent::{Reason, Refusal, open_for_destroying};
use linux::{process, remedy};

use super::built_layout::BuiltLayout;
use super::check::missing;
use super::checkpoint::Checkpoint;
use super::ready::{ETC, ReadySweep, host, refused};
use super::record::SweepSettings;
use super::testbed::{OverwriteConsent, Testbed};
use array::programs::Programs;
use array::steps::UndoResult;
use domain::plan_binding;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// Takes down the layout that a killed start has left, and claims the devices.
///
/// # Errors
/// Refused, if the sweep cannot continue on this host or on these devices; failed midway, if the remaining layout
/// could not be taken down.
pub(super) fn resume(
    key: &str,
    settings: &SweepSettings,
    allowed: &OverwriteConsent,
    store: JobStore,
    context: &mut Context,
    programs: &mut dyn Programs,
) -> Result<ReadySweep, Failure> {
    let (mut job, work) = OwnedJob::claim(store, key, Takeover::FromDead).refused()?;
    let mut checkpoint = work.document;
    let boot = process::boot_id(&context.root).refused()?;
    rename(&mut checkpoint, key, settings, &boot)?;
    let paths = checkpoint.record.settings.paths();
    // The remaining layout is taken down before the disks can be claimed, so its members are checked against the plan
    // first.
    plan_binding::check_reading(&allowed.planned, &paths, &context.root)
        .map_err(|problems| refused(&problems))?;
    context.notice(&format!(
        "disksmith: continuing sweep {key}: {} measured so far.",
        checkpoint.record.cells.len()
    ));
    take_down(&mut checkpoint, &paths, context, programs)?;
    checkpoint.boot = boot;
    checkpoint.record.starts += 1;
    job.save(&checkpoint).midway()?;
    let testbed = Testbed::claim(&context.root, Path::new(ETC), &paths, allowed)
        .map_err(|problems| refused(&problems))?;
    Ok(ReadySweep {
        checkpoint,
        job,
        testbed,
    })
}

/// Updates the names of the volumes, which may have changed with a boot.
///
/// # Errors
/// Refused, if a volume cannot be identified after a reboot.
fn rename(
    checkpoint: &mut Checkpoint,
    key: &str,
    settings: &SweepSettings,
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
             booted its name may be another disk's. {} gives it up",
            nameless.path.display(),
            remedy::command(&format!("sweep --abandon {key}"))
        )));
    }
    for volume in &mut checkpoint.record.settings.devices {
        if let Some(now) = settings
            .devices
            .iter()
            .find(|now| volume.is_same_volume(now))
        {
            volume.path.clone_from(&now.path);
        }
    }
    Ok(())
}

/// Checks that a sweep could continue, as far as that is possible while the layout of a killed start still exists.
/// Nothing is changed.
///
/// # Errors
/// All reasons against it.
pub(super) fn check_dry_run(
    work: StoredWork<Checkpoint>,
    settings: &SweepSettings,
    allowed: &OverwriteConsent,
    store: &JobStore,
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

/// Reasons of a refusal that remain after the layout of a killed start is taken down; `None` if there are none. Other
/// users of the device are found when it is claimed after that.
fn without_left(mut refusal: Refusal, left: Option<&BuiltLayout>) -> Option<Refusal> {
    if let Some(left) = left {
        refusal.reasons.retain(|reason| match reason {
            Reason::Held { .. } | Reason::Busy { .. } | Reason::Carries { .. } => false,
            Reason::Mounted { point, .. } => *point != left.mount,
            _ => true,
        });
    }
    (!refusal.reasons.is_empty()).then_some(refusal)
}

/// Programs that are needed to find and take down the remaining layout.
const TAKING_DOWN: [(&str, &str); 3] = [
    ("umount", "mount, or util-linux"),
    ("wipefs", "util-linux"),
    ("mdadm", "mdadm"),
];

/// Takes down the layout that a killed start has left on the devices at these paths.
///
/// # Errors
/// The parts that could not be taken down, or the reason why nothing was.
pub(crate) fn take_down(
    checkpoint: &mut Checkpoint,
    paths: &[PathBuf],
    context: &Context,
    programs: &mut dyn Programs,
) -> Result<(), Failure> {
    let Some(underway) = &checkpoint.underway else {
        return Ok(());
    };
    // A sweep without arrays needs no mdadm.
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
    let reverted: Vec<&str> = undone.iter().filter_map(UndoResult::reverted).collect();
    if !reverted.is_empty() {
        context.notice(&format!(
            "disksmith: remains of the killed sweep: {}.",
            reverted.join("; ")
        ));
    }
    let left: Vec<&str> = undone.iter().filter_map(UndoResult::left).collect();
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
    fn remains_of_the_layout_itself_do_not_prevent_resuming() {
        let left = BuiltLayout {
            members: 1,
            array: "a".to_owned(),
            fs: "f".to_owned(),
            node: "/dev/md0".into(),
            mount: "/run/sweep".into(),
            schedulers: Vec::new(),
            boot: "b".to_owned(),
        };
        let refused = |reasons: &[Reason], left: Option<&BuiltLayout>| {
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
        // Reasons that the layout does not cause remain; without a remaining layout all reasons do.
        let others = [busy, mounted("/data")];
        let kept = refused(&others, Some(&left)).unwrap();
        assert_eq!(kept, [mounted("/data")]);
        assert_eq!(refused(&others, None).unwrap(), others);
    }
}
