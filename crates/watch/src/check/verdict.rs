//! Verdict of a check, from figures and their thresholds, findings, and gaps in the data.

use std::collections::{BTreeMap, BTreeSet};

use record::Severity;
use record::sample::{DeviceKind, DeviceSample, Fraction, Sample};
use study::watch::{EventCode, WatchEvent};

use crate::thresholds::{Metric, Range, Thresholds};

/// State of a check, in ascending order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Ok,
    Unknown,
    Warning,
    Critical,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::Unknown => "UNKNOWN",
            Status::Warning => "WARNING",
            Status::Critical => "CRITICAL",
        }
    }

    /// Exit status of a plugin.
    pub(super) fn number(self) -> u8 {
        match self {
            Status::Ok => 0,
            Status::Warning => 1,
            Status::Critical => 2,
            Status::Unknown => 3,
        }
    }
}

/// Mean of a figure, over the intervals in which it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    seconds: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>, seconds: f64) {
        if let Some(value) = value {
            self.sum += value * seconds;
            self.seconds += seconds;
        }
    }

    fn value(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.sum / self.seconds)
    }
}

/// Sums of a device over the intervals.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    iops: Mean,
    busy: Mean,
    in_flight: Mean,
    /// Number of requests whose latency is known.
    timed: f64,
    /// Sum of the latencies of these requests, in seconds.
    waited: f64,
}

impl Sums {
    fn add(&mut self, device: &DeviceSample, seconds: f64) {
        let iops = device.all.iops.map(|iops| iops.0);
        self.iops.add(iops, seconds);
        self.busy.add(device.busy.map(Fraction::percent), seconds);
        self.in_flight.add(device.mean_in_flight, seconds);
        if let (Some(iops), Some(wait)) = (iops, device.all.wait) {
            self.timed += iops * seconds;
            self.waited += iops * seconds * wait.as_secs_f64();
        }
    }

    /// Mean latency in seconds: 0 for a disk without requests; `None` where the kernel does not time its requests.
    fn wait(&self) -> Option<f64> {
        match self.iops.value() {
            _ if self.timed > 0.0 => Some(self.waited / self.timed),
            Some(iops) if iops <= 0.0 => Some(0.0),
            _ => None,
        }
    }
}

/// Observations of a check.
#[derive(Debug, Default)]
pub(super) struct Observations {
    devices: BTreeMap<String, Sums>,
    /// Events by their ids.
    pub(super) events: BTreeMap<u64, WatchEvent>,
    pressure: Mean,
    /// Named devices that did not exist in any interval.
    pub(super) missing: Vec<String>,
}

/// A figure and its thresholds.
struct Figure {
    /// The device's name; `None` for a figure of the host.
    device: Option<String>,
    metric: Metric,
    /// Value of the figure; `None` where the kernel does not report it.
    value: Option<f64>,
    warning: Option<Range>,
    critical: Option<Range>,
}

impl Observations {
    /// Adds an interval. Where `all` devices are checked, partitions, loop devices and memory are left out.
    pub(super) fn add(&mut self, sample: &Sample, all: bool) {
        let seconds = sample.length.as_secs_f64();
        let stalled = sample.host.pressure.and_then(|one| one.some.stalled);
        self.pressure.add(stalled.map(Fraction::percent), seconds);
        let counts = |device: &&DeviceSample| {
            let kind = device.device.kind;
            let odd = [DeviceKind::Partition, DeviceKind::Loop, DeviceKind::Memory];
            !all || !odd.contains(&kind)
        };
        for device in sample.devices.iter().filter(counts) {
            let sums = self.devices.entry(device.device.name.clone()).or_default();
            sums.add(device, seconds);
        }
    }

    fn figures(&self, warning: &Thresholds, critical: &Thresholds) -> Vec<Figure> {
        let figure = |device: Option<&String>, metric, value| Figure {
            device: device.cloned(),
            metric,
            value,
            warning: warning.of(metric),
            critical: critical.of(metric),
        };
        let mut figures = Vec::new();
        for (name, sums) in &self.devices {
            let wait = sums.wait().map(|seconds| seconds * 1e3);
            figures.extend([
                figure(Some(name), Metric::Await, wait),
                figure(Some(name), Metric::Busy, sums.busy.value()),
                figure(Some(name), Metric::InFlight, sums.in_flight.value()),
                figure(Some(name), Metric::Iops, sums.iops.value()),
            ]);
        }
        let pressure = figure(None, Metric::Pressure, self.pressure.value());
        if pressure.value.is_some() || pressure.is_bounded() {
            figures.push(pressure);
        }
        figures
    }

    /// Reasons why the check has no result, or only a partial one.
    fn gaps(&self, figures: &[Figure]) -> Vec<(Status, String)> {
        let mut gaps: Vec<String> = Vec::new();
        if self.devices.is_empty() && self.missing.is_empty() {
            gaps.push("no disk was seen".to_owned());
        }
        gaps.extend(
            self.missing
                .iter()
                .map(|name| format!("{name} was not seen")),
        );
        // An old kernel measures no latency of arrays, but of all disks: the threshold applies to these.
        let bounded = figures.iter().filter(|figure| figure.is_bounded());
        let metrics: BTreeSet<Metric> = bounded.map(|figure| figure.metric).collect();
        for metric in metrics {
            let mut of_metric = figures.iter().filter(|figure| figure.metric == metric);
            if of_metric.all(|figure| figure.value.is_none()) {
                gaps.push(format!("{} is not known here", metric.name()));
            }
        }
        gaps.into_iter().map(|gap| (Status::Unknown, gap)).collect()
    }

