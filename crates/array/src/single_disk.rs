//! The steps that put a file system on one disk, without an array.

use linux::block::Devices;

use super::building::CheckedMember;
use super::create::{Erase, MakeFilesystem, Mount, check_paths};
use super::host::{ArrayHost, BuiltArray};
use super::plan::ArrayPlan;
use super::steps::{BuildStep, UndoResult};
use super::teardown;

/// The steps for a plan with one member, which is formatted in the array's place.
pub fn steps<'a>(
    plan: &ArrayPlan,
    member: &CheckedMember,
) -> Vec<Box<dyn BuildStep<ArrayHost<'a>>>> {
    let mut steps: Vec<Box<dyn BuildStep<ArrayHost<'a>>>> = Vec::new();
    if member.signed {
        steps.push(Box::new(Erase::of(std::slice::from_ref(member))));
    }
    steps.push(Box::new(ReleaseClaim {
        plan: plan.clone(),
        member: member.clone(),
        taken: false,
    }));
    steps.push(Box::new(MakeFilesystem(plan.clone())));
    steps.push(Box::new(Mount::of(plan)));
    steps
}

/// Gives up the claim on the disk, so that mkfs can have it.
struct ReleaseClaim {
    plan: ArrayPlan,
    member: CheckedMember,
    taken: bool,
}

impl BuildStep<ArrayHost<'_>> for ReleaseClaim {
    fn name(&self) -> String {
        format!("taking {}", self.member.path.display())
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        check_paths(host, std::slice::from_ref(&self.member))?;
        let devices = Devices::read(&host.root)?;
        let device = devices.get(self.member.number);
        let device = device.ok_or_else(|| anyhow::anyhow!("the kernel no longer lists it"))?;
        self.taken = true;
        host.claims.clear();
        host.array = Some(BuiltArray {
            number: device.number,
            node: device.node(),
            sysfs_name: device.sysfs_name(),
        });
        Ok(())
    }

    fn undo(&mut self, host: &mut ArrayHost) -> Vec<UndoResult> {
        host.array = None;
        if !self.taken {
            return Vec::new();
        }
        let fs = self.plan.fs.as_ref();
        let erased = fs.and_then(|fs| teardown::erase(host, &fs.uuid, &self.member.path));
        erased.into_iter().collect()
    }
}
