//! Address with which a host is reached, compared with the addresses that EC2 has for its instance. A metadata service
//! can be forwarded or faked, and could name any instance of the account.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use linux::aws::RunProgram;
use linux::exec::Exec;

/// Time limit for looking up all names. A resolver that does not answer takes half a minute for each.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for one name, so that one that hangs leaves time for others.
const NAME_TIMEOUT: Duration = Duration::from_secs(2);

/// Addresses of names.
pub(super) type Addresses = BTreeMap<String, Vec<IpAddr>>;

/// Looks up the names of hosts with the system's resolver, until the timeout or a signal. A name that is not found by
/// then is left out, such as one that only ssh's configuration has.
pub(super) fn look_up<'a>(
    reached: impl Iterator<Item = &'a String>,
    interrupt: &AtomicBool,
    program: RunProgram<'_>,
) -> Addresses {
    let (mut addresses, until) = (Addresses::new(), Instant::now() + LOOKUP_TIMEOUT);
    for name in reached.map(|address| name_of(address)) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || interrupt.load(Relaxed) {
            break;
        }
        if literal(name).is_some() || addresses.contains_key(name) {
            continue;
        }
        let getent = Exec::new("getent").args(["ahosts", name]);
        let bytes =
            program(&getent.limit(left.min(NAME_TIMEOUT)).die_with_parent()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let first = |line: &str| line.split_whitespace().next()?.parse().ok();
        addresses.insert(name.to_owned(), text.lines().filter_map(first).collect());
    }
    addresses
}

/// Addresses of a host: the one with which it is reached, or those found for its name.
pub(super) fn addresses_of(reached: &str, known: &Addresses) -> Vec<IpAddr> {
    let name = name_of(reached);
    let found = || known.get(name).cloned().unwrap_or_default();
    literal(name).map_or_else(found, |ip| vec![ip])
}

/// The name or address with which a host is reached, in the form of a resolver.
fn name_of(address: &str) -> &str {
    let bare = without_user(address);
    bare.trim_start_matches('[').trim_end_matches(']')
}

/// The address that a name is; `None` if it is not an address.
fn literal(name: &str) -> Option<IpAddr> {
    // The part after a percent sign is this machine's name of a network interface.
    name.split('%').next().unwrap_or(name).parse().ok()
}

/// An address without the user.
pub(super) fn without_user(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, host)| host)
}
