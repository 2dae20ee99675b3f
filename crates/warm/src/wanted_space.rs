//! Search for the space in use, while the first blocks are already being read.
//!
//! To list the free space of a large file system takes long, and longer where the file system's own metadata is cold.
//! The reading does not wait for the list: the files that `--first` names are read first anyway, and where the whole
//! volume is to be read, it is read from its start until the space in use is known.

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
    /// Plan of the space that can be read before the space in use is known.
    pub(crate) fn at_once(&self, size: Bytes, block: Bytes) -> Plan {
        let extent = match self.extent {
            // The space in use is not known yet, and free space is not to be read.
            Extent::First | Extent::Used => Extent::First,
            Extent::All => Extent::All,
        };
        Plan::new(&self.known, size, block, extent)
    }

    /// Makes the final plan. The search for the space in use may take long, and is left out where the extent does not
    /// need it. It ends early once `is_unwanted` returns true.
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
            // A search that was ended early is not reported.
            findings.clear();
        }
        let plan = Plan::new(&self.known, volume.size, block, self.extent);
        findings.extend(left_cold(&plan, &self.known, self.extent));
        FinalPlan { plan, findings }
    }
}

/// Receiver of the final plan.
#[derive(Debug)]
pub(crate) struct FinalPlanReceiver {
    plans: Option<Receiver<Plan>>,
    /// True if the search may name space that is not known yet.
    may_add: bool,
    /// Ranges that were requested before the final plan arrived.
    requested: Ranges,
}

impl FinalPlanReceiver {
    /// Receiver of the plan from this channel.
    pub(crate) fn new(plans: Receiver<Plan>) -> FinalPlanReceiver {
        FinalPlanReceiver {
            plans: Some(plans),
            may_add: true,
            requested: Ranges::new(),
        }
    }

    /// Receiver of a plan that has no more ranges than the current one, in another order.
    pub(crate) fn of_new_order(plans: Receiver<Plan>) -> FinalPlanReceiver {
        FinalPlanReceiver {
            may_add: false,
            ..FinalPlanReceiver::new(plans)
        }
    }

    /// True if a plan with more ranges may still arrive.
    pub(crate) fn may_add(&self) -> bool {
        self.may_add && self.is_open()
    }

    /// True if the final plan may still arrive.
    fn is_open(&self) -> bool {
        self.plans.is_some()
    }

    /// Notes a range that was requested.
    pub(crate) fn note_requested(&mut self, range: std::ops::Range<u64>) {
        if self.is_open() {
            self.requested.insert(range);
        }
    }

    /// The final plan, returned once after it has arrived, and the ranges that were requested until then.
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