    /// True if a device existed in any interval.
    pub(super) fn has(&self, name: &str) -> bool {
        self.devices.contains_key(name)
    }

    /// Returns the status and the text: a line, and with `details` one more for each device.
    pub(super) fn judge(
        &self,
        warning: &Thresholds,
        critical: &Thresholds,
        details: bool,
    ) -> (Status, String) {
        let figures = self.figures(warning, critical);
        let mut problems: Vec<(Status, String)> = self.events.values().map(of_event).collect();
        problems.extend(figures.iter().filter_map(Figure::problem));
        problems.extend(self.gaps(&figures));
        let status = problems.iter().map(|(status, _)| *status).max();
        let status = status.unwrap_or(Status::Ok);
        // The worst first; notes are reported only where nothing is wrong.
        problems.sort_by_key(|(status, _)| std::cmp::Reverse(*status));
        let mut sentences: Vec<String> = problems.into_iter().map(|(_, text)| text).collect();
        if sentences.is_empty() {
            sentences.push(match self.devices.len() {
                1 => "1 device is well".to_owned(),
                count => format!("{count} devices are well"),
            });
        }
        // The bar begins the performance data, and the first line is all that is shown.
        let sentences = sentences.join("; ").replace(['|', '\n'], " ");
        let data: Vec<String> = figures.iter().map(Figure::data).collect();
        let mut text = format!(
            "DISKSMITH {} - {sentences} | {}\n",
            status.name(),
            data.join(" ")
        );
        if details {
            for figures in figures.chunk_by(|one, next| one.device == next.device) {
                let device = figures[0].device.as_deref().unwrap_or("host");
                let shown: Vec<String> = figures.iter().map(Figure::figure_text).collect();
                text += &format!("{}: {}\n", device.replace('|', " "), shown.join(", "));
            }
        }
        (status, text)
    }
}

fn of_event(event: &WatchEvent) -> (Status, String) {
    let status = match (event.code, event.severity) {
        (EventCode::Stalled | EventCode::Errors, _) => Status::Critical,
        (_, Severity::Note) => Status::Ok,
        (_, Severity::Warn | Severity::Invalid) => Status::Warning,
    };
    (status, format!("{}: {}", event.code, event.text))
}

impl Figure {
    fn is_bounded(&self) -> bool {
        self.warning.is_some() || self.critical.is_some()
    }

    /// The figure as text, such as `await 0.3ms`.
    fn figure_text(&self) -> String {
        let value = self.value.map_or_else(
            || "unknown".to_owned(),
            |value| format!("{}{}", rounded(value), self.metric.unit()),
        );
        format!("{} {value}", self.metric.name())
    }

    fn problem(&self) -> Option<(Status, String)> {
        let value = self.value?;
        let alerting = |range: Option<Range>| range.filter(|range| range.alerts(value));
        let (status, range) = match (alerting(self.critical), alerting(self.warning)) {
            (Some(range), _) => (Status::Critical, range),
            (None, Some(range)) => (Status::Warning, range),
            (None, None) => return None,
        };
        let whose = self.device.as_ref().map(|name| format!("{name} "));
        let text = format!(
            "{}{} is {}{}, threshold {range}",
            whose.unwrap_or_default(),
            self.metric.name(),
            rounded(value),
            self.metric.unit()
        );
        Some((status, text))
    }

    /// Performance data: `'label'=value[unit];[warning];[critical];[least];[most]`; the value is `U` where it is not
    /// known.
    fn data(&self) -> String {
        let range =
            |range: Option<Range>| range.map_or_else(String::new, |range| range.to_string());
        let unit = self.metric.unit();
        let most = if unit == "%" { ";100" } else { "" };
        let value = self.value.map_or_else(
            || "U".to_owned(),
            |value| format!("{}{unit}", rounded(value)),
        );
        let whose = self.device.as_ref().map(|name| format!("{name}_"));
        let label = whose.unwrap_or_default() + self.metric.name();
        format!(
            "'{}'={value};{};{};0{most}",
            label.replace(['\'', '=', ' '], "_"),
            range(self.warning),
            range(self.critical),
        )
    }
}

