//! Checks before anything is changed: all reasons against an exchange are reported in one answer.

use std::path::Path;

use linux::block::{Device, DeviceNumber, Devices};
use linux::consent::{Consent, open_for_destroying};
use linux::root::number;
use linux::{Root, md};
use record::Bytes;

use super::super::building::CheckedMember;
use super::super::check::{consents, member as claimed_member};
use super::super::host::{ArrayHost, number_at};
use super::super::{stop, superblock, teardown};
use super::exchange::{Exchange, ExchangeDevice, ExchangeMethod, member, serves};
use crate::args::ReplaceArgs;
use domain::plan_binding;
use domain::raid::{Level, MdLevel};
use ui::exit::{ExitClass as _, Failure};

/// Size of a sector in sysfs, in bytes.
const SECTOR: u64 = 512;

/// md's words for an array that is written to, and so rebuilds its members (linux,
/// Documentation/admin-guide/md.rst, array_state).
const ACTIVE_STATES: [&str; 4] = ["clean", "active", "active-idle", "write-pending"];

/// Examines everything, and passes the claim on the new disk to the host.
///
/// # Errors
/// All reasons against the exchange.
pub(super) fn check(args: &ReplaceArgs, host: &mut ArrayHost) -> Result<Exchange, Failure> {
    let devices = Devices::read(&host.root).refused()?;
    let Some(device) = md::find(&host.root, &devices, &args.array) else {
        return Err(Failure::refused(stop::unknown(&args.array, &devices)));
    };
    let arrays = md::arrays(&host.root, &devices).refused()?;
    let found = arrays.into_iter().find(|one| one.number == device.number);
    let array = found.ok_or_else(|| anyhow::anyhow!("md does not list {}", device.label()));
    let array = array.refused()?;
    let found = reasoned(args, host, &devices, device, &array);
    found.map_err(|problems| {
        host.claims.clear();
        let what = format!("no member of {} is replaced", device.label());
        Failure::refused_for(&what, &problems)
    })
}

fn reasoned(
    args: &ReplaceArgs,
    host: &mut ArrayHost,
    devices: &Devices,
    device: &Device,
    array: &md::Array,
) -> Result<Exchange, Vec<String>> {
    let mut problems = array_problems(array);
    let old = number_at(&host.root, devices, &args.member);
    let new = number_at(&host.root, devices, &args.with);
    let course = course(args, array, old, new, &mut problems);

    let named = [args.with.clone(), args.member.clone()];
    let named = match args.erase {
        true => &named[..],
        false => &named[..1],
    };
    let consents = consents(
        &args.destroy,
        named,
        "disks of this exchange",
        &mut problems,
    );
    let is_member = new.is_some_and(|new| member(array, new).is_some());
    let claimed = match is_member || old.is_some_and(|old| new == Some(old)) {
        true => None,
        false => claim(args, host, array, &consents, &mut problems),
    };
    let mut erase = Vec::new();
    if args.erase {
        let reason = superblock::reason_against(&host.root, &args.member, &consents);
        problems.extend(reason);
        let member = std::slice::from_ref(&args.member);
        let planned = plan_binding::check_reading(&args.planned, member, &host.root);
        problems.extend(planned.err().into_iter().flatten());
        erase = consents;
        erase.retain(|consent| consent.names(&args.member));
    }
    let node = device.node();
    let uuid = teardown::uuid_of(host, &node);
    let uuid = uuid.map_err(|error| problems.push(error.to_string())).ok();
    match (old, new, course, uuid) {
        (Some(old), Some(new), Some(course), Some(uuid)) if problems.is_empty() => {
            let part = |path: &Path, number| ExchangeDevice {
                path: path.to_path_buf(),
                number,
                slot: member(array, number).and_then(|member| member.slot),
            };
            Ok(Exchange {
                array: device.number,
                node,
                sysfs_name: device.sysfs_name(),
                uuid,
                old: part(&args.member, old),
                new: part(&args.with, new),
                claimed,
                course,
                erase,
            })
        }
        _ => Err(problems),
    }
}

/// Reasons in the state of the array itself.
fn array_problems(array: &md::Array) -> Vec<String> {
    let mut problems = Vec::new();
    let raid = array.level.as_ref().and_then(MdLevel::raid);
    match raid {
        Some(level) if level.is_redundant() => {}
        Some(level) => problems.push(format!(
            "{} has neither copies nor parity, so that md exchanges no member while it is in use; only \
             RAID {} do",
            level.title(),
            Level::redundant_list()
        )),
        None => problems.push(format!("{} is no RAID that md runs", array.name)),
    }
    problems.extend(superblock::foreign(array));
    let state = array.state.as_deref().unwrap_or("unknown");
    if !ACTIVE_STATES.contains(&state) {
        problems.push(format!(
            "{} is {state}, and md rebuilds members only of an array that may be written; \
             mdadm --readwrite /dev/{} allows that",
            array.name, array.name
        ));
    }
    problems
}

