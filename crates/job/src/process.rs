//! Identity of this process in the ledger, and liveness of the owners of long work.

use std::path::Path;

use ledger::{Owner, OwnerLiveness};
use linux::{Root, machine, process};

/// Identity of this process as the owner of work, and access to the state of other processes.
#[derive(Clone, Debug)]
pub struct ProcessIdentity {
    root: Root,
    owner: Owner,
}

impl ProcessIdentity {
    /// Identity of this process. `etc` is the folder with the machine id.
    ///
    /// # Errors
    /// When the identity of the process, or of the boot, cannot be determined.
    pub fn of_process(root: &Root, etc: &Path) -> linux::Result<ProcessIdentity> {
        let own = process::own(root)?;
        let owner = Owner {
            host: machine::hostname(root),
            machine: process::machine_id(etc).unwrap_or_default(),
            boot: process::boot_id(root)?,
            namespace: process::pid_namespace(root).unwrap_or_default(),
            pid: own.pid,
            started: own.started,
        };
        Ok(ProcessIdentity {
            root: root.clone(),
            owner,
        })
    }

    /// This process as an owner.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Liveness of an owner. If its process exists and cannot be examined, it counts as alive, so that its work is not
    /// taken over by mistake.
    pub fn liveness(&self, owner: &Owner) -> OwnerLiveness {
        owner.liveness(&self.owner, |pid| match process::of(&self.root, pid) {
            Ok(found) => found.map(|process| process.started),
            Err(_) => Some(owner.started),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn identity() -> ProcessIdentity {
        ProcessIdentity::of_process(&Root::host(), Path::new("/etc")).unwrap()
    }

    #[test]
    fn this_process_is_alive_and_one_that_was_killed_is_dead_before_it_is_waited_for() {
        let identity = identity();
        assert_eq!(identity.liveness(identity.owner()), OwnerLiveness::Alive);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let seen = process::of(&Root::host(), child.id()).unwrap().unwrap();
        let owner = Owner {
            pid: seen.pid,
            started: seen.started,
            ..identity.owner().clone()
        };
        assert_eq!(identity.liveness(&owner), OwnerLiveness::Alive);
        child.kill().unwrap();
        // The kernel may need a moment to end it; it remains a zombie, since its parent has not waited for it.
        let mut polls = 0;
        while identity.liveness(&owner) == OwnerLiveness::Alive && polls < 60_000 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            polls += 1;
        }
        assert_eq!(identity.liveness(&owner), OwnerLiveness::Dead);
        child.wait().unwrap();
        assert_eq!(identity.liveness(&owner), OwnerLiveness::Dead);
    }

    #[test]
    fn a_process_that_has_got_the_pid_of_another_is_not_taken_for_it() {
        let identity = identity();
        let mut before = identity.owner().clone();
        before.started = before.started.saturating_sub(1);
        assert_eq!(identity.liveness(&before), OwnerLiveness::Dead);
        let mut earlier = identity.owner().clone();
        earlier.boot = "another".to_owned();
        assert_eq!(identity.liveness(&earlier), OwnerLiveness::Dead);
        earlier.host.push('x');
        assert_eq!(identity.liveness(&earlier), OwnerLiveness::Elsewhere);
    }
}
