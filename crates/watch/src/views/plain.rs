//! Plain lines: one for each device and interval, and one for each change of a finding.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use record::sample::{DeviceSample, Flow, Gap, Sample, SampleTime};
use record::{Nanos, Severity};
use study::watch::{ChangeKind, EventChange};

use ui::format;

/// Number of lines after which the heads of the columns are repeated.
const PAGE: usize = 40;
/// Number of idle intervals after which it is reported that all devices are idle: otherwise a device that writes every
/// few seconds would cause such a line each time.
const REST: u32 = 10;
/// Minimum duration of these intervals.
const REST_TIME: Nanos = Nanos::from_secs(10);
const MIB: f64 = 1_048_576.0;

/// Writer of lines, with the heads of the columns repeated.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Number of lines since the heads were printed.
    since_head: Option<usize>,
    /// Date of the times of the last lines.
    date: Option<Date>,
    /// State of idle devices since the last line.
    rest: IdleState,
}

/// State of the report that all devices are idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum IdleState {
    /// No device was shown yet.
    #[default]
    Unknown,
    /// Number of intervals, and time, since a device was last shown.
    Shown(u32, Nanos),
    /// It was reported that all devices are idle.
    Reported,
}

impl Lines {
    /// The lines of a sample and of its changes of findings.
    pub(crate) fn text(&mut self, sample: &Sample, changes: &[EventChange]) -> String {
        let mut text = String::new();
        if let Some(gap) = sample.gap {
            text.push_str(&format!("# {} {}\n", clock(sample.at), gap_text(gap)));
        }
        let names: Vec<String> = sample.devices.iter().map(name).collect();
        let width = names.iter().map(String::len).fold(8, usize::max);
        for (device, name) in sample.devices.iter().zip(&names) {
            if self.since_head.is_none_or(|lines| lines >= PAGE) {
                text.push_str(&head(width));
                self.since_head = Some(0);
            }
            self.since_head = self.since_head.map(|lines| lines + 1);
            text.push_str(&line(sample.at, device, name, width));
        }
        if !text.is_empty() {
            text.push_str(&process_text(sample));
        }
        for change in changes {
            text.push_str(&event(change));
        }
        if text.is_empty() {
            return text;
        }
        self.new_date(sample.at) + &text
    }

    /// A line on why no device is shown, at the start and once when all have become idle. `idle` is the number of idle
    /// devices that are left out of the sample.
    pub(crate) fn rest(&mut self, sample: &Sample, idle: usize) -> Option<String> {
        self.rest = match self.rest {
            _ if !sample.devices.is_empty() => IdleState::Shown(0, Nanos(0)),
            IdleState::Reported => return None,
            IdleState::Unknown => IdleState::Reported,
            IdleState::Shown(intervals, time) => {
                let (intervals, time) = (intervals + 1, time + sample.length);
                match intervals >= REST && time >= REST_TIME {
                    true => IdleState::Reported,
                    false => IdleState::Shown(intervals, time),
                }
            }
        };
        if self.rest != IdleState::Reported {
            return None;
        }
        let when = "one has a line in each interval in which it does something";
        let notice = match idle {
            0 => "no device is there to be shown".to_owned(),
            1 => format!("the only device is idle; {when}"),
            _ => format!("all {idle} devices are idle; {when}"),
        };
        let line = format!("# {} {notice}\n", clock(sample.at));
        Some(self.new_date(sample.at) + &line)
    }

    /// A line with the date, where it is not that of the lines before.
    fn new_date(&mut self, at: SampleTime) -> String {
        let date = at.wall.map(|wall| wall.to_zoned(TimeZone::system()).date());
        match date {
            Some(date) if self.date != Some(date) => {
                self.date = Some(date);
                format!("# {date}\n")
            }
            _ => String::new(),
        }
    }
}

/// Name of a device: the kernel's, and the administrator's.
fn name(device: &DeviceSample) -> String {
    match &device.device.alias {
        Some(alias) => format!("{}({alias})", device.device.name),
        None => device.device.name.clone(),
    }
}

