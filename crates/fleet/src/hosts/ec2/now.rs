//! The present state of instances, queried by their ids.

use std::net::IpAddr;

use jiff::Timestamp;
use linux::aws::RunProgram;

use crate::hosts::ec2::{Instance, Tag, is_keep, page, program};

/// The present state of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstanceState {
    /// Id of the instance.
    pub id: String,
    /// State of the instance, such as `running`.
    pub state: String,
    /// Time of the last start, which may follow a stop (`LaunchTime` of Instance in the Amazon EC2 API Reference; the
    /// first start is that of a network interface). `None` if EC2 does not report it.
    pub launched: Option<Timestamp>,
    /// Addresses of the instance.
    pub addresses: Vec<IpAddr>,
    /// True if it has the tag `keep`, in any case.
    pub is_tagged_keep: bool,
}

impl Instance {
    /// Addresses of the instance, public and private.
    fn addresses(&self) -> Vec<IpAddr> {
        let interfaces = || self.network_interfaces.iter().flatten();
        let assigned = interfaces().flat_map(|one| one.private_ip_addresses.iter().flatten());
        let further = assigned.flat_map(|one| {
            let public = one.association.as_ref();
            [
                &one.private_ip_address,
                public.map_or(&None, |public| &public.public_ip),
            ]
        });
        let sixth = interfaces().flat_map(|one| one.ipv6_addresses.iter().flatten());
        [&self.private_ip_address, &self.public_ip_address]
            .into_iter()
            .chain(further)
            .chain(sixth.map(|one| &one.ipv6_address))
            .flatten()
            .filter_map(|address| address.parse().ok())
            .collect()
    }
}

/// Queries instances by their ids, at most 200 (Amazon EC2 User Guide, limits of filters). An unknown id is missing
/// from the answer: a filter finds nothing, while `--instance-ids` would fail for all.
///
/// # Errors
/// A sentence, if the command fails.
pub(crate) fn now(ids: &[&str], run: RunProgram<'_>) -> Result<Vec<InstanceState>, String> {
    let filter = format!("Name=instance-id,Values={}", ids.join(","));
    let bytes = run(&program(&[filter], None)).map_err(|why| why.to_string())?;
    let page = page(&bytes)?;
    let instances = page.reservations.into_iter().flatten();
    let of = |instance: Instance| {
        let is_keep = |tag: &Tag| tag.key.as_ref().is_some_and(|key| is_keep(key));
        let addresses = instance.addresses();
        Some(InstanceState {
            id: instance.instance_id?,
            state: instance
                .state
                .and_then(|state| state.name)
                .unwrap_or_default(),
            launched: instance.launch_time.and_then(|time| time.parse().ok()),
            addresses,
            is_tagged_keep: instance.tags.iter().flatten().any(is_keep),
        })
    };
    let found = instances.filter_map(|one| one.instances).flatten();
    Ok(found.filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with one instance.
    fn answer(instance: &str) -> Vec<u8> {
        format!(r#"{{"Reservations": [{{"Instances": [{instance}]}}]}}"#).into_bytes()
    }

    #[test]
    fn all_addresses_of_an_instance_are_its_own() {
        let one = r#"{"InstanceId": "i-1", "PrivateIpAddress": "10.0.0.1", "NetworkInterfaces": [
            {"PrivateIpAddresses": [{"PrivateIpAddress": "10.0.0.1", "Association": {"PublicIp": "192.0.2.1"}},
                                    {"PrivateIpAddress": "10.0.0.2"}],
             "Ipv6Addresses": [{"Ipv6Address": "2001:db8::1"}]}, {}]}"#;
        let known = now(&["i-1"], &mut |_| Ok(answer(one))).unwrap();
        let all = [
            "10.0.0.1",
            "10.0.0.1",
            "192.0.2.1",
            "10.0.0.2",
            "2001:db8::1",
        ];
        let all = all.map(|address| address.parse::<IpAddr>().unwrap());
        assert_eq!(known[0].addresses, all);
    }

    #[test]
    fn when_an_instance_was_last_started_is_read_as_aws_writes_it() {
        let launched = |time: &str| {
            let one = format!(r#"{{"InstanceId": "i-1", "LaunchTime": {time}}}"#);
            let known = now(&["i-1"], &mut |_| Ok(answer(&one))).unwrap();
            known[0].launched
        };
        let moment = Some("2026-01-02T03:04:05Z".parse().unwrap());
        for written in [
            "\"2026-01-02T03:04:05+00:00\"",
            "\"2026-01-02T03:04:05.000Z\"",
        ] {
            assert_eq!(launched(written), moment, "{written}");
        }
        assert_eq!(launched("null"), None);
        assert_eq!(launched("\"yesterday\""), None);
    }
}
