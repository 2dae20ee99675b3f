//! The right to measure on a host: two measurements at once would distort each other.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::host_line::{AgentVerb, LineVerb, parse};
use crate::protocol::VerbRequest;

/// Name of the abstract socket that is bound while a process measures (unix(7), abstract socket addresses). It is not
/// a file: it disappears with its process, and is shared by all users of a host.
const NAME: &str = "disksmith-fleet-measures";

/// The right of this process to measure on the host for a fleet, until it is dropped.
#[derive(Debug)]
pub(super) struct MeasuringClaim {
    _name: UnixListener,
}

impl MeasuringClaim {
    /// Claims the host for a verb; `None` for a program, for a verb that does not measure, and where abstract sockets
    /// are not available.
    ///
    /// # Errors
    /// A sentence without its end, if another process measures.
    pub(super) fn of(order: &VerbRequest) -> Result<Option<MeasuringClaim>, String> {
        if !order.program && measures(&order.args) {
            claim(NAME)
        } else {
            Ok(None)
        }
    }
}

/// True if the result of a verb is worthless while another process measures. An error in the command line is reported
/// where it is run.
fn measures(words: &[String]) -> bool {
    match parse(words) {
        Ok(LineVerb::Host(verb)) => verb.measures(),
        Ok(LineVerb::Agent(verb)) => matches!(verb, AgentVerb::Rounds(_)),
        _ => false,
    }
}

fn claim(name: &str) -> Result<Option<MeasuringClaim>, String> {
    let address = SocketAddr::from_abstract_name(name);
    match address.and_then(|address| UnixListener::bind_addr(&address)) {
        Ok(name) => Ok(Some(MeasuringClaim { _name: name })),
        Err(why) if why.kind() == io::ErrorKind::AddrInUse => Err(
            "another run or race of a fleet is measuring on this host; two at once would measure each \
             other, so wait for its end, or end it"
                .to_owned(),
        ),
        // Where such sockets are not available, no other process has one either.
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn only_one_measures_at_a_time() {
        let name = format!("disksmith-test-measures-{}", std::process::id());
        let first = claim(&name).unwrap();
        assert!(first.is_some());
        let why = claim(&name).unwrap_err();
        assert!(why.contains("another run or race"), "{why}");
        drop(first);
        assert!(claim(&name).unwrap().is_some());
    }

    #[test]
    fn who_only_looks_needs_no_claim() {
        for line in [
            "bench /mnt/a --json",
            "rounds /mnt/a --figure page-read.iops",
            "sweep --devices /dev/sda",
            "replay load.trace /dev/sda",
        ] {
            assert!(measures(&split(line)), "{line}");
        }
        for line in [
            "devices",
            "sweep --devices /dev/sda --dry-run",
            "zero /dev/sda",
            "dance",
        ] {
            assert!(!measures(&split(line)), "{line}");
        }
    }
}
