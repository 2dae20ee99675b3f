//! The page of a watch: findings and marks, and charts of the host, of each array with its members, and of each disk
//! over the time of day. It has the style and the script of a run's report, and like it needs no network.

mod charts;
mod course;
mod figures;
mod latency;
mod table;

#[cfg(test)]
mod tests;

use askama::Template;
use jiff::tz::TimeZone;
use ledger::Mark;
use record::Subject;
use record::raid::MdLevel;
use record::sample::{DeviceId, DeviceKind, SampleSource};
use study::watch::EventCode;

use charts::{
    BYTES, ChartFrame, ChartUnit, FLIGHT, MEMORY, PERCENT, RATE, WAIT, of_device, of_host,
};
use course::{DIRTY, DeviceSeries, FULL, LOAD, RECEIVED, SENT, SOME};
use figures::{
    ALL_WAIT, BUSY, IN_FLIGHT, READ_BYTES, READ_WAIT, READS, WRITE_BYTES, WRITE_WAIT, WRITES,
};
use page::charts::Chart;
use page::{ChartView, Figures};
use ui::format;
use ui::output::OutputFile;

pub(crate) use course::FigureSeries;

/// Maximum number of disks that all have their own charts; with more disks, only the most notable have. All are in the
/// maps and in the table.
const MAX_DISK_CHARTS: usize = 12;
/// Maximum number of lines of a chart; with more, a map is drawn instead.
const MAX_LINES: usize = 7;

/// A finding on the page, as text.
struct FindingView {
    severity: &'static str,
    code: EventCode,
    name: String,
    when: String,
    text: String,
    advice: String,
}

/// A group of charts.
struct Section {
    anchor: String,
    title: String,
    note: String,
    charts: Vec<ChartView>,
}

/// The whole page.
#[derive(Template)]
#[template(path = "watch.html")]
struct Page {
    heading: String,
    identity: Vec<(&'static str, String)>,
    notes: Vec<String>,
    findings: Vec<FindingView>,
    marks: Vec<(String, String)>,
    heads: Vec<&'static str>,
    table: Vec<table::TableRow>,
    processes: Vec<(String, [String; 4])>,
    sections: Vec<Section>,
}

/// Writes the page of a watch.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn write_file(
    output: &OutputFile,
    course: &FigureSeries,
    marks: &[Mark],
    source: &SampleSource,
    notes: &[String],
) -> anyhow::Result<()> {
    output.write(&page(course, marks, source, notes)?)
}

/// Content of the page of a watch.
fn page(
    course: &FigureSeries,
    marks: &[Mark],
    source: &SampleSource,
    notes: &[String],
) -> anyhow::Result<Vec<u8>> {
    let (begin, end) = course.span();
    let within = |mark: &&Mark| {
        let (from, to) = (course.wall(begin), course.wall(end));
        from.zip(to)
            .is_some_and(|(from, to)| (from..=to).contains(&mark.at))
    };
    let marks: Vec<Mark> = marks.iter().filter(within).cloned().collect();
    let frame = ChartFrame {
        course,
        marks: &marks,
        zone: fixed(course, &TimeZone::system()),
    };
    let mut figures = Figures::default();
    let host = source.hostname.clone().unwrap_or_default();
    let heading = match host.as_str() {
        "" => "Disks over time".to_owned(),
        host => format!("Disks of {host}"),
    };
    let (heads, table) = table::table(course);
    let title = format!("{heading} – disksmith");
    let main = Page {
        heading,
        identity: identity(&frame, source),
        notes: all_notes(course, notes),
        findings: findings(&frame),
        marks: marks
            .iter()
            .map(|mark| (local(mark.at, &frame.zone), mark.text.clone()))
            .collect(),
        heads,
        table,
        processes: latency::processes(course),
        sections: sections(&frame, &mut figures),
    };
    page::page(&title, None, &main, &figures)
}

/// A zone with the fixed offset that `zone` has at the start of the data.
fn fixed(course: &FigureSeries, zone: &TimeZone) -> TimeZone {
    match course.wall(course.span().0) {
        Some(wall) => TimeZone::fixed(wall.to_zoned(zone.clone()).offset()),
        None => TimeZone::UTC,
    }
}

