//! Floors: minimum figures that a host must reach throughout.
//!
//! `page-write.iops>=10000 for 60s` requires that the mean over any 60 s of measuring is at least that; without `for`
//! each measured value is compared. `disk.latency<1000ms` is the mean latency that the kernel counts on each disk of
//! the host.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use record::Nanos;

use sweep::{Figure, Metric, Requirement};
use ui::units::as_argument;

/// The latency of the disks themselves, in the user's notation.
const DISKS: &str = "disk.latency";
const DISK_PHASE: &str = "disk";

/// A condition that a host must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct HostFloor {
    /// Figure and condition.
    pub requirement: Requirement,
    /// Time over which the mean is computed; `None` if each value is compared.
    pub over: Option<Nanos>,
}

impl HostFloor {
    /// True if the floor is for the disks' own latency and not for a phase.
    pub(crate) fn is_of_disks(&self) -> bool {
        self.requirement.figure == Figure::of(DISK_PHASE, Metric::Mean)
    }

    /// A watch for one host or disk.
    pub(crate) fn watch(&self) -> HostFloorWatch<'_> {
        HostFloorWatch {
            floor: self,
            values: VecDeque::new(),
            seconds: 0.0,
        }
    }
}

impl fmt::Display for HostFloor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requirement = self.requirement.to_string();
        match requirement.strip_prefix("disk.mean") {
            Some(condition) => write!(f, "{DISKS}{condition}")?,
            None => f.write_str(&requirement)?,
        }
        match self.over {
            Some(over) => write!(f, " for {}", as_argument(over)),
            None => Ok(()),
        }
    }
}

impl FromStr for HostFloor {
    type Err = String;

    fn from_str(text: &str) -> Result<HostFloor, String> {
        let (condition, over) = match text.split_once(" for ") {
            Some((condition, span)) => (condition, Some(span_of(text, span.trim())?)),
            None => (text, None),
        };
        let condition = condition.trim();
        let requirement: Requirement = match condition.strip_prefix(DISKS) {
            Some(rest) => format!("{DISK_PHASE}.mean{rest}")
                .parse()
                .map_err(|why: String| {
                    // The sentence uses the user's notation.
                    why.replace("disk.mean", DISKS)
                })?,
            None => condition.parse()?,
        };
        let latency = requirement.figure.metric.is_latency();
        if latency != requirement.side.is_low() {
            let (what, least) = if latency {
                ("a latency", "at most, with < or <=")
            } else {
                ("a rate", "at least, with > or >=")
            };
            return Err(format!(
                "the floor '{text}' would remove the good hosts; {what} has a floor of {least}"
            ));
        }
        Ok(HostFloor { requirement, over })
    }
}

fn span_of(text: &str, span: &str) -> Result<Nanos, String> {
    match span.parse::<Nanos>() {
        Ok(Nanos(0)) => Err(format!(
            "the floor '{text}' lasts no time; write such as 60s, or leave 'for' out"
        )),
        Ok(span) => Ok(span),
        Err(why) => Err(format!("how long the floor '{text}' lasts: {why}")),
    }
}

/// Value by which a host missed a floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FloorMiss {
    /// The mean over the time below, in the figure's unit.
    pub value: f64,
    /// Time of that mean, in seconds.
    pub seconds: f64,
}

/// Checks whether a host meets a floor.
#[derive(Clone, Debug)]
pub(crate) struct HostFloorWatch<'a> {
    floor: &'a HostFloor,
    /// Latest measurements: seconds and value of each.
    values: VecDeque<(f64, f64)>,
    seconds: f64,
}

