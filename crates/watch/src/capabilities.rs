//! Capabilities (capabilities(7)) of a watch that serves metrics. Once its sources are open, it drops those that it no
//! longer needs, for this thread and the threads that it starts later. A process of an ordinary user has none.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

use crate::args::WatchArgs;

/// Capabilities that the watch itself still needs.
pub(crate) fn of_watch(args: &WatchArgs, reads_vendor_pages: bool) -> CapabilitySet {
    let mut needed = of_answers(args);
    // A service that is reloaded opens the kernel's log again, with the capability that its unit grants.
    let of_unit = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.inheritable);
    needed |= of_unit & CapabilitySet::SYSLOG;
    // The statistics page of a volume is read from the NVMe controller anew for each poll.
    if reads_vendor_pages || args.latency {
        needed |= CapabilitySet::SYS_ADMIN;
    }
    // The ledger may lie in another user's folder.
    if args.record.record {
        needed |= CapabilitySet::DAC_OVERRIDE;
    }
    needed
}

/// Capabilities of the threads that serve requests: to read a renewed key, which may belong to another user.
pub(crate) fn of_answers(args: &WatchArgs) -> CapabilitySet {
    match args.web_config {
        Some(_) => CapabilitySet::DAC_READ_SEARCH,
        None => CapabilitySet::empty(),
    }
}

/// Drops all capabilities of this thread except these.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn keep_only(needed: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    let had = capabilities(None)?;
    let kept = had.permitted & needed;
    let wanted = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: had.inheritable & kept,
    };
    // A service without any may not even call capset (SystemCallFilter=~@privileged).
    if had != wanted {
        set_capabilities(None, wanted)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_thread_and_its_threads_keep_only_what_is_named() {
        let before = capabilities(None).unwrap();
        let kept = CapabilitySet::DAC_READ_SEARCH;
        let seen = thread::spawn(move || {
            keep_only(kept).unwrap();
            let of_later = thread::spawn(|| capabilities(None).unwrap());
            [capabilities(None).unwrap(), of_later.join().unwrap()]
        });
        for after in seen.join().unwrap() {
            assert_eq!(after.permitted, before.permitted & kept);
            assert_eq!(after.effective, before.permitted & kept);
        }
        assert_eq!(capabilities(None).unwrap(), before);
    }
}
