//! The latencies to keep, and the choice of those in use by the foreground's own latency.

/// Factor by which the foreground's p99 may grow beside the background.
pub const ROOM: f64 = 1.5;
/// Factor by which the foreground's mean may grow where the background goes in steps: at 1.5 times the mean, p99.9 is
/// higher there. Otherwise it is [`ROOM`].
const ROOM_OF_MEAN: f64 = 1.3;
/// Share of a requested target by which the rate is steered, since the target is to be kept in nearly each interval,
/// not on average; or the middle between the target and the foreground's own latency where that is more.
const STEERED_SHARE: f64 = 0.8;

/// Latencies to keep, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Targets {
    /// Target of the mean latency.
    pub mean_s: Option<f64>,
    /// Target of the latency that 1 in 100 foreground requests exceeds.
    pub p99_s: Option<f64>,
}

impl Targets {
    /// True if no target is given.
    pub fn is_empty(&self) -> bool {
        self.mean_s.is_none() && self.p99_s.is_none()
    }

    /// Latency above which a single request is slow, in seconds: the p99 target, or 4.6 times the mean target where there is
    /// no p99 target.
    pub fn slow_s(&self) -> Option<f64> {
        /// An exponentially distributed latency exceeds this multiple of its mean once in a hundred.
        const OF_MEAN: f64 = 4.6;
        self.p99_s.or(self.mean_s.map(|mean| OF_MEAN * mean))
    }
}

/// Source of the targets in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetSource {
    /// `--keep-p99`, `--keep-mean`.
    Asked,
    /// 1.5 times the foreground's latency without the background, and of the mean 1.3 times where the background goes
    /// in steps; or that latency and the wait for one background request, where that is more.
    Measured,
    /// The same as [`Measured`](Self::Measured), since the foreground alone exceeds the target that was requested.
    Unreachable,
}

/// Properties of the background's requests by which they delay single foreground requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BackgroundRequests {
    /// True if the background goes in steps, as md's check does.
    pub(super) is_stepped: bool,
    /// Time that one request of the background occupies the device, for which a foreground request may wait, in
    /// seconds.
    pub(super) request_s: f64,
}

/// Targets in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KeptTargets {
    /// The targets.
    pub(super) targets: Targets,
    /// Their source.
    pub(super) source: TargetSource,
    /// Latencies by which the rate is steered, a little below targets that were asked for.
    pub(super) aims: Targets,
    /// True if the p99's target is the requested one.
    pub(super) is_p99_asked: bool,
}

impl KeptTargets {
    /// The requested targets, as far as the foreground's own latency allows; without any, [`ROOM`] times that latency.
    pub(super) fn of(
        asked: &Targets,
        own: &Targets,
        background: BackgroundRequests,
    ) -> KeptTargets {
        let measured = measured(own, background);
        let mut source = TargetSource::Asked;
        let mut keep = |asked: Option<f64>, own: Option<f64>, measured: Option<f64>| {
            let asked = asked?;
            if own.is_none_or(|own| own <= asked) {
                return Some(asked);
            }
            source = TargetSource::Unreachable;
            measured
        };
        let reachable = Targets {
            mean_s: keep(asked.mean_s, own.mean_s, measured.mean_s),
            p99_s: keep(asked.p99_s, own.p99_s, measured.p99_s),
        };
        let (targets, source) = match asked.is_empty() {
            true => (measured, TargetSource::Measured),
            false => (reachable, source),
        };
        KeptTargets {
            targets,
            source,
            aims: Targets {
                mean_s: aim(targets.mean_s, asked.mean_s, own.mean_s),
                p99_s: aim(targets.p99_s, asked.p99_s, own.p99_s),
            },
            is_p99_asked: targets.p99_s == asked.p99_s,
        }
    }
}

/// Targets that follow from the foreground's own latency.
fn measured(own: &Targets, background: BackgroundRequests) -> Targets {
    let room = |room: f64, own_s: f64, waits_s: f64| (room * own_s).max(own_s + waits_s);
    let room_of_mean = if background.is_stepped {
        ROOM_OF_MEAN
    } else {
        ROOM
    };
    let request_s = background.request_s;
    Targets {
        mean_s: own
            .mean_s
            .map(|own_s| room(room_of_mean, own_s, 0.5 * request_s)),
        p99_s: own.p99_s.map(|own_s| room(ROOM, own_s, request_s)),
    }
}

/// Latency by which the rate is steered to keep a target, which may be the requested one.
fn aim(target_s: Option<f64>, asked_s: Option<f64>, own_s: Option<f64>) -> Option<f64> {
    if target_s != asked_s {
        return target_s;
    }
    let target_s = target_s?;
    Some((STEERED_SHARE * target_s).max(0.5 * (own_s.unwrap_or(0.0) + target_s)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINGLE: BackgroundRequests = BackgroundRequests {
        is_stepped: false,
        request_s: 0.001,
    };

    fn p99(seconds: f64) -> Targets {
        Targets {
            mean_s: None,
            p99_s: Some(seconds),
        }
    }

    #[test]
    fn without_a_request_there_is_room_above_the_own_latency() {
        let own = Targets {
            mean_s: Some(0.01),
            p99_s: Some(0.001),
        };
        let kept = KeptTargets::of(&Targets::default(), &own, SINGLE);
        assert_eq!(kept.source, TargetSource::Measured);
        // A foreground request may wait for one of the background.
        let wanted = Targets {
            mean_s: Some(0.015),
            p99_s: Some(0.002),
        };
        assert_eq!((kept.targets, kept.aims), (wanted, wanted));
        assert!(!kept.is_p99_asked);
        let stepped = BackgroundRequests {
            is_stepped: true,
            ..SINGLE
        };
        let kept = KeptTargets::of(&Targets::default(), &own, stepped);
        assert_eq!(kept.targets.mean_s, Some(ROOM_OF_MEAN * 0.01));
    }

    #[test]
    fn a_request_is_kept_with_a_margin_unless_the_foreground_exceeds_it_alone() {
        let kept = KeptTargets::of(&p99(0.02), &p99(0.002), SINGLE);
        assert_eq!(kept.source, TargetSource::Asked);
        assert_eq!((kept.targets, kept.aims), (p99(0.02), p99(0.016)));
        assert!(kept.is_p99_asked);
        // Of a target near the own latency, half of what is left.
        let kept = KeptTargets::of(&p99(0.02), &p99(0.018), SINGLE);
        assert_eq!(kept.aims, p99(0.019));
        let kept = KeptTargets::of(&p99(0.02), &p99(0.03), SINGLE);
        assert_eq!(kept.source, TargetSource::Unreachable);
        assert_eq!((kept.targets, kept.aims), (p99(0.045), p99(0.045)));
        assert!(!kept.is_p99_asked);
    }
}
