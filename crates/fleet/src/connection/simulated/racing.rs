//! Races of simulated hosts, each with a fault named by its name. Each has four disks, and answers a round at once.

use std::time::Duration;

use record::Cloud;
use serde_json::Value;
use study::burnin::simulate::Rng;

use crate::connection::simulated::{EndedBy, FromAgent, VerbRequest, ended};
use crate::protocol::HostFacts;
use crate::protocol::rounds::{HostRound, Round, RoundMessage, TargetFacts, TargetRound};
use domain::plan_binding::{BoundTarget, DiskIdentity};

/// The rate of a disk of a host without a fault.
const RATE: f64 = 12_000.0;
/// Scatter of a round of a disk, as the standard deviation of a logarithm.
const NOISE: f64 = 0.02;

/// Time to wait for hosts after the end of a round: they are threads, which a busy machine may leave without a
/// processor for a while.
pub(crate) const LATE_HOST_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay of an answer that is too late: after a round of half a second and the wait for late hosts, in the middle of
/// the next round.
const STALL: Duration = Duration::from_millis(6_250);

/// Result of a round.
pub(super) enum ScriptedReply {
    /// A message is sent.
    Sends(Box<FromAgent>),
    /// Nothing is sent, and the agent keeps running.
    Hangs,
    /// The connection is lost.
    IsLost,
}

/// Facts about the host: `boot…` reports another boot id each time, and `other…` another instance id than its name
/// has.
pub(super) fn facts(name: &str, nth: usize) -> HostFacts {
    let boot = if name.starts_with("boot") { nth } else { 1 };
    HostFacts {
        hostname: name.to_owned(),
        boot: format!("{name}-{boot}"),
        cloud: name.starts_with("other").then(|| Cloud {
            provider: "aws".to_owned(),
            instance_type: None,
            zone: None,
            instance_id: Some("i-other".to_owned()),
        }),
        ..HostFacts::default()
    }
}

/// Message that a host is prepared. A host `large…` has larger disks, and `wipe…` has a disk that is overwritten.
pub(super) fn ready(name: &str) -> FromAgent {
    let size_bytes = if name.starts_with("large") { 2 } else { 1 } << 40;
    let target = |at: usize| TargetFacts {
        path: format!("/mnt/d{at}"),
        device: Some(format!("nvme{at}n1")),
        size_bytes,
        overwritten: (name.starts_with("wipe") && at == 1).then(|| BoundTarget {
            content: vec!["ext4".to_owned()],
            seen: DiskIdentity {
                boot: format!("{name}-1"),
                diskseq: Some(7),
                number: "259:1".to_owned(),
                identity: None,
                size_bytes,
            },
        }),
        ..TargetFacts::default()
    };
    FromAgent::Round(RoundMessage::Ready((0..4).map(target).collect()))
}

/// Message that the measuring verb has ended normally.
pub(super) fn stopped(name: &str) -> FromAgent {
    let order = VerbRequest {
        fleet: String::new(),
        host: name.to_owned(),
        args: Vec::new(),
        program: false,
    };
    match ended(String::new(), order, Value::Null) {
        FromAgent::Ended(mut ended) => {
            ended.by = EndedBy::Order;
            FromAgent::Ended(ended)
        }
        other => other,
    }
}

/// Answer to a round. All disks of `slow…` have 60 % of the rate, one of four of `bad…` has 30 %, of `drop…` from the
/// 20th round on, of `dips…` in each eighth round; `lazy…` has a disk with a latency of seconds; `gone…`, `back…` and
/// `boot…` are lost in the second round; `wait…` is slow to answer; `stall…` answers the sixth round too late and is
/// slow in it; `hang…` does not answer from the fifth on; `fail…` has an error; and the disks of `cache…` are served
/// from memory.
pub(super) fn measured(name: &str, nth: usize, round: Round) -> ScriptedReply {
    let is = |what: &str| name.starts_with(what);
    if round.number == 1 && nth == 1 && (is("gone") || is("back") || is("boot")) {
        return ScriptedReply::IsLost;
    }
    if round.number >= 4 && is("hang") {
        return ScriptedReply::Hangs;
    }
    let stalls = is("stall") && round.number == 5;
    if stalls {
        std::thread::sleep(STALL);
    }
    if is("wait") {
        std::thread::sleep(Duration::from_millis(400));
    }
    let seed = name.bytes().fold(round.number as u64 + 1, |sum, byte| {
        sum.wrapping_mul(0x100_0000_01b3)
            .wrapping_add(u64::from(byte))
    });
    let mut rng = Rng::new(seed);
    // Hosts of one kind differ by 4 % from each to the next.
    let number: String = name.chars().filter(char::is_ascii_digit).collect();
    let rank: i32 = number.parse().unwrap_or(0);
    let host = RATE * 0.96_f64.powi(rank) * if is("slow") { 0.6 } else { 1.0 };
    let dropped =
        stalls || (is("drop") && round.number >= 20) || (is("dips") && round.number % 8 == 7);
    let targets = (0..4).map(|at| {
        let left = if (is("bad") && at == 2) || dropped {
            0.3
        } else {
            1.0
        };
        let figure = host * left * (NOISE * rng.normal()).exp();
        TargetRound {
            figures: vec![Some(figure), Some(figure / 2.0)],
            disk_latency_ns: Some(if is("lazy") && at == 3 { 2e9 } else { 1e6 }),
            invalid: is("cache").then(|| "it was answered from memory.".to_owned()),
            broken: (is("fail") && at == 1).then(|| "a read at byte 0 failed".to_owned()),
            failed: None,
            doubts: Vec::new(),
            is_slowed: false,
        }
    });
    ScriptedReply::Sends(Box::new(FromAgent::Round(RoundMessage::Measured(
        HostRound {
            number: round.number,
            seconds: round.seconds,
            targets: targets.collect(),
        },
    ))))
}
