//! Repair of a killed `array create`: the next start takes back what it has left, by the ledger's record.
//!
//! Only what is ours is touched: the array of our id, superblocks of that id, our lines, and folders that we
//! made and that are empty. What may hold something that is worth keeping stays, and the ledger forgets it,
//! so that no later start takes it away either. Everything here may be killed and begun again: each thing is
//! looked for before it is taken back.

mod lacking;
mod look;
mod release;

use job::{Job, Store, Takeover};
use linux::block::{Device, Devices, Kind};

use super::building::{Building, Stage};
use super::host::Host;
use super::ours;
use super::steps::Undone;
use domain::plan_binding::Planned;
use look::Worth;
use ui::exit::sentence;

/// Result of a repair.
enum Fate {
    /// It stays, and is no work any more: why, as sentences.
    Kept(String),
    /// It was taken back.
    Gone(Vec<Undone>),
    /// Something of it could not be taken back yet: the next start tries again.
    Later(Vec<Undone>),
}

/// Repairs everything that was left on this host, and says what was done. What goes wrong is said
/// too, and is no reason not to do what was asked. Where a plan of disks was agreed to, what was left on any
/// other disk stays as it is.
pub(crate) fn repair(host: &mut Host, store: &mut Store, planned: &[Planned]) {
    let works = match store.abandoned::<Building>() {
        Ok(works) => works,
        Err(error) => {
            (host.say)(&format!(
                "Whether something is to be repaired is not known: {error}\n"
            ));
            return;
        }
    };
    for work in works {
        if !planned.is_empty() && !is_of_plan(store, &work.key, planned) {
            (host.say)(&format!(
                "What the 'array create' of {} that did not end has left is not all on disks of the plan, \
                 and stays. 'disksmith array stop' takes it back.\n",
                work.began
            ));
            continue;
        }
        // Another start may have claimed it since.
        let outcome = Job::claim(&mut *store, &work.key, Takeover::FromDead)
            .map_err(anyhow::Error::from)
            .and_then(|(job, work)| one(host, job, work.document));
        if let Err(error) = outcome {
            (host.say)(&format!(
                "The 'array create' of {} that did not end could not be repaired: {}. It is \
                 tried again when an array is next built or stopped.\n",
                sentence(&error),
                work.began
            ));
        }
    }
}

/// True if a building has no members but disks of the plan. After another boot its members are known by their
/// superblocks alone, and it has none of them.
fn is_of_plan(store: &Store, key: &str, planned: &[Planned]) -> bool {
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
    host: &mut Host,
    mut job: Job<Building, &mut Store>,
    mut building: Building,
) -> anyhow::Result<()> {
    let node = building.node.display().to_string();
    (host.say)(&format!(
        "Repairing {node}, which an 'array create' that did not end has left.\n"
    ));
    let fate = settle(host, &mut building, |building| job.save(building))?;
    let (undone, is_over) = match fate {
        Fate::Kept(why) => {
            (host.say)(&format!("{why}\n"));
            job.discard()?;
            return Ok(());
        }
        Fate::Gone(undone) => (undone, true),
        Fate::Later(undone) => (undone, false),
    };
    (host.say)(&format!("{}\n", Undone::told(&undone)));
    if is_over {
        job.discard()?;
    } else {
        (host.say)("The rest is tried again when an array is next built or stopped.\n");
    }
    Ok(())
}

/// Decides what becomes of it, and does it. `keep` keeps how far it is.
fn settle(
    host: &mut Host,
    building: &mut Building,
    mut keep: impl FnMut(&Building) -> ledger::Result<()>,
) -> anyhow::Result<Fate> {
    if building.stage == Stage::Done && !building.undoing {
        return Ok(Fate::Kept(format!(
            "{} was complete when its builder ended, and stays.",
            building.node.display()
        )));
    }
    if building.stage <= Stage::Erasing {
        let erased = (building.stage == Stage::Erasing).then(|| {
            Undone::Left("signatures that --destroy allowed to go may be erased".to_owned())
        });
        return Ok(Fate::Gone(erased.into_iter().collect()));
    }
    anyhow::ensure!(
        host.programs.has("mdadm"),
        "the program mdadm is not on the PATH; install the package mdadm"
    );
    if !building.undoing {
        match look::worth(host, building)? {
            Worth::Nothing => {}
            Worth::Keeping(why) => return Ok(Fate::Kept(why)),
            Worth::Unclear(why) => return Ok(Fate::Later(vec![Undone::Left(why)])),
        }
        // From here on it is not looked at again: half taken back, it would look like something.
        building.undoing = true;
        keep(building)?;
    }
    let undone = release::release(host, building)?;
    let is_stuck = undone.iter().any(release::Released::is_stuck);
    let undone = undone.into_iter().map(|released| released.undone).collect();
    Ok(if is_stuck {
        Fate::Later(undone)
    } else {
        Fate::Gone(undone)
    })
}

/// An array that the builder has made, or begun to make.
struct UnfinishedArray {
    device: Device,
    /// True if it has no members and no size: mdadm was killed before it gave it any.
    is_hollow: bool,
}

/// The arrays that carry our id, or consist of members that do, as long as mdadm has not started it.
/// If mdadm may have been killed, hollow ones too: nothing can be on them, and one that another
/// mdadm is just filling is open and cannot be stopped.
fn ours(host: &mut Host, building: &Building) -> anyhow::Result<Vec<UnfinishedArray>> {
    let devices = Devices::read(&host.root)?;
    let is_array = |device: &&Device| matches!(device.kind, Kind::Raid { .. });
    let mut found = Vec::new();
    for array in devices.iter().filter(is_array) {
        let below = devices.parents(array.number);
        let is_hollow = array.is_empty() && below.is_empty();
        let is_made = if is_hollow {
            building.stage == Stage::Assembling
        } else {
            let of_ours = |member: &&Device| is_ours(host, "--examine", member, building);
            let consists_of_ours = !below.is_empty() && below.iter().all(of_ours);
            consists_of_ours || is_ours(host, "--detail", array, building)
        };
        if is_made {
            found.push(UnfinishedArray {
                device: array.clone(),
                is_hollow,
            });
        }
    }
    Ok(found)
}

/// The devices whose superblock carries our id, wherever they are now: after a boot they may have
/// other names.
fn members(host: &mut Host, building: &Building) -> anyhow::Result<Vec<Device>> {
    let devices = Devices::read(&host.root)?;
    let may_be = |device: &&Device| !device.is_empty() && !device.hidden && !device.read_only;
    let mut found = Vec::new();
    for device in devices.iter().filter(may_be) {
        if is_ours(host, "--examine", device, building) {
            found.push(device.clone());
        }
    }
    Ok(found)
}

fn is_ours(host: &mut Host, look: &str, device: &Device, building: &Building) -> bool {
    // What cannot be looked at now is looked at by the next repair.
    ours::has_uuid(host, look, &device.node(), &building.uuid).unwrap_or(false)
}
