//! Limit of open files of this process, raised as far as the work needs.

use anyhow::{Context as _, bail};
use engine::IoInterface;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of descriptors that a run needs for anything but its work: the standard streams, the ledger, the kernel's
/// counters, and the target with its claims.
const OTHER_DESCRIPTORS: u64 = 64;

/// Raises the soft limit of open files so that this process can have `most` descriptors beside [`OTHER_DESCRIPTORS`].
/// Shells set a soft limit of 1,024, for programs that use select(2), which takes no more; a process may raise it up
/// to the hard limit (getrlimit(2)).
///
/// # Errors
/// When the hard limit is lower. `fewer` is the plural noun in the advice "use fewer …". The check comes first, since
/// otherwise the limit would be hit after all files are written.
pub fn allow(most: u64, fewer: &str) -> Result<(), anyhow::Error> {
    let needed = most + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if let Some(hard) = limit.maximum.filter(|hard| *hard < needed) {
        bail!(
            "{needed} files and descriptors must be open at once, and this process may have {hard} \
             (ulimit -Hn); use fewer {fewer}, or raise the limit"
        );
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised)
        .with_context(|| format!("the limit of open files could not be raised to {needed}"))
}

/// Number of descriptors that a thread of the engine holds beside the target's: the kernel's counter of its processor
/// time, and its ring, if it has one.
pub(crate) fn of_thread(interface: IoInterface) -> u64 {
    1 + u64::from(interface != IoInterface::Sync)
}
