//! Groups that compete: hosts of one zone or type, as requested, and of one size.

use record::Bytes;

use crate::args::RaceArgs;
use crate::hosts::GroupBy;
use crate::protocol::rounds::TargetFacts;
use crate::race::setup::{self, Setup};
use crate::store::HostRun;
use crate::store::race::RaceRecord;
use ui::exit::Failure;

/// Name of the type of a host that does not report it, if other hosts have different types.
const UNKNOWN_KIND: &str = "unknown type";

/// Assigns the ready hosts to their groups, and sets the minimum number of rounds.
///
/// # Errors
/// Refused, if a floor is watched for longer than the race.
pub(super) fn assign_groups(
    hosts: &[Option<(&HostRun, &[TargetFacts])>],
    args: &RaceArgs,
    record: &mut RaceRecord,
) -> Result<(), Failure> {
    let groups = groups(hosts, args.per);
    let names: Vec<String> = groups.iter().flatten().cloned().collect();
    let setup = Setup::grouped(&names, args).map_err(Failure::refused)?;
    record.least_rounds = setup.rule.least;
    for (raced, group) in record.hosts.iter_mut().zip(groups) {
        raced.group = group;
    }
    Ok(())
}

/// The group of each ready host, by its index. If hosts differ in their type or their disks, that is part of the
/// group's name: a larger one would win by its size.
fn groups(
    hosts: &[Option<(&HostRun, &[TargetFacts])>],
    per: Option<GroupBy>,
) -> Vec<Option<String>> {
    let ready = || hosts.iter().flatten();
    // If there is only one type, a host without a type belongs to it.
    let kinds = differ(ready().filter_map(|(host, _)| host.kind.clone()));
    let disks = differ(ready().map(|(_, targets)| size(targets)));
    hosts
        .iter()
        .map(|host| {
            let (host, targets) = (*host)?;
            let mut name = setup::name(host.zone.as_deref(), host.kind.as_deref(), per);
            if kinds && per != Some(GroupBy::Type) {
                let kind = host.kind.as_deref().unwrap_or(UNKNOWN_KIND);
                name.push_str(&format!(", {kind}"));
            }
            if disks {
                name.push_str(&format!(", {}", size(targets)));
            }
            Some(name)
        })
        .collect()
}

fn differ<T: PartialEq>(mut all: impl Iterator<Item = T>) -> bool {
    let first = all.next();
    all.any(|other| Some(&other) != first.as_ref())
}

/// The size of the measured disks, such as `4 disks of 100 GiB`, rounded.
fn size(targets: &[TargetFacts]) -> String {
    let mut sizes: Vec<String> = targets
        .iter()
        .map(|target| Bytes(target.size_bytes).to_string())
        .collect();
    sizes.sort();
    let all = sizes.len();
    let mut distinct = sizes.clone();
    distinct.dedup();
    match distinct.as_slice() {
        [only] if all == 1 => format!("1 disk of {only}"),
        [only] => format!("{all} disks of {only}"),
        _ => format!("disks of {}", sizes.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Host;

    fn host(zone: &str, kind: Option<&str>) -> HostRun {
        HostRun::waiting(&Host {
            zone: Some(zone.to_owned()),
            kind: kind.map(str::to_owned),
            ..Host::default()
        })
    }

    fn disks(count: usize, gib: u64) -> Vec<TargetFacts> {
        let disk = TargetFacts {
            size_bytes: gib << 30,
            ..TargetFacts::default()
        };
        vec![disk; count]
    }

    #[test]
    fn hosts_of_one_size_are_distinguished_by_their_zones_alone() {
        let (a, b, two) = (host("a", Some("t")), host("b", Some("t")), disks(2, 100));
        let hosts = [Some((&a, &two[..])), None, Some((&b, &two[..]))];
        let zones = groups(&hosts, Some(GroupBy::Zone));
        assert_eq!(zones, [Some("a".to_owned()), None, Some("b".to_owned())]);
        assert_eq!(groups(&hosts, None)[2].as_deref(), Some("all"));
    }

    #[test]
    fn a_host_without_a_type_competes_with_the_others_of_its_zone() {
        let (a, b) = (host("a", Some("t")), host("a", None));
        let one = disks(1, 100);
        let hosts = [Some((&a, &one[..])), Some((&b, &one[..]))];
        let zones = groups(&hosts, Some(GroupBy::Zone));
        assert_eq!(zones, [Some("a".to_owned()), Some("a".to_owned())]);
        let other = host("a", Some("u"));
        let hosts = [hosts[0], hosts[1], Some((&other, &one[..]))];
        let zones = groups(&hosts, Some(GroupBy::Zone));
        assert_eq!(zones[1].as_deref(), Some("a, unknown type"));
    }

    #[test]
    fn hosts_of_different_sizes_never_compete() {
        let (large, small) = (host("a", Some("x.large")), host("a", Some("x.small")));
        let (four, one) = (disks(4, 100), disks(1, 200));
        let hosts = [Some((&large, &four[..])), Some((&small, &one[..]))];
        let names = groups(&hosts, Some(GroupBy::Zone));
        assert_eq!(names[0].as_deref(), Some("a, x.large, 4 disks of 100 GiB"));
        assert_eq!(names[1].as_deref(), Some("a, x.small, 1 disk of 200 GiB"));
        let types = groups(&hosts, Some(GroupBy::Type));
        assert_eq!(types[0].as_deref(), Some("x.large, 4 disks of 100 GiB"));
    }
}