fn local(at: jiff::Timestamp, zone: &TimeZone) -> String {
    let local = at.to_zoned(zone.clone());
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn moment(frame: &ChartFrame<'_>, seconds: f64) -> String {
    match frame.course.wall(seconds) {
        Some(wall) => local(wall, &frame.zone),
        None => format::seconds(seconds),
    }
}

fn identity(frame: &ChartFrame<'_>, source: &SampleSource) -> Vec<(&'static str, String)> {
    let course = frame.course;
    let (begin, end) = course.span();
    let zone = course.wall(begin).map(|wall| {
        let zoned = wall.to_zoned(frame.zone.clone());
        zoned
            .strftime("UTC%:z, also where clocks were changed meanwhile")
            .to_string()
    });
    let mut identity = vec![
        ("From", moment(frame, begin)),
        ("To", moment(frame, end)),
        ("Samples", course.samples.to_string()),
    ];
    identity.extend(zone.map(|zone| ("Time zone", zone)));
    identity.extend(source.kernel.clone().map(|kernel| ("Kernel", kernel)));
    identity.extend(source.cpus.map(|cpus| ("Processors", cpus.to_string())));
    identity
}

fn all_notes(course: &FigureSeries, notes: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    if course.steps.is_empty() {
        all.push("Nothing was seen.".to_owned());
    }
    if let Some(length) = course.thinned {
        all.push(format!(
            "Part of the data was thinned out to means of {}, with minima and maxima.",
            if length.as_secs_f64() > 90.0 {
                "an hour"
            } else {
                "a minute"
            }
        ));
    }
    match course.gaps {
        0 => {}
        1 => all.push("There are no data for one stretch of time; it is left blank.".to_owned()),
        gaps => all.push(format!(
            "There are no data for {gaps} stretches of time; they are left blank."
        )),
    }
    if course.set_back > 0 {
        all.push(
            "The clock was set back meanwhile: lines are interrupted there, and maps leave out \
             samples with times that occurred before."
                .to_owned(),
        );
    }
    all.extend_from_slice(notes);
    all
}

fn findings(frame: &ChartFrame<'_>) -> Vec<FindingView> {
    let mut events: Vec<_> = frame.course.events.iter().collect();
    events.sort_by_key(|event| event.began.elapsed);
    events
        .into_iter()
        .map(|event| {
            let began = moment(frame, frame.course.seconds(event.began));
            let when = match event.ended {
                Some(ended) => {
                    format!("{began}, for {}", ended.elapsed - event.began.elapsed)
                }
                None => format!("since {began}"),
            };
            FindingView {
                severity: format::severity(event.severity),
                code: event.code,
                name: event.name.clone(),
                when,
                text: event.text.clone(),
                advice: event.advice.clone(),
            }
        })
        .collect()
}

fn sections(frame: &ChartFrame<'_>, figures: &mut Figures) -> Vec<Section> {
    let course = frame.course;
    let disks: Vec<&DeviceSeries> = course
        .devices
        .iter()
        .filter(|device| device.device.kind != DeviceKind::Partition && device.is_active())
        .collect();
    let mut sections = Vec::new();
    let mut add = |anchor: &str, title: String, note: String, charts: Vec<Option<Chart>>| {
        let charts: Vec<ChartView> = charts
            .into_iter()
            .flatten()
            .map(|chart| figures.add(chart))
            .collect();
        if !charts.is_empty() {
            sections.push(Section {
                anchor: anchor.to_owned(),
                title,
                note,
                charts,
            });
        }
    };
    if disks.len() > MAX_LINES {
        let charts = maps(frame, &disks);
        add("all", "All devices".to_owned(), String::new(), charts);
    }
    let mut drawn: Vec<DeviceId> = Vec::new();
    for array in disks.iter().filter(|one| !one.device.lies_on.is_empty()) {
        let members: Vec<&DeviceSeries> = members(frame, array);
        drawn.push(array.device.id);
        let anchor = format!("device-{}", array.device.id.0);
        add(
            &anchor,
            title(array),
            String::new(),
            own(frame, array, &members),
        );
    }
    let rest: Vec<&DeviceSeries> = disks
        .iter()
        .copied()
        .filter(|one| !drawn.contains(&one.device.id))
        .collect();
    let (chosen, left) = chosen(frame, rest);
    for device in chosen {
        let anchor = format!("device-{}", device.device.id.0);
        add(
            &anchor,
            title(device),
            String::new(),
            own(frame, device, &[]),
        );
    }
    let note = match left {
        0 => String::new(),
        left => format!("{left} more devices are in the maps and in the table only."),
    };
    add("host", "The host".to_owned(), note, host(frame));
    sections
}

fn title(device: &DeviceSeries) -> String {
    let device = &device.device;
    let level = device.level.as_ref().map(MdLevel::name);
    let extra: Vec<&str> = [device.alias.as_deref(), level, device.model.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    match extra.as_slice() {
        [] => device.name.clone(),
        extra => format!("{} ({})", device.name, extra.join(", ")),
    }
}

/// The members of an array; a member that is a partition is returned as such.
fn members<'a>(frame: &ChartFrame<'a>, array: &DeviceSeries) -> Vec<&'a DeviceSeries> {
    let ids = array.device.lies_on.iter();
    ids.filter_map(|id| frame.course.device(*id)).collect()
}

