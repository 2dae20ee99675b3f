//! Claims on the members and hot spares, each with the user's consent.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use linux::block::{DeviceNumber, Devices};
use linux::consent::{Consent, DestroyTarget, open_for_destroying};
use record::Bytes;

use super::super::building::CheckedMember;
use super::super::host::{ArrayHost, number_at};
use crate::args::CreateArgs;
use domain::plan_binding;

/// Parses the `--destroy` values; those that cannot be parsed, or name no member, are problems.
pub fn consents(
    destroy: &[OsString],
    members: &[PathBuf],
    called: &str,
    problems: &mut Vec<String>,
) -> Vec<Consent> {
    let parse = |text: &OsString| Consent::parse(text).map_err(|error| error.to_string());
    let mut consents = Vec::new();
    for consent in destroy.iter().map(parse) {
        match consent {
            Ok(consent) => consents.push(consent),
            Err(error) => problems.push(error),
        }
    }
    for consent in &consents {
        // One with a mistyped signature is left to the claim, which explains it.
        if !members.iter().any(|member| consent.names(member)) {
            problems.push(format!(
                "--destroy names {}, which is not among the {called}",
                consent.path.display()
            ));
        }
    }
    consents
}

/// Claims all members and after them the spares, or reports every reason against any of them. The sizes are those of
/// the members.
pub(super) fn claim_members(
    args: &CreateArgs,
    host: &mut ArrayHost,
    devices: &Devices,
    problems: &mut Vec<String>,
) -> (Vec<CheckedMember>, Vec<Bytes>) {
    let called = match args.spares.is_empty() {
        true => "members",
        false => "members and spares",
    };
    let paths = [&args.members[..], &args.spares].concat();
    let consents = consents(&args.destroy, &paths, called, problems);
    let mut seen: Vec<(DeviceNumber, &Path)> = Vec::new();
    let (mut members, mut sizes, mut spares) = (Vec::new(), Vec::new(), Vec::new());
    for (at, path) in paths.iter().enumerate() {
        let number = number_at(&host.root, devices, path);
        if let Some(number) = number {
            if let Some((_, first)) = seen.iter().find(|(known, _)| *known == number) {
                problems.push(duplicate_error(first, path, called));
                continue;
            }
            seen.push((number, path));
        }
        match open_for_destroying(&host.root, path, &consents) {
            Ok(target) => match plan_binding::check(&args.planned, &target, &host.root)
                .and_then(|()| member(&target))
            {
                Ok(member) => {
                    members.push(member);
                    match at < args.members.len() {
                        true => sizes.push(target.size),
                        false => spares.push((path, target.size)),
                    }
                    host.claims.push(target);
                }
                Err(why) => problems.push(why),
            },
            Err(refusal) => problems.push(refusal.to_string()),
        }
    }
    let small = sizes.iter().min().map(|least| too_small(&spares, *least));
    problems.extend(small.into_iter().flatten());
    (members, sizes)
}

fn duplicate_error(first: &Path, path: &Path, called: &str) -> String {
    if first == path {
        format!("{} is named twice among the {called}", path.display())
    } else {
        format!(
            "{} and {} are the same device",
            first.display(),
            path.display()
        )
    }
}

/// Spares that could stand in for no member. mdadm would take them, and make the array smaller (mdadm, Create.c: the
/// smallest device decides, spares included).
fn too_small(spares: &[(&PathBuf, Bytes)], least: Bytes) -> Vec<String> {
    let small = spares.iter().filter(|(_, size)| *size < least);
    small
        .map(|(path, size)| {
            format!(
                "{} has {size}, and the smallest member {least}: as a spare it could stand in for none",
                path.display()
            )
        })
        .collect()
}

/// A claimed target as a member.
///
/// # Errors
/// When it is a file; as a sentence.
pub fn member(target: &DestroyTarget) -> Result<CheckedMember, String> {
    let shown = target.path.display();
    let number = target
        .device
        .ok_or_else(|| format!("{shown} is a file; the members of an array are block devices"))?;
    Ok(CheckedMember {
        path: target.path.clone(),
        number,
        signed: target.content.has_signature(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_is_as_large_as_the_smallest_member() {
        let (equal, small) = (PathBuf::from("/dev/vde"), PathBuf::from("/dev/vdf"));
        let spares = [(&equal, Bytes::gib(2)), (&small, Bytes::gib(1))];
        let reasons = too_small(&spares, Bytes::gib(2));
        assert_eq!(
            reasons,
            [
                "/dev/vdf has 1 GiB, and the smallest member 2 GiB: as a spare it could stand in for none"
            ]
        );
    }
}
