//! Owners of work, and liveness of their processes. The caller passes in what the kernel reports: this crate opens
//! nothing but the ledger.

use serde::{Deserialize, Serialize};

/// Identity of a process that owns work, by properties that any other process can determine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The host's name.
    pub host: String,
    /// Id of the installed system (machine-id(5)); empty if it has none.
    pub machine: String,
    /// Id of this boot of the kernel (random(4), `boot_id`).
    pub boot: String,
    /// The PID namespace (namespaces(7)); empty on a kernel without them.
    pub namespace: String,
    /// Process id.
    pub pid: u32,
    /// Start time, in clock ticks after the boot, since pids are reused.
    pub started: u64,
}

/// Liveness of an owner's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerLiveness {
    /// The owner's process is running.
    Alive,
    /// The owner has ended, or its host has booted since.
    Dead,
    /// The owner's process was on another host or in another container, and cannot be seen from here.
    Elsewhere,
}

impl Owner {
    /// A copy of this owner that counts as dead: no process has the pid 0.
    pub(crate) fn ended(&self) -> Owner {
        Owner {
            pid: 0,
            ..self.clone()
        }
    }

    /// Liveness of this owner, as seen by the process `here`. `start_of` returns the start time of the process with a
    /// pid, or `None` if there is none; it is called only for this boot and namespace, where pids are comparable.
    pub fn liveness(
        &self,
        here: &Owner,
        start_of: impl FnOnce(u32) -> Option<u64>,
    ) -> OwnerLiveness {
        if self.boot == here.boot {
            // The same kernel: host names are not compared, since they may have changed.
            return if self.namespace != here.namespace {
                OwnerLiveness::Elsewhere
            } else if start_of(self.pid) == Some(self.started) {
                OwnerLiveness::Alive
            } else {
                OwnerLiveness::Dead
            };
        }
        if self.host == here.host && self.machine == here.machine {
            OwnerLiveness::Dead
        } else {
            OwnerLiveness::Elsewhere
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A process of the host `db-1` in its boot `b1`.
    pub(crate) fn owner(pid: u32) -> Owner {
        Owner {
            host: "db-1".to_owned(),
            machine: "m1".to_owned(),
            boot: "b1".to_owned(),
            namespace: "pid:[4026531836]".to_owned(),
            pid,
            started: 1000 + u64::from(pid),
        }
    }

    #[test]
    fn a_process_is_alive_when_its_pid_started_when_it_did() {
        let (him, me) = (owner(7), owner(8));
        assert_eq!(him.liveness(&me, |_| Some(1007)), OwnerLiveness::Alive);
        assert_eq!(him.liveness(&me, |_| Some(1008)), OwnerLiveness::Dead);
        assert_eq!(him.liveness(&me, |_| None), OwnerLiveness::Dead);
    }

    #[test]
    fn after_a_boot_of_the_same_host_no_one_is_alive() {
        let (mut him, me) = (owner(7), owner(8));
        him.boot = "b0".to_owned();
        // Not even one of another container, and whatever has its pid now.
        him.namespace = "pid:[1]".to_owned();
        assert_eq!(him.liveness(&me, |_| Some(1007)), OwnerLiveness::Dead);
    }

    #[test]
    fn of_another_host_or_container_nothing_is_known() {
        let me = owner(8);
        let asked = |_: u32| -> Option<u64> { panic!("the kernel here knows nothing of it") };
        let others: [fn(&mut Owner); 3] = [
            |him| {
                him.boot = "b0".to_owned();
                him.host = "db-2".to_owned();
            },
            |him| {
                him.boot = "b0".to_owned();
                him.machine = "m2".to_owned();
            },
            |him| him.namespace = "pid:[1]".to_owned(),
        ];
        for differs in others {
            let mut him = owner(7);
            differs(&mut him);
            assert_eq!(
                him.liveness(&me, asked),
                OwnerLiveness::Elsewhere,
                "{him:?}"
            );
        }
    }

    #[test]
    fn a_host_that_was_renamed_still_knows_its_processes() {
        let (mut him, me) = (owner(7), owner(8));
        him.host = "db-2".to_owned();
        assert_eq!(him.liveness(&me, |_| Some(1007)), OwnerLiveness::Alive);
    }
}
