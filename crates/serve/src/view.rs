//! Views of response times, together with the disks, hosts and other series below them.

use tally::level::{RollUpLevel, Zone};
use tally::query::Selection;

use crate::axis::{Seconds, timestamp};
use crate::documents::{Document as _, Line, ResponseTimes, figures};
use crate::sources::Sources;
use crate::sources::disks::ExaminedDisks;
use crate::sources::service::{Rows, ServiceFigures, usual_length, written};

/// Maximum size of a view's data in bytes.
const MAX_VIEW_BYTES: usize = 200_000;
/// Usual size of a figure in JSON in bytes, with its comma.
const BYTES_OF_FIGURE: usize = 7;
/// Number of disks of a view that names no disks.
const DEFAULT_DISKS: usize = 4;
/// Maximum number of disks of a view.
const MAX_DISKS: usize = 16;
/// Maximum number of hosts of a view.
const MAX_HOSTS: usize = 4;
/// Maximum number of findings, and of markers, of a view.
const MAX_BANDS: usize = 200;
/// Minimum number of slots.
const MIN_SLOTS: usize = 20;

/// Subject of a view: tag, span and disks.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The tag; `None` takes the busiest.
    pub(crate) selection: Option<Selection>,
    /// Start of the span, in seconds since 1970.
    pub(crate) from: Seconds,
    /// End of the span, in seconds since 1970.
    pub(crate) to: Seconds,
    /// Host whose disks are shown; `None` shows those of all hosts.
    pub(crate) host: Option<String>,
    /// The disks, as `HOST/NAME` or `NAME`; empty takes the busiest.
    pub(crate) disks: Vec<String>,
    /// Maximum number of slots.
    pub(crate) points: usize,
}

/// The document of a view, with as many slots as fit into its maximum size.
///
/// # Errors
/// When a source that is queried does not answer.
pub(crate) fn response_times(
    sources: &Sources,
    question: &Question,
    now: Seconds,
) -> anyhow::Result<ResponseTimes> {
    let mut question = question.clone();
    loop {
        let answer = answer(sources, &question, now)?;
        let length = answer.json().len();
        if length <= MAX_VIEW_BYTES || question.points <= MIN_SLOTS {
            return Ok(answer);
        }
        // Minima, maxima and names took more bytes than estimated.
        question.points = (answer.time_s.len() * MAX_VIEW_BYTES / length * 9 / 10).max(MIN_SLOTS);
    }
}

fn answer(sources: &Sources, question: &Question, now: Seconds) -> anyhow::Result<ResponseTimes> {
    let tags = sources.tags(now);
    let selection = sources.selection_or_busiest(question.selection.as_ref(), &tags);
    let rows = rows(sources, selection.as_ref(), question);
    let count = match question.disks.len() {
        0 => DEFAULT_DISKS,
        count => count.min(MAX_DISKS),
    };
    let axis = rows.axis(question.from, question.to, slots(question.points, count));
    let figures = rows.figures(&axis);
    let choice = ExaminedDisks {
        named: &question.disks,
        most: match question.disks.is_empty() {
            true => count,
            false => MAX_DISKS,
        },
    };
    let mut hosts = sources.hosts(&axis, question.host.as_deref(), choice);
    let known = hosts.busiest();
    let chosen = hosts.chosen(choice);
    if let Some(prometheus) = &sources.prometheus {
        // Without the extremes, only the means are shown.
        let _ = prometheus.add_extremes(&mut hosts, &chosen, &axis);
    }
    let mut names: Vec<String> = chosen.iter().map(|disk| disk.hostname.clone()).collect();
    names.extend(hosts.hosts.keys().cloned());
    let mut shown: Vec<String> = Vec::new();
    for name in names {
        if !shown.contains(&name) && shown.len() < MAX_HOSTS {
            shown.push(name);
        }
    }
    let (from, to) = (timestamp(axis.from()), timestamp(axis.to()));
    let mut markers = sources.markers(from, to).unwrap_or_default();
    markers.drain(..markers.len().saturating_sub(MAX_BANDS));
    let mut findings: Vec<_> = hosts
        .findings
        .iter()
        .filter(|finding| finding.began < to && finding.ended.is_none_or(|ended| ended > from))
        .cloned()
        .collect();
    findings.sort_by_key(|finding| finding.began);
    findings.drain(..findings.len().saturating_sub(MAX_BANDS));
    Ok(ResponseTimes {
        from,
        to,
        level: rows.level.name(),
        slot_s: axis.slot_s(),
        zone: rows.zone.name().to_owned(),
        selection: selection.map(|selection| written(&selection.0)),
        tags,
        sources: sources.states(),
        time_s: axis.starts().to_vec(),
        bounds_ms: rows.bounds_ms.clone(),
        disks: hosts.disk_lines(&chosen, &axis),
        hosts: hosts.host_lines(&shown, &axis),
        series: sources.series_lines(&axis),
        known_disks: known,
        markers,
        findings,
        ..of_service(&figures)
    })
}

