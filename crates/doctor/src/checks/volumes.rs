//! Cloud volumes: cold, degraded or out of credit, and the caps of volume and instance, by measurement and by EBS's
//! counters.

use std::fs::File;

use linux::block::Device;
use linux::ebs::VolumeCounters;
use study::watch::EventCode;

use crate::check::{Area, Basis, Check, CheckResult, Judgement};
use crate::facts::Facts;
use crate::facts::evidence::cite;
use ui::format::number;

/// Minimum time over a cap since the volume was attached, in seconds, that is reported.
const MIN_SECONDS_OVER_CAP: f64 = 60.0;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "cold-volume",
        area: Area::Host,
        reads: "events of recordings of 30 days",
        rule: "No volume still fetches its blocks from a snapshot when they are first read.",
        source: "Amazon EBS User Guide, \"Initialize Amazon EBS volumes\"",
        basis: Basis::Documented,
        playbook: "cold-volume",
        judge: |facts| by_event(facts, EventCode::Cold, "no cold blocks were seen", cold),
    },
    Check {
        name: "degraded-volume",
        area: Area::Host,
        reads: "events of recordings of 30 days",
        rule: "No disk fails requests, leaves them unanswered, or is slower than its siblings in an array at the same load.",
        source: "Amazon EBS User Guide, \"Amazon EBS volume status checks\"; md(4)",
        basis: Basis::Inferred,
        playbook: "degraded-volume",
        judge: degraded,
    },
    Check {
        name: "burst-credit",
        area: Area::Host,
        reads: "events of recordings of 30 days",
        rule: "No volume or instance lives on credit that it spends.",
        source: "Amazon EBS User Guide, \"I/O credits and burst performance\"",
        basis: Basis::Documented,
        playbook: "burst-credit",
        judge: |facts| by_event(facts, EventCode::BurstSpent, "no credit was spent", burst),
    },
    Check {
        name: "volume-cap",
        area: Area::Host,
        reads: "EBS's log page 0xD0, events of recordings of 30 days",
        rule: "The load does not stay at the limits that were bought for the volume.",
        source: "Amazon EBS User Guide, \"Amazon EBS detailed performance statistics\"",
        basis: Basis::Documented,
        playbook: "volume-cap",
        judge: |facts| caps(facts, &VOLUME),
    },
    Check {
        name: "instance-cap",
        area: Area::Host,
        reads: "EBS's log page 0xD0, events of recordings of 30 days",
        rule: "An instance carries what was bought for its volumes: IOPS beyond its cap are paid for and never used.",
        source: "Amazon EBS User Guide, \"Amazon EBS detailed performance statistics\"; Amazon EC2 User Guide, \
                 \"Amazon EBS-optimized instance types\"",
        basis: Basis::Documented,
        playbook: "instance-cap",
        judge: |facts| caps(facts, &INSTANCE),
    },
];

/// Judgements of all disks by events of a watch with this code.
fn by_event(
    facts: &Facts,
    code: EventCode,
    fine: &str,
    found: fn(&Device) -> Judgement,
) -> Vec<Judgement> {
    let disks = facts.host.disks().into_iter();
    let judge = |disk: &Device| {
        let event = facts.evidence.event(code, std::slice::from_ref(&disk.name));
        event.map(|event| found(disk).evidence(cite(event)))
    };
    let findings: Vec<Judgement> = disks.filter_map(judge).collect();
    or_silence(findings, facts, format!("{fine} in 30 days"))
}

/// The findings. Without findings, the result is ok if a watch was recorded, and unknown on a cloud instance without a
/// recording.
fn or_silence(found: Vec<Judgement>, facts: &Facts, fine: String) -> Vec<Judgement> {
    match (found.is_empty(), facts.evidence.is_watched) {
        (false, _) => found,
        (true, true) => vec![Judgement::ok(fine)],
        (true, false) if facts.host.provider.is_some() => vec![Judgement::unknown(
            "nothing was recorded in 30 days",
            "Record a day: disksmith watch --record",
        )],
        (true, false) => Vec::new(),
    }
}

