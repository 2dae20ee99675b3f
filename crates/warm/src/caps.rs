//! Limit of the rate: the volume's cap, one that volumes share, or latency.

use domain::volume_type::GP3;
use linux::ebs::ExceededLimits;
use study::depth::verdict::{BindingLimit, Verdict, shared};

use super::finding::{Finding, FindingCode};
use super::volume_warming::WarmResult;
use ui::format::percent;
use ui::units::{rate, span};

/// Minimum duration, in seconds, of a reading whose rate is judged.
const MIN_READING_S: f64 = 5.0;
/// Distance from a limit, as a share of it, within which a rate counts as that limit.
const AT_LIMIT_TOLERANCE: f64 = 0.05;
/// Minimum share of the time for which a limit must be exceeded to count as the limit of the rate.
const MIN_EXCEEDED_SHARE: f64 = 0.05;
/// Minimum share of the bytes of other programs that is reported.
const MIN_REPORTED_SHARE: f64 = 0.01;
/// Share of its rate alone that a volume must reach together with others to count as unaffected by them.
const UNHINDERED_SHARE: f64 = 0.9;

/// Findings about the rates of volumes that were read at once.
pub(crate) fn findings(warmed: &[WarmResult]) -> Vec<Finding> {
    let parallel: Option<Vec<(Verdict, f64)>> = warmed.iter().map(|one| one.in_parallel).collect();
    // A lower rate together may have other reasons, such as blocks that were colder. Where EBS counts which limit was
    // exceeded, its counters decide.
    let may_share = instance_is_passed(warmed) != Some(false);
    if let Some(together) = parallel.as_deref().and_then(shared).filter(|_| may_share) {
        return vec![Finding::note(
            FindingCode::Shared,
            in_parallel(&together, warmed),
        )];
    }
    warmed
        .iter()
        .filter_map(|one| {
            let verdict = one.verdict.filter(|_| one.seconds >= MIN_READING_S)?;
            let text = volume_finding(one, &verdict, is_unaffected(one, warmed.len()));
            Some(Finding::note(FindingCode::Capped, text))
        })
        .collect()
}

/// True if the requests exceeded the instance's limit, by the volumes' EBS counters; `None` where no volume has such
/// counters.
fn instance_is_passed(warmed: &[WarmResult]) -> Option<bool> {
    let passes = |one: &WarmResult| {
        let exceeded = one.exceeded?;
        let least = MIN_EXCEEDED_SHARE * one.seconds;
        let limits = [exceeded.instance_iops, exceeded.instance_bytes];
        Some(limits.iter().any(|time| time.as_secs_f64() >= least))
    };
    warmed
        .iter()
        .filter_map(passes)
        .reduce(|any, one| any || one)
}

/// True if the volume's rate together with others was at least [`UNHINDERED_SHARE`] of its rate alone.
fn is_unaffected(one: &WarmResult, volumes: usize) -> bool {
    let kept_up =
        |(now, alone): (Verdict, f64)| alone > 0.0 && now.bytes_per_s >= UNHINDERED_SHARE * alone;
    volumes > 1 && one.in_parallel.is_some_and(kept_up)
}

/// Text of the finding about volumes that share a limit.
fn in_parallel(together: &Verdict, warmed: &[WarmResult]) -> String {
    let share = together.share_of_limit.unwrap_or(1.0);
    let all: u64 = warmed.iter().map(|one| one.size.0).sum();
    let takes = |bytes_per_s: f64| span(all as f64 / bytes_per_s);
    format!(
        "Together the volumes gave {}, and one after the other {}: what holds them back is a limit that \
         they share, the instance's to its volumes or its network's, and not their own. An instance \
         with a larger one would give up to the second figure, and warm them in {} instead of {}.",
        rate(together.bytes_per_s),
        rate(together.bytes_per_s / share),
        takes(together.bytes_per_s / share),
        takes(together.bytes_per_s)
    )
}

