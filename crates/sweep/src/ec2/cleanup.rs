//! Detaching and deleting the volumes of a sweep: at its end, after a kill, and by `--abandon`.
//!
//! A volume is changed only if EC2 lists it with the tag of the sweep at that moment, and it is not attached or
//! attached to the instance of the sweep.

use std::time::Duration;

use linux::aws::volumes::EbsVolume;

use super::checkpoint::{TypeSweepCheckpoint, VolumeStage, VolumeState};
use super::clock::SweepClock;
use super::cloud::{Ec2, TAG, is_gone, is_of};

/// Timeout for detaching a volume.
const DETACH_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval between two queries.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of listings in search of a volume whose creation was requested without a response; it is listed
/// after some seconds (Amazon EC2 API Reference, "Eventual consistency").
const LISTING_ATTEMPTS: usize = 5;

/// Deletes all volumes of a sweep, and returns the remaining ones, as sentences. `save` writes the state after each.
pub(crate) fn clean(
    checkpoint: &mut TypeSweepCheckpoint,
    ec2: &mut Ec2<'_>,
    clock: &mut dyn SweepClock,
    save: &mut dyn FnMut(&TypeSweepCheckpoint),
) -> Vec<String> {
    let mut left = Vec::new();
    if let Err(why) = adopt(checkpoint, ec2, clock) {
        left.push(format!(
            "the volumes with the tag {TAG}={} could not be listed: {why}",
            checkpoint.id
        ));
    }
    save(checkpoint);
    for at in 0..checkpoint.volumes.len() {
        let VolumeState { stage, id } = checkpoint.volumes[at].clone();
        let (Some(id), true) = (id, stage != VolumeStage::Gone) else {
            continue;
        };
        match remove(&id, checkpoint, ec2, clock) {
            Ok(()) => checkpoint.volumes[at].stage = VolumeStage::Gone,
            Err(why) => left.push(why),
        }
        save(checkpoint);
    }
    left
}

/// Adds volumes with the sweep's tag to the checkpoint that are missing there, after a kill between request and
/// response.
fn adopt(
    checkpoint: &mut TypeSweepCheckpoint,
    ec2: &mut Ec2<'_>,
    clock: &mut dyn SweepClock,
) -> Result<(), linux::aws::Error> {
    let is_open = |made: &VolumeState| made.stage == VolumeStage::Requested && made.id.is_none();
    for attempt in 0..LISTING_ATTEMPTS {
        for volume in ec2.tagged(&checkpoint.id)? {
            let known = |made: &VolumeState| made.id.as_ref() == Some(&volume.id);
            if checkpoint.volumes.iter().any(known) || is_gone(&volume) {
                continue;
            }
            let found = VolumeState {
                stage: VolumeStage::Created,
                id: Some(volume.id),
            };
            match checkpoint.volumes.iter_mut().find(|made| is_open(made)) {
                Some(open) => *open = found,
                None => checkpoint.volumes.push(found),
            }
        }
        if !checkpoint.volumes.iter().any(is_open) {
            return Ok(());
        }
        if attempt + 1 < LISTING_ATTEMPTS {
            clock.pause(POLL_INTERVAL);
        }
    }
    let open = checkpoint.volumes.iter_mut().filter(|made| is_open(made));
    open.for_each(|made| made.stage = VolumeStage::Gone);
    Ok(())
}

/// Detaches and deletes a volume.
///
/// # Errors
/// The reason for which it remains, as a sentence.
fn remove(
    id: &str,
    checkpoint: &TypeSweepCheckpoint,
    ec2: &mut Ec2<'_>,
    clock: &mut dyn SweepClock,
) -> Result<(), String> {
    let failed = |why: linux::aws::Error| format!("{id}: {why}");
    let began = clock.now();
    let mut detaching = false;
    loop {
        let Some(volume) = ec2.volume(id).map_err(failed)? else {
            return Ok(());
        };
        if is_gone(&volume) {
            return Ok(());
        }
        may_be_removed(&volume, checkpoint)?;
        let Some(held) = attached(&volume) else {
            break;
        };
        if !detaching {
            ec2.detach(id, &checkpoint.instance).map_err(failed)?;
            detaching = true;
            continue;
        }
        if clock.now().saturating_sub(began) > DETACH_TIMEOUT {
            return Err(format!(
                "{id} is still {held} after {} s; detach it with 'aws ec2 detach-volume --volume-id {id}'",
                DETACH_TIMEOUT.as_secs()
            ));
        }
        clock.pause(POLL_INTERVAL);
    }
    match ec2.delete(id) {
        Err(why) if why.code() == Some("InvalidVolume.NotFound") => Ok(()),
        other => other.map_err(failed),
    }
}

/// # Errors
/// The reason for which the sweep may not remove a volume, as a sentence.
pub(crate) fn may_be_removed(
    volume: &EbsVolume,
    checkpoint: &TypeSweepCheckpoint,
) -> Result<(), String> {
    if !is_of(volume, &checkpoint.id) {
        return Err(format!(
            "{} does not carry the tag {TAG}={} any more, and is not touched",
            volume.id, checkpoint.id
        ));
    }
    let strange = volume.attachments.iter().find(|one| {
        one.state.as_deref() != Some("detached")
            && one.instance_id.as_deref() != Some(&checkpoint.instance)
    });
    match strange {
        Some(one) => Err(format!(
            "{} is attached to {}, and not to {}: it is not touched",
            volume.id,
            one.instance_id.as_deref().unwrap_or("an unknown instance"),
            checkpoint.instance
        )),
        None => Ok(()),
    }
}

/// State of the attachment of a volume; `None` where it has none.
fn attached(volume: &EbsVolume) -> Option<&str> {
    let states = volume.attachments.iter();
    states
        .map(|one| one.state.as_deref().unwrap_or("attached"))
        .find(|state| *state != "detached")
}