/// Method of the exchange of two devices; `None`, with the reasons added, if there is none.
fn course(
    args: &ReplaceArgs,
    array: &md::Array,
    old: Option<DeviceNumber>,
    new: Option<DeviceNumber>,
    problems: &mut Vec<String>,
) -> Option<ExchangeMethod> {
    let (leaves, comes) = (args.member.display(), args.with.display());
    let Some(old) = old.and_then(|number| member(array, number)) else {
        let members = array.members.iter().map(|member| member.name.as_str());
        let members: Vec<&str> = members.collect();
        problems.push(format!(
            "{leaves} is not a member of {}, which has {}",
            array.name,
            members.join(", ")
        ));
        return None;
    };
    if old.is_spare() {
        problems.push(format!(
            "{leaves} is a hot spare of {}, and holds nothing; mdadm --manage /dev/{} --remove {leaves} \
             takes it out",
            array.name, array.name
        ));
        return None;
    }
    if new == old.number {
        problems.push(format!("{leaves} and {comes} are the same device"));
        return None;
    }
    let new = new.and_then(|number| member(array, number));
    if let Some(new) = new {
        if new.has("replacement") && new.slot == old.slot && old.slot.is_some() {
            return Some(ExchangeMethod::Continue);
        }
        if !new.is_spare() {
            problems.push(already_member_error(new, &args.with, array));
            return None;
        }
    }
    let action = array.action.as_deref().unwrap_or("idle");
    if action != "idle" {
        problems.push(format!(
            "md does a {action} of {} now; wait for its end ('disksmith array list' shows how far it is)",
            array.name
        ));
        return None;
    }
    let has_failed = old.has("faulty");
    let others = array.degraded.unwrap_or(0);
    match (has_failed, others) {
        (false, 0) => Some(ExchangeMethod::Replace),
        (true, 0) => Some(ExchangeMethod::Spare),
        (true, 1) => Some(ExchangeMethod::Rebuild),
        (_, missing) => {
            let others = missing - u32::from(has_failed);
            problems.push(format!(
                "{others} of the other members {} missing, and md would rebuild {} on {comes} first; \
                 add a disk for that: mdadm --manage /dev/{} --add DEVICE",
                if others == 1 { "is" } else { "are" },
                if others == 1 { "it" } else { "one" },
                array.name
            ));
            None
        }
    }
}

fn already_member_error(new: &md::Member, path: &Path, array: &md::Array) -> String {
    let shown = path.display();
    match new.slot {
        Some(slot) => format!(
            "{shown} is a member of {} already, in slot {slot}",
            array.name
        ),
        None => format!("{shown} has failed in {} already", array.name),
    }
}

/// Claims the new disk.
fn claim(
    args: &ReplaceArgs,
    host: &mut ArrayHost,
    array: &md::Array,
    consents: &[Consent],
    problems: &mut Vec<String>,
) -> Option<CheckedMember> {
    let target = match open_for_destroying(&host.root, &args.with, consents) {
        Ok(target) => target,
        Err(refusal) => {
            problems.push(refusal.to_string());
            return None;
        }
    };
    let checked = plan_binding::check(&args.planned, &target, &host.root);
    let claimed = checked.and_then(|()| claimed_member(&target));
    let too_small = too_small(&host.root, array, &args.with, target.size);
    problems.extend(too_small);
    host.claims.push(target);
    claimed.map_err(|why| problems.push(why)).ok()
}

/// Problem of a disk that is smaller than the used part of the members, including md's metadata before it; `None` if
/// it is large enough.
fn too_small(root: &Root, array: &md::Array, path: &Path, size: Bytes) -> Option<String> {
    let folder = root
        .sys
        .join("class/block")
        .join(array.name.replace('/', "!"));
    let used = array
        .members
        .iter()
        .filter(|member| serves(member))
        .map(|member| {
            let own = format!("md/dev-{}/offset", member.name.replace('/', "!"));
            let offset: u64 = number(&folder.join(own)).unwrap_or(0);
            Bytes(offset.saturating_mul(SECTOR) + member.used.unwrap_or_default().0)
        });
    let needed = used.max()?;
    (size < needed).then(|| {
        format!(
            "{} has {size}, and the members of {} use {needed}",
            path.display(),
            array.name
        )
    })
}