fn cold(disk: &Device) -> Judgement {
    Judgement::fix(
        format!("{}: cold", disk.name),
        "Read every block once before the volume serves.",
    )
    .command(format!("disksmith warm /dev/{}", disk.name))
}

/// Events of a disk that is failing or degraded, with their results and meanings.
const DEGRADED_EVENTS: [(EventCode, CheckResult, &str); 3] = [
    (EventCode::Errors, CheckResult::Fix, "it failed requests"),
    (
        EventCode::Stalled,
        CheckResult::Consider,
        "it left requests unanswered",
    ),
    (
        EventCode::SlowMember,
        CheckResult::Consider,
        "it is slower than its siblings",
    ),
];

fn degraded(facts: &Facts) -> Vec<Judgement> {
    let mut found = Vec::new();
    for disk in facts.host.disks() {
        let names = std::slice::from_ref(&disk.name);
        for (code, result, meaning) in DEGRADED_EVENTS {
            let Some(event) = facts.evidence.event(code, names) else {
                continue;
            };
            let value = format!("{}: {meaning}", disk.name);
            let advice = "Replace it: a cloud volume by a snapshot and a new volume of it. 'disksmith bench' compares the two.";
            found.push(Judgement::new(result, value, advice).evidence(cite(event)));
        }
    }
    or_silence(
        found,
        facts,
        "no disk was failing or degraded in 30 days".to_owned(),
    )
}

fn burst(disk: &Device) -> Judgement {
    Judgement::consider(
        format!("{}: its credit was spent", disk.name),
        "Buy the rate that is needed: 'disksmith cost' prices it from the recording.",
    )
    .command("disksmith cost --workload RECORDING")
}

/// A cap: its counters, its event and the advice.
struct Cap {
    name: &'static str,
    seconds: fn(&VolumeCounters) -> f64,
    code: EventCode,
    advice: &'static str,
}

const VOLUME: Cap = Cap {
    name: "volume",
    seconds: |counters| (counters.over_volume_iops_us + counters.over_volume_bytes_us) as f64 / 1e6,
    code: EventCode::VolumeCap,
    advice: "Buy more IOPS or throughput, or reduce the load: 'disksmith cost' prices what the recording needs.",
};

const INSTANCE: Cap = Cap {
    name: "instance",
    seconds: |counters| {
        (counters.over_instance_iops_us + counters.over_instance_bytes_us) as f64 / 1e6
    },
    code: EventCode::InstanceCap,
    advice: "Take an instance that carries its volumes, or buy less for them: what lies beyond the cap is wasted.",
};

fn caps(facts: &Facts, cap: &Cap) -> Vec<Judgement> {
    let disks = facts.host.disks();
    let found: Vec<Judgement> = disks
        .iter()
        .filter_map(|disk| {
            let event = facts
                .evidence
                .event(cap.code, std::slice::from_ref(&disk.name));
            let counted = counters(facts, disk).map(|counters| (cap.seconds)(&counters));
            let value = match counted {
                Some(seconds) => format!(
                    "{}: {} s beyond the {}'s cap since it was attached",
                    disk.name,
                    number(seconds),
                    cap.name
                ),
                None => format!("{}: at the {}'s cap", disk.name, cap.name),
            };
            let is_beyond = counted.is_some_and(|seconds| seconds > MIN_SECONDS_OVER_CAP);
            match (event, counted) {
                (Some(event), _) => {
                    Some(Judgement::consider(value, cap.advice).evidence(cite(event)))
                }
                (None, Some(_)) if is_beyond => Some(Judgement::consider(value, cap.advice)),
                (None, Some(_)) => Some(Judgement::ok(value)),
                (None, None) => None,
            }
        })
        .collect();
    or_silence(
        found,
        facts,
        format!("the {}'s cap was not met in 30 days", cap.name),
    )
}

/// EBS's counters, which only root may read.
fn counters(facts: &Facts, disk: &Device) -> Option<VolumeCounters> {
    let is_ebs = disk
        .model
        .as_deref()
        .is_some_and(linux::ebs::StatsPage::is_had_by);
    let device = File::open(facts.host.root.locate(&disk.node()))
        .ok()
        .filter(|_| is_ebs)?;
    VolumeCounters::read(&device).ok()
}
