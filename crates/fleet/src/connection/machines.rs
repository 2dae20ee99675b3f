//! Facts that a host reports about itself, and the registry of connected machines.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::connection::session::{AgentSession, Incoming};
use crate::connection::transport::ConnectionError;
use crate::hosts::Host;
use crate::protocol::{FromAgent, HostFacts, ToAgent};

/// Time limit for the facts about a host: the agent queries the cloud.
const FACTS_TIMEOUT: Duration = Duration::from_secs(20);

/// The connected machines: names of the hosts, by boot id and hostname.
#[derive(Default)]
pub(crate) struct MachineRegistry(Mutex<BTreeMap<(String, String), String>>);

impl MachineRegistry {
    /// Registers the machine of a host.
    ///
    /// # Errors
    /// Unfit, if the machine is already registered under another name: two verbs at once on one machine would measure
    /// each other. (Containers share the boot id of their host, and have hostnames of their own.)
    pub(crate) fn identify_host(
        &self,
        facts: &HostFacts,
        host: &Host,
    ) -> Result<(), ConnectionError> {
        if facts.boot.is_empty() {
            return Ok(());
        }
        let machine = (facts.boot.clone(), facts.hostname.clone());
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = met.entry(machine).or_insert_with(|| host.name.clone());
        if *first == host.name {
            return Ok(());
        }
        Err(ConnectionError::Unfit(format!(
            "{} is the same machine as {first}, under another name; leave one of them out.",
            host.name
        )))
    }
}

/// Facts about the host, and the seconds by which its clock is ahead; `None` if it does not report them, or the user
/// interrupts.
///
/// # Errors
/// If the connection is lost.
pub(crate) fn facts(
    session: &mut AgentSession<'_>,
) -> Result<Option<(HostFacts, f64)>, ConnectionError> {
    let sent = now_ms();
    session.send(&ToAgent::Facts)?;
    let until = Instant::now() + FACTS_TIMEOUT;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        match session.receive(left)? {
            Incoming::Message(FromAgent::Facts(facts)) => {
                let ahead = ahead_s(facts.clock_ms, sent, now_ms());
                return Ok(Some((*facts, ahead)));
            }
            Incoming::Interrupt => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
}

/// Seconds by which a clock is ahead that was read between two moments, in milliseconds: the smallest difference that
/// explains the answer, since the reading may have taken long.
fn ahead_s(clock_ms: i64, sent_ms: i64, received_ms: i64) -> f64 {
    let nearest = clock_ms.clamp(sent_ms, received_ms.max(sent_ms));
    (clock_ms - nearest) as f64 / 1e3
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_took_long_to_answer_has_no_wrong_clock() {
        assert_eq!(ahead_s(14_900, 10_000, 15_000), 0.0);
        assert_eq!(ahead_s(18_000, 10_000, 15_000), 3.0);
        assert_eq!(ahead_s(7_500, 10_000, 15_000), -2.5);
        // This machine's clock was set back meanwhile.
        assert_eq!(ahead_s(10_000, 10_000, 9_000), 0.0);
    }

    #[test]
    fn one_machine_under_two_names_is_one_host() {
        let met = MachineRegistry::default();
        let host = |name: &str| Host {
            name: name.to_owned(),
            ..Host::default()
        };
        let facts = |boot: &str, hostname: &str| HostFacts {
            boot: boot.to_owned(),
            hostname: hostname.to_owned(),
            ..HostFacts::default()
        };
        let meet = |boot, hostname, name| met.identify_host(&facts(boot, hostname), &host(name));
        assert_eq!(meet("b1", "db1", "db1"), Ok(()));
        assert_eq!(
            meet("b1", "db1", "db1"),
            Ok(()),
            "it is met again after a loss"
        );
        assert_eq!(meet("b1", "other", "container"), Ok(()));
        assert_eq!(meet("b2", "db1", "clone"), Ok(()));
        let error = meet("b1", "db1", "root@db1").unwrap_err().to_string();
        assert!(
            error.contains("root@db1 is the same machine as db1"),
            "{error}"
        );
        // Hosts that do not report their boot id are not compared.
        assert_eq!(meet("", "x", "x1"), Ok(()));
        assert_eq!(meet("", "x", "x2"), Ok(()));
    }
}
