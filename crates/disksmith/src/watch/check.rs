//! `watch --check`: one look, answered in the form of a Nagios plugin (Monitoring Plugins
//! Development Guidelines): a line, performance data behind a bar, and a status.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use record::sample::{DeviceKind, DeviceSample, Sample};
use record::{Event, EventCode, Nanos, Severity};
use study::watch::{Settings, Watch};

use super::collect::Collector;
use super::filter::Filter;
use super::live::Ticks;
use crate::cli::{Limits, WatchArgs};
use crate::context::Context;
use crate::failure::{Answer, Failure, Outcome, Standing as _};

/// How many intervals are looked at where nothing is said.
const INTERVALS: u64 = 5;

/// How things stand, as the status says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Ok,
    Warning,
    Critical,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::Warning => "WARNING",
            Status::Critical => "CRITICAL",
        }
    }
}

/// Looks, and answers.
pub(super) fn check(args: &WatchArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    match look(args, context, interrupt) {
        Ok(seen) => {
            let warning = args.warning.unwrap_or_default();
            let critical = args.critical.unwrap_or_default();
            let (status, line) = seen.judge(&warning, &critical);
            context.print(&line)?;
            Ok(Answer::Status(status as u8))
        }
        // Whoever asks knows by the status that this is no answer about the disks.
        Err(failure) => {
            let why = format!("{:#}", failure.error()).replace(['|', '\n'], " ");
            context.print(&format!("DISKSMITH UNKNOWN - {why}\n"))?;
            Ok(Answer::Status(3))
        }
    }
}

fn look(args: &WatchArgs, context: &Context, interrupt: &AtomicBool) -> Result<Seen, Failure> {
    let filter = Filter::new(&args.devices, true, &context.root)?;
    let interval = args.interval.0.into();
    let mut collector = Collector::new(&context.root, interval).refused()?;
    let mut watch = Watch::new(Settings {
        stall: args.stall.0,
    });
    let mut seen = Seen::default();
    let mut ticks = Ticks::every(interval);
    collector.sample().refused()?;
    for _ in 0..args.count.unwrap_or(INTERVALS) {
        if !ticks.wait(interrupt) {
            return Err(Failure::refused("the look was interrupted"));
        }
        let Some(mut sample) = collector.sample().refused()? else {
            continue;
        };
        for change in watch.see(&sample) {
            if filter.wants_event(&change.event, &sample) {
                seen.events.insert(change.event.id, change.event);
            }
        }
        filter.cut(&mut sample);
        seen.add(&sample, args.devices.is_empty());
    }
    Ok(seen)
}

/// Sums over the intervals of a device.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    seconds: f64,
    ops: f64,
    waited_s: f64,
    busy: f64,
    in_flight: f64,
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    devices: BTreeMap<String, Sums>,
    events: BTreeMap<u64, Event>,
    seconds: f64,
    stalled_s: Option<f64>,
}

/// A figure, its unit, and its bounds.
struct Figure {
    label: String,
    value: f64,
    unit: &'static str,
    warning: Option<f64>,
    critical: Option<f64>,
}

impl Seen {
    fn add(&mut self, sample: &Sample, all: bool) {
        let seconds = sample.length.as_secs_f64();
        self.seconds += seconds;
        let some = sample.host.pressure.map(|pressure| pressure.some.stalled);
        if let Some(stalled) = some.flatten() {
            *self.stalled_s.get_or_insert(0.0) += stalled.0 * seconds;
        }
        let counts = |device: &&DeviceSample| {
            let kind = device.device.kind;
            let odd = [DeviceKind::Partition, DeviceKind::Loop, DeviceKind::Memory];
            !all || !odd.contains(&kind)
        };
        for device in sample.devices.iter().filter(counts) {
            let sums = self.devices.entry(device.device.name.clone()).or_default();
            let ops = device.all.iops.map_or(0.0, |iops| iops.0) * seconds;
            let wait = device.all.wait.map_or(0.0, Nanos::as_secs_f64);
            sums.seconds += seconds;
            sums.ops += ops;
            sums.waited_s += ops * wait;
            sums.busy += device.busy.map_or(0.0, |busy| busy.percent()) * seconds;
            sums.in_flight += device.mean_in_flight.unwrap_or(0.0) * seconds;
        }
    }

    fn figures(&self, warning: &Limits, critical: &Limits) -> Vec<Figure> {
        let seconds = |limits: &Limits| limits.wait.map(Nanos::as_secs_f64);
        let mut figures = Vec::new();
        for (name, sums) in &self.devices {
            let wait = if sums.ops > 0.0 {
                sums.waited_s / sums.ops
            } else {
                0.0
            };
            let each = |sum: f64| sum / sums.seconds.max(f64::MIN_POSITIVE);
            figures.extend([
                Figure {
                    label: format!("{name}_await"),
                    value: wait,
                    unit: "s",
                    warning: seconds(warning),
                    critical: seconds(critical),
                },
                Figure {
                    label: format!("{name}_busy"),
                    value: each(sums.busy).min(100.0),
                    unit: "%",
                    warning: warning.busy,
                    critical: critical.busy,
                },
                Figure {
                    label: format!("{name}_in_flight"),
                    value: each(sums.in_flight),
                    unit: "",
                    warning: warning.in_flight,
                    critical: critical.in_flight,
                },
                Figure {
                    label: format!("{name}_iops"),
                    value: each(sums.ops),
                    unit: "",
                    warning: None,
                    critical: None,
                },
            ]);
        }
        if let Some(stalled) = self.stalled_s.filter(|_| self.seconds > 0.0) {
            figures.push(Figure {
                label: "pressure".to_owned(),
                value: 100.0 * stalled / self.seconds,
                unit: "%",
                warning: warning.pressure,
                critical: critical.pressure,
            });
        }
        figures
    }

