//! Address at which a host is reached, compared with the addresses that EC2 has for its instance. A metadata
//! service can be forwarded or made up, and names any instance of the account then.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::hosts::InstanceState;
use crate::race::conclude::RaceConclusion;
use crate::store::race::{RaceRecord, RacedHost};
use crate::store::{FleetRun, HostRun};

/// Time limit for looking up all names. A resolver that does not answer takes half a minute for each.
pub(super) const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// Names looked up at the same time.
const THREADS: usize = 16;
/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(50);

/// Gives the addresses of a name; none where it has none.
pub(super) type Resolve<'a> = &'a mut dyn FnMut(&str) -> Vec<IpAddr>;

/// Asks the system's resolver. What only ssh's own configuration knows is not found.
pub(super) fn really(name: &str) -> Vec<IpAddr> {
    let found = (name, 0).to_socket_addrs();
    found.map_or_else(|_| Vec::new(), |all| all.map(|one| one.ip()).collect())
}

/// The names of which the addresses are needed: those of bad hosts of which no source but themselves reports
/// which instance they are.
pub(super) fn names(
    run: &FleetRun,
    record: &RaceRecord,
    concluded: &RaceConclusion,
) -> BTreeSet<String> {
    let bad = concluded.ranked.iter().filter(|one| one.is_bad);
    let both =
        bad.filter_map(|one| Some((run.hosts.get(one.place)?, record.hosts.get(one.place)?)));
    let alone = both.filter(|(_, raced)| raced.given_id.is_none());
    let names = alone.map(|(host, _)| name_of(host));
    names
        .filter(|name| literal(name).is_none())
        .map(str::to_owned)
        .collect()
}

/// Looks names up, for as long as `timeout` and until a signal comes: the system's resolver hears of neither.
/// A name that is not resolved by then counts as one without an address.
pub(super) fn found(
    names: BTreeSet<String>,
    timeout: Duration,
    interrupt: &AtomicBool,
    resolve: fn(&str) -> Vec<IpAddr>,
) -> BTreeMap<String, Vec<IpAddr>> {
    let (mut found, all) = (BTreeMap::new(), names.len());
    let left = Arc::new(Mutex::new(names));
    let (sender, answers) = channel();
    for _ in 0..THREADS.min(all) {
        let (left, sender) = (Arc::clone(&left), sender.clone());
        let next = move || {
            left.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_first()
        };
        let work = move || {
            while let Some(name) = next() {
                let addresses = resolve(&name);
                // If this fails, the caller has stopped waiting.
                let _ = sender.send((name, addresses));
            }
        };
        let thread = thread::Builder::new().name("resolver".to_owned());
        // Where none can be started, none has an address.
        let _ = thread.spawn(work);
    }
    drop(sender);
    let until = Instant::now() + timeout;
    while found.len() < all && Instant::now() < until && !interrupt.load(Relaxed) {
        match answers.recv_timeout(POLL) {
            Ok((name, addresses)) => {
                found.insert(name, addresses);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // Threads that hang end with the name that they are at.
    left.lock().unwrap_or_else(PoisonError::into_inner).clear();
    found
}

/// Address of a host whose instance id no source but the host reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnconfirmedAddress {
    /// Address given to ssh.
    address: String,
    /// The addresses that this is.
    found: Vec<IpAddr>,
}

impl UnconfirmedAddress {
    /// The address of a host; `None` where its source reports which instance it is.
    pub(super) fn of(
        host: &HostRun,
        raced: &RacedHost,
        resolve: Resolve<'_>,
    ) -> Option<UnconfirmedAddress> {
        if raced.given_id.is_some() {
            return None;
        }
        let name = name_of(host);
        Some(UnconfirmedAddress {
            address: host.address.clone(),
            found: literal(name).map_or_else(|| resolve(name), |one| vec![one]),
        })
    }

    /// Reason why the instance may not be at this address, as a clause; `None` where EC2 has it there.
    pub(super) fn doubt(&self, now: &InstanceState) -> Option<String> {
        let (id, address) = (&now.id, &self.address);
        let own: Vec<IpAddr> = (now.addresses.iter())
            .filter_map(|one| one.parse().ok())
            .collect();
        if self.found.iter().any(|one| own.contains(one)) {
            None
        } else if self.found.is_empty() {
            Some(format!(
                "only the host itself reports that it is {id}, and {address} is not an address \
                 that EC2 could know"
            ))
        } else {
            Some(format!(
                "only the host itself reports that it is {id}, and EC2 does not have it at {address}"
            ))
        }
    }
}

/// The name or address at which a host is reached, as a resolver knows it.
fn name_of(host: &HostRun) -> &str {
    let bare = bare(&host.address);
    bare.trim_start_matches('[').trim_end_matches(']')
}

/// The address that a name is; `None` where it is none.
fn literal(name: &str) -> Option<IpAddr> {
    // What is behind a percent sign is this machine's name of a network.
    name.split('%').next().unwrap_or(name).parse().ok()
}

/// An address without the user.
pub(super) fn bare(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A resolver that knows one name at once, and hangs at another.
    fn slow(name: &str) -> Vec<IpAddr> {
        if name == "hangs" {
            thread::sleep(Duration::from_secs(3600));
        }
        vec![IpAddr::from([10, 0, 0, 1])]
    }

    #[test]
    fn a_resolver_that_hangs_is_waited_for_no_longer_than_is_said() {
        let names = || ["hangs", "known"].map(str::to_owned).into();
        let (calm, signal) = (AtomicBool::new(false), AtomicBool::new(true));
        let began = Instant::now();
        let known = found(names(), Duration::from_secs(10), &calm, slow);
        assert_eq!(known.keys().collect::<Vec<_>>(), ["known"]);
        // Nor after a signal.
        found(names(), Duration::from_secs(3600), &signal, slow);
        assert!(began.elapsed() < Duration::from_secs(1800));
    }
}
