//! Targets of foreground latency, as arguments.

use clap::Args;
use domain::values::Latency;
use study::pace::Targets;

/// Arguments of verbs that keep foreground latency within a target.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct KeepArgs {
    /// Limit the rate so that the p99 latency of other programs' requests stays below this [default, without
    /// --keep-mean: 1.5 times the p99 and the mean that they have otherwise, and no limit while there are none]
    #[arg(long, value_name = "DURATION")]
    pub keep_p99: Option<Latency>,
    /// Limit the rate so that the mean latency of other programs' requests stays below this
    #[arg(long, value_name = "DURATION")]
    pub keep_mean: Option<Latency>,
}

impl KeepArgs {
    /// The targets; `None` if none is given.
    pub fn targets(&self) -> Option<Targets> {
        let seconds = |latency: Latency| latency.0.as_secs_f64();
        let targets = Targets {
            mean_s: self.keep_mean.map(seconds),
            p99_s: self.keep_p99.map(seconds),
        };
        (!targets.is_empty()).then_some(targets)
    }
}

#[cfg(test)]
mod tests {
    use record::Nanos;

    use super::*;

    #[test]
    fn each_target_is_kept_alone_or_with_the_other() {
        let latency = |ms: u64| Some(Latency(Nanos(ms * 1_000_000)));
        let of = |keep_p99, keep_mean| {
            let args = KeepArgs {
                keep_p99,
                keep_mean,
            };
            args.targets()
                .map(|targets| (targets.p99_s, targets.mean_s))
        };
        assert_eq!(of(None, None), None);
        assert_eq!(of(latency(5), None), Some((Some(0.005), None)));
        assert_eq!(of(None, latency(2)), Some((None, Some(0.002))));
        assert_eq!(of(latency(5), latency(2)), Some((Some(0.005), Some(0.002))));
    }
}