    /// The status and the line.
    fn judge(&self, warning: &Limits, critical: &Limits) -> (Status, String) {
        let figures = self.figures(warning, critical);
        let mut problems: Vec<(Status, String)> = self.events.values().map(of_event).collect();
        problems.extend(figures.iter().filter_map(Figure::problem));
        let status = problems.iter().map(|(status, _)| *status).max();
        let status = status.unwrap_or(Status::Ok);
        // The worst first; what is only worth knowing is said where nothing is wrong.
        problems.sort_by_key(|(status, _)| std::cmp::Reverse(*status));
        let mut said: Vec<String> = problems.into_iter().map(|(_, text)| text).collect();
        if said.is_empty() {
            said.push(match self.devices.len() {
                1 => "1 device is well".to_owned(),
                count => format!("{count} devices are well"),
            });
        }
        // The bar begins the performance data, and the first line is all that is shown.
        let said = said.join("; ").replace(['|', '\n'], " ");
        let data: Vec<String> = figures.iter().map(Figure::data).collect();
        let line = format!(
            "DISKSMITH {} - {said} | {}\n",
            status.word(),
            data.join(" ")
        );
        (status, line)
    }
}

fn of_event(event: &Event) -> (Status, String) {
    let status = match (event.code, event.severity) {
        (EventCode::Stalled | EventCode::Errors, _) => Status::Critical,
        (_, Severity::Note) => Status::Ok,
        (_, Severity::Warn | Severity::Invalid) => Status::Warning,
    };
    (status, format!("{}: {}", event.code, event.text))
}

impl Figure {
    fn problem(&self) -> Option<(Status, String)> {
        let beyond = |bound: Option<f64>| bound.filter(|bound| self.value > *bound);
        let (status, bound) = match (beyond(self.critical), beyond(self.warning)) {
            (Some(bound), _) => (Status::Critical, bound),
            (None, Some(bound)) => (Status::Warning, bound),
            (None, None) => return None,
        };
        let text = format!(
            "{} is {}{unit}, beyond {bound}{unit}",
            self.label.replace('_', " "),
            rounded(self.value),
            unit = self.unit
        );
        Some((status, text))
    }

    /// `'label'=value[unit];[warning];[critical];[least];[most]`.
    fn data(&self) -> String {
        let bound = |bound: Option<f64>| bound.map_or_else(String::new, |bound| bound.to_string());
        let most = if self.unit == "%" { ";100" } else { "" };
        format!(
            "'{}'={}{};{};{};0{most}",
            self.label.replace(['\'', '='], "_"),
            rounded(self.value),
            self.unit,
            bound(self.warning),
            bound(self.critical),
        )
    }
}

/// Enough digits for a microsecond.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use record::Subject;
    use record::sample::Moment;

    use super::*;

    fn seen(busy: f64) -> Seen {
        let sums = Sums {
            seconds: 5.0,
            ops: 500.0,
            waited_s: 5.0,
            busy: 5.0 * busy,
            in_flight: 5.0,
        };
        Seen {
            devices: BTreeMap::from([("nvme1n1".to_owned(), sums)]),
            seconds: 5.0,
            stalled_s: Some(1.0),
            ..Seen::default()
        }
    }

    fn event(code: EventCode, severity: Severity) -> Event {
        Event {
            id: 1,
            code,
            severity,
            subject: Subject::Host,
            name: "host".to_owned(),
            began: Moment::default(),
            ended: None,
            text: "It is so | so.".to_owned(),
            advice: String::new(),
            figures: Vec::new(),
        }
    }

    #[test]
    fn a_host_that_is_well_is_one_line_with_its_figures() {
        let (status, line) = seen(30.0).judge(&Limits::default(), &Limits::default());
        assert_eq!(status, Status::Ok);
        assert_eq!(
            line,
            "DISKSMITH OK - 1 device is well | 'nvme1n1_await'=0.01s;;;0 'nvme1n1_busy'=30%;;;0;100 \
             'nvme1n1_in_flight'=1;;;0 'nvme1n1_iops'=100;;;0 'pressure'=20%;;;0;100\n"
        );
    }

    #[test]
    fn bounds_decide() {
        let at = |text: &str| text.parse::<Limits>().unwrap();
        let (status, line) = seen(97.0).judge(&at("busy=95,await=20ms"), &at("busy=99"));
        assert_eq!(status, Status::Warning);
        assert!(line.contains("nvme1n1 busy is 97%, beyond 95%"), "{line}");
        assert!(line.contains("'nvme1n1_busy'=97%;95;99;0;100"), "{line}");
        let (status, _) = seen(97.0).judge(&at("busy=95"), &at("await=5ms"));
        assert_eq!(status, Status::Critical);
        assert_eq!(status as u8, 2);
    }

    #[test]
    fn what_is_found_counts_and_cannot_break_the_line() {
        for (code, severity, status) in [
            (EventCode::Stalled, Severity::Warn, Status::Critical),
            (EventCode::VolumeCap, Severity::Warn, Status::Warning),
            (EventCode::SmallIo, Severity::Note, Status::Ok),
        ] {
            let mut seen = seen(30.0);
            seen.events.insert(1, event(code, severity));
            let (judged, line) = seen.judge(&Limits::default(), &Limits::default());
            assert_eq!(judged, status, "{line}");
            assert_eq!(line.matches('|').count(), 1, "{line}");
        }
    }
}
