//! Where a host is reached, beside where EC2 has the instance that the host calls itself. A metadata service can
//! be forwarded or made up, and names any instance of the account then.

use std::net::{IpAddr, ToSocketAddrs as _};

use super::super::super::hosts::Now;
use super::super::super::run::HostRun;
use super::super::record::RacedHost;

/// Gives the addresses of a name; none where it has none.
pub(super) type Resolve<'a> = &'a mut dyn FnMut(&str) -> Vec<IpAddr>;

/// Asks the system's resolver. What only ssh's own configuration knows is not found.
pub(super) fn really(name: &str) -> Vec<IpAddr> {
    let found = (name, 0).to_socket_addrs();
    found.map_or_else(|_| Vec::new(), |all| all.map(|one| one.ip()).collect())
}

/// Where a host is reached of which nobody but itself says which instance it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// What was given to ssh.
    address: String,
    /// The addresses that this is.
    found: Vec<IpAddr>,
}

impl Place {
    /// The place of a host; `None` where its source says of itself which instance it is.
    pub(super) fn of(host: &HostRun, raced: &RacedHost, resolve: Resolve<'_>) -> Option<Place> {
        if raced.given_id.is_some() {
            return None;
        }
        let bare = bare(&host.address);
        let bare = bare.trim_start_matches('[').trim_end_matches(']');
        // What stands behind a percent sign is this machine's name of a network.
        let literal = bare.split('%').next().unwrap_or(bare).parse();
        Some(Place {
            address: host.address.clone(),
            found: literal.map_or_else(|_| resolve(bare), |one| vec![one]),
        })
    }

    /// Why it is not known that the instance is there, as a clause; `None` where EC2 says that it is.
    pub(super) fn doubt(&self, now: &Now) -> Option<String> {
        let (id, address) = (&now.id, &self.address);
        let own: Vec<IpAddr> = (now.addresses.iter())
            .filter_map(|one| one.parse().ok())
            .collect();
        if self.found.iter().any(|one| own.contains(one)) {
            None
        } else if self.found.is_empty() {
            Some(format!(
                "only the host itself says that it is {id}, and {address} is no address that EC2 could know"
            ))
        } else {
            Some(format!(
                "only the host itself says that it is {id}, and EC2 does not have that at {address}"
            ))
        }
    }
}

/// An address without the user.
pub(super) fn bare(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, host)| host)
}
