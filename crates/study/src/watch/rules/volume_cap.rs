//! `volume-cap`: a volume is at its limit, the one that was bought or that of an instance store.
//!
//! The volume's own page reports it, if there is one. Otherwise it is a rate too flat to be a disk's own, at which
//! requests wait. Such a rate may also be limited by something between program and disk, and the sentence says so.

use std::collections::HashMap;

use record::Severity;
use record::sample::{DeviceId, DeviceSample, VendorPage};

use crate::plateau::LimitedQuantity;
use crate::watch::format::{digits, percent, rate, time};
use crate::watch::history::beginning;
use crate::watch::page::{Pages, TimeOverCap};
use crate::watch::plateaus::{HeldRate, held, window};
use crate::watch::rule::{Rule, RuleInput, Sighting};

/// Number of points between two tests of the counters: results of neighbouring points are nearly the same.
const TEST_INTERVAL_POINTS: u64 = 5;
/// Number of consecutive observations that must show it.
const OBSERVATIONS: u32 = 2;

const ADVICE: &str = "Requests wait for the limit, not for the disk: provision more IOPS or throughput for this \
                      volume, spread the load over more volumes, or send fewer and larger requests.";
const ADVICE_STORE: &str = "Requests wait for the limit, not for the disk, and the limit of an instance store depends on the \
                            instance type: use a larger instance, spread the load over more disks, or send \
                            fewer and larger requests.";

/// Rule for volumes at their cap.
#[derive(Default)]
pub(super) struct VolumeCap {
    pages: Pages,
    /// Level found by the last tests of the counters, and the number of consecutive tests that found it.
    held: HashMap<DeviceId, (u32, HeldRate)>,
}

impl Rule for VolumeCap {
    fn forget(&mut self) {
        self.pages.forget();
        self.held.clear();
    }

    fn is_instant(&self) -> bool {
        // A page is only in one sample.
        true
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        self.pages.take(now.sample, |exceeded| {
            (exceeded.volume_iops, exceeded.volume_bytes)
        });
        let is_time =
            now.history.ended_point() && now.history.count().is_multiple_of(TEST_INTERVAL_POINTS);
        if is_time {
            self.observe_counters(now);
        }
        for device in now.disks() {
            let id = device.device.id;
            if let Some(over) = self.pages.over(id) {
                seen.push(by_statistics_page(device, &over));
            } else if let Some((observations, held)) = self.held.get(&id)
                && *observations >= OBSERVATIONS
            {
                let began = window(now.history, id).map(beginning).unwrap_or_default();
                let sighting = Sighting::of(device, Severity::Warn, began);
                seen.push(by_counters(device, held, sighting));
            }
        }
    }
}

impl VolumeCap {
    fn observe_counters(&mut self, now: &RuleInput<'_>) {
        let before = std::mem::take(&mut self.held);
        for device in now.disks() {
            let id = device.device.id;
            if self.pages.has(id) {
                continue;
            }
            if let Some(held) = held(now.history, id) {
                let observations = before.get(&id).map_or(0, |(observations, _)| *observations);
                self.held.insert(id, (observations + 1, held));
            }
        }
    }
}

fn by_statistics_page(device: &DeviceSample, over: &TimeOverCap) -> Sighting {
    let which = match (over.ops > 0.0, over.bytes > 0.0) {
        (true, true) => "its limits on IOPS and on throughput",
        (true, false) => "its IOPS limit",
        _ => "its throughput limit",
    };
    Sighting {
        text: format!(
            "{} reports that demand exceeded {which} for {} of the time.",
            device.device.name,
            percent(over.ops.max(over.bytes)),
        ),
        advice: match over.page {
            VendorPage::Ebs => ADVICE,
            VendorPage::InstanceStore => ADVICE_STORE,
        },
        figures: vec![
            ("over_iops_share", over.ops),
            ("over_throughput_share", over.bytes),
        ],
        ..Sighting::of(device, Severity::Warn, over.began)
    }
}

fn by_counters(device: &DeviceSample, held: &HeldRate, sighting: Sighting) -> Sighting {
    let plateau = &held.plateau;
    let level = match plateau.capped {
        LimitedQuantity::Ops => format!("{} IOPS", digits(plateau.ops_per_s)),
        LimitedQuantity::Bytes => rate(plateau.bytes_per_s),
        LimitedQuantity::Either => format!(
            "{} IOPS ({})",
            digits(plateau.ops_per_s),
            rate(plateau.bytes_per_s)
        ),
    };
    Sighting {
        text: format!(
            "{} is constant at {level}, too steady for a disk's own limit, while {} requests are in flight \
             and take {}: a limit of the volume, or of the path to it.",
            device.device.name,
            digits(held.in_flight),
            time(held.wait),
        ),
        advice: ADVICE,
        figures: vec![
            ("iops", plateau.ops_per_s),
            ("bytes_per_s", plateau.bytes_per_s),
            ("in_flight", held.in_flight),
            ("await_s", held.wait),
        ],
        ..sighting
    }
}
