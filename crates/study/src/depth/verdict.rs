//! The limit that determines the throughput of one or several devices.

use super::Controller;
use crate::cold::forecast::MERGE_BYTES;

/// Share of a limit from which a throughput counts as at the limit. Limits are met within one or two percent; the rest
/// is for trials at other depths.
const AT_LIMIT_SHARE: f64 = 0.94;
/// Share of the sum of the devices' separate throughputs below which they are limited together.
const HELD_TOGETHER_SHARE: f64 = 0.9;

/// The known limits of a volume; `None` if unknown or without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KnownCaps {
    /// Bytes a second.
    pub bytes_per_s: Option<f64>,
    /// Operations a second, each of at most 256 KiB.
    pub iops: Option<f64>,
}

/// Limit of the throughput at the depth that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingLimit {
    /// The volume's limit of bytes a second.
    VolumeBytes,
    /// The volume's limit of operations a second.
    VolumeIops,
    /// The latency: more in flight would bring more, but the depth is at its bound.
    Latency,
    /// A limit that several devices share, such as the instance's.
    Shared,
    /// A plateau below every known limit: an unknown limit, or another reader.
    Unknown,
}

/// The limit that binds, and its evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The limit that binds.
    pub binds: BindingLimit,
    /// The throughput in bytes a second.
    pub bytes_per_s: f64,
    /// Operations a second, large requests counted once for each 256 KiB.
    pub iops: f64,
    /// Requests in flight.
    pub depth: usize,
    /// Mean latency of the requests, in seconds.
    pub latency_s: f64,
    /// The throughput as a share of the binding limit; for a shared limit, of the sum of the separate throughputs.
    /// `None` if there is nothing to compare with.
    pub share_of_limit: Option<f64>,
}

/// Limit of one device that is used alone. `None` while its depth is still growing.
///
/// A limit binds if the plateau reaches 94 % of it; of two, the one with the larger share in use.
pub fn of_one(controller: &Controller, caps: &KnownCaps) -> Option<Verdict> {
    let level = controller.level()?;
    let request = level.bytes_per_s / level.requests_per_s;
    let iops = level.requests_per_s * (request / MERGE_BYTES as f64).ceil().max(1.0);
    let share = |value: f64, cap: Option<f64>| {
        let cap = cap.filter(|cap| *cap > 0.0 && cap.is_finite());
        cap.map(|cap| value / cap)
    };
    let shares = [
        (
            BindingLimit::VolumeBytes,
            share(level.bytes_per_s, caps.bytes_per_s),
        ),
        (BindingLimit::VolumeIops, share(iops, caps.iops)),
    ];
    let known = shares
        .iter()
        .filter_map(|(cap, share)| share.map(|share| (*cap, share)));
    let fullest = known.max_by(|a, b| a.1.total_cmp(&b.1));
    let (binds, share_of_limit) = match fullest {
        Some((cap, share)) if share >= AT_LIMIT_SHARE => (cap, Some(share)),
        _ if controller.out_of_depth() => (BindingLimit::Latency, None),
        _ => (BindingLimit::Unknown, None),
    };
    Some(Verdict {
        binds,
        bytes_per_s: level.bytes_per_s,
        iops,
        depth: level.depth,
        latency_s: level.latency_s,
        share_of_limit,
    })
}

/// Limit of several devices that are used at once, each given with its own verdict and with its bytes a second when
/// used alone.
///
/// They are limited together if their sum is below nine tenths of the sum of their separate throughputs and at least
/// one of them is neither at a limit of its own nor out of depth; the verdict is then about all of them, with their
/// mean latency weighted by requests. Otherwise, and with fewer than two devices or an invalid figure, `None`: each
/// verdict holds by itself.
pub fn shared(devices: &[(Verdict, f64)]) -> Option<Verdict> {
    let sensible = devices.iter().all(|(now, alone)| {
        let figures = [*alone, now.bytes_per_s, now.iops, now.latency_s];
        figures.iter().all(|x| *x > 0.0 && x.is_finite())
    });
    if devices.len() < 2 || !sensible {
        return None;
    }
    let sum = |of: fn(&(Verdict, f64)) -> f64| devices.iter().map(of).sum::<f64>();
    let bytes_per_s = sum(|(now, _)| now.bytes_per_s);
    let iops = sum(|(now, _)| now.iops);
    let share = bytes_per_s / sum(|(_, alone)| *alone);
    let unexplained = devices
        .iter()
        .any(|(now, _)| now.binds == BindingLimit::Unknown);
    if !unexplained || share >= HELD_TOGETHER_SHARE {
        return None;
    }
    Some(Verdict {
        binds: BindingLimit::Shared,
        bytes_per_s,
        iops,
        depth: devices
            .iter()
            .fold(0, |all, (now, _)| now.depth.saturating_add(all)),
        latency_s: sum(|(now, _)| now.iops * now.latency_s) / iops,
        share_of_limit: Some(share),
    })
}