/// Clause that names the limit that was exceeded, by EBS's counters.
fn by_aws(exceeded: &ExceededLimits, seconds: f64) -> String {
    let limits = [
        (exceeded.volume_bytes, "volume's throughput"),
        (exceeded.volume_iops, "volume's IOPS"),
        (
            exceeded.instance_bytes,
            "instance's throughput to its volumes",
        ),
        (exceeded.instance_iops, "instance's IOPS to its volumes"),
    ];
    let least = MIN_EXCEEDED_SHARE * seconds;
    let passed = limits
        .iter()
        .filter(|(time, _)| time.as_secs_f64() >= least);
    let passed: Vec<String> = passed
        .map(|(time, limit)| format!("the {limit} for {}", span(time.as_secs_f64())))
        .collect();
    if passed.is_empty() {
        return "it is neither the volume's nor the instance's, by AWS's own count: perhaps how fast \
                cold blocks are fetched"
            .to_owned();
    }
    format!(
        "by AWS's own count the load exceeded {}, of {} in all",
        passed.join(" and "),
        span(seconds)
    )
}

/// Clause about the I/O of other programs.
fn other_io_sentence(one: &WarmResult) -> String {
    match one.others_share {
        Some(share) if share >= MIN_REPORTED_SHARE => {
            format!(
                ", less the {} of all bytes that others read and wrote meanwhile",
                percent(share)
            )
        }
        Some(_) => ", and other programs did not read or write much meanwhile".to_owned(),
        None => ", less what others read and wrote meanwhile, which is not counted here".to_owned(),
    }
}

/// Text of the finding about the limit of one volume. `unaffected` is true if its rate together with others was as high
/// as alone.
fn volume_finding(one: &WarmResult, verdict: &Verdict, unaffected: bool) -> String {
    let (device, speed) = (&one.device, rate(verdict.bytes_per_s));
    if verdict.binds == BindingLimit::Latency {
        return format!(
            "{device}: the rate of {speed} is limited by the latency of a block, {:.0} ms with {} in \
             flight, which is the most that is tried. A larger volume would not help.",
            verdict.latency_s * 1e3,
            verdict.depth
        );
    }
    let takes = |bytes_per_s: f64| span(one.size.0 as f64 / bytes_per_s);
    let whose = match one.exceeded {
        Some(exceeded) => by_aws(&exceeded, one.seconds),
        None if unaffected => "it is the volume's own, since the others do not lower it".to_owned(),
        None => {
            "it is the volume's or the instance's, which shows when several volumes are warmed \
                 for longer"
                .to_owned()
        }
    };
    let others = other_io_sentence(one);
    let gp3 = GP3.caps(one.size, None).throughput.0 as f64;
    let baseline = if one.is_ebs && (verdict.bytes_per_s / gp3 - 1.0).abs() <= AT_LIMIT_TOLERANCE {
        format!(
            " It would fit the baseline of a {} volume, {}.",
            GP3.name,
            rate(gp3)
        )
    } else {
        String::new()
    };
    format!(
        "{device}: the rate levels off at {speed} with {} in flight, and more in flight do not raise it. \
         That is a limit{others}: {whose}.{baseline} With twice as much, {} would take {} instead of {}.",
        verdict.depth,
        one.size,
        takes(2.0 * verdict.bytes_per_s),
        takes(verdict.bytes_per_s)
    )
}

#[cfg(test)]
mod tests {
    use record::{Bytes, Ranges};

    use super::super::volume_warming::WarmingEnd;
    use super::*;
    use job::Resumable;

    const MIB: f64 = (1 << 20) as f64;

    fn verdict(mib_per_s: f64, binds: BindingLimit) -> Verdict {
        Verdict {
            binds,
            bytes_per_s: mib_per_s * MIB,
            iops: mib_per_s * 4.0,
            depth: 12,
            latency_s: 0.05,
            share_of_limit: None,
        }
    }

    fn warmed(now: Verdict, in_parallel: Option<(Verdict, f64)>) -> WarmResult {
        WarmResult {
            device: "/dev/nvme1n1".to_owned(),
            key: "vol1".to_owned(),
            size: Bytes::gib(100),
            block: Bytes::kib(512),
            sets: Vec::new(),
            before: Bytes(0),
            read: Bytes::gib(100),
            seconds: 800.0,
            cold: None,
            verdict: Some(now),
            in_parallel,
            is_ebs: false,
            others_share: None,
            foreground: None,
            exceeded: None,
            unreadable: Ranges::new(),
            left: Bytes(0),
            left_out: Bytes(0),
            resumes: Resumable::Anywhere,
            ending: WarmingEnd::Done,
            findings: Vec::new(),
        }
    }

