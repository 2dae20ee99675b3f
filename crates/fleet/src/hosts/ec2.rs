//! Instances of EC2, queried through the user's own `aws` command, with its credentials and region.

pub(super) mod now;

use std::collections::BTreeMap;

use linux::aws;
use linux::exec::Exec;
use serde::Deserialize;

use crate::hosts::host::{Host, HostList, duplicates, no_address, shortened};

/// Maximum number of pages of an answer, so that a command that always names another page ends.
const MAX_PAGES: usize = 1000;

/// Kind of address by which an instance is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum AddressKind {
    /// The private one.
    #[default]
    Private,
    /// The public one.
    Public,
}

/// Answer of `aws ec2 describe-instances` (Amazon EC2 API Reference, DescribeInstances). Unknown values are absent or
/// null.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    reservations: Option<Vec<Reservation>>,
    next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Reservation {
    instances: Option<Vec<Instance>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Instance {
    instance_id: Option<String>,
    instance_type: Option<String>,
    private_ip_address: Option<String>,
    public_ip_address: Option<String>,
    placement: Option<Placement>,
    state: Option<State>,
    launch_time: Option<String>,
    network_interfaces: Option<Vec<Interface>>,
    tags: Option<Vec<Tag>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Placement {
    availability_zone: Option<String>,
}

/// A network interface (Amazon EC2 API Reference, InstanceNetworkInterface): an instance may have several, and
/// several addresses on each.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Interface {
    private_ip_addresses: Option<Vec<PrivateAddress>>,
    ipv6_addresses: Option<Vec<Ipv6Address>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PrivateAddress {
    private_ip_address: Option<String>,
    association: Option<Association>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Association {
    public_ip: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Ipv6Address {
    ipv6_address: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tag {
    key: Option<String>,
    value: Option<String>,
}

/// Requests all pages; `run` returns the output of a command.
///
/// # Errors
/// Sentences: an error in a filter, an error of the command, or that no instance runs.
pub(super) fn ask(
    filters: &[String],
    address: AddressKind,
    run: &mut dyn FnMut(&Exec) -> Result<Vec<u8>, String>,
) -> Result<HostList, Vec<String>> {
    let bad: Vec<String> = filters.iter().filter_map(|one| bad_filter(one)).collect();
    if !bad.is_empty() {
        return Err(bad);
    }
    let mut found = HostList::default();
    let mut problems = Vec::new();
    let mut token = None;
    for _ in 0..MAX_PAGES {
        let bytes = run(&program(filters, token.as_deref())).map_err(|why| vec![why])?;
        let page = page(&bytes).map_err(|why| vec![why])?;
        let instances = page.reservations.into_iter().flatten();
        for instance in instances.filter_map(|one| one.instances).flatten() {
            match instance.host(address) {
                Ok(host) => found.hosts.push(host),
                Err(Exclusion::LeftOut(why)) => found.left_out.push(why),
                Err(Exclusion::Wrong(why)) => problems.push(why),
            }
        }
        token = page.next_token.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
    }
    problems.extend(duplicates(&found.hosts, |_| "EC2".to_owned()));
    if found.hosts.is_empty() && problems.is_empty() {
        problems.push(no_instance_error(filters, &found.left_out));
    }
    if problems.is_empty() {
        Ok(found)
    } else {
        Err(shortened(problems))
    }
}

/// True if a tag with this name protects a host from being terminated.
pub(crate) fn is_keep(name: &str) -> bool {
    name.eq_ignore_ascii_case("keep")
}

fn no_instance_error(filters: &[String], left_out: &[String]) -> String {
    let filters = filters.join(" ");
    match left_out {
        [] => format!(
            "No instance matches {filters}; check the filter, and that 'aws' asks the right region."
        ),
        [only] => format!("No instance that matches {filters} runs: {only}"),
        [first, ..] => format!(
            "None of the {} instances that match {filters} runs: {first}",
            left_out.len()
        ),
    }
}

/// The error in a filter; `None` if it is valid.
fn bad_filter(text: &str) -> Option<String> {
    let rest = text.strip_prefix("Name=");
    let good = rest
        .and_then(|rest| rest.split_once(",Values="))
        .is_some_and(|(name, values)| !name.is_empty() && !values.is_empty());
    (!good).then(|| {
        format!(
            "'{text}' is not a filter; write Name=…,Values=…, as in 'Name=tag:role,Values=burnin'."
        )
    })
}

/// The command for one page. `aws` follows pages itself, unless it is configured otherwise.
fn program(filters: &[String], token: Option<&str>) -> Exec {
    let mut program = aws::command(&["ec2", "describe-instances"]);
    if !filters.is_empty() {
        program = program.arg("--filters").args(filters);
    }
    match token {
        Some(token) => program.args(["--starting-token", token]),
        None => program,
    }
}

fn page(bytes: &[u8]) -> Result<Page, String> {
    // Without any instance some versions print nothing.
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Page::default());
    }
    serde_json::from_slice(bytes).map_err(|why| {
        format!("What 'aws ec2 describe-instances' wrote is not the JSON that it should be: {why}.")
    })
}

/// Reason why an instance is not among the hosts.
enum Exclusion {
    LeftOut(String),
    Wrong(String),
}

impl Instance {
    fn host(self, by: AddressKind) -> Result<Host, Exclusion> {
        let id = self.instance_id.unwrap_or_default();
        let state = self.state.and_then(|state| state.name).unwrap_or_default();
        if state != "running" {
            return Err(Exclusion::LeftOut(format!(
                "{id} is {state}, and was left out."
            )));
        }
        let (address, which) = match by {
            AddressKind::Private => (self.private_ip_address, "private"),
            AddressKind::Public => (self.public_ip_address, "public"),
        };
        let Some(address) = address.filter(|address| !address.is_empty()) else {
            return Err(Exclusion::Wrong(format!(
                "{id} has no {which} address; choose the other with --address, or leave it out with \
                 a filter."
            )));
        };
        if let Some(why) = no_address(&address) {
            return Err(Exclusion::Wrong(format!("The address of {id}: {why}.")));
        }
        let pair = |tag: Tag| Some((tag.key?, tag.value.unwrap_or_default()));
        let tags: BTreeMap<String, String> =
            self.tags.into_iter().flatten().filter_map(pair).collect();
        let named = tags.get("Name").filter(|name| !name.is_empty());
        Ok(Host {
            name: named.cloned().unwrap_or_else(|| id.clone()),
            address,
            zone: self.placement.and_then(|place| place.availability_zone),
            kind: self.instance_type,
            id: Some(id).filter(|id| !id.is_empty()),
            tags,
            ..Host::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn instance(id: &str, state: &str, address: &str) -> String {
        format!(
            r#"{{"InstanceId": "{id}", "InstanceType": "i4i.large", "State": {{"Name": "{state}"}},
                "PrivateIpAddress": "{address}", "Placement": {{"AvailabilityZone": "us-east-1a"}},
                "Tags": [{{"Key": "Name", "Value": "db-{id}"}}, {{"Key": "keep", "Value": ""}}]}}"#
        )
    }

    fn answer(instances: &[String], next: &str) -> Vec<u8> {
        let each = instances.join(",");
        format!(r#"{{"Reservations": [{{"Instances": [{each}]}}]{next}}}"#).into_bytes()
    }

    const FILTER: &str = "Name=tag:role,Values=burnin";

    fn list_pages(pages: &[Vec<u8>]) -> (Result<HostList, Vec<String>>, Vec<String>) {
        let mut lines = Vec::new();
        let mut pages = pages.iter();
        let found = ask(&[FILTER.to_owned()], AddressKind::Private, &mut |page| {
            lines.push(page.line());
            Ok(pages.next().cloned().unwrap_or_default())
        });
        (found, lines)
    }

    #[test]
    fn all_pages_are_requested() {
        let first = answer(
            &[instance("i-1", "running", "10.0.0.1")],
            r#", "NextToken": "t1""#,
        );
        let second = answer(
            &[
                instance("i-2", "running", "10.0.0.2"),
                instance("i-3", "stopped", "10.0.0.3"),
            ],
            r#", "NextToken": null"#,
        );
        let (found, lines) = list_pages(&[first, second]);
        let found = found.unwrap();
        assert_eq!(found.hosts.len(), 2);
        let host = &found.hosts[0];
        assert_eq!(
            (host.name.as_str(), host.address.as_str()),
            ("db-i-1", "10.0.0.1")
        );
        assert_eq!(host.zone.as_deref(), Some("us-east-1a"));
        assert_eq!(host.id.as_deref(), Some("i-1"));
        assert!(host.tags.contains_key("keep"));
        assert_eq!(found.left_out, ["i-3 is stopped, and was left out."]);
        let plain = format!("aws ec2 describe-instances --output json --filters {FILTER}");
        assert_eq!(
            lines,
            [plain.clone(), format!("{plain} --starting-token t1")]
        );
    }

    #[test]
    fn errors_are_reported() {
        let none = list_pages(&[answer(&[], "")]).0.unwrap_err();
        assert!(none[0].starts_with("No instance matches"), "{none:?}");
        let empty = list_pages(&[Vec::new()]).0.unwrap_err();
        assert!(empty[0].starts_with("No instance matches"), "{empty:?}");
        let stopped = list_pages(&[answer(&[instance("i-1", "stopped", "x")], "")]).0;
        assert!(stopped.unwrap_err()[0].contains("i-1 is stopped"));
        let bad = list_pages(&[b"<html>".to_vec()]).0.unwrap_err();
        assert!(bad[0].contains("not the JSON"), "{bad:?}");
        let twice = [
            instance("i-1", "running", "a"),
            instance("i-1", "running", "b"),
        ];
        assert!(list_pages(&[answer(&twice, "")]).0.unwrap_err()[0].contains("same host"));
        let lost = list_pages(&[answer(&[instance("i-1", "running", "")], "")]).0;
        assert!(lost.unwrap_err()[0].contains("no private address"));
        let errors = ask(
            &["role=burnin".to_owned()],
            AddressKind::Public,
            &mut |_| panic!("nothing is asked with a filter that is none"),
        );
        assert!(errors.unwrap_err()[0].contains("is not a filter"));
        let failed = ask(&[FILTER.to_owned()], AddressKind::Public, &mut |_| {
            Err("the program aws is not installed".to_owned())
        });
        assert!(failed.unwrap_err()[0].contains("not installed"));
    }

    #[test]
    fn pages_without_end_end() {
        let page = answer(&[], r#", "NextToken": "again""#);
        let mut asked = 0;
        let found = ask(&[], AddressKind::Private, &mut |_| {
            asked += 1;
            Ok(page.clone())
        });
        assert!(found.is_err() && asked == MAX_PAGES);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = list_pages(&[bytes]);
        }

        #[test]
        fn any_text_is_answered_as_a_filter(text in ".{0,30}") {
            let _ = bad_filter(&text);
        }
    }
}
