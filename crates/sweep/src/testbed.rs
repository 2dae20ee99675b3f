//! The devices of a sweep, claimed from its start to its end, and the layouts built on them.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use linux::Root;
use linux::block::{DeviceNumber, Devices};
use linux::consent::{Consent, DestroyTarget, open_for_destroying};
use record::Bytes;

use super::built_layout::{BuiltLayout, set_schedulers};
use super::layout::Layout;
use array::building::CheckedMember;
use array::check::{free_node, member};
use array::create;
use array::geometry::Geometry;
use array::host::ArrayHost;
use array::plan::{ArrayPlan, FsPlan};
use array::programs::Programs;
use array::single_disk;
use array::steps::{self, UndoResult};
use domain::plan_binding::{self, PlannedDisk};
use domain::raid::{Level, Raid10Layout};

/// A device of the sweep.
struct Slot {
    path: PathBuf,
    number: DeviceNumber,
    size: Bytes,
    /// The claim on it; `None` while a layout uses it.
    claim: Option<DestroyTarget>,
    /// True if it has signatures, all of which `--destroy` has named.
    signed: bool,
}

/// The user's consent to overwriting devices.
#[derive(Clone, Debug)]
pub(crate) struct OverwriteConsent {
    /// Consents, by the names that the user gave.
    pub consents: Vec<Consent>,
    /// Identities of the devices, if the user agreed to a plan with them.
    pub planned: Vec<PlannedDisk>,
}

impl OverwriteConsent {
    /// Consent for a sweep that has begun: its layouts may have overwritten the signatures of the devices.
    pub(crate) fn begun(self) -> OverwriteConsent {
        let consents = self.consents.into_iter().map(Consent::begun).collect();
        OverwriteConsent { consents, ..self }
    }
}

/// The devices of a sweep.
pub(crate) struct Testbed {
    slots: Vec<Slot>,
    allowed: OverwriteConsent,
    root: Root,
    etc: PathBuf,
}

impl Testbed {
    /// Claims the devices.
    ///
    /// # Errors
    /// All reasons against claiming any of them, as sentences.
    pub(crate) fn claim(
        root: &Root,
        etc: &Path,
        paths: &[PathBuf],
        allowed: &OverwriteConsent,
    ) -> Result<Testbed, Vec<String>> {
        let mut testbed = Testbed {
            slots: Vec::new(),
            allowed: allowed.clone(),
            root: root.clone(),
            etc: etc.to_path_buf(),
        };
        let mut problems = Vec::new();
        for path in paths {
            match testbed.claim_one(path) {
                Ok((claim, member)) => {
                    if let Some(known) = testbed
                        .slots
                        .iter()
                        .find(|slot| slot.number == member.number)
                    {
                        problems.push(format!(
                            "{} and {} are the same device",
                            known.path.display(),
                            path.display()
                        ));
                        continue;
                    }
                    testbed.slots.push(Slot {
                        path: path.clone(),
                        number: member.number,
                        size: claim.size,
                        signed: member.signed,
                        claim: Some(claim),
                    });
                }
                Err(problem) => problems.push(problem),
            }
        }
        // From here on the devices belong to the sweep; its first layout overwrites them.
        testbed.allowed = testbed.allowed.clone().begun();
        if problems.is_empty() {
            Ok(testbed)
        } else {
            Err(problems)
        }
    }

    fn claim_one(&self, path: &Path) -> Result<(DestroyTarget, CheckedMember), String> {
        let claim = open_for_destroying(&self.root, path, &self.allowed.consents)
            .map_err(|refusal| refusal.to_string())?;
        plan_binding::check(&self.allowed.planned, &claim, &self.root)?;
        let member = member(&claim)?;
        Ok((claim, member))
    }

    /// The sizes of the devices.
    pub(crate) fn sizes(&self) -> Vec<Bytes> {
        self.slots.iter().map(|slot| slot.size).collect()
    }

    /// Device numbers of the first devices.
    fn numbers(&self, members: usize) -> Vec<DeviceNumber> {
        let slots = self.slots.iter().take(members);
        slots.map(|slot| slot.number).collect()
    }

