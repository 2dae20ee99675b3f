//! Repair of a killed `array create`: the next start removes what it left, by the ledger's record.
//!
//! Only objects of disksmith are touched: the array of its id, superblocks of that id, its lines, and empty folders
//! that it made. An array that may hold data stays, and the ledger forgets it, so that no later start removes it
//! either. All of this may be killed and repeated: each object is searched for before it is removed.

mod evidence;
mod missing_superblock;
mod release;
mod unfinished;

use job::{JobStore, OwnedJob, Takeover};

use super::building::{BuildStage, Building};
use super::host::ArrayHost;
use super::steps::UndoResult;
use domain::plan_binding::PlannedDisk;
use evidence::Evidence;
use ui::exit::sentence;

/// Result for an array that a killed command left.
enum RepairResult {
    /// The array stays, and is not repaired again; the reason, as sentences.
    Kept(String),
    /// All that was left is removed.
    Gone(Vec<UndoResult>),
    /// A part could not be removed yet: the next start tries again.
    Later(Vec<UndoResult>),
}

/// Repairs everything that was left on this host, and reports what was done. Failures are reported too, and do not
/// stop the command. If a plan of disks was confirmed, anything left on other disks stays as it is.
pub(crate) fn repair(host: &mut ArrayHost, store: &mut JobStore, planned: &[PlannedDisk]) {
    let works = match store.abandoned::<Building>() {
        Ok(works) => works,
        Err(error) => {
            (host.report)(&format!(
                "It is unknown whether anything must be repaired: {error}\n"
            ));
            return;
        }
    };
    for work in works {
        if !planned.is_empty() && !is_of_plan(store, &work.key, planned) {
            (host.report)(&format!(
                "The 'array create' of {} did not complete, and not all that it left is on disks of the plan: \
                 it stays. 'disksmith array stop' removes it.\n",
                work.began
            ));
            continue;
        }
        // Another process may have claimed it since.
        let outcome = OwnedJob::claim(&mut *store, &work.key, Takeover::FromDead)
            .map_err(anyhow::Error::from)
            .and_then(|(job, work)| one(host, job, work.document));
        if let Err(error) = outcome {
            (host.report)(&format!(
                "The 'array create' of {} did not complete and could not be repaired: {}. The repair is \
                 tried again when an array is next built or stopped.\n",
                sentence(&error),
                work.began
            ));
        }
    }
}

/// True if all members of an unfinished array are disks of the plan. False after a reboot: then its
/// members can only be found by their superblocks.
fn is_of_plan(store: &JobStore, key: &str, planned: &[PlannedDisk]) -> bool {
    let Ok(Some(work)) = store.find::<Building>(key) else {
        return false;
    };
    let building = work.document;
    building.members.iter().all(|member| {
        planned.iter().any(|planned| {
            planned.seen.boot == building.boot && planned.seen.number == member.number
        })
    })
}

fn one(
    host: &mut ArrayHost,
    mut job: OwnedJob<Building, &mut JobStore>,
    mut building: Building,
) -> anyhow::Result<()> {
    let node = building.node.display().to_string();
    (host.report)(&format!(
        "Repairing {node}, which an 'array create' that did not complete has left.\n"
    ));
    let fate = repair_one(host, &mut building, |building| job.save(building))?;
    let (undone, is_over) = match fate {
        RepairResult::Kept(why) => {
            (host.report)(&format!("{why}\n"));
            job.discard()?;
            return Ok(());
        }
        RepairResult::Gone(undone) => (undone, true),
        RepairResult::Later(undone) => (undone, false),
    };
    (host.report)(&format!("{}\n", UndoResult::report(&undone)));
    if is_over {
        job.discard()?;
    } else {
        (host.report)("The rest is tried again when an array is next built or stopped.\n");
    }
    Ok(())
}

/// Decides what to do with an unfinished building, and does it. `keep` writes the progress to the ledger.
fn repair_one(
    host: &mut ArrayHost,
    building: &mut Building,
    mut keep: impl FnMut(&Building) -> ledger::Result<()>,
) -> anyhow::Result<RepairResult> {
    if building.stage == BuildStage::Done && !building.undoing {
        return Ok(RepairResult::Kept(format!(
            "{} was complete when its builder ended, and stays.",
            building.node.display()
        )));
    }
    if building.stage <= BuildStage::Erasing {
        let erased = (building.stage == BuildStage::Erasing).then(|| {
            UndoResult::Leftover("signatures that --destroy named may be erased".to_owned())
        });
        return Ok(RepairResult::Gone(erased.into_iter().collect()));
    }
    anyhow::ensure!(
        host.programs.has("mdadm"),
        "the program mdadm is not on the PATH; {}",
        linux::remedy::install("mdadm")
    );
    if !building.undoing {
        match evidence::evidence(host, building)? {
            Evidence::Unused => {}
            Evidence::InUse(why) => return Ok(RepairResult::Kept(why)),
            Evidence::Unclear(why) => {
                return Ok(RepairResult::Later(vec![UndoResult::Leftover(why)]));
            }
        }
        // From here on it is not examined again: half removed, it would look like an array with data.
        building.undoing = true;
        keep(building)?;
    }
    let undone = release::release(host, building)?;
    let is_stuck = undone.iter().any(release::ReleaseResult::is_stuck);
    let undone = undone.into_iter().map(|released| released.undone).collect();
    Ok(if is_stuck {
        RepairResult::Later(undone)
    } else {
        RepairResult::Gone(undone)
    })
}
