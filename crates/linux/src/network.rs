//! Total traffic of a host's network interfaces.

use crate::pulse::Interface;

/// Bytes sent and received by the network interfaces since they came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
}

impl Traffic {
    /// Total traffic of the hardware interfaces, from lines of `/proc/net/dev`. Interfaces on top of them, such as
    /// bridges, bonds and VLANs, would count the same bytes again. If there is no hardware interface, as in a
    /// container, all but the loopback count.
    pub fn of<'a>(
        lines: impl IntoIterator<Item = &'a str>,
        is_hardware: impl Fn(&str) -> bool,
    ) -> Traffic {
        let interfaces = lines.into_iter().filter_map(Interface::parse);
        let (mut hardware, mut others) = (None::<Traffic>, Traffic::default());
        for interface in interfaces.filter(|interface| interface.name != "lo") {
            let sum = match is_hardware(interface.name) {
                true => hardware.get_or_insert_default(),
                false => &mut others,
            };
            sum.received = sum.received.saturating_add(interface.received.bytes);
            sum.sent = sum.sent.saturating_add(interface.transmitted.bytes);
        }
        hardware.unwrap_or(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n    \
        lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0\n  \
        ens5:70000 10 0 0 0 0 0 0 300 10 0 0 0 0 0 0\n  \
        br-1: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n";

    #[test]
    fn hardware_is_counted_once() {
        let traffic = Traffic::of(TEXT.lines(), |name| name == "ens5");
        assert_eq!((traffic.received, traffic.sent), (70_000, 300));
    }

    #[test]
    fn without_hardware_all_but_the_loopback_count() {
        let traffic = Traffic::of(TEXT.lines(), |_| false);
        assert_eq!((traffic.received, traffic.sent), (70_005, 306));
    }
}