    /// The paths of the devices.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.slots.iter().map(|slot| slot.path.clone()).collect()
    }

    /// The claimed devices, for direct reads and writes.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &DestroyTarget> {
        self.slots.iter().filter_map(|slot| slot.claim.as_ref())
    }

    /// Chooses the ids and the node for a layout, which is to be mounted at `mount`.
    ///
    /// # Errors
    /// When the kernel gives no id, or does not list the devices.
    pub(crate) fn choose(
        &self,
        layout: &Layout,
        mount: &Path,
        programs: &mut dyn Programs,
    ) -> anyhow::Result<BuiltLayout> {
        let devices = Devices::read(&self.root)?;
        let mut report = |_: &str| ();
        let node = free_node(&self.host(programs, &mut report), &devices);
        let members = self.numbers(layout.members);
        BuiltLayout::choose(&self.root, layout, &members, node, mount)
    }

    /// Builds a layout and mounts its file system. Returns the device that is mounted.
    ///
    /// # Errors
    /// The error of the step that failed. Earlier steps are undone, except those that [`Testbed::take_down`] undoes.
    pub(crate) fn build(
        &mut self,
        layout: &Layout,
        underway: &BuiltLayout,
        programs: &mut dyn Programs,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<DeviceNumber> {
        set_schedulers(&self.root, layout, underway)?;
        let mut members = Vec::new();
        let mut claims = Vec::new();
        for slot in self.slots.iter_mut().take(layout.members) {
            claims.extend(slot.claim.take());
            members.push(CheckedMember {
                path: slot.path.clone(),
                number: slot.number,
                signed: std::mem::take(&mut slot.signed),
            });
        }
        let mut report = |_: &str| ();
        let mut host = self.host(programs, &mut report);
        host.claims = claims;
        let plan = self.plan(layout, underway);
        let mut steps = match (layout.level, &members[..]) {
            (None, [only]) => single_disk::steps(&plan, only),
            _ => create::steps(&plan, &members, false, &self.etc),
        };
        // After a kill, it is repaired from the sweep's own checkpoint.
        steps::run(&mut steps, &mut host, interrupt, |_| ())?;
        Ok(host.built()?.number)
    }

    fn plan(&self, layout: &Layout, underway: &BuiltLayout) -> ArrayPlan {
        let geometry = layout.geometry().unwrap_or(Geometry {
            // For a single member there are no chunks to align to, and the disk's own read-ahead is right.
            level: Level::Linear,
            members: 1,
            chunk: None,
            layout: Raid10Layout::N2,
        });
        let paths = self.paths();
        ArrayPlan {
            geometry,
            members: paths.into_iter().take(layout.members).collect(),
            spares: Vec::new(),
            name: None,
            node: underway.node.clone(),
            uuid: underway.array.clone(),
            capacity: layout.capacity(&self.sizes()),
            bitmap: None,
            // The measurements only read data that they wrote, so copies and parity need not agree elsewhere; a resync
            // would reduce every figure.
            assume_clean: true,
            fs: Some(FsPlan {
                fs: layout.fs,
                uuid: underway.fs.clone(),
                mount: Some(underway.mount.clone()),
                trial: true,
            }),
        }
    }

    /// Takes down a layout, which may be incomplete.
    pub(crate) fn take_down(
        &self,
        underway: &BuiltLayout,
        arrays: bool,
        programs: &mut dyn Programs,
    ) -> Vec<UndoResult> {
        let mut report = |_: &str| ();
        let mut host = self.host(programs, &mut report);
        underway.take_down(&mut host, &self.paths(), arrays)
    }

    /// Claims the members of a layout again.
    ///
    /// # Errors
    /// The reason, as a sentence: another program has opened a device meanwhile, or it was removed.
    pub(crate) fn claim_again(&mut self) -> Result<(), String> {
        for at in 0..self.slots.len() {
            let Some(slot) = self.slots.get(at).filter(|slot| slot.claim.is_none()) else {
                continue;
            };
            let (claim, member) = self.claim_one(&slot.path)?;
            if member.number != slot.number {
                return Err(format!(
                    "{} no longer leads to the device {} that was checked",
                    slot.path.display(),
                    slot.number
                ));
            }
            if let Some(slot) = self.slots.get_mut(at) {
                slot.signed = member.signed;
                slot.claim = Some(claim);
            }
        }
        Ok(())
    }

    fn host<'a>(
        &self,
        programs: &'a mut dyn Programs,
        report: &'a mut dyn FnMut(&str),
    ) -> ArrayHost<'a> {
        ArrayHost {
            root: self.root.clone(),
            etc: self.etc.clone(),
            programs,
            report,
            claims: Vec::new(),
            array: None,
            journal: None,
        }
    }
}