impl HostFloorWatch<'_> {
    /// Adds the value of the next `seconds`. Returns the miss, if the floor is missed now. A missing value, such as
    /// that of a failed disk, is a miss.
    pub(crate) fn take(&mut self, seconds: f64, value: f64) -> Option<FloorMiss> {
        if !value.is_finite() {
            return Some(FloorMiss { value, seconds });
        }
        if !(seconds > 0.0 && seconds.is_finite()) {
            return None;
        }
        let over = self.floor.over.map_or(0.0, |over| over.0 as f64 / 1e9);
        self.values.push_back((seconds, value));
        self.seconds += seconds;
        while let Some((oldest, _)) = self.values.front().copied()
            && self.seconds - oldest >= over
            && self.values.len() > 1
        {
            self.seconds -= oldest;
            self.values.pop_front();
        }
        if self.seconds < over {
            return None;
        }
        let sum: f64 = self
            .values
            .iter()
            .map(|(seconds, value)| seconds * value)
            .sum();
        let mean = sum / self.seconds;
        (!self.floor.requirement.is_met_by(mean)).then_some(FloorMiss {
            value: mean,
            seconds: self.seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn floors_are_read_and_shown_as_they_were_written() {
        for (text, shown) in [
            (
                "page-write.iops>=10000 for 60s",
                "page-write.iops>=10000 for 60s",
            ),
            ("disk.latency<1000ms", "disk.latency<1s"),
            (
                " scan.bytes >= 200MiB  for  1m ",
                "scan.bytes>=200MiB for 60s",
            ),
            ("page-read.p99<=5ms", "page-read.p99<=5ms"),
        ] {
            let floor: HostFloor = text.parse().unwrap();
            assert_eq!(floor.to_string(), shown);
            assert_eq!(floor.is_of_disks(), text.starts_with("disk."));
        }
    }

    #[test]
    fn an_invalid_floor_is_refused_with_the_reason() {
        for (text, expected) in [
            ("page-write.iops", "has no threshold"),
            (
                "page-write.iops<10000",
                "would remove the good hosts; a rate has a floor of at least",
            ),
            (
                "disk.latency>1s",
                "would remove the good hosts; a latency has a floor of at most",
            ),
            ("disk.latency<5", "has no unit"),
            ("disk.latency", "'disk.latency' has no threshold"),
            ("page-write.iops>=10000 for ever", "how long the floor"),
            ("page-write.iops>=10000 for 0s", "lasts no time"),
            (">=10000 for 60s", "PHASE.METRIC"),
        ] {
            let error = text.parse::<HostFloor>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_floor_for_a_time_is_missed_by_the_mean_over_it() {
        let floor: HostFloor = "page-write.iops>=100 for 60s".parse().unwrap();
        let mut watch = floor.watch();
        for _ in 0..5 {
            assert_eq!(watch.take(10.0, 50.0), None);
        }
        let missed = watch.take(10.0, 50.0).unwrap();
        assert_eq!((missed.value, missed.seconds), (50.0, 60.0));

        let mut watch = floor.watch();
        for round in 0..60 {
            // One slow round in six is compensated by the others; two are not.
            let value = if round % 6 == 0 { 20.0 } else { 120.0 };
            assert_eq!(watch.take(10.0, value), None, "{round}");
        }
        assert_eq!(watch.take(10.0, 20.0), None);
        assert!(watch.take(10.0, 20.0).is_some());
    }

    #[test]
    fn without_a_time_each_value_counts() {
        let floor: HostFloor = "disk.latency<1000ms".parse().unwrap();
        let mut watch = floor.watch();
        assert_eq!(watch.take(1.0, 999e6), None);
        assert_eq!(watch.take(1.0, 1e9).map(|missed| missed.value), Some(1e9));
        assert!(watch.take(1.0, f64::NAN).is_some());
        assert_eq!(watch.take(0.0, 5e9), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "((disk.latency|a.iops|b.p99)[<>=]{0,2}[0-9a-z]{0,4}( for [0-9a-z]{0,4})?)|.{0,40}") {
            if let Ok(floor) = text.parse::<HostFloor>() {
                let again: HostFloor = floor.to_string().parse().unwrap();
                prop_assert_eq!(again, floor);
            }
        }

        #[test]
        fn any_values_are_answered(values in prop::collection::vec((any::<f64>(), any::<f64>()), 0..50)) {
            let floor: HostFloor = "a.iops>=100 for 60s".parse().unwrap();
            let mut watch = floor.watch();
            for (seconds, value) in values {
                let _ = watch.take(seconds, value);
            }
        }
    }
}