/// The part of the document that comes from the stores.
fn of_service(service: &ServiceFigures) -> ResponseTimes {
    let epoch = timestamp(0);
    ResponseTimes {
        requests_per_s: service.requests_per_s(),
        mean_ms: figures(service.mean_ms()),
        max_ms: service.max_ms(),
        p50_ms: service.percentile(50),
        p95_ms: service.percentile(95),
        p99_ms: service.percentile(99),
        shares: service.shares(),
        from: epoch,
        to: epoch,
        level: "",
        slot_s: 0,
        zone: String::new(),
        selection: None,
        tags: Vec::new(),
        sources: Vec::new(),
        time_s: Vec::new(),
        bounds_ms: Vec::new(),
        disks: Vec::new(),
        hosts: Vec::new(),
        series: Vec::new(),
        known_disks: Vec::new(),
        markers: Vec::new(),
        findings: Vec::new(),
    }
}

/// Roll-ups of the selection; empty if there is no store or it cannot be read, which its state reports.
fn rows(sources: &Sources, selection: Option<&Selection>, question: &Question) -> Rows {
    let rows = selection.and_then(|selection| {
        let stores = &sources.stores;
        stores.rows(selection, question.from, question.to).ok()
    });
    rows.unwrap_or_else(|| Rows {
        level: coarseness(question.to - question.from),
        zone: Zone::utc(),
        bounds_ms: Vec::new(),
        rows: Vec::new(),
    })
}

/// Level whose periods are the slots of a view without response times.
fn coarseness(span: Seconds) -> RollUpLevel {
    let fits = |level: &RollUpLevel| span / usual_length(*level) <= 2200;
    [RollUpLevel::Minute, RollUpLevel::Hour]
        .into_iter()
        .find(fits)
        .unwrap_or(RollUpLevel::Day)
}

/// Number of slots that fit into a view with the given number of disks.
fn slots(points: usize, disks: usize) -> usize {
    let of_service = 12 + 2 + 5;
    let of_disks = 12 * disks;
    let of_hosts = 6 * MAX_HOSTS.min(disks.max(1));
    let bytes = 11 + BYTES_OF_FIGURE * (of_service + of_disks + of_hosts);
    points.min(MAX_VIEW_BYTES * 9 / 10 / bytes).max(MIN_SLOTS)
}

/// A view as CSV: a line for each slot.
pub(crate) fn csv(view: &ResponseTimes) -> String {
    let mut columns: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    let mut line = |name: &str, line: &Line| {
        let rounded = |figures: &[crate::documents::RoundedFigure]| {
            figures.iter().map(|figure| figure.rounded()).collect()
        };
        columns.push((name.to_owned(), rounded(&line.mean)));
        for (end, extreme) in [("min", &line.min), ("max", &line.max)] {
            if let Some(extreme) = extreme {
                columns.push((format!("{name}_{end}"), rounded(extreme)));
            }
        }
    };
    line("requests_per_s", &view.requests_per_s);
    line("p50_ms", &view.p50_ms);
    line("p95_ms", &view.p95_ms);
    line("p99_ms", &view.p99_ms);
    for (class, share) in view.shares.iter().enumerate() {
        let name = match view.bounds_ms.get(class) {
            Some(bound) => format!("share_up_to_{bound}_ms"),
            None => "share_above".to_owned(),
        };
        let share = Line {
            mean: share.clone(),
            ..Line::default()
        };
        line(&name, &share);
    }
    for disk in &view.disks {
        let name = |figure: &str| format!("{}/{} {figure}", disk.disk.hostname, disk.disk.name);
        line(&name("await_ms"), &disk.await_ms);
        line(&name("iops"), &disk.iops);
        line(&name("busy_fraction"), &disk.busy_fraction);
        line(&name("queue"), &disk.queue);
    }
    for host in &view.hosts {
        let name = |figure: &str| format!("{} {figure}", host.hostname);
        line(&name("cpu_busy_fraction"), &host.cpu_busy_fraction);
        line(&name("io_pressure_fraction"), &host.io_pressure_fraction);
    }
    for series in &view.series {
        line(&series.name, &series.values);
    }
    let head = std::iter::once("time".to_owned());
    let head = head.chain(columns.iter().map(|(name, _)| name.clone()));
    let mut table = crate::csv::CsvTable::new(head);
    for (slot, start) in view.time_s.iter().enumerate() {
        let cells = columns.iter().map(|(_, values)| {
            let value = values.get(slot).copied().flatten();
            value.map_or_else(String::new, |value| value.to_string())
        });
        table.row(std::iter::once(timestamp(*start).to_string()).chain(cells));
    }
    table.text()
}
