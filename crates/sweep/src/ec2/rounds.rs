//! The rounds of a sweep of volume types: volumes are created, attached and measured. The caller removes them at the
//! end, also after an error (`cleanup`).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::anyhow;
use record::Bytes;

use super::checkpoint::{RoundMeasurement, TypeSweepCheckpoint, VolumeStage, VolumeState};
use super::cleanup::POLL_INTERVAL;
use super::clock::SweepClock;
use super::cloud::{Ec2, HostInstance};
use crate::run::SweepEnd;
use ui::exit::Failure;

/// Last letters of the names that EC2 recommends for volumes of data (EC2 User Guide, "Device names for volumes").
const LETTERS: std::ops::RangeInclusive<char> = 'f'..='p';

/// The host on which the volumes are measured.
pub(crate) trait MeasuringHost {
    /// Path and size of a volume's disk; `None` while the kernel does not list it.
    fn find(&mut self, volume: &str) -> Option<(std::path::PathBuf, Bytes)>;
    /// Fills the beginning of a new disk, which must be blank: reads of unwritten blocks would not be measurements of
    /// the disk.
    ///
    /// # Errors
    /// When it is not blank or cannot be written, as a sentence.
    fn fill(&mut self, disk: &std::path::Path) -> Result<(), String>;
    /// Measures a disk; `None` when a signal ended it early.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    fn measure(
        &mut self,
        disk: &std::path::Path,
        spec: usize,
        round: usize,
    ) -> Result<Option<RoundMeasurement>, Failure>;
    /// Writes the state.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    fn save(&mut self, checkpoint: &TypeSweepCheckpoint) -> Result<(), Failure>;
    /// Reports progress to the user.
    fn report(&mut self, text: &str);
}

/// The rounds of a sweep.
pub(crate) struct Rounds<'a, 'b> {
    pub(crate) ec2: &'a mut Ec2<'b>,
    pub(crate) bench: &'a mut dyn MeasuringHost,
    pub(crate) clock: &'a mut dyn SweepClock,
    pub(crate) place: &'a HostInstance,
    /// Timeout for a volume to be created, and to be listed as a disk.
    pub(crate) timeout: Duration,
    pub(crate) interrupt: &'a AtomicBool,
}