/// A column: its head, its width, and the figure of a device.
type Column = (&'static str, usize, fn(&DeviceSample) -> String);

const COLUMNS: [Column; 10] = [
    ("r/s", 8, |one| ops(&one.read)),
    ("w/s", 8, |one| ops(&one.write)),
    ("rMiB/s", 8, |one| mib(&one.read)),
    ("wMiB/s", 8, |one| mib(&one.write)),
    ("r-await", 8, |one| wait(&one.read)),
    ("w-await", 8, |one| wait(&one.write)),
    ("other/s", 8, |one| {
        let others = [one.discard.iops, one.flush.iops].into_iter().flatten();
        shown(others.map(|iops| iops.0).reduce(|a, b| a + b))
    }),
    ("flight", 7, |one| match one.in_flight {
        Some(count) => count.to_string(),
        None => shown(one.mean_in_flight),
    }),
    ("size", 8, |one| {
        one.all.size.map_or_else(no_value, |size| size.to_string())
    }),
    ("busy", 5, |one| {
        let percent = one.busy.map(|busy| format!("{:.0}%", busy.percent()));
        percent.unwrap_or_else(no_value)
    }),
];

fn ops(flow: &Flow) -> String {
    shown(flow.iops.map(|iops| iops.0))
}

fn mib(flow: &Flow) -> String {
    shown(flow.bytes.map(|bytes| bytes.0 / MIB))
}

fn wait(flow: &Flow) -> String {
    flow.wait
        .map_or_else(no_value, |wait| format::latency(wait.0))
}

fn head(width: usize) -> String {
    let columns = COLUMNS.map(|(head, wide, _)| format!(" {head:>wide$}"));
    format!("{:<12} {:<width$}{}\n", "time", "device", columns.concat())
}

fn line(at: SampleTime, device: &DeviceSample, name: &str, width: usize) -> String {
    let columns = COLUMNS.map(|(_, wide, figure)| format!(" {:>wide$}", figure(device)));
    let row = format!("{:<12} {name:<width$}{}", clock(at), columns.concat());
    let (whole, latency, array) = (total_text(device), latency_text(device), array_text(device));
    format!("{row}{whole}{latency}{array}\n")
}

/// Text after a line: figures of all requests together that are not known for reads and writes, as in logs without
/// these columns.
fn total_text(device: &DeviceSample) -> String {
    let all = &device.all;
    let is_missing =
        |is_known: fn(&Flow) -> bool| !is_known(&device.read) && !is_known(&device.write);
    let mut text = String::new();
    if let Some(iops) = all.iops.filter(|_| is_missing(|flow| flow.iops.is_some())) {
        text.push_str(&format!(" {}/s", format::number(iops.0)));
    }
    if let Some(bytes) = all
        .bytes
        .filter(|_| is_missing(|flow| flow.bytes.is_some()))
    {
        text.push_str(&format!(" {} MiB/s", format::number(bytes.0 / MIB)));
    }
    if let Some(wait) = all.wait.filter(|_| is_missing(|flow| flow.wait.is_some())) {
        text.push_str(&format!(" await {}", format::latency(wait.0)));
    }
    match text.is_empty() {
        true => text,
        false => format!("  all:{text}"),
    }
}

/// Text after a line: latency percentiles of all requests.
fn latency_text(device: &DeviceSample) -> String {
    let all = device.latency.as_ref();
    let Some(all) = all.and_then(|latency| latency.all.as_ref()) else {
        return String::new();
    };
    let times = [
        ("p50", all.p50),
        ("p99", all.p99),
        ("p99.9", all.p999),
        ("max", all.max),
    ];
    let times = times.map(|(word, time)| format!("{word} {}", format::latency(time.0)));
    format!("  {}", times.join(" "))
}

/// Text after a sample's lines: the cost of tracing, and the processes with the most I/O.
fn process_text(sample: &Sample) -> String {
    let Some(tracing) = sample.host.tracing else {
        return String::new();
    };
    let seconds = sample.length.as_secs_f64().max(1e-9);
    let mut text = format!(
        "# {} tracing: {} requests, {:.1}% of a core",
        clock(sample.at),
        tracing.requests,
        100.0 * tracing.cpu.as_secs_f64() / seconds
    );
    if tracing.lost > 0 {
        text.push_str(&format!(", {} events lost", tracing.lost));
    }
    let over = tracing.over.as_secs_f64().max(1e-9);
    let rate = |count: u64| format::number(count as f64 / over);
    for one in sample.host.processes.iter().take(3) {
        text.push_str(&format!(
            "; {} ({}) reads {} and writes {} MiB/s, {} requests/s",
            one.name,
            one.pid,
            format::number(one.read.0 as f64 / MIB / over),
            format::number(one.written.0 as f64 / MIB / over),
            rate(one.requests),
        ));
    }
    text.push('\n');
    text
}

/// Text after an array's line: md's action and its progress.
fn array_text(device: &DeviceSample) -> String {
    let Some(state) = &device.array else {
        return String::new();
    };
    let mut text = String::new();
    if let Some(action) = state.action.filter(|action| action.is_work()) {
        text.push_str(&format!("  {}", action.name()));
        if let Some(position) = state.position {
            text.push_str(&format!(" {:.1}%", 100.0 * position.fraction()));
        }
        if let Some(speed) = state.speed {
            text.push_str(&format!(" {} MiB/s", format::number(speed.0 / MIB)));
        }
    }
    if let Some(missing) = state.degraded.filter(|missing| *missing > 0) {
        text.push_str(&format!("  degraded by {missing}"));
    }
    text
}

fn event(change: &EventChange) -> String {
    let event = &change.event;
    let head = format!("{} {}", event.code, event.name);
    match change.kind {
        ChangeKind::Opened => {
            let sign = match event.severity {
                Severity::Note => '*',
                Severity::Warn | Severity::Invalid => '!',
            };
            format!(
                "{sign} {} {head}: {} {}\n",
                clock(event.began),
                event.text,
                event.advice
            )
        }
        ChangeKind::Updated => String::new(),
        ChangeKind::Closed => {
            let ended = event.ended.unwrap_or(event.began);
            let lasted = ended.elapsed - event.began.elapsed;
            format!("- {} {head}: over after {lasted}.\n", clock(ended))
        }
        ChangeKind::Unfinished => {
            format!(
                "- {head}: lasts since {} where the log ends.\n",
                clock(event.began)
            )
        }
    }
}

/// The time of day where it is known, or the time since the first reading.
fn clock(moment: SampleTime) -> String {
    match moment.wall {
        Some(wall) => wall
            .to_zoned(TimeZone::system())
            .strftime("%H:%M:%S%.3f")
            .to_string(),
        None => format!("{:.3}s", moment.elapsed.as_secs_f64()),
    }
}

fn gap_text(gap: Gap) -> String {
    match gap {
        Gap::Suspended(time) => format!("the machine was suspended for {time}"),
        Gap::SetForward(time) => format!("the time of day was set forward by {time}"),
        Gap::SetBack(time) => format!("the time of day was set back by {time}"),
        // As between two runs of iostat without timestamps.
        Gap::Unseen(Nanos(0)) => "an interval of unknown length is missing".to_owned(),
        Gap::Unseen(time) => format!("an interval of {time} is missing"),
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(no_value, format::number)
}

fn no_value() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use record::sample::{BytesPerSecond, Device, DeviceId, Fraction, PerSecond};
    use record::{Bytes, Nanos, Subject};
    use study::watch::{EventCode, WatchEvent};

    use super::*;

    fn sample() -> Sample {
        let device = Device::by_name(DeviceId(0), "nvme1n1", SampleTime::default());
        let mut device = DeviceSample::unknown(Arc::new(device));
        device.read.iops = Some(PerSecond(1234.0));
        device.read.wait = Some(Nanos(1_500_000));
        device.all.size = Some(Bytes::kib(16));
        device.in_flight = Some(7);
        device.busy = Some(Fraction(0.5));
        Sample {
            at: SampleTime {
                wall: None,
                elapsed: Nanos::from_secs(3),
            },
            length: Nanos::from_secs(1),
            devices: vec![device],
            ..Sample::default()
        }
    }

    #[test]
    fn a_device_has_a_line_and_what_is_unknown_a_dash() {
        let text = Lines::default().text(&sample(), &[]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(words[..4], ["3.000s", "nvme1n1", "1,234", "-"], "{text}");
        assert!(words.contains(&"7") && words.contains(&"50%"), "{text}");
    }

    #[test]
    fn a_new_date_is_printed_before_the_lines_of_it() {
        let mut lines = Lines::default();
        let mut dates = |second: i64| {
            let mut sample = sample();
            sample.at.wall = Some(jiff::Timestamp::from_second(second).unwrap());
            let text = lines.text(&sample, &[]);
            text.lines().filter(|line| line.starts_with("# ")).count()
        };
        let day = 86_400;
        assert_eq!((dates(1_700_000_000), dates(1_700_000_001)), (1, 0));
        assert_eq!(
            (dates(1_700_000_001 + day), dates(1_700_000_002 + day)),
            (1, 0)
        );
        // A moment at which nothing is shown is not reported either.
        let mut idle = sample();
        idle.devices.clear();
        idle.at.wall = Some(jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(lines.text(&idle, &[]), "");
    }

    #[test]
    fn idleness_of_all_is_printed_at_the_beginning_and_when_it_begins() {
        let mut lines = Lines::default();
        let idle = Sample {
            devices: Vec::new(),
            ..sample()
        };
        let first = lines.rest(&idle, 3).unwrap();
        assert!(
            first.starts_with("# 3.000s all 3 devices are idle; "),
            "{first}"
        );
        assert_eq!(first.lines().count(), 1);
        assert!((0..100).all(|_| lines.rest(&idle, 3).is_none()));
        // What does something now and then is not followed by that each time.
        for _ in 0..3 {
            assert_eq!(lines.rest(&sample(), 2), None);
            assert!((1..REST).all(|_| lines.rest(&idle, 3).is_none()));
        }
        let again = lines.rest(&idle, 1).unwrap();
        assert!(again.contains("the only device is idle"), "{again}");
        assert_eq!(lines.rest(&idle, 1), None);
        // Where something is shown at first, there is nothing to tell.
        assert_eq!(Lines::default().rest(&sample(), 0), None);
        // Devices that are named have a line in each interval, whatever they do.
        let none = Lines::default().rest(&idle, 0).unwrap();
        assert!(none.ends_with("no device is there to be shown\n"), "{none}");
    }

    #[test]
    fn short_intervals_do_not_have_idleness_printed_sooner() {
        let mut lines = Lines::default();
        let mut idle = sample();
        idle.devices.clear();
        idle.length = Nanos(100_000_000);
        assert_eq!(lines.rest(&sample(), 0), None);
        assert!((1..100).all(|_| lines.rest(&idle, 1).is_none()));
        assert!(lines.rest(&idle, 1).is_some());
        // Nor long ones.
        idle.length = Nanos::from_secs(60);
        assert_eq!(lines.rest(&sample(), 0), None);
        assert!((1..REST).all(|_| lines.rest(&idle, 1).is_none()));
        assert!(lines.rest(&idle, 1).is_some());
    }

    #[test]
    fn figures_of_all_requests_only_are_shown() {
        let mut sample = sample();
        let device = &mut sample.devices[0];
        device.read = Flow::default();
        device.all.iops = Some(PerSecond(1302.0));
        device.all.bytes = Some(BytesPerSecond(43.0 * MIB));
        device.all.wait = Some(Nanos(2_600_000));
        let text = Lines::default().text(&sample, &[]);
        let expected = "  all: 1,302/s 43.0 MiB/s await 2.60 ms\n";
        assert!(text.ends_with(expected), "{text}");
        // sysstat 9: reads and writes are distinguished, but not what they take.
        let device = &mut sample.devices[0];
        device.read.iops = Some(PerSecond(1.0));
        device.write.bytes = Some(BytesPerSecond(1.0));
        let text = Lines::default().text(&sample, &[]);
        assert!(text.ends_with("  all: await 2.60 ms\n"), "{text}");
    }

    #[test]
    fn a_mapper_carries_the_name_that_people_gave_it() {
        let mut device = Device::by_name(DeviceId(0), "dm-3", SampleTime::default());
        device.alias = Some("vg-data".to_owned());
        let mut sample = sample();
        sample.devices = vec![DeviceSample::unknown(Arc::new(device))];
        let text = Lines::default().text(&sample, &[]);
        assert!(text.contains(" dm-3(vg-data) "), "{text}");
    }

    #[test]
    fn an_event_has_a_line_when_it_begins_and_when_it_is_over() {
        let event = WatchEvent {
            id: 1,
            code: EventCode::Stalled,
            severity: Severity::Warn,
            subject: Subject::Device(DeviceId(0)),
            name: "nvme1n1".to_owned(),
            began: SampleTime::default(),
            ended: None,
            text: "What.".to_owned(),
            advice: "Do.".to_owned(),
            figures: Vec::new(),
        };
        let mut change = EventChange {
            kind: ChangeKind::Opened,
            event,
        };
        let mut lines = Lines::default();
        let opened = lines.text(&sample(), std::slice::from_ref(&change));
        assert!(
            opened.ends_with("! 0.000s stalled nvme1n1: What. Do.\n"),
            "{opened}"
        );
        change.kind = ChangeKind::Updated;
        assert_eq!(
            lines.text(&Sample::default(), std::slice::from_ref(&change)),
            ""
        );
        change.kind = ChangeKind::Closed;
        change.event.ended = Some(sample().at);
        let closed = lines.text(&Sample::default(), std::slice::from_ref(&change));
        assert_eq!(closed, "- 3.000s stalled nvme1n1: over after 3.00 s.\n");
        change.kind = ChangeKind::Unfinished;
        let cut = lines.text(&Sample::default(), &[change]);
        assert_eq!(
            cut,
            "- stalled nvme1n1: lasts since 0.000s where the log ends.\n"
        );
    }
}
