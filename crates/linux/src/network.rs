//! Traffic of all of a host's network interfaces together.

use crate::pulse::NetReader;
use crate::root::{Result, Root};

/// Bytes that went through the network interfaces since they came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received.
    pub received: u64,
    /// Sent.
    pub sent: u64,
}

impl Traffic {
    /// Traffic of the interfaces that are hardware. Those on top of them, such as bridges,
    /// bonds and VLANs, would count the same bytes again. Where none is hardware, as in a container,
    /// all but the loopback count.
    ///
    /// # Errors
    /// When `/proc/net/dev` cannot be read.
    pub fn read(root: &Root) -> Result<Traffic> {
        let mut reader = NetReader::open(root)?;
        let interfaces: Vec<(bool, Traffic)> = reader
            .read()?
            .map(|interface| {
                let device = root
                    .sys
                    .join("class/net")
                    .join(interface.name)
                    .join("device");
                let traffic = Traffic {
                    received: interface.received.bytes,
                    sent: interface.transmitted.bytes,
                };
                (device.exists(), traffic)
            })
            .collect();
        let any_hardware = interfaces.iter().any(|(hardware, _)| *hardware);
        let kept = interfaces
            .iter()
            .filter(|(hardware, _)| *hardware || !any_hardware);
        Ok(kept.fold(Traffic::default(), |all, (_, one)| Traffic {
            received: all.received.saturating_add(one.received),
            sent: all.sent.saturating_add(one.sent),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TEXT: &str = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n    \
        lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0\n  \
        ens5:70000 10 0 0 0 0 0 0 300 10 0 0 0 0 0 0\n  \
        br-1: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n";

    fn root(hardware: &[&str]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("proc/net")).unwrap();
        fs::write(folder.path().join("proc/net/dev"), TEXT).unwrap();
        for name in hardware {
            let device = folder.path().join("sys/class/net").join(name);
            fs::create_dir_all(device.join("device")).unwrap();
        }
        let root = Root::under(folder.path());
        (folder, root)
    }

    #[test]
    fn hardware_is_counted_once() {
        let (_folder, root) = root(&["ens5"]);
        let traffic = Traffic::read(&root).unwrap();
        assert_eq!((traffic.received, traffic.sent), (70_000, 300));
    }

    #[test]
    fn without_hardware_all_but_the_loopback_count() {
        let (_folder, root) = root(&[]);
        let traffic = Traffic::read(&root).unwrap();
        assert_eq!((traffic.received, traffic.sent), (70_005, 306));
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Traffic::read(&Root::under(folder.path())).unwrap_err();
        assert!(error.to_string().contains("net/dev"), "{error}");
    }
}