/// The disks with their own charts, in order, and the number of the others: all disks where they are few, otherwise
/// those with findings and those with the most activity.
fn chosen<'a>(
    frame: &ChartFrame<'_>,
    disks: Vec<&'a DeviceSeries>,
) -> (Vec<&'a DeviceSeries>, usize) {
    if disks.len() <= MAX_DISK_CHARTS {
        return (disks, 0);
    }
    let found = |device: &DeviceSeries| {
        let about = Subject::Device(device.device.id);
        frame
            .course
            .events
            .iter()
            .any(|event| event.subject == about)
    };
    let did = |device: &DeviceSeries| -> f32 {
        [READS, WRITES]
            .iter()
            .filter_map(|at| device.total[*at])
            .map(|band| band.mean)
            .sum()
    };
    let mut ranked: Vec<(usize, &DeviceSeries)> = disks.iter().copied().enumerate().collect();
    ranked.sort_by(|(_, a), (_, b)| {
        let found = found(b).cmp(&found(a));
        found.then(did(b).total_cmp(&did(a)))
    });
    let left = ranked.len() - MAX_DISK_CHARTS;
    ranked.truncate(MAX_DISK_CHARTS);
    ranked.sort_by_key(|(place, _)| *place);
    (ranked.into_iter().map(|(_, device)| device).collect(), left)
}

/// Maps of all devices.
fn maps(frame: &ChartFrame<'_>, disks: &[&DeviceSeries]) -> Vec<Option<Chart>> {
    // Reversed, since the last row of a map is the topmost.
    let disks: Vec<&DeviceSeries> = disks.iter().rev().copied().collect();
    vec![
        frame.map("Await of reads", WAIT, &disks, READ_WAIT),
        frame.map("Await of writes", WAIT, &disks, WRITE_WAIT),
        frame.map("Await", WAIT, &disks, ALL_WAIT),
        frame.map("Reads", RATE, &disks, READS),
        frame.map("Writes", RATE, &disks, WRITES),
        frame.map("In flight", FLIGHT, &disks, IN_FLIGHT),
        frame.map("Busy", PERCENT, &disks, BUSY),
    ]
}

/// The charts of a device and of its members.
fn own(
    frame: &ChartFrame<'_>,
    device: &DeviceSeries,
    members: &[&DeviceSeries],
) -> Vec<Option<Chart>> {
    let mut ids = vec![device.device.id];
    ids.extend(members.iter().map(|member| member.device.id));
    // A log may have only the sum of reads and writes.
    let knows_writes = device.total[WRITES].is_some();
    let both = |title: &str, unit: ChartUnit, read: usize, write: usize| {
        let first = if knows_writes { "reads" } else { "requests" };
        let series = vec![
            of_device(device, first, 0, read),
            of_device(device, "writes", 1, write),
        ];
        frame.lines(title, unit, series, &ids)
    };
    let flight = vec![of_device(device, "in flight", 2, IN_FLIGHT)];
    let busy = vec![of_device(device, "busy", 3, BUSY)];
    let waits = match device.total[READ_WAIT].or(device.total[WRITE_WAIT]) {
        Some(_) => both("Await", WAIT, READ_WAIT, WRITE_WAIT),
        None => {
            let all = vec![of_device(device, "requests", 0, ALL_WAIT)];
            frame.lines("Await", WAIT, all, &ids)
        }
    };
    let mut charts = vec![
        both("IOPS", RATE, READS, WRITES),
        both("Throughput", BYTES, READ_BYTES, WRITE_BYTES),
        waits,
        frame.lines("In flight", FLIGHT, flight, &ids),
        frame.lines("Busy", PERCENT, busy, &ids),
    ];
    charts.extend(latency::charts(frame, device));
    if members.is_empty() {
        return charts;
    }
    let under = [
        ("Await of reads, by member", WAIT, READ_WAIT),
        ("Await of writes, by member", WAIT, WRITE_WAIT),
        ("Await, by member", WAIT, ALL_WAIT),
        ("Reads, by member", RATE, READS),
        ("Writes, by member", RATE, WRITES),
    ];
    // Many members are shown only in the maps.
    if members.len() <= MAX_LINES {
        for (title, unit, at) in under {
            let series = members.iter().enumerate();
            let series = series
                .map(|(nth, member)| of_device(member, &member.device.name, nth, at))
                .collect();
            charts.push(frame.lines(title, unit, series, &ids));
        }
    } else {
        let members: Vec<&DeviceSeries> = members.iter().rev().copied().collect();
        for (title, unit, at) in under {
            charts.push(frame.map(title, unit, &members, at));
        }
    }
    charts
}

fn host(frame: &ChartFrame<'_>) -> Vec<Option<Chart>> {
    let course = frame.course;
    let line = |name: &str, colour: usize, at: usize| of_host(course, name, colour, at);
    vec![
        frame.lines(
            "Pressure: time in which tasks waited for I/O",
            PERCENT,
            vec![line("some", 0, SOME), line("all", 1, FULL)],
            &[],
        ),
        frame.lines(
            "Network",
            BYTES,
            vec![line("received", 0, RECEIVED), line("sent", 1, SENT)],
            &[],
        ),
        frame.lines(
            "Memory that waits to be written",
            MEMORY,
            vec![line("dirty", 3, DIRTY)],
            &[],
        ),
        frame.lines("Load", FLIGHT, vec![line("one minute", 4, LOAD)], &[]),
    ]
}