impl Rounds<'_, '_> {
    /// Creates, attaches and measures all volumes.
    ///
    /// # Errors
    /// The error that ended it. The volumes still exist.
    pub(crate) fn run(
        &mut self,
        checkpoint: &mut TypeSweepCheckpoint,
    ) -> Result<SweepEnd, Failure> {
        let names = free_names(self.place, checkpoint.specs.len()).map_err(failed_midway)?;
        for at in 0..checkpoint.specs.len() {
            if self.interrupt.load(Relaxed) {
                return Ok(SweepEnd::Interrupted);
            }
            self.create(checkpoint, at)?;
        }
        let mut disks = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let id = checkpoint.volumes[at].id.clone().unwrap_or_default();
            if !self.until_available(&id)? {
                return Ok(SweepEnd::Interrupted);
            }
            let attached = self.ec2.attach(&id, &checkpoint.instance, name);
            attached.map_err(|why| failed_midway(format!("{id} cannot be attached: {why}")))?;
            let Some(disk) = self.until_seen(&id, checkpoint.specs[at].size())? else {
                return Ok(SweepEnd::Interrupted);
            };
            self.bench.report(&format!(
                "disksmith: {}: {id} is {}.",
                checkpoint.specs[at].text,
                disk.display()
            ));
            self.bench.fill(&disk).map_err(failed_midway)?;
            disks.push(disk);
        }
        for round in 0..checkpoint.rounds {
            for step in 0..disks.len() {
                // Rotated, so that changes during a round do not always affect the same volume.
                let at = (step + round) % disks.len();
                if self.interrupt.load(Relaxed) {
                    return Ok(SweepEnd::Interrupted);
                }
                match self.bench.measure(&disks[at], at, round)? {
                    Some(cell) => checkpoint.cells.push(cell),
                    None => return Ok(SweepEnd::Interrupted),
                }
                self.bench.save(checkpoint)?;
            }
        }
        Ok(SweepEnd::Over)
    }

    /// Creates a volume. The request is saved before, and the id after it.
    fn create(&mut self, checkpoint: &mut TypeSweepCheckpoint, at: usize) -> Result<(), Failure> {
        checkpoint.volumes.push(VolumeState {
            stage: VolumeStage::Requested,
            id: None,
        });
        self.bench.save(checkpoint)?;
        let spec = &checkpoint.specs[at];
        let token = format!("{}-{at}", checkpoint.id);
        let created = self.ec2.create(spec, self.place, &checkpoint.id, &token);
        let id = created
            .map_err(|why| failed_midway(format!("{} cannot be created: {why}", spec.text)))?;
        checkpoint.volumes[at] = VolumeState {
            stage: VolumeStage::Created,
            id: Some(id),
        };
        self.bench.save(checkpoint)
    }

    /// Waits until a volume can be attached; false after a signal.
    fn until_available(&mut self, id: &str) -> Result<bool, Failure> {
        let began = self.clock.now();
        loop {
            let found = self
                .ec2
                .volume(id)
                .map_err(|why| failed_midway(why.to_string()))?;
            let state = found.and_then(|volume| volume.state).unwrap_or_default();
            match state.as_str() {
                "available" => return Ok(true),
                "error" | "deleting" | "deleted" => {
                    return Err(failed_midway(format!("{id} is in the state {state}")));
                }
                _ => {}
            }
            if !self.wait_or_stop(began, &format!("{id} is not available, but {state}"))? {
                return Ok(false);
            }
        }
    }

    /// Waits until the disk of a volume is listed, and checks its size; `None` after a signal.
    fn until_seen(&mut self, id: &str, size: Bytes) -> Result<Option<std::path::PathBuf>, Failure> {
        let began = self.clock.now();
        loop {
            match self.bench.find(id) {
                Some((disk, found)) if found == size => return Ok(Some(disk)),
                Some((disk, found)) => {
                    return Err(failed_midway(format!(
                        "{} has {}, and {id} has {}: it is not its disk, and is not touched",
                        disk.display(),
                        found.exact(),
                        size.exact()
                    )));
                }
                None => {}
            }
            let why = format!(
                "no disk of this host has the id of {id}; is {} this instance, and of the Nitro system?",
                self.place.id
            );
            if !self.wait_or_stop(began, &why)? {
                return Ok(None);
            }
        }
    }

    /// Waits one interval; false after a signal.
    fn wait_or_stop(&mut self, began: Duration, why: &str) -> Result<bool, Failure> {
        if self.interrupt.load(Relaxed) {
            return Ok(false);
        }
        if self.clock.now().saturating_sub(began) >= self.timeout {
            return Err(failed_midway(format!(
                "after {} s {why} (--attach-timeout waits longer)",
                self.timeout.as_secs()
            )));
        }
        self.clock.pause(POLL_INTERVAL);
        Ok(true)
    }
}

fn failed_midway(why: String) -> Failure {
    Failure::Midway(anyhow!(why))
}

/// Free device names of the instance for a number of volumes.
///
/// # Errors
/// When there are too few, as a sentence.
pub(crate) fn free_names(place: &HostInstance, count: usize) -> Result<Vec<String>, String> {
    let is_taken = |letter: char| {
        let named = |name: &String| {
            let name = name.strip_prefix("/dev/").unwrap_or(name);
            ["sd", "xvd"]
                .iter()
                .any(|kind| name.strip_prefix(kind) == Some(&*letter.to_string()))
        };
        place.taken.iter().any(named)
    };
    let free: Vec<String> = LETTERS
        .filter(|letter| !is_taken(*letter))
        .map(|letter| format!("/dev/sd{letter}"))
        .collect();
    match free.len() >= count {
        true => Ok(free.into_iter().take(count).collect()),
        false => Err(format!(
            "{} has {} of the names /dev/sdf to /dev/sdp free for volumes, and {count} are compared; compare fewer at \
             once",
            place.id,
            free.len()
        )),
    }
}