    #[test]
    fn volumes_that_give_less_together_have_a_limit_in_common() {
        let now = verdict(60.0, BindingLimit::Unknown);
        let one = warmed(now, Some((now, 120.0 * MIB)));
        let found = findings(&[one.clone(), one.clone()]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].code, FindingCode::Shared);
        assert!(
            found[0]
                .text
                .contains("gave 120 MiB/s, and one after the other 240 MiB/s"),
            "{found:?}"
        );
        assert!(found[0].text.contains("in 14 min instead of 28 min"));
        // The same rates as alone: each has a limit of its own.
        let own = warmed(now, Some((now, 60.0 * MIB)));
        let found = findings(&[own.clone(), own]);
        assert_eq!(found.len(), 2);
        assert!(found[0].text.contains("the volume's own"), "{found:?}");
        // Nothing was compared, or one of the volumes was slower together: which limit it is, is not known.
        let unknown = warmed(now, None);
        let less = warmed(
            verdict(30.0, BindingLimit::Latency),
            Some((verdict(30.0, BindingLimit::Latency), 60.0 * MIB)),
        );
        for pair in [[unknown.clone(), unknown], [less.clone(), less]] {
            let found = findings(&pair);
            let claim = "the volume's own";
            assert!(
                found.iter().all(|one| !one.text.contains(claim)),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_limit_is_shared_only_where_aws_has_not_counted_otherwise() {
        let now = verdict(60.0, BindingLimit::Unknown);
        let with = |exceeded| WarmResult {
            exceeded,
            ..warmed(now, Some((now, 120.0 * MIB)))
        };
        let seconds = std::time::Duration::from_secs;
        let volume = Some(ExceededLimits {
            volume_bytes: seconds(700),
            instance_iops: seconds(3),
            ..ExceededLimits::default()
        });
        let instance = Some(ExceededLimits {
            instance_bytes: seconds(700),
            ..ExceededLimits::default()
        });
        for (pair, code) in [
            ([volume, volume], FindingCode::Capped),
            // One volume has counters, and they show no time above the instance's limit.
            ([volume, None], FindingCode::Capped),
            ([volume, instance], FindingCode::Shared),
            ([None, None], FindingCode::Shared),
        ] {
            let found = findings(&pair.map(with));
            assert!(found.iter().all(|one| one.code == code), "{found:?}");
            assert!(!found.is_empty());
        }
    }

    #[test]
    fn counters_of_aws_show_whose_limit_it_is() {
        let seconds = std::time::Duration::from_secs;
        let mut one = warmed(verdict(125.0, BindingLimit::Unknown), None);
        one.exceeded = Some(ExceededLimits {
            volume_bytes: seconds(700),
            instance_iops: seconds(3),
            ..ExceededLimits::default()
        });
        let text = |one: &WarmResult| findings(std::slice::from_ref(one))[0].text.clone();
        let message = text(&one);
        assert!(
            message.contains("exceeded the volume's throughput for 12 min, of 13 min"),
            "{message}"
        );
        assert!(!message.contains("instance"), "{message}");
        one.exceeded = Some(ExceededLimits {
            instance_bytes: seconds(600),
            ..ExceededLimits::default()
        });
        let message = text(&one);
        assert!(
            message.contains("exceeded the instance's throughput to its volumes"),
            "{message}"
        );
        one.exceeded = Some(ExceededLimits::default());
        let message = text(&one);
        assert!(
            message.contains("neither the volume's nor the instance's"),
            "{message}"
        );
    }

    #[test]
    fn a_single_volume_is_held_back_by_a_limit_or_by_latency() {
        let mut one = warmed(verdict(125.0, BindingLimit::Unknown), None);
        let text = |one: &WarmResult| findings(std::slice::from_ref(one))[0].text.clone();
        assert!(
            text(&one).contains("the volume's or the instance's"),
            "{}",
            text(&one)
        );
        assert!(
            text(&one).contains("would take 7 min instead of 14 min"),
            "{}",
            text(&one)
        );
        for (share, message) in [
            (None, "which is not counted here"),
            (Some(0.001), "other programs did not read or write much"),
            (Some(0.25), "less the 25 % of all bytes that others"),
        ] {
            one.others_share = share;
            assert!(text(&one).contains(message), "{}", text(&one));
        }
        one.is_ebs = true;
        assert!(
            text(&one).contains("would fit the baseline of a gp3 volume"),
            "{}",
            text(&one)
        );
        one.verdict = Some(verdict(900.0, BindingLimit::Latency));
        assert!(
            text(&one).contains("50 ms with 12 in flight"),
            "{}",
            text(&one)
        );
        one.seconds = 1.0;
        assert!(findings(&[one]).is_empty());
    }
}
