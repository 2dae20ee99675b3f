//! Search for the space in use, while the first blocks are read already.
//!
//! To list the free space of a large file system takes long, and longer where the file system's own
//! maps are cold. Nothing has to wait for it: what is named comes first anyway, and where all is to be
//! read in the end, the rest is read from its start until it is known what of it is in use.

use std::sync::mpsc::{Receiver, TryRecvError};

use linux::Root;
use linux::block::Devices;
use record::{Bytes, Ranges};

use super::finding::Finding;
use super::left_cold::left_cold;
use super::plan::{Extent, KnownSpace, Plan};
use super::space;
use reader::Volume;

/// Space of a volume that is to be read, as far as it is known.
pub(crate) struct WantedSpace {
    /// Named space and the snapshot's blocks. The space in use is not known yet.
    pub known: KnownSpace,
    /// Extent of the reading.
    pub extent: Extent,
}

/// The final plan, with its findings.
pub(crate) struct FinalPlan {
    /// Space to read, in order.
    pub plan: Plan,
    /// Findings about space that stays cold, and about what could not be found out.
    pub findings: Vec<Finding>,
}

impl WantedSpace {
    /// Space that can be read at once, until the rest is known.
    pub(crate) fn at_once(&self, size: Bytes, block: Bytes) -> Plan {
        let extent = match self.extent {
            // What is used is not known, and what is not used is not wanted.
            Extent::First | Extent::Used => Extent::First,
            Extent::All => Extent::All,
        };
        Plan::new(&self.known, size, block, extent)
    }

    /// Finds out what is used, which may take long, unless it does not matter. What is found out until
    /// `is_unwanted` says that nobody waits any more is in the plan.
    pub(crate) fn find(
        mut self,
        volume: &Volume,
        block: Bytes,
        (devices, root): (&Devices, &Root),
        is_unwanted: &dyn Fn() -> bool,
    ) -> FinalPlan {
        let mut findings = Vec::new();
        self.known.used = match self.extent {
            Extent::First => None,
            Extent::Used | Extent::All => {
                space::used_space(volume, devices, root, is_unwanted, &mut findings)
            }
        };
        if is_unwanted() {
            // What was not listed for want of time is no finding.
            findings.clear();
        }
        let plan = Plan::new(&self.known, volume.size, block, self.extent);
        findings.extend(left_cold(&plan, &self.known, self.extent));
        FinalPlan { plan, findings }
    }
}

/// Waits for the final plan.
#[derive(Debug)]
pub(crate) struct FinalPlanReceiver {
    plans: Option<Receiver<Plan>>,
    /// True if the search may name space that is not known yet.
    may_add: bool,
    /// Ranges that were requested meanwhile.
    requested: Ranges,
}

impl FinalPlanReceiver {
    /// Receiver of the plan that comes this way.
    pub(crate) fn new(plans: Receiver<Plan>) -> FinalPlanReceiver {
        FinalPlanReceiver {
            plans: Some(plans),
            may_add: true,
            requested: Ranges::new(),
        }
    }

    /// Receiver of a plan that names nothing that is not known already: only its order is another one.
    pub(crate) fn of_order(plans: Receiver<Plan>) -> FinalPlanReceiver {
        FinalPlanReceiver {
            may_add: false,
            ..FinalPlanReceiver::new(plans)
        }
    }

    /// True if a plan may still come that names more.
    pub(crate) fn may_add(&self) -> bool {
        self.may_add && self.is_open()
    }

    /// True if a plan may still come.
    fn is_open(&self) -> bool {
        self.plans.is_some()
    }

    /// Notes a range that was requested.
    pub(crate) fn asks(&mut self, range: std::ops::Range<u64>) {
        if self.is_open() {
            self.requested.insert(range);
        }
    }

    /// The final plan, once, when it has come, and what was requested until then.
    pub(crate) fn take(&mut self) -> Option<(Plan, Ranges)> {
        match self.plans.as_ref()?.try_recv() {
            Ok(plan) => {
                self.plans = None;
                Some((plan, std::mem::take(&mut self.requested)))
            }
            Err(TryRecvError::Disconnected) => {
                self.plans = None;
                None
            }
            Err(TryRecvError::Empty) => None,
        }
    }
}