/// Rounds a value to digits that are enough for a microsecond.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use record::sample::{Device, DeviceId, PerSecond, SampleTime};
    use record::{Nanos, Subject};

    use super::*;

    fn mean(value: f64) -> Mean {
        Mean {
            sum: 5.0 * value,
            seconds: 5.0,
        }
    }

    fn seen(busy: f64) -> Observations {
        let sums = Sums {
            iops: mean(100.0),
            busy: mean(busy),
            in_flight: mean(1.0),
            timed: 500.0,
            waited: 5.0,
        };
        Observations {
            devices: BTreeMap::from([("nvme1n1".to_owned(), sums)]),
            pressure: mean(20.0),
            ..Observations::default()
        }
    }

    fn at(text: &str) -> Thresholds {
        text.parse().unwrap()
    }

    fn event(code: EventCode, severity: Severity) -> WatchEvent {
        WatchEvent {
            id: 1,
            code,
            severity,
            subject: Subject::Host,
            name: "host".to_owned(),
            began: SampleTime::default(),
            ended: None,
            text: "It is so | so.".to_owned(),
            advice: String::new(),
            figures: Vec::new(),
        }
    }

    #[test]
    fn a_host_that_is_well_is_one_line_with_its_figures() {
        let (status, line) =
            seen(30.0).judge(&Thresholds::default(), &Thresholds::default(), false);
        assert_eq!(status, Status::Ok);
        assert_eq!(
            line,
            "DISKSMITH OK - 1 device is well | 'nvme1n1_await'=10ms;;;0 'nvme1n1_busy'=30%;;;0;100 \
             'nvme1n1_in-flight'=1;;;0 'nvme1n1_iops'=100;;;0 'pressure'=20%;;;0;100\n"
        );
    }

    #[test]
    fn bounds_decide() {
        let (status, line) = seen(97.0).judge(&at("busy=95%,await=20ms"), &at("busy=99%"), false);
        assert_eq!(status, Status::Warning);
        assert!(line.contains("nvme1n1 busy is 97%, threshold 95"), "{line}");
        assert!(line.contains("'nvme1n1_busy'=97%;95;99;0;100"), "{line}");
        let (status, _) = seen(97.0).judge(&at("busy=95%"), &at("await=5ms"), false);
        assert_eq!(status, Status::Critical);
        assert_eq!(status.number(), 2);
    }

    #[test]
    fn devices_that_were_not_seen_are_unknown() {
        let none = Thresholds::default();
        let (status, line) = Observations::default().judge(&none, &none, false);
        assert_eq!((status.number(), status), (3, Status::Unknown));
        assert!(
            line.starts_with("DISKSMITH UNKNOWN - no disk was seen |"),
            "{line}"
        );
        let mut gone = seen(30.0);
        gone.missing.push("sdq".to_owned());
        let (status, line) = gone.judge(&none, &none, false);
        assert_eq!(status, Status::Unknown);
        assert!(line.contains("- sdq was not seen |"), "{line}");
        let mut blind = seen(30.0);
        blind.pressure = Mean::default();
        assert_eq!(blind.judge(&at("busy=95%"), &none, false).0, Status::Ok);
        let (status, line) = blind.judge(&at("pressure=50%"), &none, false);
        assert_eq!(status, Status::Unknown);
        assert!(line.contains("pressure is not known here"), "{line}");
        assert!(line.contains("'pressure'=U;50;;0;100"), "{line}");
        // A warning is worse than an unknown state.
        assert_eq!(
            blind.judge(&at("pressure=50%,busy=20%"), &none, false).0,
            Status::Warning
        );
    }

    #[test]
    fn an_interval_of_which_nothing_is_known_changes_no_mean() {
        let device = Device::by_name(DeviceId(0), "md_home", SampleTime::default());
        let mut device = DeviceSample::unknown(Arc::new(device));
        let mut seen = Observations::default();
        let sample = |device: &DeviceSample| Sample {
            length: Nanos::from_secs(1),
            devices: vec![device.clone()],
            ..Sample::default()
        };
        seen.add(&sample(&device), true);
        device.all.iops = Some(PerSecond(10.0));
        seen.add(&sample(&device), true);
        let none = Thresholds::default();
        let (_, line) = seen.judge(&none, &none, false);
        assert!(line.contains("'md_home_iops'=10;"), "{line}");
        // An old kernel does not measure the array's latency.
        assert!(
            line.contains("'md_home_await'=U;;;0 'md_home_busy'=U"),
            "{line}"
        );
        device.busy = Some(Fraction(0.99));
        device.all.wait = Some(Nanos(4_000_000));
        seen.add(&sample(&device), true);
        let (status, line) = seen.judge(&at("busy=95%,in-flight=1"), &none, false);
        assert_eq!(status, Status::Warning);
        assert!(
            line.contains("- md_home busy is 99%, threshold 95;"),
            "{line}"
        );
        assert!(line.contains("in-flight is not known here"), "{line}");
        assert!(line.contains("'md_home_await'=4ms"), "{line}");
    }

    #[test]
    fn findings_count_and_cannot_break_the_line() {
        for (code, severity, status) in [
            (EventCode::Stalled, Severity::Warn, Status::Critical),
            (EventCode::VolumeCap, Severity::Warn, Status::Warning),
            (EventCode::SmallIo, Severity::Note, Status::Ok),
        ] {
            let mut seen = seen(30.0);
            seen.events.insert(1, event(code, severity));
            let (judged, line) = seen.judge(&Thresholds::default(), &Thresholds::default(), false);
            assert_eq!(judged, status, "{line}");
            assert_eq!(line.matches('|').count(), 1, "{line}");
        }
    }
}
